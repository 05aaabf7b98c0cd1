// HealthRules as rows: which clusters are given which, in which order, and what a change of one writes.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { replayShards } from '../../server/desired/replay.ts'
import { HEALTH_RULES } from '../../shared/model/desired.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { configMap, createIngestKit, type IngestKit } from '../support/ingest-kit.ts'
import { openTestShards } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

let kit: IngestKit
let one: ClusterId
let two: ClusterId
beforeEach(async () => {
  kit = await createIngestKit()
  one = await kit.join('1')
  two = await kit.join('2', { env: 'test' })
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1') }, 'first')
  await kit.repository()
})
afterEach(() => kit.close())

const ROWS = ['object/default/shop//ConfigMap/shop/a', 'service/default/shop']
const key = (project: string, name: string) => ({ kind: 'HealthRule', project, name }) as const
const write = async (project: string, name: string, when = 'true') => {
  const spec = JSON.stringify({ group: 'example.com', healthy: { when }, kind: 'Thing' })
  await kit.store.applyResource(key(project, name), { labels: {}, spec, nowMs: systemClock.nowMs() })
  await kit.ingest.healthRulesChanged()
}
const remove = async (project: string, name: string) => {
  await kit.store.deleteResource(key(project, name))
  await kit.ingest.healthRulesChanged()
}
const pull = (clusterId: ClusterId) => kit.pull(clusterId)

test('HR4 a rule of the fleet reaches every cluster, one of a project those that have its services', async () => {
  await kit.service()
  await pull(one)
  await write('', 'fleet')
  await write('default', 'ours')
  await write('other', 'theirs')
  expect([await pull(one), await pull(two)]).toEqual([['healthrule//fleet', 'healthrule/default/ours'], ['healthrule//fleet']])
})

test('HR4 HR5 a change writes one row, a rule that goes takes its row along, and what is equal writes nothing', async () => {
  await kit.service()
  await write('', 'fleet')
  await write('', 'more')
  await pull(one)
  const ordinal = async () => (await kit.store.clusterOrdinals()).get(one)
  const before = await ordinal()
  await write('', 'more', 'false')
  expect([await pull(one), await ordinal()]).toEqual([['healthrule//more'], (before ?? 0) + 1])
  await kit.ingest.healthRulesChanged()
  expect([await pull(one), await ordinal()]).toEqual([[], (before ?? 0) + 1])
  await remove('', 'fleet')
  expect(await pull(one)).toEqual(['-healthrule//fleet'])
  await remove('', 'more')
  expect([await pull(one), await pull(two)]).toEqual([['-healthrule//more'], []])
})

test('HR4 the rules of a project come to a cluster before its first service, and go when a rule changes after the last one went', async () => {
  await write('default', 'ours')
  expect(await pull(one)).toEqual([])
  const order: string[] = []
  const written = kit.shards.writeRevisions.bind(kit.shards)
  kit.shards.writeRevisions = (revisions) => {
    for (const { clusterId, service } of revisions) if (clusterId === one) order.push(service)
    return written(revisions)
  }
  await kit.service()
  expect([order, await pull(one)]).toEqual([
    ['', 'shop'],
    ['healthrule/default/ours', ...ROWS],
  ])
})

test('HR4 rules are neither placements nor changes that anybody is shown', async () => {
  await kit.service()
  const counts = await kit.store.rollups.ofKeys('service', ['/'])
  await write('', 'fleet')
  expect(await kit.store.rollups.ofKeys('service', ['/'])).toEqual(counts)
  expect((await kit.store.desiredOfService(HEALTH_RULES)).map(({ doc }) => doc)).toEqual([null, null])
})

test('HR4 a shard that is made anew has the rules again', async () => {
  await kit.service()
  await write('', 'fleet')
  await write('default', 'ours')
  const { shards } = openTestShards(tempDir())
  await replayShards({ ...kit, shards, log: silentLogger })
  expect(shards.head(one).hash).toBe(kit.shards.head(one).hash)
  expect(shards.head(two).hash).toBe(kit.shards.head(two).hash)
  shards.close()
})

test('HR4 what could not be published is tried again, and a restart catches up', async () => {
  const stop = new AbortController()
  const again = kit.restarted(stop.signal)
  await kit.store.applyResource(key('', 'fleet'), { labels: {}, spec: '{"group":"","kind":"Pod","healthy":{"when":"true"}}', nowMs: 1 })
  const write = kit.shards.writeRevisions.bind(kit.shards)
  let failures = 1
  kit.shards.writeRevisions = (revisions) => {
    failures -= 1
    if (failures === 0) throw new Error('disk')
    return write(revisions)
  }
  const running = again.run()
  await again.healthRulesChanged()
  stop.abort()
  await running
  expect(await pull(one)).toEqual(['healthrule//fleet'])
})
