// auth, and roles and bindings as kinds of the command line.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
  const meta = { apiVersion: 'skerry.dev/v1' }
  const resources = [
    { ...meta, kind: 'Role', metadata: { name: 'keeper' }, spec: { rules: [{ verbs: ['secret:write'], kinds: ['Config'] }] } },
    {
      ...{ ...meta, kind: 'RoleBinding', metadata: { name: 'ops' } },
      spec: { role: 'operator', subjects: [{ group: 'corp:ops' }, { user: 'ada@example.com' }], projects: ['shop'] },
    },
  ]
  expect((await admin.call('POST', '/api/v1/apply', { resources })).status).toBe(200)
})
afterEach(() => admin.store.close())
const run = (...argv: string[]) => runTestCli(admin, argv)

test('AZ10 can-i exits with 0 for yes and 1 for no, and says why', async () => {
  expect(await run('auth', 'can-i', 'write', 'services/web', '-p', 'shop')).toMatchObject({
    code: 0,
    out: naming('yes: ', 'role fleet-admin', 'token'),
  })
  const group = await run('auth', 'can-i', 'confirm', 'service/web', '-p', 'shop', '--as', 'eve@example.com', '--as-group', 'corp:ops')
  expect(group).toMatchObject({ code: 0, out: naming('yes: ', 'role operator', 'role binding ops') })
  const no = await run('auth', 'can-i', 'write', 'Service/web', '-p', 'shop', '--as', 'ada@example.com')
  expect([no.code, no.out]).toEqual([1, expect.stringMatching(/^no: .*write Service web .*project shop/)])
  expect(await run('auth', 'can-i', 'wirte', 'service')).toMatchObject({ code: 2, err: naming('"write"?') })
})

test('AZ10 who-can and whoami name roles, bindings and places', async () => {
  expect((await run('auth', 'who-can', 'confirm', 'service/web', '-p', 'shop')).out).toMatch(
    /group:corp:ops +operator +ops +shop[\s\S]*token:admin +fleet-admin[\s\S]*user:ada@example.com/,
  )
  expect((await run('auth', 'whoami')).out).toMatch(/^token admin\n\n[\s\S]*fleet-admin +\(token\)/)
})

test('roles and bindings are listed, described and deleted', async () => {
  expect((await run('get', 'roles')).out).toMatch(/viewer +yes[\s\S]*keeper +no/)
  expect((await run('get', 'role-bindings')).out).toMatch(/ops +operator +shop +group:corp:ops,user:ada@example.com/)
  expect((await run('describe', 'role', 'operator')).out).toContain('render, sync, confirm, suspend: Service')
  expect((await run('describe', 'rolebinding/ops')).out).toContain('group:corp:ops')
  expect(await run('delete', 'role-binding', 'ops', '--yes')).toMatchObject({ code: 0, out: expect.stringContaining('role-binding/ops') })
  expect(await run('delete', 'role', 'keeper', '--yes')).toMatchObject({ code: 0, out: expect.stringContaining('role/keeper') })
})
