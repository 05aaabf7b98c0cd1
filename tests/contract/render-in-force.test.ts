// What a program made by chance (randAlphaNum, genCA, a clock) is made once: as long as nothing changed that its render
// looked at, what is published stays in force.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createCacheFiles } from '../../server/render/cache/files.ts'
import { createRenderCache } from '../../server/render/cache/renders.ts'
import type { Sandbox } from '../../server/render/sandbox.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { memoryRendering, testMac } from '../support/render-kit.ts'

const CHART = {
  'shop/Chart.yaml': 'apiVersion: v2\nname: shop\nversion: 1.0.0\n',
  'shop/values.yaml': 'color: red\n',
  'shop/templates/a.yaml':
    'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { value: "{{ .Values.color }} {{ randAlphaNum 20 }}" }\n',
}
const HELM = { render: { helm: { values: { color: '{{ cluster.labels.region | default: "none" }}' } } } }

let kit: IngestKit
let sandbox: Sandbox
let build: string
/** Of helm, as it says itself. Null means its own. */
let version: string | null
let runs: number
let clusters: ClusterId[]
beforeEach(async () => {
  sandbox ??= realSandbox()
  ;[build, version, runs] = ['one', null, 0]
  kit = await createIngestKit({ rendering })
  await kit.git.commit(CHART, 'chart')
  await kit.repository()
  clusters = [await kit.join('1', { env: 'prod', region: 'eu' }), await kit.join('2', { env: 'prod', region: 'us' })]
  await kit.service(HELM)
})
afterEach(() => kit.close())

function rendering(dir: string) {
  const files = createCacheFiles({
    dir: join(dir, 'renders'),
    seal: { seal: (bytes) => bytes, open: (bytes) => bytes },
    clock: systemClock,
    bytesMax: 10_000_000,
  })
  const counted: Sandbox = {
    version: async (program) => version ?? (await sandbox.version(program)),
    run(run, signal) {
      runs += 1
      return sandbox.run(run, signal)
    },
  }
  return { ...memoryRendering(counted), cache: createRenderCache({ mac: testMac, files }), build }
}

const digests = async () => Promise.all(clusters.map(async (clusterId) => (await kit.row(clusterId))?.digest))
const again = (server = kit.restarted()) => server.serviceChanged(SHOP)
const loseCache = () => rmSync(join(kit.dir, 'renders'), { recursive: true, force: true })

test('RL6 with its cache lost, or another build of the server, what chance made stays as it is published, also for who joins', async () => {
  const before = await digests()
  expect(new Set(before).size).toBe(2)
  loseCache()
  await again()
  build = 'two'
  await again()
  expect([runs, await digests()]).toEqual([4, before])
  clusters.push(await kit.join('3', { env: 'prod', region: 'us' }))
  loseCache()
  await again()
  expect(await digests()).toEqual([...before, before[1]])
  expect((await kit.events()).filter((event) => event.startsWith('RevisionPublished'))).toHaveLength(2)
})

test('RL6 a change of what its render looks at is rolled out, and only where it is one', async () => {
  const before = await digests()
  loseCache()
  await kit.relabel('cluster-1', { env: 'prod', region: 'asia' })
  const after = await digests()
  expect([after[0] === before[0], after[1] === before[1]]).toEqual([false, true])
  loseCache()
  await kit.git.commit({ 'shop/values.yaml': 'color: blue\n' }, 'another')
  const server = kit.restarted()
  await server.repositoryChanged('default', 'apps')
  const last = await digests()
  expect([last[0] === after[0], last[1] === after[1]]).toEqual([false, false])
})

test('RL6 also what it was when another value at such a place made the same', async () => {
  await kit.relabel('cluster-1', { env: 'prod' })
  const before = await digests()
  await kit.relabel('cluster-1', { env: 'prod', region: 'none' }) // the same values for helm, so the same answer
  expect(await digests()).toEqual(before)
  loseCache()
  await again()
  expect(await digests()).toEqual(before)
})

test('RL3 RL6 another version of the tool asks, also of what chance made; with the old one back nothing has changed, without a cache either', async () => {
  const before = await digests()
  version = 'helm 9.9.9'
  await again()
  loseCache()
  await again()
  const open = await kit.store.confirmationsOfService(SHOP)
  expect([open.map(({ kind, confirmedMs }) => [kind, confirmedMs]), await digests()]).toEqual([[['release', null]], before])
  loseCache()
  version = null
  await again()
  expect([await kit.store.confirmationsOfService(SHOP), await digests()]).toEqual([[], before])
  version = 'helm 9.9.9'
  const server = kit.restarted()
  await again(server)
  const [question] = await kit.store.confirmationsOfService(SHOP)
  await kit.store.confirm(question?.id ?? '', 'ada', 5)
  await again(server)
  const after = await digests()
  expect([after[0] === before[0], after[1] === before[1], await kit.store.confirmationsOfService(SHOP)]).toEqual([false, false, []])
  loseCache()
  await again()
  expect(await digests()).toEqual(after)
})

test('IN8 RL6 looked at again with nothing changed, nothing is written, with and without a cache', async () => {
  const published: number[] = []
  const publish = kit.store.publish.bind(kit.store)
  kit.store.publish = (rows) => {
    published.push(rows.length)
    return publish(rows)
  }
  await again()
  loseCache()
  await again()
  expect(published.filter((count) => count > 0)).toEqual([])
  await kit.relabel('cluster-1', { env: 'prod', region: 'asia' })
  expect(published.filter((count) => count > 0)).toEqual([1])
})
