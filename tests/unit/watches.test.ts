// What the watches keep of the cluster, when something in them goes wrong.
import { afterEach, expect, test } from 'bun:test'
import type { ApiFailure, ApiResource, GetResult, WatchEvent, WatchScope } from '../../agent/cluster/cluster.ts'
import { Watches } from '../../agent/reconcile/snapshot/watch/watches.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

afterEach(stopAll)

const HOUR_MS = 3_600_000

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

test('RC5 one object that cannot be read is unknown by itself, with its cause, and holds nothing else of its kind', async () => {
  const { cluster, clock, kit, run } = setup()
  kit.desire(['a', 'b'].map((name) => configMap(name)))
  await run()
  await kit.stop()
  for (const name of ['a', 'b']) cluster.deleteAs('kubectl', configMapRef(name))
  const lost: ApiFailure = {
    kind: 'not_found',
    status: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
  }
  cluster.fail(({ verb, ref }) => (verb === 'get' && ref?.name === 'a' ? lost : null))
  await run()
  await clock.advance(600_000)
  expect(cluster.object(configMapRef('b'))).not.toBeNull()
  expect(kit.object(configMapKey('b'))?.sync).toBe('Synced')
  expect(kit.object(configMapKey('a'))).toMatchObject({ sync: 'Unknown', health: 'Unknown' })
  expect(kit.object(configMapKey('a'))?.message).toContain(lost.message)
  kit.desire(['a', 'b', 'c'].map((name) => configMap(name)))
  await clock.advance(1_000)
  expect(kit.object(configMapKey('c'))?.sync).toBe('Synced')
  cluster.fail(() => null)
  await clock.advance(60_000)
  expect(kit.object(configMapKey('a'))?.sync).toBe('Synced')
})

test('RC5 a kind that is served at another path is watched there, and unknown until it is listed', async () => {
  const clock = createVirtualClock()
  const opened: string[] = []
  const stop = new AbortController()
  async function* watch({ plural }: ApiResource, { signal }: WatchScope): AsyncGenerator<WatchEvent> {
    opened.push(plural)
    yield { kind: 'reset' }
    await clock.sleep(1_000, signal)
    yield { kind: 'synced' }
    await clock.sleep(HOUR_MS, signal)
  }
  const get = async (): Promise<GetResult> => ({ kind: 'absent' })
  const owned = { expected: () => [], expects: () => false, misses: () => false, minds: () => false }
  const sink = { changed: () => {}, met: () => {}, turned: () => {}, unserved: () => {}, doubted: () => {} }
  const watches = new Watches({
    cluster: { get, watch },
    clock,
    random: seededRandom(1),
    log: silentLogger,
    owned,
    sink,
    signal: stop.signal,
  })
  const boats = (plural: string): ApiResource => ({
    group: 'sea.example',
    version: 'v1',
    kind: 'Boat',
    plural,
    namespaced: true,
    verbs: [],
  })
  const follow = (plural: string) => watches.follow(new Map([['sea.example/v1/Boat', boats(plural)]]))
  const known = () => watches.view(boats('any'), 'sea.example/Boat/default/skiff').kind
  follow('boats')
  await clock.advance(2_000)
  expect(known()).toBe('absent')
  // IV6: what another plural of the kind shows is not known by this watch.
  expect(['boats', 'boatses'].map((plural) => watches.isComplete(boats(plural)))).toEqual([true, false])
  follow('boats')
  await clock.advance(2_000)
  expect(opened).toEqual(['boats'])
  follow('boatses')
  expect(known()).toBe('unknown')
  await clock.advance(2_000)
  expect([opened, known()]).toEqual([['boats', 'boatses'], 'absent'])
  stop.abort()
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
    doubted: () => {},
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
