// What an answer to a DELETE proves: the adapter against an API server that answers as aggregated ones do.
import { afterEach, expect, test } from 'bun:test'
import type { ApiResource, DeleteResult } from '../../agent/cluster/cluster.ts'
import { createRestCluster } from '../../agent/cluster/rest-cluster.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { systemRandom } from '../../shared/runtime/random.ts'

const RESOURCE: ApiResource = { group: 'stats.example', version: 'v1', kind: 'Report', plural: 'reports', namespaced: true, verbs: [] }
const REF = { group: RESOURCE.group, kind: RESOURCE.kind, namespace: 'default', name: 'a' }
const UID = 'u-1'

const stops: Array<() => unknown> = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

const object = (metadata: Record<string, unknown> = {}) => ({
  apiVersion: 'stats.example/v1',
  kind: 'Report',
  metadata: { name: 'a', namespace: 'default', uid: UID, ...metadata },
})
const success = (details?: Record<string, unknown>) => ({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details })
const NOT_FOUND = {
  ...success({ name: 'a', group: RESOURCE.group, kind: RESOURCE.plural }),
  status: 'Failure',
  reason: 'NotFound',
  code: 404,
  message: 'reports.stats.example "a" not found',
}

/** One DELETE; `then` is what a GET answers afterwards. */
async function deleted(
  answer: unknown,
  then: unknown,
  about: readonly unknown[] = [],
): Promise<{ result: DeleteResult; requests: string[] }> {
  const requests: string[] = []
  const listener = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ method }) => {
      requests.push(method)
      const body = method === 'DELETE' ? answer : then
      const { code = 200 } = body as { code?: number }
      return Response.json(body, { status: code })
    },
  })
  const credentials = {
    source: 'test',
    server: `http://127.0.0.1:${listener.port}`,
    read: async () => ({ tls: { insecure: false }, authorization: null }),
  }
  const cluster = createRestCluster(credentials, { clock: systemClock, random: systemRandom, log: silentLogger, userAgent: 'test' })
  stops.push(
    () => cluster.close(),
    () => listener.stop(true),
  )
  return { result: await cluster.delete(RESOURCE, REF, UID, { about: () => about }), requests }
}

const UNAVAILABLE = {
  ...NOT_FOUND,
  reason: 'ServiceUnavailable',
  code: 503,
  message: 'the server is currently unable to handle the request',
}

test.each<[what: string, answer: unknown, then: unknown, result: unknown, requests: string[]]>([
  ['a Status that names the uid is certain', success({ name: 'a', uid: UID }), object(), { kind: 'gone' }, ['DELETE']],
  ['the last state of the object is certain', object(), object(), { kind: 'gone' }, ['DELETE']],
  ['a bare Status is confirmed by a NotFound', success(), NOT_FOUND, { kind: 'gone' }, ['DELETE', 'GET']],
  ['an object that is still there is not gone', success(), object(), { kind: 'deleting', finalizers: [] }, ['DELETE', 'GET']],
  [
    'nor is one that finalizers hold',
    success({ name: 'a' }),
    object({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x/y'] }),
    { kind: 'deleting', finalizers: ['x/y'] },
    ['DELETE', 'GET'],
  ],
  [
    'a Status that names another uid is read, too',
    success({ uid: 'u-2' }),
    object(),
    { kind: 'deleting', finalizers: [] },
    ['DELETE', 'GET'],
  ],
  ['another object of the name', success(), object({ uid: 'u-2' }), { kind: 'replaced' }, ['DELETE', 'GET']],
  ['an answer without a form', [], NOT_FOUND, { kind: 'gone' }, ['DELETE', 'GET']],
  ['what cannot be read is not known', success(), UNAVAILABLE, { kind: 'failed', failure: { status: 503 } }, ['DELETE', 'GET']],
])('KA58 %s', async (_, answer, then, expected, requests) => {
  const told = await deleted(answer, then)
  expect(told).toMatchObject({ result: expected, requests } as object)
})

test('KA51 a refused delete quotes no value of the object', async () => {
  const message = 'admission webhook "v.example" denied the request: swordfish is still in use'
  const answer = { ...NOT_FOUND, reason: 'Forbidden', code: 403, message }
  const { result } = await deleted(answer, NOT_FOUND, [{ ...object(), spec: { token: 'swordfish' } }])
  expect(result).toMatchObject({ failure: { kind: 'forbidden', message: message.replace('swordfish', '<redacted>') } })
})
