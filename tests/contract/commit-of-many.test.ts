// One commit that concerns many services of a repository.
import { afterEach, expect, test } from 'bun:test'
import { configMap, createIngestKit, type IngestKit } from '../support/ingest-kit.ts'
import { memoryRendering } from '../support/render-kit.ts'

let kit: IngestKit
afterEach(() => kit.close())

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f']

test('IN7a IC18 services of one commit render side by side, four at a time, before any of them is published; a single one is asked for once', async () => {
  let [running, most, asked] = [0, 0, 0]
  kit = await createIngestKit({
    rendering: () => {
      const made = memoryRendering()
      const raw: typeof made.renderers.raw = async (job) => {
        most = Math.max(most, ++running)
        await Bun.sleep(20)
        running -= 1
        return made.renderers.raw(job)
      }
      return { ...made, renderers: { ...made.renderers, raw } }
    },
  })
  const files = (value: string) => Object.fromEntries(NAMES.map((name) => [`${name}/map.yaml`, configMap(name, value)]))
  await kit.git.commit(files('one'), 'first')
  await kit.repository()
  const one = await kit.join('1')
  for (const name of NAMES) await kit.service({}, name)
  most = 0
  const commit = await kit.push(files('two'))
  const rows = await Promise.all(NAMES.map((name) => kit.row(one, name)))
  expect([most, new Set(rows.map((row) => row?.commit))]).toEqual([4, new Set([commit])])
  const real = kit.store.desiredOfService
  kit.store.desiredOfService = (id) => {
    asked += 1
    return real(id)
  }
  const next = await kit.push({ 'c/map.yaml': configMap('c', 'three') })
  expect([(await kit.row(one, 'c'))?.commit, (await kit.row(one, 'd'))?.commit, asked]).toEqual([next, commit, 1])
})
