// What the watches keep of the cluster, when something in them goes wrong.
import { afterEach, expect, test } from 'bun:test'
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { Watches } from '../../agent/reconcile/snapshot/watch/watches.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

afterEach(stopAll)

test('RC9 the GET that confirms a DELETED event waits at the gate: none is sent before the time of a Retry-After', async () => {
  const { cluster, clock, kit, run } = setup()
  kit.desire([configMap('a'), configMap('b')])
  await run()
  const throttled: ApiFailure = { kind: 'throttled', status: 429, reason: 'TooManyRequests', message: 'busy', retryAfterMs: 30_000 }
  cluster.fail(({ verb }) => (verb === 'apply' ? throttled : null))
  kit.desire([configMap('a'), configMap('b', { changed: 'x' })])
  await clock.advance(100)
  cluster.requests.splice(0)
  cluster.deleteAs('kubectl', configMapRef('a'))
  await clock.advance(20_000)
  expect(cluster.requests.filter(({ verb }) => verb === 'get')).toEqual([])
  cluster.fail(() => null)
  await clock.advance(20_000)
  expect(cluster.requests.filter(({ verb }) => verb === 'get').length).toBeGreaterThan(0)
  expect(cluster.object(configMapRef('a'))).not.toBeNull()
})

test('LS5 a kind whose watch broke on a bug is unknown for half a minute, and then known again', async () => {
  const clock = createVirtualClock()
  const cluster = createFakeCluster({ clock })
  const [resource] = (await cluster.discover()).resources.filter(({ kind }) => kind === 'ConfigMap')
  if (resource === undefined) throw new Error('the fake serves ConfigMaps')
  const stop = new AbortController()
  let breaks = 1
  const changed = () => {
    breaks -= 1
    if (breaks === 0) throw new Error('a bug')
  }
  const owned = { expected: () => [], expects: () => false, misses: () => false, minds: () => false }
  const sink = {
    changed,
    met: () => {},
    turned: () => {},
    unserved: () => {},
  }
  const watches = new Watches({ cluster, clock, random: seededRandom(1), log: silentLogger, owned, sink, signal: stop.signal })
  watches.follow(new Map([['/v1/ConfigMap', resource]]))
  await clock.advance(10)
  const marked = { ...configMap('a'), metadata: { ...configMap('a').metadata, labels: { 'skerry.dev/service': 'web.shop' } } }
  cluster.applyAs('skerry', marked)
  await clock.advance(10)
  expect(watches.view(resource, configMapKey('a')).kind).toBe('unknown')
  await clock.advance(30_000)
  expect(watches.view(resource, configMapKey('a')).kind).toBe('present')
  cluster.deleteAs('kubectl', configMapRef('a'))
  await clock.advance(10)
  expect(watches.view(resource, configMapKey('a')).kind).toBe('absent')
  stop.abort()
})
