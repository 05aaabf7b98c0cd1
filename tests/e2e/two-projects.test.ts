// Two projects, four roles, people of a real OpenID Connect provider and a pipeline: what each may do, and what the log
// says of it.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { freePort } from '../../scripts/local-cluster/child-process.ts'
import { Browser, signInAtDex, type Who } from '../../scripts/local-oidc/browser.ts'
import { CLIENT, type Dex, PERSON, startDex } from '../../scripts/local-oidc/dex.ts'
import { repositoryDoc, serviceDoc } from '../support/admin-app.ts'
import { type SignInSite, startSignInSite } from '../support/sign-in-site.ts'

const FORGE: Who = { kind: 'forge' }
const PASSWORD: Who = { kind: 'password', login: PERSON.email, password: PERSON.password }
const head = { apiVersion: 'skerry.dev/v1' }
const CALLERS = ['viewer', 'operator', 'deployer', 'project-admin'] as const
type Caller = (typeof CALLERS)[number]

let dex: Dex
let site: SignInSite
/** Headers of each caller: a cookie of a browser, or the token of the pipeline. */
const as = {} as Record<Caller, Record<string, string>>

beforeAll(async () => {
  const port = freePort()
  dex = await startDex({ redirectUris: [`http://127.0.0.1:${port}/auth/callback`] })
  const settings = () => ({
    providers: [{ name: 'dex', issuer: dex.issuer, clientId: CLIENT.id, clientSecretFile: 'secret' }],
    workloads: [
      {
        name: 'ci',
        issuer: dex.issuer,
        audience: CLIENT.id,
        rules: [{ claims: { email: '*@skerry.example' }, name: 'ci:{email}', groups: ['deployers'] }],
      },
    ],
  })
  site = await startSignInSite({ port, settings, files: new Map([['secret', CLIENT.secret]]) })
  const bind = (role: Caller, subject: object) => ({
    ...head,
    kind: 'RoleBinding',
    metadata: { name: role, project: 'shop' },
    spec: { role, subjects: [subject] },
  })
  const both = ['shop', 'bank'].flatMap((project) => [repositoryDoc('apps', { project }), serviceDoc('web', { project })])
  const bindings = [
    bind('viewer', { group: 'dex:viewers' }),
    bind('operator', { group: 'dex:ops' }),
    bind('deployer', { group: 'ci:deployers' }),
    bind('project-admin', { user: PERSON.email }),
  ]
  const seeded = await site.admin.call('POST', '/api/v1/apply', { resources: [...both, ...bindings] })
  expect(seeded.status).toBe(200)
  dex.user.groups = ['viewers']
  as.viewer = await signIn(FORGE)
  const jwt = await idToken()
  dex.user.groups = ['ops']
  as.operator = await signIn(FORGE)
  as['project-admin'] = await signIn(PASSWORD)
  const exchanged = await fetch(`${site.url}/auth/exchange`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: jwt }),
  })
  as.deployer = { authorization: `Bearer ${((await exchanged.json()) as { token: string }).token}` }
}, 30_000)

afterAll(async () => {
  await site?.stop()
  await dex?.stop()
})

async function signIn(who: Who): Promise<Record<string, string>> {
  const browser = new Browser()
  const start = await browser.go(`${site.url}/auth/login`)
  const answer = await browser.go(await signInAtDex(browser, start.headers.get('location') ?? '', who, (url) => url.startsWith(site.url)))
  const [cookie = ''] = answer.headers.getSetCookie().filter((line) => line.startsWith('skerry-loopback='))
  return { cookie: cookie.split(';')[0] ?? '', 'sec-fetch-site': 'same-origin' }
}

/** A JWT of a real issuer stands for that of a pipeline. */
async function idToken(): Promise<string> {
  const sealed = (await site.admin.store.listSessions()).at(-1)?.sealed ?? ''
  return (JSON.parse(Buffer.from(site.secrets.open(Buffer.from(sealed, 'base64'), 'session') ?? []).toString()) as { idToken: string })
    .idToken
}

async function call(caller: Caller, method: string, path: string, body?: unknown) {
  const answer = await fetch(`${site.url}/api/v1${path}`, {
    method,
    headers: { ...as[caller], ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  return { status: answer.status, text }
}

const web = (project: string) => ({ ...serviceDoc('web', { project }), metadata: { name: 'web', project, labels: { changed: 'yes' } } })
const secret = { ...head, kind: 'Config', metadata: { name: 'keys', project: 'shop' }, spec: { secrets: { token: 'hunter2' } } }
const fleetAdmin = {
  ...head,
  kind: 'RoleBinding',
  metadata: { name: 'mine', project: 'shop' },
  spec: { role: 'fleet-admin', subjects: [{ user: PERSON.email }] },
}

/** Status for viewer, operator, deployer and project-admin. */
test.each<[string, string, unknown, number[]]>([
  ['GET', '/projects/shop/services/web', undefined, [200, 200, 200, 200]],
  ['POST', '/projects/shop/repositories/apps/refresh', undefined, [403, 202, 202, 202]],
  ['PUT', '/projects/shop/services/web', web('shop'), [403, 403, 200, 200]],
  ['PUT', '/projects/shop/configs/keys', secret, [403, 403, 403, 201]],
  ['PUT', '/projects/shop/role-bindings/mine', fleetAdmin, [404, 404, 404, 403]],
  ['GET', '/projects/shop/repositories/apps/webhook', undefined, [403, 403, 403, 200]],
  ['GET', '/audit', undefined, [403, 403, 403, 200]],
  ['POST', '/tokens', { name: 'mine', role: 'viewer' }, [403, 403, 403, 403]],
  ['POST', '/server-keys/rotate', undefined, [403, 403, 403, 403]],
  ['POST', '/join-tokens', {}, [403, 403, 403, 403]],
  // The other project does not exist for them.
  ['GET', '/projects/bank/services/web', undefined, [404, 404, 404, 404]],
  ['PUT', '/projects/bank/services/web', web('bank'), [404, 404, 404, 404]],
  ['DELETE', '/projects/bank/services/web', undefined, [404, 404, 404, 404]],
  ['POST', '/projects/bank/repositories/apps/refresh', undefined, [404, 404, 404, 404]],
])('AZ2 AZ3 %s %s for each of four roles', async (method, path, body, expected) => {
  const seen: number[] = []
  for (const caller of CALLERS) seen.push((await call(caller, method, path, body)).status)
  expect(seen).toEqual(expected)
})

test('AZ4 lists of each of them name one project', async () => {
  for (const caller of CALLERS)
    for (const path of [
      '/services',
      '/repositories',
      '/placements',
      '/objects',
      '/events',
      '/changes?after=0&limit=500',
      '/counts?by=service',
    ]) {
      const { status, text } = await call(caller, 'GET', path)
      expect([caller, path, status, text.includes('bank')]).toEqual([caller, path, 200, false])
    }
})

test('AU2 the log names people and the pipeline as verified, and nobody as what they only say', async () => {
  const { body } = await site.admin.call('GET', '/api/v1/audit?kind=Service&project=shop&name=web')
  const changes = (body as { items: Array<{ actor: object; verb: string; result: string }> }).items
  const by = changes.map(({ actor, verb, result }) => ({ actor, verb, result }))
  expect(by).toContainEqual({
    actor: expect.objectContaining({ kind: 'workload', name: 'ci:bob@skerry.example', verified: true }),
    verb: expect.anything(),
    result: 'done',
  })
  expect(by).toContainEqual({ actor: expect.objectContaining({ kind: 'user', verified: true }), verb: expect.anything(), result: 'denied' })
  const own = JSON.parse((await call('project-admin', 'GET', '/audit?limit=500')).text) as { items: Array<{ project?: string }> }
  expect(new Set(own.items.map(({ project }) => project))).toEqual(new Set(['shop']))
})
