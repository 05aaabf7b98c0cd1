// The safety net below the watches: what no event told is found by a comparison with a list, seldom and cheaply.
import { afterEach, describe, expect, test } from 'bun:test'
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import { differences, firstSteps, type Version } from '../../agent/reconcile/snapshot/watch/resync.ts'
import { type Logger, silentLogger } from '../../shared/runtime/logger.ts'
import type { FakeCluster } from '../support/fake-cluster.ts'
import { setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const versions = (...objects: string[]) =>
  new Map<string, Version>(objects.map((text) => [text[0] ?? '', { uid: text[1] ?? '', resourceVersion: text.slice(2) }]))

test.each([
  ['nothing', versions('au1'), versions('au1'), versions('au1'), []],
  ['an object that the watch does not know', versions(), versions(), versions('au1'), ['a']],
  ['an object that is not there', versions('au1', 'bu1'), versions('au1', 'bu1'), versions('bu1'), ['a']],
  ['a newer state', versions('au1'), versions('au1'), versions('au2'), ['a']],
  ['an older state', versions('au2'), versions('au2'), versions('au1'), ['a']],
  ['another object of that name', versions('au1'), versions('au1'), versions('av1'), ['a']],
  ['one that changed meanwhile, older in the list', versions('au1'), versions('au2'), versions('au1'), []],
  ['one that came meanwhile', versions(), versions('au1'), versions(), []],
  ['one that went meanwhile', versions('au1'), versions(), versions('au1'), []],
] as const)('LS6 a list is compared with what was known before and after it: %s', (_, before, after, listed, expected) => {
  expect(differences(before, after, listed)).toEqual([...expected])
})

describe('resync', () => {
  function resynced(resyncMs?: number) {
    const warnings: Array<{ message: string; fields: unknown }> = []
    const log: Logger = { ...silentLogger, warn: (message, fields) => void warnings.push({ message, fields }), with: () => log }
    const found = setup({ log, ...(resyncMs === undefined ? {} : { resyncMs }) })
    return { ...found, warnings }
  }
  /** Lists beside the watch of the kind: they end at once. */
  const lists = (cluster: FakeCluster) =>
    cluster.requests.splice(0).filter(({ verb, kind }) => verb === 'watch' && kind === 'ConfigMap').length

  test('LS6 what no event told is found within an interval, put right, and told as a warning with its name', async () => {
    const { cluster, clock, kit, run, warnings } = resynced(DAY_MS)
    kit.desire(['deleted', 'changed', 'kept'].map((name) => configMap(name)))
    await run()
    const unrecorded = { ...configMap('appeared'), metadata: { ...cluster.object(configMapRef('kept'))?.metadata, name: 'appeared' } }
    for (const field of ['uid', 'resourceVersion', 'managedFields', 'creationTimestamp', 'annotations'])
      Reflect.deleteProperty(unrecorded.metadata, field)
    cluster.withoutEvents(() => {
      cluster.deleteAs('kubectl', configMapRef('deleted'))
      cluster.editAs('kubectl-edit', configMapRef('changed'), (object) => Object.assign(object, { data: { a: 'theirs' } }))
      cluster.applyAs('kubectl', unrecorded)
    })
    writes(cluster)
    await clock.advance(DAY_MS + HOUR_MS)
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap changed', 'apply ConfigMap deleted'])
    expect(kit.reconciler.resynced().differences).toBe(3)
    expect(warnings.filter(({ message }) => message === 'objects changed without an event')).toMatchObject([
      { fields: { kind: 'ConfigMap', count: 3, objects: ['appeared', 'changed', 'deleted'].map((name) => configMapKey(name)).join(', ') } },
    ])
  })

  test('LS6 more than 20 are listed again at once', async () => {
    const { cluster, clock, kit, run } = resynced(DAY_MS)
    const names = Array.from({ length: 30 }, (_, n) => `m${n}`)
    kit.desire(names.map((name) => configMap(name)))
    await run()
    cluster.withoutEvents(() => {
      for (const name of names.slice(0, 25)) cluster.deleteAs('kubectl', configMapRef(name))
    })
    await clock.advance(DAY_MS + HOUR_MS)
    expect(names.filter((name) => cluster.object(configMapRef(name)) === null)).toEqual([])
    expect(kit.reconciler.resynced().differences).toBe(25)
  })

  test.each([[5], [30]])('LS6 a list of an API server whose watch cache lags tells of no difference, of %i objects', async (count) => {
    const { cluster, clock, kit, run, warnings } = resynced(DAY_MS)
    const names = Array.from({ length: count }, (_, n) => `m${n}`)
    kit.desire(names.map((name) => configMap(name)))
    await run()
    cluster.lagCaches()
    kit.desire([...names.slice(1).map((name) => configMap(name, { v: '2' })), configMap('made')])
    await clock.advance(HOUR_MS)
    cluster.requests.splice(0)
    await clock.advance(10 * DAY_MS)
    expect(kit.reconciler.resynced()).toEqual({ compared: 10, differences: 0 })
    expect(warnings.map(({ message }) => message)).not.toContain('objects changed without an event')
    // A list of each interval, and of many differences one that does not come from a cache.
    expect(lists(cluster)).toBe(count > 20 ? 20 : 10)
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test('LS6 each kind is listed once an interval, and nothing is asked in between', async () => {
    const { cluster, clock, kit, run } = resynced(DAY_MS)
    kit.desire([configMap('a')])
    await run()
    cluster.requests.splice(0)
    await clock.advance(10 * DAY_MS)
    expect(cluster.requests.map(({ verb, kind }) => `${verb} ${kind}`)).toEqual(Array.from({ length: 10 }, () => 'watch ConfigMap'))
    expect(kit.reconciler.resynced()).toEqual({ compared: 10, differences: 0 })
  })

  test('LS6 switched off it lists nothing', async () => {
    const { cluster, clock, kit, run } = resynced()
    kit.desire([configMap('a')])
    await run()
    cluster.requests.splice(0)
    await clock.advance(3 * DAY_MS)
    expect(cluster.requests).toEqual([])
  })

  test('LS6 an event that is on its way while the list is read is no difference', async () => {
    const { cluster, clock, kit, run, warnings } = resynced(DAY_MS)
    kit.desire([configMap('a')])
    await run()
    cluster.lagWatches(() => 3_000)
    for (let hour = 0; hour < 48; hour += 1) {
      cluster.setStatus(configMapRef('a'), { seen: hour })
      await clock.advance(HOUR_MS / 2)
      cluster.setStatus(configMapRef('a'), { seen: -hour })
      await clock.advance(HOUR_MS / 2)
    }
    expect(kit.reconciler.resynced()).toEqual({ compared: 2, differences: 0 })
    expect(warnings.map(({ message }) => message)).not.toContain('objects changed without an event')
  })

  test('LS6 a list that fails is left out until the next interval', async () => {
    const { cluster, clock, kit, run } = resynced(DAY_MS)
    kit.desire([configMap('a')])
    await run()
    cluster.fail(({ verb, kind }) =>
      verb === 'watch' && kind === 'ConfigMap' ? { kind: 'server_error', status: 503, reason: '', message: 'busy' } : null,
    )
    lists(cluster)
    await clock.advance(DAY_MS)
    expect(lists(cluster)).toBe(1)
    expect(kit.reconciler.resynced()).toEqual({ compared: 0, differences: 0 })
    expect(kit.object(configMapKey('a'))).toMatchObject({ health: 'Healthy' })
  })
})

test('LS6 clusters and kinds are spread over the interval, and each stays where it is', () => {
  const resource = (kind: string): ApiResource => ({ group: 'apps', version: 'v1', kind, plural: '', namespaced: true, verbs: [] })
  const steps = Array.from({ length: 1_000 }, (_, n) => firstSteps(`c-${n}`, resource('Deployment')))
  expect(Math.min(...steps)).toBe(1)
  expect(Math.max(...steps)).toBe(96)
  const counts = new Map<number, number>()
  for (const step of steps) counts.set(step, (counts.get(step) ?? 0) + 1)
  expect(Math.max(...counts.values())).toBeLessThan(40)
  const kinds = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet'].map((kind) => firstSteps('c-1', resource(kind))))
  expect(kinds.size).toBeGreaterThan(1)
  expect(firstSteps('c-7', resource('Deployment'))).toBe(firstSteps('c-7', resource('Deployment')))
})
