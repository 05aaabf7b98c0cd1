// Sign-in against Dex, a real OpenID Connect provider: browsers, the CLI, refresh, and what must not work.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { freePort } from '../../scripts/local-cluster/child-process.ts'
import { Browser, signInAtDex, type Who } from '../../scripts/local-oidc/browser.ts'
import { CLIENT, type Dex, PERSON, startDex } from '../../scripts/local-oidc/dex.ts'
import { type SignInSite, startSignInSite } from '../support/sign-in-site.ts'

const FORGE: Who = { kind: 'forge' }
const PASSWORD: Who = { kind: 'password', login: PERSON.email, password: PERSON.password }
const COOKIE = 'skerry-loopback'
const FILES = new Map([['secret', CLIENT.secret]])
const PUBLIC = 'https://skerry.example'

let dex: Dex
let site: SignInSite
let settings: () => object

beforeAll(async () => {
  const port = freePort()
  dex = await startDex({ redirectUris: [`http://127.0.0.1:${port}/auth/callback`, `${PUBLIC}/auth/callback`] })
  settings = () => ({
    providers: [{ name: 'dex', issuer: dex.issuer, clientId: CLIENT.id, clientSecretFile: 'secret' }],
    workloads: [
      {
        name: 'dex-jwt',
        issuer: dex.issuer,
        audience: CLIENT.id,
        rules: [{ claims: { email: '*@skerry.example' }, name: 'ci:{email}', groups: ['deployers'] }],
      },
    ],
  })
  site = await startSignInSite({ port, settings, files: FILES })
}, 30_000)

afterAll(async () => {
  await site?.stop()
  await dex?.stop()
})

const isOwn = (url: string) => url.startsWith(site.url)

/** The address with the answer of the provider, not yet visited. */
async function answerOfDex(browser: Browser, who: Who, next = '/services'): Promise<string> {
  const start = await browser.go(`${site.url}/auth/login?next=${encodeURIComponent(next)}`)
  expect(start.status).toBe(302)
  return signInAtDex(browser, start.headers.get('location') ?? '', who, isOwn)
}

async function signIn(browser: Browser, who: Who, next?: string): Promise<Response> {
  const response = await browser.go(await answerOfDex(browser, who, next))
  expect(response.status).toBe(303)
  return response
}

const whoami = async (browser: Browser) => {
  const response = await browser.go(`${site.url}/api/v1/whoami`, { headers: { accept: 'application/json' } })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

test('SI2 a browser signs in, is sent to the path it asked for, and has the groups of the provider', async () => {
  const browser = new Browser()
  const response = await signIn(browser, FORGE, '/services?q=web')
  expect(response.headers.get('location')).toBe('/services?q=web')
  const [cookie = ''] = response.headers.getSetCookie().filter((line) => line.startsWith(`${COOKIE}=`))
  expect(cookie).toContain('; HttpOnly; SameSite=Lax')
  expect(await whoami(browser)).toMatchObject({
    status: 200,
    body: { kind: 'user', name: 'bob', provider: 'dex', email: 'bob@skerry.example', groups: ['web', 'ops'], role: null },
  })
})

test('SI2 a person of another directory has no groups, and no rights without a role binding', async () => {
  const browser = new Browser()
  await signIn(browser, PASSWORD)
  expect(await whoami(browser)).toMatchObject({ body: { email: PERSON.email, groups: [], role: null } })
  expect((await browser.go(`${site.url}/api/v1/services`)).status).toBe(403)
})

test('SI3 the answer of the provider counts once, in the browser that began, and with its own state', async () => {
  const browser = new Browser()
  const answer = await answerOfDex(browser, FORGE)
  const loginCookie = browser.cookie(site.url, `${COOKIE}-login`) ?? ''
  const refused = async (response: Response) => {
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('sign_in_expired')
    expect(response.headers.getSetCookie()).toEqual([])
  }
  await refused(await new Browser().go(answer)) // another browser: login CSRF
  const other = new URL(answer)
  other.searchParams.set('state', 'x'.repeat(43))
  await refused(await browser.go(other.href))
  expect((await browser.go(answer)).status).toBe(303)
  // The same answer again, with the cookie put back.
  await refused(await new Browser().go(answer, { headers: { cookie: `${COOKIE}-login=${loginCookie}` } }))
})

test('SI3 the code of another sign-in is refused', async () => {
  const victim = new Browser()
  const attacker = new Browser()
  const stolen = new URL(await answerOfDex(attacker, FORGE))
  const own = new URL(await answerOfDex(victim, FORGE))
  own.searchParams.set('code', stolen.searchParams.get('code') ?? '')
  const response = await victim.go(own.href)
  expect(response.status).toBe(403)
  expect(victim.cookie(site.url, COOKIE)).toBeUndefined()
})

test('SI4 next is a path of this server', async () => {
  for (const next of [
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    'javascript:alert(1)',
    'services',
    '/.//evil.example',
  ]) {
    const response = await fetch(`${site.url}/auth/login?next=${encodeURIComponent(next)}`, { redirect: 'manual' })
    expect([next, response.status, response.headers.get('location')]).toEqual([next, 400, null])
  }
})

test('SI5 each sign-in makes a new session and ends the one before; a session that a stranger planted is not taken over', async () => {
  const browser = new Browser()
  const planted = `skc_${'A'.repeat(43)}00000000`
  browser.cookies.set(site.url, new Map([[COOKIE, planted]]))
  await signIn(browser, FORGE)
  const first = browser.cookie(site.url, COOKIE) ?? ''
  expect(first).not.toBe(planted)
  await signIn(browser, FORGE)
  expect(browser.cookie(site.url, COOKIE)).not.toBe(first)
  const old = await fetch(`${site.url}/api/v1/whoami`, { headers: { cookie: `${COOKIE}=${first}` } })
  expect(old.status).toBe(401)
})

test('SI6 a change with the cookie needs a page of the server itself', async () => {
  const browser = new Browser()
  await signIn(browser, FORGE)
  const post = async (headers: Record<string, string>) =>
    (await browser.go(`${site.url}/auth/logout`, { method: 'POST', headers: { accept: 'application/json', ...headers } })).status
  expect(await post({})).toBe(403)
  expect(await post({ origin: 'https://evil.example' })).toBe(403)
  expect(await post({ 'sec-fetch-site': 'cross-site', origin: site.url })).toBe(403)
  expect(await post({ 'sec-fetch-site': 'same-site' })).toBe(403)
  expect(await whoami(browser)).toMatchObject({ status: 200 })
  expect(await post({ 'sec-fetch-site': 'same-origin' })).toBe(200)
})

test('SI8 signing out ends the session at once', async () => {
  const browser = new Browser()
  await signIn(browser, FORGE)
  const cookie = browser.cookie(site.url, COOKIE) ?? ''
  const response = await browser.go(`${site.url}/auth/logout`, { method: 'POST', headers: { origin: site.url } })
  expect([response.status, response.headers.get('location')]).toEqual([303, '/'])
  expect(browser.cookie(site.url, COOKIE)).toBeUndefined()
  expect((await fetch(`${site.url}/api/v1/whoami`, { headers: { cookie: `${COOKIE}=${cookie}` } })).status).toBe(401)
})

test('SI8 an admin lists and revokes sessions; a person sees the own ones only', async () => {
  const [bob, alice] = [new Browser(), new Browser()]
  await signIn(bob, FORGE)
  await signIn(alice, PASSWORD)
  const listed = await site.admin.call('GET', '/api/v1/sessions')
  const items = (listed.body as { items: Array<{ id: string; name: string }> }).items
  expect(new Set(items.map(({ name }) => name))).toEqual(new Set([PERSON.email, 'bob']))
  const own = (await (await alice.go(`${site.url}/api/v1/sessions`)).json()) as { items: Array<{ id: string; name: string }> }
  expect(own.items.every(({ name }) => name !== 'bob')).toBe(true)
  const id = String((await whoami(bob)).body['id'])
  const byAlice = await alice.go(`${site.url}/api/v1/sessions/${id}`, { method: 'DELETE', headers: { origin: site.url } })
  expect(byAlice.status).toBe(404)
  expect((await site.admin.call('DELETE', `/api/v1/sessions/${id}`)).status).toBe(204)
  expect((await whoami(bob)).status).toBe(401)
  expect((await whoami(alice)).status).toBe(200)
})

test('SI9 groups follow the provider within five minutes, and a person whom it confirms no more is out', async () => {
  const browser = new Browser()
  await signIn(browser, FORGE)
  dex.user.groups = ['web']
  expect((await whoami(browser)).body['groups']).toEqual(['web', 'ops'])
  site.admin.clock.nowMs += 5 * 60_000
  expect((await whoami(browser)).body['groups']).toEqual(['web'])
  site.admin.clock.nowMs += 5 * 60_000
  expect((await whoami(browser)).body['groups']).toEqual(['web']) // by the refresh token that replaced the first one
  dex.user.blocked = true
  site.admin.clock.nowMs += 5 * 60_000
  // Dex answers 500, as it does when the forge is down: the session goes on for as long as an outage may last.
  expect((await whoami(browser)).status).toBe(200)
  site.admin.clock.nowMs += 16 * 60_000
  expect((await whoami(browser)).status).toBe(401)
  dex.user.blocked = false
  dex.user.groups = ['web', 'ops']
})

test('SI9 a role binding gives rights to a group of the provider, which end when the person leaves the group', async () => {
  const binding = {
    apiVersion: 'skerry.dev/v1',
    kind: 'RoleBinding',
    metadata: { name: 'ops', project: 'default' },
    spec: { role: 'viewer', subjects: [{ group: 'dex:ops' }] },
  }
  expect((await site.admin.call('PUT', '/api/v1/projects/default/role-bindings/ops', binding)).status).toBe(201)
  const browser = new Browser()
  await signIn(browser, FORGE)
  const read = async () => (await browser.go(`${site.url}/api/v1/services`, { headers: { accept: 'application/json' } })).status
  expect(await read()).toBe(200)
  dex.user.groups = ['web']
  site.admin.clock.nowMs += 5 * 60_000
  expect(await read()).toBe(403)
  dex.user.groups = ['web', 'ops']
})

test('SI9 a session whose provider tokens cannot be opened any more ends at the next check', async () => {
  const browser = new Browser()
  await signIn(browser, FORGE)
  site.secrets.rotate()
  site.secrets.forgetEarlier()
  expect((await whoami(browser)).status).toBe(200)
  site.admin.clock.nowMs += 5 * 60_000
  expect((await whoami(browser)).status).toBe(401)
})

test('SI7 behind https the cookie is __Host-skerry, and the store has no secret of a session', async () => {
  const behind = await startSignInSite({ settings, files: FILES, publicUrl: PUBLIC })
  try {
    const start = await behind.admin.app.fetch(new Request(`${behind.url}/auth/login`))
    const [login = ''] = start.headers.getSetCookie()
    expect(login).toMatch(/^__Host-skerry-login=.*; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/)
    const browser = new Browser()
    const answer = await signInAtDex(browser, start.headers.get('location') ?? '', FORGE, (url) => url.startsWith(PUBLIC))
    const cookie = login.split(';')[0] ?? ''
    const end = await behind.admin.app.fetch(new Request(`${behind.url}/auth/callback${new URL(answer).search}`, { headers: { cookie } }))
    const [, session = ''] = end.headers.getSetCookie()
    expect(session).toMatch(/^__Host-skerry=skc_\S{51}; Path=\/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure$/)
    const secret = /=([^;]+)/.exec(session)?.[1] ?? ''
    const stored = JSON.stringify(await behind.admin.store.listSessions())
    expect(stored).not.toContain(secret)
    expect(stored).toContain('"sealed":"')
    // The name for plain http is worth nothing here.
    const whoami = (header: string) => behind.admin.app.fetch(new Request(`${behind.url}/api/v1/whoami`, { headers: { cookie: header } }))
    expect((await whoami(`${COOKIE}=${secret}`)).status).toBe(401)
    expect((await whoami(`__Host-skerry=${secret}`)).status).toBe(200)
    expect(behind.logged.join('\n')).not.toContain(secret)
  } finally {
    await behind.stop()
  }
})
