// An API server that throttles or hangs, as HTTP: what the agent sends meanwhile, and what it costs the requests that
// have nothing to do with it.
import { afterEach, expect, test } from 'bun:test'
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import { createKubeHttp, REQUESTS_IN_FLIGHT_MAX } from '../../agent/cluster/kube-http.ts'
import { createRestCluster } from '../../agent/cluster/rest-cluster.ts'
import { execute } from '../../agent/reconcile/apply/execute.ts'
import type { Step, StepResult } from '../../agent/reconcile/plan/step.ts'
import { RequestScheduler } from '../../agent/reconcile/requests/request-scheduler.ts'
import { FirstContacts } from '../../agent/reconcile/snapshot/watch/first-contacts.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { configMap, configMapKey, configMapRef } from '../support/reconcile-kit.ts'

const RESOURCE: ApiResource = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true, verbs: [] }
const stops: Array<() => unknown> = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

function serve(answer: (request: Request) => Response | Promise<Response>) {
  const listener = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 0, fetch: answer })
  stops.push(() => listener.stop(true))
  const read = async () => ({ tls: { insecure: false }, authorization: null })
  return { source: 'test', server: `http://127.0.0.1:${listener.port}`, read }
}
const deps = (clock: Clock = systemClock) => ({ clock, random: systemRandom, log: silentLogger, userAgent: 'test' })

const steps = (count: number): Step[] =>
  Array.from({ length: count }, (_, index) => {
    const name = `m${index}`
    const doc = JSON.stringify(configMap(name))
    return {
      kind: 'apply',
      key: configMapKey(name),
      ref: configMapRef(name),
      resource: RESOURCE,
      doc,
      commit: null,
      revision: null,
      why: 'new',
      force: true,
    }
  })

test('RC9 after a 429 with Retry-After nothing is sent before that time, and then all goes on', async () => {
  const arrivedMs: number[] = []
  let refusedMs = 0
  const credentials = serve(async (request) => {
    const nowMs = performance.now()
    arrivedMs.push(nowMs)
    const isThrottling = arrivedMs.length > 60 && (refusedMs === 0 || nowMs < refusedMs + 900)
    if (!isThrottling) return new Response(await request.text(), { headers: { 'content-type': 'application/json' } })
    if (refusedMs === 0) refusedMs = nowMs
    const status = {
      kind: 'Status',
      status: 'Failure',
      reason: 'TooManyRequests',
      code: 429,
      message: 'too many requests, please try again later',
    }
    return Response.json(status, { status: 429, headers: { 'retry-after': '1' } })
  })
  const cluster = createRestCluster(credentials, deps())
  stops.push(() => cluster.close())
  const signal = new AbortController().signal
  const scheduler = new RequestScheduler({ clock: systemClock, signal })
  const results: StepResult[] = []
  const firstContacts = new FirstContacts({ cluster, clock: systemClock, signal })
  await execute(steps(300), {
    cluster,
    own: { id: { project: 'web', service: 'shop' }, clusterId: 'c-1', former: new Set() },
    scheduler,
    firstContacts,
    signal,
    wasRefused: () => false,
    isPreempted: () => false,
    onResult: (result) => void results.push(result),
  })
  const throttled = results.filter((result) => result.kind === 'failed' && result.failure.kind === 'throttled')
  expect(results.length).toBe(300)
  expect(throttled.length).toBeGreaterThan(0)
  expect(throttled.length).toBeLessThanOrEqual(20)
  expect(results.filter(({ kind }) => kind === 'applied').length).toBe(300 - throttled.length)
  // What had been on its way arrives still.
  expect(arrivedMs.filter((atMs) => atMs > refusedMs + 200 && atMs < refusedMs + 950)).toEqual([])
}, 20_000)

test('KA6 requests that hang give their places back after 65 s, and the others go on', async () => {
  // Fifty times faster.
  const hurried: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 50, signal) }
  const credentials = serve((request) => (request.url.includes('hang') ? new Promise<Response>(() => {}) : Response.json({ ok: true })))
  const http = createKubeHttp(credentials, deps(hurried))
  stops.push(() => http.close())
  const get = (path: string) => http.request({ method: 'GET', path, plural: 'configmaps' })
  const hanging = Array.from({ length: REQUESTS_IN_FLIGHT_MAX }, () => get('/hang'))
  const last = await get('/answer')
  expect(last).toMatchObject({ kind: 'answer', body: { ok: true } })
  for (const answer of await Promise.all(hanging))
    expect(answer).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable', message: expect.stringContaining('no answer within 65 s') },
    })
}, 20_000)
