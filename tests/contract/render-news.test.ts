// What reaches a pass while another one runs, and what is told of it: facts, clusters that come and go, a server that
// stops.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { memoryRendering } from '../support/render-kit.ts'

const template = (value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { value: "${value}" }\n`

let kit: IngestKit
let build: string
/** Runs before each render of plain manifests. */
let beforeRender: () => Promise<void>
let aheadMs: number
let rev: number
beforeEach(async () => {
  ;[build, aheadMs, rev] = ['one', 0, 0]
  beforeRender = async () => {}
  kit = await createIngestKit({
    rendering: () => {
      const made = memoryRendering()
      const raw = made.renderers.raw
      const renderers = {
        ...made.renderers,
        raw: async (job: Parameters<typeof raw>[0]) => {
          await beforeRender()
          return raw(job)
        },
      }
      return { ...made, renderers, build }
    },
    clock: {
      ...systemClock,
      nowMs: () => systemClock.nowMs() + aheadMs,
      sleep: async (ms, signal) => (ms <= 5_000 ? systemClock.sleep(0, signal) : systemClock.sleep(ms, signal)),
    },
  })
  await kit.git.commit({ 'shop/a.yaml': configMap('a', 'one') }, 'first')
  await kit.repository()
})
afterEach(() => kit.close())

async function reportFacts(clusterId: ClusterId, kubernetesVersion: string, ingest = kit.ingest) {
  const row = { kind: 'facts' as const, key: 'cluster', rev: ++rev, doc: { kubernetesVersion, apis: { v1: ['ConfigMap'] } } }
  await kit.store.upsertStatus(clusterId, [row], { complete: false, nowMs: 1 })
  ingest.statusReported(clusterId, [row])
}

test('RL5 facts that changed while the server was brought to another version prune nothing by themselves', async () => {
  const one = await kit.join('1')
  await reportFacts(one, 'v1.35.0')
  const named = template('').replace('name: a', 'name: "of-{{ cluster.facts.kubernetesVersion | replace: ".", "-" }}"')
  await kit.push({ 'shop/a.yaml': null, 'shop/a.yaml.liquid': named })
  await kit.service()
  const before = await kit.row(one)
  build = 'two'
  const server = kit.restarted()
  await reportFacts(one, 'v1.36.0', server)
  await server.serviceChanged(SHOP)
  const after = await kit.row(one)
  expect([after?.digest === before?.digest, before?.factsOnly, after?.factsOnly]).toEqual([false, undefined, true])
})

test('FA5 facts that change while a service begins to look at them are not missed', async () => {
  const one = await kit.join('1')
  await reportFacts(one, 'v1.35.0')
  await kit.push({
    'shop/a.yaml': null,
    'shop/a.yaml.liquid': template('{% if config.looks %}{{ cluster.facts.kubernetesVersion }}{% endif %}'),
  })
  await kit.service({ config: { looks: false } }) // looks at no facts
  const renders: Array<() => void> = []
  const second = new Promise<void>((resolve) => renders.push(() => {}, resolve))
  beforeRender = async () => {
    renders.shift()?.()
    if (renders.length === 0) return
    await reportFacts(one, 'v1.36.0')
    await systemClock.sleep(30) // the news is gathered before this render ends
  }
  await kit.service({ config: { looks: true } })
  await Promise.race([second, systemClock.sleep(30_000)])
  expect(renders).toEqual([])
})

test('RL1 clusters that come and go while some fail are no news of that failure', async () => {
  await kit.push({ 'shop/a.yaml': null, 'shop/a.yaml.liquid': template('{{ cluster.labels.region }}') })
  await kit.join('1', { env: 'prod', region: 'eu' })
  await kit.join('2')
  await kit.service()
  for (const digit of ['3', '4', '5']) {
    await kit.join(digit)
    await kit.ingest.clustersChanged()
  }
  expect((await kit.store.renderState(SHOP)).error?.message).toStartWith('in 4 of 5 clusters (cluster-2, cluster-3, cluster-4 and 1 more)')
  expect((await kit.events()).filter((event) => event.startsWith('RenderFailed'))).toHaveLength(1)
  await kit.push({ 'shop/a.yaml.liquid': template('{{ cluster.labels.region }} {{ cluster.labels.zone }}') })
  expect((await kit.events()).filter((event) => event.startsWith('RenderFailed'))).toHaveLength(2)
})

test('IN8 what breaks off because the server stops is no failure of the service', async () => {
  const one = await kit.join('1')
  await kit.service()
  const stopping = new AbortController()
  const server = kit.restarted(stopping.signal)
  beforeRender = async () => {
    stopping.abort()
    throw new AppError('git_unreachable', { detail: 'stopped' })
  }
  await server.serviceChanged(SHOP)
  beforeRender = async () => {}
  expect((await kit.store.renderState(SHOP)).error).toBe(null)
  await kit.restarted().serviceChanged(SHOP)
  expect((await kit.events()).filter((event) => event.startsWith('Render'))).toEqual([])
  expect(await kit.pull(one)).toHaveLength(2)
})
