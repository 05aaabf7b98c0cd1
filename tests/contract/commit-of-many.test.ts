// One commit that concerns many services of a repository.
import { afterEach, expect, test } from 'bun:test'
import type { WorkerPool } from '../../server/control/workers/pool.ts'
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

test('IN7a services that no cluster holds are looked at once, with one question about the files of each', async () => {
  const asked = new Map<string, number>()
  kit = await createIngestKit({
    rendering: () => {
      const around = (workers: Pick<WorkerPool, 'run'>): Pick<WorkerPool, 'run'> => ({
        run: (job) => {
          asked.set(job.method, (asked.get(job.method) ?? 0) + 1)
          return workers.run(job)
        },
      })
      return { ...memoryRendering(), around }
    },
  })
  const one = await kit.join('1')
  for (const name of NAMES) await kit.service({}, name)
  const files = NAMES.flatMap((name) => ['p', 'q', 'r'].map((file) => [`${name}/${file}.yaml`, configMap(file, 'one')]))
  const commit = await kit.git.commit(Object.fromEntries(files), 'first')
  asked.clear()
  await kit.repository()
  const rows = await Promise.all(NAMES.map((name) => kit.row(one, name)))
  expect(new Set(rows.map((row) => row?.commit))).toEqual(new Set([commit]))
  const { length } = NAMES
  expect(['source.has', 'source.open', 'render', 'source.ids'].map((job) => asked.get(job))).toEqual([length, length, length, length])
})

test('IN7a new services are rendered before others that lose objects by the same commit', async () => {
  const log: string[] = []
  kit = await createIngestKit({
    rendering: () => {
      const made = memoryRendering()
      const raw: typeof made.renderers.raw = (job) => {
        log.push('render')
        return made.renderers.raw(job)
      }
      return { ...made, renderers: { ...made.renderers, raw } }
    },
  })
  const one = await kit.join('1')
  await kit.git.commit({ 'a/m.yaml': configMap('m', 'one'), 'a/k.yaml': configMap('k', 'one') }, 'first')
  await kit.repository()
  await kit.service({}, 'a')
  for (const name of ['b', 'c']) await kit.service({}, name) // their folders come with the next commit
  const write = kit.shards.writeRevisions.bind(kit.shards)
  kit.shards.writeRevisions = (revisions) => {
    for (const { service } of revisions) log.push(service)
    return write(revisions)
  }
  log.length = 0
  await kit.push({ 'a/k.yaml': null, 'b/m.yaml': configMap('m', 'one'), 'c/m.yaml': configMap('m', 'one') })
  expect([log.slice(0, 3), log.slice(3).toSorted(), log.at(-1)]).toEqual([['render', 'render', 'render'], ['a', 'b', 'c'], 'a'])
  expect((await kit.row(one, 'b'))?.count).toBe(1)
})
