// `skerry login` against Dex: by a browser of this machine, by device code, and by the JWT of a pipeline; renewal,
// logout.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../scripts/local-cluster/child-process.ts'
import { Browser, signInAtDex, type Who } from '../../scripts/local-oidc/browser.ts'
import { CLIENT, type Dex, startDex } from '../../scripts/local-oidc/dex.ts'
import { readContexts } from '../../server/cli/contexts/file.ts'
import { type CliResult, type CliSetup, runCliWith } from '../support/cli-run.ts'
import { type SignInSite, startSignInSite } from '../support/sign-in-site.ts'
import { tempDir } from '../support/temp-dir.ts'

const FORGE: Who = { kind: 'forge' }
let dex: Dex
let site: SignInSite
let home = ''
let config = ''

beforeAll(async () => {
  const port = freePort()
  dex = await startDex({ redirectUris: [`http://127.0.0.1:${port}/auth/callback`] })
  const rules = [{ claims: { email: '*@skerry.example' }, name: 'ci:{email}', groups: ['deployers'] }]
  const settings = () => ({
    providers: [{ name: 'dex', issuer: dex.issuer, clientId: CLIENT.id, clientSecretFile: 'secret' }],
    workloads: [{ name: 'ci', issuer: dex.issuer, audience: CLIENT.id, rules }],
  })
  site = await startSignInSite({ port, settings, files: new Map([['secret', CLIENT.secret]]) })
}, 30_000)
afterAll(async () => {
  await site?.stop()
  await dex?.stop()
})
beforeEach(() => {
  home = tempDir()
  config = join(home, 'skerry', 'config.yaml')
  site.admin.clock.nowMs = Date.now()
})

const sent: string[] = []
const cli = (argv: string[], setup: CliSetup = {}): Promise<CliResult> =>
  runCliWith(
    argv,
    {
      env: { XDG_CONFIG_HOME: home },
      fetch: (url, init) => {
        sent.push(url)
        return fetch(url, init)
      },
      sleep: (ms, signal) => (ms >= 60_000 ? new Promise(() => signal) : Bun.sleep(Math.min(ms, 20))),
      ...setup,
    },
    () => site.admin.clock.nowMs,
  )

/** Acts as the person in the browser that `login` opens. */
const opened: string[] = []
const person = (url: string) => {
  opened.push(url)
  void (async () => {
    const browser = new Browser()
    const isServer = (address: string) => address.startsWith(site.url)
    const toDex = await browser.follow(url, {}, (address) => address.startsWith(dex.issuer))
    const back = await signInAtDex(browser, toDex.url, FORGE, isServer)
    const { response } = await browser.follow(back)
    expect(await response.text()).toContain('Signed in')
  })()
}
const saved = () => Object.values(readContexts(config).contexts)[0] as { token: string; login: Record<string, unknown> }

test('SI10 login by the browser of this machine: the context has a short token that renews itself, and nothing secret is shown', async () => {
  const { code, out, err } = await cli(['--server', site.url, 'login'], { openBrowser: person })
  expect([code, out]).toEqual([0, `signed in to ${site.url} as bob (dex); context 127.0.0.1\n`])
  expect(statSync(config).mode & 0o777).toBe(0o600)
  const first = saved()
  expect(first).toMatchObject({ login: { provider: 'dex', user: 'bob', refreshToken: expect.stringMatching(/^skr_/) } })
  for (const text of [out, err, opened.join(), sent.join(), site.logged.join()]) {
    expect(text).not.toContain(first.token)
    expect(text).not.toContain(String(first.login['refreshToken']))
  }
  expect(opened.at(-1)).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
  expect((await cli(['whoami'])).out).toContain('Groups:     web, ops')
  // Two commands at once, after the token expired: it is renewed once.
  site.admin.clock.nowMs += 15 * 60_000
  const both = await Promise.all([cli(['whoami', '-o', 'name']), cli(['whoami', '-o', 'name'])])
  expect(both.map(({ code, out }) => [code, out])).toEqual([
    [0, 'bob\n'],
    [0, 'bob\n'],
  ])
  expect(saved().token).not.toBe(first.token)
  const shown = await fetch(`${site.url}/api/v1/whoami`, { headers: { authorization: `Bearer ${first.token}` } })
  expect(shown.status).toBe(401)
})

test('SI10 logout ends the session on the server and forgets the token', async () => {
  await cli(['--server', site.url, 'login'], { openBrowser: person })
  const { token } = saved()
  expect((await cli(['logout'])).out).toBe(`signed out of ${site.url}\n`)
  expect(readFileSync(config, 'utf8')).not.toContain('sku_')
  expect((await fetch(`${site.url}/api/v1/whoami`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(401)
  expect(await cli(['whoami'])).toMatchObject({ code: 1, err: expect.stringContaining('no API token') })
  expect(await cli(['logout'])).toMatchObject({ code: 2 })
})

const refresh = (refreshToken: string) =>
  fetch(`${site.url}/auth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ grant: 'refresh', refreshToken }),
  })

test('SI17 a refresh token is good again only while nobody used what it was exchanged for, and for 60 s', async () => {
  await cli(['--server', site.url, 'login'], { openBrowser: person })
  const first = String(saved().login['refreshToken'])
  expect((await refresh(first)).status).toBe(200)
  site.admin.clock.nowMs += 40_000
  const repeated = await refresh(first) // the answer may have been lost
  expect(repeated.status).toBe(200)
  site.admin.clock.nowMs += 21_000 // repetitions do not prolong the minute
  expect((await refresh(first)).status).toBe(401)
  expect((await refresh(((await repeated.json()) as { refreshToken: string }).refreshToken)).status).toBe(401)
  await cli(['--server', site.url, 'login'], { openBrowser: person })
  const copied = String(saved().login['refreshToken'])
  site.admin.clock.nowMs += 15 * 60_000
  expect((await cli(['whoami'])).code).toBe(0)
  const mine = String(saved().login['refreshToken'])
  expect((await refresh(copied)).status).toBe(401)
  expect((await refresh(mine)).status).toBe(401)
  site.admin.clock.nowMs += 15 * 60_000
  expect(await cli(['whoami'])).toMatchObject({ code: 1, err: expect.stringContaining('skerry login') })
})

test('SI10 login by device code', async () => {
  const { code, out } = await cli(['--server', site.url, 'login', '--device'], {
    onPrinted: ({ err }) => {
      const url = /Open (\S+) in any browser/.exec(err)?.[1]
      if (url === undefined || opened.at(-1) === url) return
      opened.push(url)
      void (async () => {
        const browser = new Browser()
        const form = await browser.follow(url)
        const userCode = new URL(url).searchParams.get('user_code') ?? ''
        const action = /action="([^"]+)"/.exec(await form.response.text())?.[1] ?? ''
        const choice = await browser.follow(new URL(action, form.url).href, {
          method: 'POST',
          body: new URLSearchParams({ user_code: userCode }),
        })
        await signInAtDex(browser, choice.url, FORGE, () => false)
      })()
    },
  })
  expect([code, out]).toEqual([0, `signed in to ${site.url} as bob (dex); context 127.0.0.1\n`])
  expect((await cli(['session', 'list'])).out).toMatch(
    /^ID +NAME +PROVIDER +KIND +LAST-USED +FROM +EXPIRES\ns-[0-9a-f]{16} +bob +dex +cli /,
  )
}, 15_000)

test('SI11 a pipeline signs in with the JWT in a file, which is read again when the token expires', async () => {
  // An ID token of Dex stands for the JWT of a pipeline: a real issuer signs both.
  const jwtFile = join(home, 'jwt')
  const session = new Browser()
  const start = await session.go(`${site.url}/auth/login`)
  await session.go(await signInAtDex(session, start.headers.get('location') ?? '', FORGE, (url) => url.startsWith(site.url)))
  const sealed = (await site.admin.store.listSessions()).findLast(({ kind }) => kind === 'browser')?.sealed ?? ''
  const { idToken } = JSON.parse(Buffer.from(site.secrets.open(Buffer.from(sealed, 'base64'), 'session') ?? []).toString()) as {
    idToken: string
  }
  writeFileSync(jwtFile, idToken)
  expect(await cli(['--server', site.url, 'login', '--jwt-file', jwtFile])).toMatchObject({
    code: 0,
    out: `signed in to ${site.url} as ci:bob@skerry.example (ci); context 127.0.0.1\n`,
  })
  const { token } = saved()
  expect(saved().login).toMatchObject({ jwtFile, user: 'ci:bob@skerry.example' })
  site.admin.clock.nowMs += 16 * 60_000
  writeFileSync(jwtFile, 'no JWT any more')
  expect(await cli(['whoami'])).toMatchObject({ code: 1, err: expect.stringContaining('the login has ended') })
  expect(saved().token).toBe(token)
  expect((await cli(['--server', site.url, 'login', '--jwt-file', join(home, 'none')])).code).toBe(2)
})

test('SI10 wrong options and providers are told', async () => {
  expect(await cli(['--server', site.url, 'login', '--provider', 'dx'])).toMatchObject({ code: 2, err: expect.stringContaining('dex') })
  expect(await cli(['--server', site.url, 'login', '--device', '--jwt-file', 'x'])).toMatchObject({ code: 2 })
  expect(await cli(['--context', 'new', 'login'])).toMatchObject({ code: 2, err: expect.stringContaining('--server') })
  const odd = `${site.url}/auth/login?cli_port=80&cli_challenge=x&cli_state=y`
  expect((await fetch(odd, { redirect: 'manual' })).status).toBe(400)
})
