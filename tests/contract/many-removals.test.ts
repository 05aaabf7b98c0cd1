// A thousand services leave a cluster at once, on the fake API server: whoever asks the agent meanwhile is answered.
// Work is counted in what the agent asks of its ports, so that a busy machine changes nothing.
import { afterAll, expect, test } from 'bun:test'
import type { Cluster } from '../../agent/cluster/cluster.ts'
import { askRunningAgent, serveLocalApi } from '../../agent/local-api.ts'
import { agentReport } from '../../agent/observe/report.ts'
import { systemClock as clock } from '../../shared/runtime/clock.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { configMap, createReconcileKit } from '../support/reconcile-kit.ts'
import { tempDir } from '../support/temp-dir.ts'
import { turnOfTheLoop } from '../support/virtual-clock.ts'

const SERVICES = 1_000
const OBJECTS = 4
/** Calls of ports between two answers: the 24 turns that are under way, those that begin, and each with a few. Without
 *  a pause between turns it is several thousands. */
const CALLS_MAX = 1_000

const IDS = Array.from({ length: SERVICES }, (_, i) => ({ project: 'web', service: `s${i}` }))
const ORDERED_MS = 1_700_000_000_000

type Method = (...args: unknown[]) => unknown
/** `before` is called with each call of a method. */
const counted = <T extends object>(port: T, before: () => void): T =>
  new Proxy(port, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      return (...args: unknown[]) => {
        before()
        return (method as Method).apply(target, args)
      }
    },
  })

/** Each answer comes in a later turn of the event loop, as from a socket. */
const distant = (cluster: Cluster): Cluster =>
  new Proxy(cluster, {
    get(target, name: keyof Cluster) {
      const method: unknown = target[name]
      if (typeof method !== 'function' || name === 'watch') return typeof method === 'function' ? method.bind(target) : method
      return async (...args: unknown[]) => {
        await turnOfTheLoop()
        return (method as Method).apply(target, args)
      }
    },
  })

const ends: Array<() => Promise<void>> = []
afterAll(async () => {
  for (const end of ends) await end()
})

test('RC32 status is answered while a thousand services are removed at once', async () => {
  let calls = 0
  const count = () => {
    calls += 1
  }
  const cluster = createFakeCluster({ clock })
  for (const { service } of IDS) cluster.applyAs('people', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: service } })
  const kit = createReconcileKit({ cluster: counted(distant(cluster), count), clock, watched: (state) => counted(state, count) })
  kit.replica.read = counted({ read: kit.replica.read }, count).read
  const data = tempDir()
  const report = () =>
    agentReport({
      ...{ running: true, version: 'test', state: kit.state, replica: kit.replica, link: null, disk: null, resync: null, todayBytes: 0 },
      enforcement: { state: 'enforcing', message: '' },
    })
  const api = serveLocalApi(data, { report, order: kit.reconciler.order })
  ends.push(
    () => api.stop(),
    () => kit.stop(),
  )
  for (const id of IDS)
    kit.desire(
      Array.from({ length: OBJECTS }, (_, i) => configMap(`o${i}`, { a: '1' }, id.service)),
      {},
      id,
    )
  kit.start()
  for (const id of IDS) while (kit.service(id)?.sync !== 'Synced') await turnOfTheLoop()

  kit.removeAll(IDS, ORDERED_MS)
  const answers: Array<{ calls: number; removed: number }> = []
  while (answers.at(-1)?.removed !== SERVICES) {
    calls = 0
    const said = await askRunningAgent(data)
    answers.push({ calls, removed: said?.services.filter(({ status }) => status?.removed === true).length ?? 0 })
  }
  expect(Math.max(...answers.map(({ calls }) => calls))).toBeLessThan(CALLS_MAX)
  // Not only before and after.
  expect(answers.filter(({ removed }) => removed > 0 && removed < SERVICES).length).toBeGreaterThan(10)
  expect(cluster.objects().filter(({ metadata }) => /^o\d$/.test(metadata.name ?? ''))).toEqual([])
}, 300_000)
