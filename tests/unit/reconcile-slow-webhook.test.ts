// What part of a cluster that is slow or fails costs the rest of it: one agent, many services, requests that take their
// time on a clock that the test moves.
import { afterEach, expect, test } from 'bun:test'
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { FakeRequest } from '../support/fake-cluster.ts'
import { isClaim, namespace, setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, configMaps } from '../support/reconcile-kit.ts'

let ended = new AbortController()
afterEach(async () => {
  // What is on its way is answered.
  ended.abort()
  await stopAll()
  ended = new AbortController()
})

const service = (name: string): ServiceId => ({ project: 'web', service: name })
const SLOW = Array.from({ length: 20 }, (_, index) => `slow-${String(index).padStart(2, '0')}`)
const ROUNDS = 40
const isWrite = ({ verb, ref }: FakeRequest) =>
  (verb === 'apply' || verb === 'patch') && !isClaim({ verb, ...(ref === undefined ? {} : { ref }) })

type Site = ReturnType<typeof setup>

/** Requests that `isSlow` tells apart take so long, each after the other things of the API server. */
function delay(
  { cluster, clock }: Pick<Site, 'cluster' | 'clock'>,
  ms: number,
  isSlow: (ref: { namespace: string; name: string }) => boolean,
): void {
  const apply = cluster.apply.bind(cluster)
  cluster.apply = async (resource, object, options) => {
    const { name = '', namespace: place = '' } = object.metadata
    if (isSlow({ namespace: place, name })) await clock.sleep(ms, ended.signal)
    return apply(resource, object, options)
  }
}

const makeNamespaces = ({ cluster }: Pick<Site, 'cluster'>, names: readonly string[]) => {
  for (const name of names) cluster.applyAs('kubectl', namespace(name))
}

/** How long an object that somebody deletes is missing. */
async function healingMs(
  { cluster, clock }: Pick<Site, 'cluster' | 'clock'>,
  ref: ReturnType<typeof configMapRef>,
  atMostMs: number,
): Promise<number> {
  const beganMs = clock.nowMs()
  cluster.deleteAs('kubectl', ref)
  while (cluster.object(ref) === null && clock.nowMs() - beganMs < atMostMs) await clock.advance(10)
  return clock.nowMs() - beganMs
}

test.each([
  ['in other namespaces', (index: number) => `n${index}`, 'quick'],
  ['in the same namespace, to the same kind', () => 'default', 'default'],
])('RC27, RC28 services of 1,200 objects behind a webhook of 10 s, %s, delay no healing of another service', async (_, place, ownPlace) => {
  const site = setup()
  const { kit, run, clock } = site
  makeNamespaces(
    site,
    [...new Set([...SLOW.map((__, index) => place(index)), ownPlace])].filter((name) => name !== 'default'),
  )
  kit.desire(configMaps(ROUNDS, ownPlace), {}, service('own'))
  await run()
  delay(site, 10_000, ({ name }) => name.startsWith('slow'))
  SLOW.forEach((name, index) => {
    const objects = Array.from({ length: 60 }, (__, n) => configMap(`${name}-${n}`, { n: String(n) }, place(index)))
    kit.desire(objects, {}, service(name))
  })
  const times: number[] = []
  for (const { metadata } of configMaps(ROUNDS)) {
    await clock.advance(730)
    times.push(await healingMs(site, configMapRef(metadata.name ?? '', ownPlace), 60_000))
  }
  expect(Math.max(...times)).toBeLessThanOrEqual(1_000)
  // They go on meanwhile, all of them.
  await clock.advance(30_000)
  const applied = SLOW.map(
    (name, index) =>
      site.cluster.objects().filter(({ metadata }) => metadata.name?.startsWith(name) && metadata.namespace === place(index)).length,
  )
  expect(Math.min(...applied)).toBeGreaterThan(0)
})

test('RC27 when the webhook is quick again, everything behind it is applied within seconds', async () => {
  const site = setup()
  const { kit, run, clock } = site
  let slow = true
  delay(site, 10_000, ({ name }) => slow && name.startsWith('slow'))
  for (const name of SLOW)
    kit.desire(
      Array.from({ length: 60 }, (_, n) => configMap(`${name}-${n}`)),
      {},
      service(name),
    )
  await run()
  await clock.advance(30_000)
  slow = false
  await clock.advance(15_000)
  expect(SLOW.map((name) => kit.service(service(name))?.reason)).toEqual(SLOW.map(() => 'Synced'))
})

test('RC30 what a turn that was cut did not begin is said to be out of sync', async () => {
  const site = setup()
  const { kit, cluster, run, clock } = site
  const objects = (index: number, value: string) => Array.from({ length: 30 }, (_, n) => configMap(`${SLOW[index]}-${n}`, { value }))
  const desire = (value: string) => SLOW.forEach((name, index) => void kit.desire(objects(index, value), {}, service(name)))
  desire('1')
  await run()
  await clock.advance(60_000)
  delay(site, 10_000, ({ name }) => name.startsWith('slow'))
  desire('2')
  await clock.advance(45_000)
  const isOld = (name: string) => (cluster.object(configMapRef(name)) as { data?: { value?: string } } | null)?.data?.value === '1'
  let old = 0
  for (const [index, name] of SLOW.entries()) {
    for (const { metadata } of objects(index, '2')) {
      if (!isOld(metadata.name ?? '')) continue
      old += 1
      expect(kit.object(configMapKey(metadata.name ?? ''), service(name))?.sync).toBe('OutOfSync')
      expect(kit.service(service(name))?.sync).toBe('OutOfSync')
    }
  }
  expect(old).toBeGreaterThan(0)
})

test('RC30 a service whose turn waits for a slow webhook heals its other objects when the requests on their way are answered', async () => {
  const site = setup()
  const { kit, run, clock } = site
  delay(site, 10_000, ({ name }) => name.startsWith('slow'))
  const own = configMap('own')
  kit.desire([own], {}, service('a'))
  await run()
  kit.desire([own, ...Array.from({ length: 200 }, (_, n) => configMap(`slow-${n}`))], {}, service('a'))
  await clock.advance(15_000)
  expect(await healingMs(site, configMapRef('own'), 120_000)).toBeLessThanOrEqual(12_000)
})

test('RC30 a newer revision ends the wait for places', async () => {
  const site = setup()
  const { kit, run, clock, cluster } = site
  delay(site, 10_000, ({ name }) => name.startsWith('slow'))
  kit.desire(
    Array.from({ length: 400 }, (_, n) => configMap(`slow-${n}`)),
    {},
    service('a'),
  )
  await run()
  await clock.advance(15_000)
  kit.desire([configMap('other')], { sync: { prune: false } }, service('a'))
  await clock.advance(11_000)
  expect(cluster.object(configMapRef('other'))).not.toBeNull()
})

test('RC28, RC29 a namespace in which everything fails slows no other service down', async () => {
  const site = setup()
  const { kit, run, clock, cluster } = site
  makeNamespaces(site, ['broken'])
  const down: ApiFailure = { kind: 'server_error', status: 500, reason: 'InternalError', message: 'storage is unavailable' }
  cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.namespace === 'broken' ? down : null))
  delay(site, 100, ({ name }) => name !== 'skerry-agent')
  for (let index = 0; index < 8; index += 1)
    kit.desire(
      configMaps(60, 'broken').map((object) => ({ ...object, metadata: { ...object.metadata, name: `${index}-${object.metadata.name}` } })),
      {},
      service(`broken-${index}`),
    )
  await run()
  await clock.advance(2_000)
  kit.desire(configMaps(160), {}, service('well'))
  // 160 objects, 16 at once, 100 ms each; the start of a service costs one round more.
  await clock.advance(1_800)
  expect(kit.service(service('well'))?.reason).toBe('Synced')
})

test('RC9 after an outage more and more requests of one stage are on their way', async () => {
  const site = setup()
  const { kit, run, clock, cluster } = site
  let running = 0
  let most = 0
  let isDown = true
  const apply = cluster.apply.bind(cluster)
  cluster.apply = async (resource, object, options) => {
    if (!object.metadata.name?.startsWith('m')) return apply(resource, object, options)
    running += 1
    most = Math.max(most, running)
    await clock.sleep(100, ended.signal)
    running -= 1
    const failure: ApiFailure = { kind: 'unreachable', status: 0, reason: 'ECONNREFUSED', message: 'connection refused' }
    return isDown ? { kind: 'failed', failure } : apply(resource, object, options)
  }
  kit.desire(configMaps(8), {}, service('a'))
  await run()
  // One refusal after the other, until one request at a time is left.
  await clock.advance(30_000)
  kit.desire(configMaps(300), {}, service('a'))
  await clock.advance(150)
  const atStart = most
  most = 0
  isDown = false
  await clock.advance(20_000)
  expect(atStart).toBeLessThanOrEqual(8)
  expect(most).toBeGreaterThanOrEqual(16)
  expect(kit.object(configMapKey('m0299'), service('a'))?.sync).toBe('Synced')
})

test('RC28 the same history twice is the same sequence of requests', async () => {
  const history = async () => {
    const site = setup()
    const { kit, run, clock, cluster } = site
    delay(site, 3_000, ({ name }) => name.startsWith('slow'))
    for (const name of SLOW.slice(0, 6))
      kit.desire(
        Array.from({ length: 10 }, (_, n) => configMap(`${name}-${n}`)),
        {},
        service(name),
      )
    kit.desire([configMap('own')], {}, service('own'))
    await run()
    await clock.advance(5_000)
    await healingMs(site, configMapRef('own'), 10_000)
    await clock.advance(60_000)
    return cluster.requests.filter(isWrite).map(({ verb, ref }) => `${verb} ${ref?.name}`)
  }
  const [first, second] = [await history(), await history()]
  expect(first.length).toBeGreaterThan(60)
  expect(second).toEqual(first)
})
