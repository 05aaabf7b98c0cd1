// What the watches keep of the cluster, when something in them goes wrong.
import { expect, test } from 'bun:test'
import { Watches } from '../../agent/reconcile/watch/watches.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { configMap, configMapKey, configMapRef } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

test('RC5 a kind whose watch broke on a bug is unknown for half a minute, and then known again', async () => {
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
  const sink = { expected: () => [], changed, minds: () => false, turned: () => {}, unserved: () => {} }
  const watches = new Watches({ cluster, clock, random: seededRandom(1), log: silentLogger, sink, signal: stop.signal })
  watches.follow(new Map([['/v1/ConfigMap', resource]]))
  await clock.advance(10)
  const owned = { ...configMap('a'), metadata: { ...configMap('a').metadata, labels: { 'skerry.dev/service': 'web.shop' } } }
  cluster.applyAs('skerry', owned)
  await clock.advance(10)
  expect(watches.view(resource, configMapKey('a')).kind).toBe('unknown')
  await clock.advance(30_000)
  expect(watches.view(resource, configMapKey('a')).kind).toBe('present')
  cluster.deleteAs('kubectl', configMapRef('a'))
  await clock.advance(10)
  expect(watches.view(resource, configMapKey('a')).kind).toBe('absent')
  stop.abort()
})
