// AZ1: every route × built-in role × project. What is expected comes from the role alone; what is found from the API.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { askOf, rightOf } from '../../server/access/permissions.ts'
import { refuseUndeclared } from '../../server/app.ts'
import { type Grant, grantFor, scopeOf } from '../../server/fleet/rights.ts'
import { BUILT_IN_ROLE_NAMES, BUILT_IN_ROLES, type BuiltInRole } from '../../shared/model/access.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'

const API = '/api/v1'
const meta = { apiVersion: 'skerry.dev/v1' }
let admin: TestAdmin
const headers = new Map<BuiltInRole, Record<string, string>>()

beforeAll(async () => {
  admin = await createTestAdmin()
  // `sho` and `shopping` begin as `shop` does, or it begins as they do.
  const seeded = await admin.call('POST', `${API}/apply`, {
    resources: [
      ...['shop', 'sho', 'shopping'].flatMap((project) => [
        { ...meta, kind: 'Config', metadata: { name: 'web', project }, spec: { data: { a: 1 } } },
        repositoryDoc('web', { project }),
        serviceDoc('web', { project }, 'web'),
        { ...meta, kind: 'RoleBinding', metadata: { name: 'web', project }, spec: { role: 'viewer', subjects: [{ token: 'nobody' }] } },
      ]),
      ...BUILT_IN_ROLE_NAMES.map((role) => ({
        ...{ ...meta, kind: 'RoleBinding', metadata: { name: role } },
        spec: { role, subjects: [{ token: role }], projects: [role === 'fleet-admin' ? '*' : 'shop'] },
      })),
    ],
  })
  expect([seeded.status, seeded.body]).toEqual([200, expect.anything()])
  for (const role of BUILT_IN_ROLE_NAMES) {
    const { body } = await admin.call('POST', `${API}/tokens`, { name: role, role: 'none' })
    headers.set(role, { authorization: `Bearer ${(body as { token: string }).token}` })
  }
})
afterAll(() => admin.store.close())

const grantsOf = (role: BuiltInRole): Grant[] =>
  BUILT_IN_ROLES[role].rules.map((rule) => ({
    ...{ rule, by: { role, binding: null }, services: null, clusters: null },
    projects: role === 'fleet-admin' ? null : ['shop'],
  }))

/** Whether the route may be used, and, if not, whether its object may be read. */
function expected(role: BuiltInRole, method: string, path: string, project: string): 'allowed' | 'forbidden' | 'hidden' {
  const right = rightOf(method, path)
  if (right === null || right.on === 'own') return 'allowed'
  const grants = grantsOf(role)
  if (right.on === 'some') return scopeOf(grants, right.verb, right.kind).length > 0 ? 'allowed' : 'forbidden'
  const ask = askOf(right, { ...(path.includes(':project') ? { project } : {}), ...(path.includes(':name') ? { name: 'web' } : {}) })
  if (grantFor(grants, ask) !== null) return 'allowed'
  return ask.name === undefined || grantFor(grants, { ...ask, verb: 'read' }) !== null ? 'forbidden' : 'hidden'
}

test.each(BUILT_IN_ROLE_NAMES)('AZ1 AZ3 every route for the role %s in its project and in others', async (role) => {
  for (const { method, path } of admin.app.routes.filter(({ path }) => path.startsWith(`${API}/`) && !path.includes('openapi'))) {
    if (['GET /api/v1/changes', 'POST /api/v1/token/exchange'].includes(`${method} ${path}`)) continue // a stream; it would end the token
    const isOfProject = path.includes(':project')
    for (const project of isOfProject ? ['sho', 'shopping', 'shop'] : ['shop']) {
      const wanted = expected(role, method, path.slice(API.length), project)
      if (wanted === 'allowed' && (method === 'DELETE' || role === 'fleet-admin')) continue // it would take away what the others look at
      const address = (name: string) => path.replace(':project', project).replace(':name', name).replaceAll(/:\w+/g, 'x')
      const call = (name: string) => admin.call(method, address(name), method === 'GET' ? undefined : {}, headers.get(role))
      const { status, body } = await call('web')
      const found = status === 403 ? 'forbidden' : wanted === 'hidden' && status === 404 ? 'hidden' : 'allowed'
      expect([method, path, project, found]).toEqual([method, path, project, wanted])
      if (wanted !== 'hidden') continue
      // AZ3: the answer is that of an object that does not exist.
      const absent = await call('none-such')
      expect([absent.status, JSON.stringify(absent.body).replaceAll('none-such', 'web')]).toEqual([404, JSON.stringify(body)])
    }
  }
  expect(admin.asked.filter((text) => /^(delete|take back)/.test(text))).toEqual([])
})

test('AZ1 a server with a route that declares no right does not start', () => {
  const routes = [...admin.app.routes, { method: 'POST', path: `${API}/new-route` }]
  expect(() => refuseUndeclared(routes)).toThrow('POST /api/v1/new-route')
  expect(() => refuseUndeclared(admin.app.routes)).not.toThrow()
})
