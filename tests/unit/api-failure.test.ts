import { describe, expect, test } from 'bun:test'
import { failureOf, namesMissingObject, unreachable } from '../../agent/cluster/api-failure.ts'
import type { ApiFailure } from '../../agent/cluster/cluster.ts'

const status = (code: number, message: string, details: Record<string, unknown> = {}, reason = '') => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message,
  reason,
  details,
  code,
})
const cause = (field: string, message: string) => ({ reason: 'FieldValueInvalid', field, message })
const invalid = (...causes: unknown[]) => status(422, 'Thing "a" is invalid', { name: 'a', causes }, 'Invalid')
const failure = (code: number, body: unknown, { text = '', retryAfter = null as string | null, plural = 'deployments' } = {}): ApiFailure =>
  failureOf({ status: code, body, text, retryAfter, plural })

const IMMUTABLE = 'field is immutable'
const TAKEN = 'Invalid value: 30080: provided port is already allocated'
const STATEFULSET = "updates to statefulset spec for fields other than 'replicas', 'template' are forbidden"

describe('what an answer means', () => {
  test.each<[name: string, code: number, body: unknown, kind: ApiFailure['kind']]>([
    [
      'KA1 a patch that is no such type',
      500,
      status(500, 'failed to create typed patch object (ns/d; apps/v1, Kind=Deployment): .spec.x: …'),
      'invalid',
    ],
    [
      'KA1 a value that cannot be decoded',
      500,
      status(500, 'failed to convert new object (ns/s; /v1, Kind=Secret) to proper version: …'),
      'invalid',
    ],
    [
      'KA1 a live object that is broken may be mended by others',
      500,
      status(500, 'failed to create typed live object (ns/d; …)'),
      'server_error',
    ],
    ['KA1 larger than the store takes', 500, status(500, 'etcdserver: request is too large'), 'invalid'],
    [
      'KA1 larger than an etcd client sends',
      500,
      status(500, 'rpc error: code = ResourceExhausted desc = trying to send message larger than max (2200118 vs. 2097152)'),
      'invalid',
    ],
    ['KA1 larger than the server reads', 413, status(413, 'Request entity too large: limit is 3145728'), 'invalid'],
    ['KA1 any other 500', 500, status(500, 'etcdserver: leader changed', {}, 'InternalError'), 'server_error'],
    ['KA1 a gateway', 503, undefined, 'server_error'],
    ['KA1 a timeout of the server', 504, status(504, 'Timeout: request did not complete within 60s', {}, 'Timeout'), 'server_error'],
    ['KA1 a request timeout', 408, undefined, 'server_error'],
    ['KA1 an expired list token', 410, status(410, 'The provided continue parameter is too old', {}, 'Expired'), 'server_error'],
    ['KA1 a redirect', 302, undefined, 'server_error'],
    [
      'KA1 a method that the kind does not have',
      405,
      status(405, 'the server does not allow this method', {}, 'MethodNotAllowed'),
      'invalid',
    ],
    ['KA1 a bad request', 400, status(400, 'metadata.managedFields must be nil', {}, 'BadRequest'), 'invalid'],
    ['KA1 a bad request, in the words of a proxy', 400, undefined, 'server_error'],
    ['KA1 a body that is larger than a proxy takes', 413, undefined, 'server_error'],
    ['KA1 a 422 of another program', 422, { error: 'unprocessable' }, 'server_error'],
    [
      'KA29 a policy without its parameters',
      422,
      status(
        422,
        `things "a" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource`,
        { causes: [{ message: `ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource` }] },
        'Invalid',
      ),
      'forbidden',
    ],
    ['KA2 no rights', 403, status(403, 'deployments.apps is forbidden: User "x" cannot patch'), 'forbidden'],
    [
      'KA2 the namespace goes',
      403,
      status(403, 'forbidden: because it is being terminated', { causes: [{ reason: 'NamespaceTerminating', message: '' }] }),
      'namespace_terminating',
    ],
    [
      'KA3 the namespace is missing',
      404,
      status(404, 'namespaces "x" not found', { name: 'x', kind: 'namespaces' }, 'NotFound'),
      'namespace_missing',
    ],
    [
      'KA3 the object is missing',
      404,
      status(404, 'deployments.apps "d" not found', { name: 'd', kind: 'deployments' }, 'NotFound'),
      'not_found',
    ],
    ['KA3 the kind is not served', 404, undefined, 'not_found'],
    [
      'KA4 an admission webhook is down',
      500,
      status(500, 'Internal error occurred: failed calling webhook "a.b": failed to call webhook: Post "https://…": connection refused'),
      'webhook',
    ],
    ['KA4 a conversion webhook is down', 500, status(500, 'conversion webhook for x.y/v1, Kind=Z failed: Post …'), 'webhook'],
    ['KA5 one immutable field', 422, invalid(cause('spec.selector', IMMUTABLE)), 'immutable'],
    ['KA5 all of them immutable', 422, invalid(cause('spec', `Forbidden: ${STATEFULSET}`), cause('type', IMMUTABLE)), 'immutable'],
    ['KA5 one of them is not', 422, invalid(cause('spec.selector', IMMUTABLE), cause('spec.x', 'Required value')), 'invalid'],
    ['KA32 a port that another has', 422, invalid(cause('spec.ports[0].nodePort', TAKEN)), 'taken'],
    ['KA32 and something that is wrong', 422, invalid(cause('spec.x', TAKEN), cause('spec.y', 'Required value')), 'invalid'],
    ['KA5 of the metadata', 422, invalid(cause('metadata.uid', IMMUTABLE)), 'invalid'],
    ['KA5 a role binding that moves', 422, invalid(cause('roleRef', 'cannot change roleRef')), 'immutable'],
    ['KA5 no causes at all', 422, status(422, 'invalid: field is immutable'), 'invalid'],
    ['KA6 too many', 429, status(429, 'too many requests'), 'throttled'],
    ['KA8 unknown credentials', 401, status(401, 'Unauthorized', {}, 'Unauthorized'), 'unauthorized'],
    ['KA14 owned by somebody else', 409, status(409, 'Apply failed with 1 conflict: …', {}, 'Conflict'), 'conflict'],
  ])('%s', (_, code, body, kind) => expect(failure(code, body).kind).toBe(kind))

  test('KA3 a missing namespace, when a namespace was asked for, is just that object', () => {
    const body = status(404, 'namespaces "x" not found', { name: 'x', kind: 'namespaces' }, 'NotFound')
    expect(failure(404, body, { plural: 'namespaces' }).kind).toBe('not_found')
  })

  test('KA6 the time to wait comes from the header, or else from the body', () => {
    expect(failure(429, undefined, { retryAfter: '3' }).retryAfterMs).toBe(3000)
    expect(failure(429, status(429, '', { retryAfterSeconds: 2 })).retryAfterMs).toBe(2000)
    expect(failure(503, undefined, { retryAfter: '300' }).retryAfterMs).toBe(300_000)
    expect(failure(503, undefined, { retryAfter: '86400' }).retryAfterMs).toBe(300_000)
    expect(failure(503, status(503, '', { retryAfterSeconds: 7_200 })).retryAfterMs).toBe(300_000)
    expect(failure(503, undefined, { retryAfter: 'Wed, 21 Oct 2026 07:28:00 GMT' }).retryAfterMs).toBeUndefined()
    expect(failure(503, undefined)).not.toHaveProperty('retryAfterMs')
  })

  test('KA1 a page of a proxy becomes a short plain message', () => {
    const text = `<html><body><h1>502 Bad Gateway</h1>${'x'.repeat(5000)}</body></html>`
    expect(failure(502, undefined, { text }).message).toBe('502 Bad Gateway <redacted>')
    const words = `<html><body><h1>502 Bad Gateway</h1>${'a page '.repeat(500)}</body></html>`
    expect(failure(502, undefined, { text: words }).message.length).toBeLessThanOrEqual(300)
    expect(failure(502, undefined).message).toBe('HTTP 502 without a message')
    expect(failure(422, status(422, 'why '.repeat(3000))).message.length).toBeLessThanOrEqual(2000)
  })

  const resource = (group: string, kind: string, plural: string) => ({ group, kind, plural })
  const maps = resource('', 'ConfigMap', 'configmaps')
  const events = resource('events.k8s.io', 'Event', 'events')
  const reports = resource('stats.io', 'Report', 'reports')
  test.each([
    ['the object', maps, { name: 'a', kind: 'configmaps' }, true],
    ['the object, by group', reports, { name: 'a', group: 'stats.io', kind: 'reports' }, true],
    ['the object, by its kind', reports, { name: 'a', group: 'stats.io', kind: 'Report' }, true],
    ['the object without its group', events, { name: 'a', kind: 'events' }, true],
    [
      'an OpenShift Project, kept as a Namespace',
      resource('project.openshift.io', 'Project', 'projects'),
      { name: 'a', kind: 'namespaces' },
      true,
    ],
    ['nothing', maps, {}, false],
    ['nothing but a name', maps, { name: 'a' }, false],
    ['another object', reports, { name: 'b', group: 'stats.io', kind: 'reports' }, false],
    ['another kind', reports, { name: 'a', group: 'stats.io', kind: 'backends' }, false],
    ['the object of another group', reports, { name: 'a', group: 'other.io', kind: 'reports' }, false],
    ['the namespace', reports, { name: 'a', kind: 'namespaces' }, false],
  ] as const)('KA7 a NotFound that names %s', (_, asked, details, isMissing) => {
    expect(namesMissingObject(status(404, 'not found', details, 'NotFound'), asked, 'a')).toBe(isMissing)
  })
  test('KA7 an answer that is no NotFound says nothing', () => {
    expect(namesMissingObject(undefined, maps, 'a')).toBe(false)
  })

  test('KA12 a refused certificate is told from a server that is away', () => {
    const trust = Object.assign(new Error('self signed certificate in certificate chain'), { code: 'SELF_SIGNED_CERT_IN_CHAIN' })
    expect(unreachable('https://k', trust)).toMatchObject({ kind: 'unreachable', status: 0, reason: 'UntrustedCertificate' })
    const refused = Object.assign(new Error('Unable to connect'), { code: 'ConnectionRefused' })
    expect(unreachable('https://k', refused)).toMatchObject({
      reason: 'ConnectionRefused',
      message: 'no answer from https://k: Unable to connect',
    })
  })
})

test.each([
  ['.data.pin: expected string, got &value.valueUnstructured{Value:987654321}', '.data.pin: expected string, got a number'],
  ['.data.pin: expected string, got &value.valueUnstructured{Value:[]interface {}{"hunter3"}}', '.data.pin: expected string, got a list'],
  ['.data: expected map, got &{hunter5\n}, got &{more}', '.data: expected map, got something else'],
])('KA31 the class of a failure is read from the whole message, and its text has no value: %s', (said, told) => {
  const head = 'failed to create typed patch object (default/s; /v1, Kind=Secret): '
  expect(failure(500, status(500, head + said))).toMatchObject({ kind: 'invalid', message: head + told })
  expect(failure(500, undefined, { text: head + said }).message).toBe(head + told)
})

test('KA31 a reason that a webhook made up is left out', () => {
  expect(failure(400, status(400, 'no', {}, 'hunter2 is the password')).reason).toBe('')
})

test('KA31 an address in a failure has no user and no password', () => {
  expect(unreachable('https://user:hunter2@k.example', new Error('no answer within 65 s')).message).toBe(
    'no answer from https://k.example: no answer within 65 s',
  )
})
