// Credentials over http, between Git's own server and a door in front of it that asks for them; over ssh with a real
// sshd.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { generateKeyPairSync, verify } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createGitTokens } from '../../server/sources/git/tokens.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createGitKit, failureOf, filesOf, type GitKit, gitDeps, sshIsThere } from '../support/git-source-kit.ts'
import { naming } from '../support/naming.ts'
import { loopbackGuard } from '../support/source-guard.ts'
import { makeKey } from '../support/ssh-server.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

describe('http', () => {
  let kit: GitKit
  let commit = ''
  let allowed: (header: string | null) => number = () => 200
  let seen: (string | null)[] = []
  let door: ReturnType<typeof Bun.serve>
  let other: ReturnType<typeof Bun.serve>
  let redirect: ((url: URL) => string | null) | null = null

  const pass = (request: Request) => {
    const { pathname, search } = new URL(request.url)
    const headers = new Headers(request.headers)
    headers.delete('authorization')
    const url = `${new URL(kit.url).origin}${pathname}${search}`
    return fetch(url, { method: request.method, headers, body: request.method === 'GET' ? null : request.body, decompress: false })
  }
  beforeAll(async () => {
    kit = await createGitKit('library over http')
    commit = await kit.server.commit({ 'a.yaml': 'a: 1\n' }, 'first')
    const fetchOf = async (request: Request) => {
      const header = request.headers.get('authorization')
      seen.push(header)
      const to = redirect?.(new URL(request.url)) ?? null
      if (to !== null) return new Response('inside-secret', { status: 302, headers: { location: to } })
      const status = allowed(header)
      return status === 200 ? pass(request) : new Response('inside-secret', { status, headers: { 'www-authenticate': 'Basic realm="x"' } })
    }
    door = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: fetchOf })
    other = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => {
        seen.push(`other: ${request.headers.get('authorization')}`)
        return new Response('', { status: 401 })
      },
    })
  })
  afterAll(async () => {
    await door.stop(true)
    await other.stop(true)
    await kit.close()
  })
  const url = () => `http://127.0.0.1:${door.port}/fleet.git`
  const open = (secrets: Record<string, string> | null, client: 'auto' | 'cli' = 'auto') => {
    seen = []
    redirect = null
    return kit.open({ url: url(), client, secrets: secrets === null ? null : async () => secrets })
  }

  test.each(['auto', 'cli'] as const)('SO24 SO46 token, basic, and what each server takes, by client %s', async (client) => {
    for (const [secrets, accepted] of [
      [{ token: 't0ken' }, basic('x-access-token:t0ken')],
      [{ token: 't0ken\n' }, 'Bearer t0ken'],
      [{ username: 'me', password: 'secret\n' }, basic('me:secret')],
      [{ username: 'me', password: 'se:cret' }, basic('me:se:cret')],
      [{ username: 'gitlab+deploy-1', token: 't0ken' }, basic('gitlab+deploy-1:t0ken')],
    ] as const) {
      allowed = (header) => (header === accepted ? 200 : 401)
      const source = open(secrets, client)
      expect(await source.head()).toBe(commit)
      seen = []
      expect(await source.fetch()).toBe(commit)
      // The way that was taken is the first one from then on.
      expect(new Set(seen)).toEqual(new Set([accepted]))
      expect((await filesOf(source, commit, '.')).size).toBe(1)
    }
  })

  test('SO24 a secret that was changed is used at once', async () => {
    let token = 'old'
    allowed = (header) => (header === basic(`x-access-token:${token}`) ? 200 : 401)
    seen = []
    const source = kit.open({ url: url(), secrets: async () => ({ token }) })
    await source.head()
    token = 'new'
    seen = []
    await source.head()
    expect(seen).toEqual([basic('x-access-token:new')])
  })

  test('SO25 a refusal names the host and what was tried, never the secret or what answered', async () => {
    const { host } = new URL(url())
    const toldOf = async (act: Promise<unknown>) => {
      const told = await failureOf(act)
      expect(told.join()).not.toMatch(/s3cret|inside-secret/)
      return told
    }
    for (const client of ['auto', 'cli'] as const) {
      allowed = () => 401
      expect(await toldOf(open({ token: 's3cret' }, client).head())).toEqual([
        'credential_refused',
        naming(host, 401, 'x-access-token', 'bearer'),
      ])
      expect(seen).toHaveLength(2)
      expect(await toldOf(open({ username: 'me', password: 's3cret' }, client).fetch())).toEqual([
        'credential_refused',
        naming(host, 401, 'username', 'password'),
      ])
      expect(await toldOf(open(null, client).fetch())).toEqual(['credential_missing', naming(host, 401, url())])
      allowed = () => 403
      expect(await toldOf(open({ token: 's3cret' }, client).head())).toEqual(['credential_refused', naming(host, 403, 'token')])
      expect(seen).toHaveLength(1)
    }
    expect(await toldOf(open({ sshKey: 'x' }).head())).toEqual(['credential_missing', naming('token', 'username', 'password')])
    const named = kit.open({ url: url(), auth: { secretRef: 'deploy' }, secrets: async () => ({ sshKey: 'x' }) })
    expect(await toldOf(named.head())).toEqual(['credential_missing', naming('Config deploy', 'token')])
    expect(await toldOf(open({ token: 'a\nb' }).head())).toEqual(['credential_missing', naming(host, 'token')])
  })

  test.each(['auto', 'cli'] as const)(
    'SO25 IN14 what is not there or answers otherwise is told by its status, by client %s',
    async (client) => {
      const { host } = new URL(url())
      const remedy = naming('spec.git.url', 'spec.git.auth.secretRef')
      for (const [status, code, message] of [
        [404, 'git_failed', naming(url(), 404)],
        [403, 'credential_missing', naming(host, 403)],
      ] as const) {
        allowed = () => status
        for (const act of ['head', 'fetch'] as const)
          await expect(open(null, client)[act]()).rejects.toMatchObject({ code, message, data: { remedy } })
      }
      allowed = () => 500
      const failed = await open(null, client)
        .fetch()
        .catch((error: unknown) => error)
      expect(failed).toMatchObject({ code: 'git_failed', message: naming(url(), host, 500) })
      expect(Bun.inspect(failed)).not.toContain('inside-secret')
      const nobody = kit.open({ url: 'http://127.0.0.1:1/x.git', client })
      expect(await failureOf(nobody.head())).toEqual(['git_unreachable', naming('127.0.0.1:1', 'connection refused')])
    },
  )

  test('SO26 a redirect to another host or port gets no credentials; one of the same host keeps them and the request', async () => {
    allowed = (header) => (header === null ? 401 : 200)
    const source = open({ token: 't' })
    redirect = (at) => (at.pathname.startsWith('/moved/') ? null : `http://127.0.0.1:${door.port}/moved${at.pathname}`)
    const asked = pathsOf(await failureOf(source.head()))
    expect(asked).toBe('git_failed') // what is at /moved is no repository, but it was asked with the credentials
    expect(seen.every((header) => header === basic('x-access-token:t'))).toBe(true)
    seen = []
    redirect = (at) => `http://127.0.0.1:${other.port}${at.pathname}`
    expect(await failureOf(source.head())).toEqual(['credential_missing', naming(`127.0.0.1:${door.port}`, `127.0.0.1:${other.port}`, 401)])
    expect(seen.filter((one) => one?.startsWith('other'))).toEqual(seen.filter((one) => one === 'other: null'))
    redirect = (at) => `http://127.0.0.1:${door.port}${at.pathname}`
    expect(await failureOf(source.head())).toEqual(['git_failed', naming(`127.0.0.1:${door.port}`, 5)])
    redirect = () => 'file:///etc/passwd'
    expect(await failureOf(source.head())).toEqual(['git_failed', naming(`127.0.0.1:${door.port}`, 'address')])
  })
  const pathsOf = ([code]: [string, string]) => code

  test('SO3 an outbound proxy is used by the library and by the program, and by nobody else', async () => {
    const passed: string[] = []
    const proxy = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => {
        passed.push(`${request.method} ${new URL(request.url).host}`)
        return pass(request)
      },
    })
    try {
      const guard = loopbackGuard({ proxyFor: () => `http://127.0.0.1:${proxy.port}` })
      for (const client of ['library', 'cli'] as const) {
        passed.length = 0
        const source = kit.open(
          { url: kit.url.replace('127.0.0.1', 'git.example.com'), client },
          { ...guard, ...{ allowedAddress: () => Promise.reject(new Error('no name is asked for')) } },
        )
        expect(await source.fetch()).toBe(commit)
        expect((await filesOf(source, commit, '.')).size).toBe(1)
        expect(passed.length).toBeGreaterThan(1)
      }
      const inner = kit.open({ url: 'http://10.0.0.1/a.git', client: 'cli' }, guard)
      expect((await failureOf(inner.fetch()))[0]).toBe('source_address_refused')
    } finally {
      await proxy.stop(true)
    }
  })

  test('SO26 credentials go over plain http to this host only', async () => {
    const far = kit.open({ url: 'http://git.example.com/a.git', secrets: async () => ({ token: 't' }) }, { fetcher: fetch })
    expect(await failureOf(far.head())).toEqual(['source_refused', naming('git.example.com', 'credentials', 'http')])
  })

  test('SO27 a server with a CA of its own is trusted with caCert only', async () => {
    const dir = tempDir()
    const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
    const subject = [
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=IP:127.0.0.1,DNS:localhost',
      '-addext',
      'basicConstraints=critical,CA:TRUE',
    ]
    Bun.spawnSync(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', cert, ...subject], {
      stderr: 'ignore',
    })
    const tls = { key: Bun.file(key), cert: Bun.file(cert) }
    const secure = Bun.serve({ hostname: '127.0.0.1', port: 0, tls, fetch: pass })
    try {
      const caCert = await Bun.file(cert).text()
      for (const client of ['library', 'cli'] as const) {
        const at = { url: `https://127.0.0.1:${secure.port}/fleet.git`, client }
        const good = kit.open({ ...at, secrets: async () => ({ caCert }) })
        expect(await good.fetch()).toBe(commit)
        expect((await filesOf(good, commit, '.')).size).toBe(1)
        const [code, message] = await failureOf(kit.open(at).fetch())
        expect([code, message]).toEqual(['git_unreachable', naming('certificate')])
      }
      // A process reads its extra authorities at its start.
      const place = join(import.meta.dir, '../../server/sources/git/private.ts')
      const script = `console.log(JSON.stringify(await (await import(${JSON.stringify(place)})).writeWebFiles(${JSON.stringify(dir)}, { header: null, ca: null, proxy: null })))`
      const env = { PATH: process.env['PATH'] ?? '', NODE_EXTRA_CA_CERTS: cert }
      const written = JSON.parse(Bun.spawnSync([process.execPath, '-e', script], { env }).stdout.toString())
      expect((await Bun.file(written.GIT_SSL_CAINFO).text()).match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThan(100)
      const listed = Bun.spawn(['git', 'ls-remote', `https://127.0.0.1:${secure.port}/fleet.git`], {
        ...{ stdout: 'pipe', stderr: 'pipe', env: { PATH: process.env['PATH'] ?? '', HOME: dir, ...written } },
      })
      expect([await new Response(listed.stderr).text(), await new Response(listed.stdout).text()]).toEqual([
        '',
        expect.stringContaining(commit),
      ])
    } finally {
      await secure.stop(true)
    }
  })

  test('SO28 a GitHub App: a token of its installation, kept until shortly before its end, made anew once when it is refused', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
    const pem = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()
    let made = 0
    const bodies: unknown[] = []
    const api = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: async (request) => {
        bodies.push(await request.json())
        const [head = '', claims = '', signature = ''] = (request.headers.get('authorization') ?? '').replace('Bearer ', '').split('.')
        const isGood = verify('RSA-SHA256', Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(signature, 'base64url'))
        const { iss, iat, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString())
        if (!isGood || iss !== '7' || exp - iat > 600 || new URL(request.url).pathname !== '/app/installations/42/access_tokens')
          return new Response('', { status: 401 })
        if (made === 3) return new Response('', { status: 422 })
        return Response.json({ token: `ghs_${++made}`, expires_at: new Date(nowMs + 3_600_000).toISOString() }, { status: 201 })
      },
    })
    let nowMs = systemClock.nowMs()
    const clock = { ...systemClock, nowMs: () => nowMs }
    const tokens = createGitTokens({ fetcher: fetch, clock })
    const document = (change: object = {}) =>
      JSON.stringify({ appId: 7, installationId: 42, privateKey: pem, apiUrl: `http://127.0.0.1:${api.port}`, ...change })
    const app = (githubApp: string) => kit.open({ url: url(), secrets: async () => ({ githubApp }) }, { ...gitDeps(), tokens, clock })
    try {
      let valid = 'ghs_1'
      allowed = (header) => (header === basic(`x-access-token:${valid}`) ? 200 : 401)
      redirect = null
      const [one, two] = [app(document()), app(document())]
      expect(await Promise.all([one.head(), two.head()])).toEqual([commit, commit])
      expect(made).toBe(1)
      nowMs += 54 * 60_000
      await one.head()
      expect(made).toBe(1)
      nowMs += 2 * 60_000
      valid = 'ghs_2'
      await one.head()
      expect(made).toBe(2)
      valid = 'ghs_3' // the second one was withdrawn
      expect(await two.head()).toBe(commit)
      expect(made).toBe(3)
      valid = 'none'
      expect(await failureOf(one.head())).toEqual(['credential_refused', naming('App 7', 'repository fleet', 422)])
      expect(new Set(bodies.map((body) => JSON.stringify(body)))).toEqual(
        new Set([JSON.stringify({ repositories: ['fleet'], permissions: { contents: 'read' } })]),
      )
      made = 10
      expect(await failureOf(one.head())).toEqual(['credential_refused', naming('githubApp', 'new token')])
      for (const [change, code, what] of [
        [{ installationId: 43 }, 'credential_refused', naming('App 7', 'installation 43', 401)],
        [{ privateKey: 'no key' }, 'credential_missing', naming('githubApp', 'privateKey')],
        [{ apiUrl: 'http://api.example.com' }, 'credential_missing', naming('https')],
        [{ appId: {} }, 'credential_missing', naming('githubApp', 'JSON')],
      ] as const)
        expect(await failureOf(app(document(change)).head())).toEqual([code, what])
    } finally {
      await api.stop(true)
    }
  })
})

describe.skipIf(!sshIsThere)('ssh', () => {
  let kit: GitKit
  beforeAll(async () => {
    kit = await createGitKit('git over ssh')
    await kit.server.commit({ 'a.yaml': 'a: 1\n' }, 'first')
  })
  afterAll(() => kit.close())
  const secrets = () => kit.ssh?.secrets ?? { sshKey: '', knownHosts: '' }
  const open = (change: Record<string, string>, dir = kit.newDir()) => kit.open({ dir, secrets: async () => ({ ...secrets(), ...change }) })

  const fingerprintOf = (publicKey: string) =>
    Bun.spawnSync(['ssh-keygen', '-lf', '-'], { stdin: Buffer.from(publicKey) })
      .stdout.toString()
      .split(' ')[1]

  test('SO29 a host key that is not known, a key that is refused, and what is missing, each with what to do', async () => {
    const port = kit.ssh?.port
    const stranger = makeKey(join(tempDir(), 'stranger'))
    const shown = fingerprintOf(secrets().knownHosts.replace(/^\S+ /, ''))
    expect(await failureOf(open({ knownHosts: `[127.0.0.1]:${port} ${stranger.publicKey}` }).head())).toEqual([
      'credential_refused',
      naming('127.0.0.1', 'another host key', 'knownHosts', `ED25519 ${shown}`),
    ])
    const other = open({ knownHosts: `other.example.com ${stranger.publicKey}` }).head()
    await expect(other).rejects.toMatchObject({
      code: 'credential_refused',
      message: naming('knownHosts', `[127.0.0.1]:${port}`, `ED25519 ${shown}`),
      data: { remedy: naming(`ssh-keyscan -p ${port} 127.0.0.1`, 'knownHosts') },
    })
    expect(await failureOf(open({ knownHosts: 'garbage' }).head())).toEqual([
      'credential_refused',
      naming('127.0.0.1', 'knownHosts', 'valid line', `ED25519 ${shown}`),
    ])
    const rsa = `[127.0.0.1]:${port} ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7` // of another type
    expect(await failureOf(open({ knownHosts: rsa }).head())).toEqual(['credential_refused', naming('knownHosts', 'type')])
    const [code, message] = await failureOf(open({ sshKey: stranger.privateKey }).head())
    const fingerprint = fingerprintOf(stranger.publicKey)
    expect([code, message]).toEqual(['credential_refused', naming('127.0.0.1', `sshKey ${fingerprint}`)])
    const unknown = open({ knownHosts: ' ' }).head()
    await expect(unknown).rejects.toMatchObject({
      code: 'credential_missing',
      data: { remedy: naming(`ssh-keyscan -p ${port} 127.0.0.1`) },
    })
    expect(await failureOf(open({ sshKey: '' }).head())).toEqual(['credential_missing', naming('127.0.0.1', 'no sshKey')])
    const named = kit.open({ auth: { secretRef: 'deploy' }, secrets: async () => ({ ...secrets(), sshKey: '' }) })
    expect(await failureOf(named.head())).toEqual(['credential_missing', naming('127.0.0.1', 'Config deploy', 'no sshKey')])
    await expect(kit.open({ secrets: null }).head()).rejects.toMatchObject({
      code: 'credential_missing',
      message: naming('127.0.0.1', 'ssh'),
      data: { remedy: naming('spec.git.auth.secretRef', 'sshKey', 'knownHosts') },
    })
    await expect(kit.open({ url: `${kit.url}x` }).head()).rejects.toMatchObject({
      code: 'git_failed',
      message: naming(`${kit.url}x`),
      data: { remedy: naming('spec.git.url') },
    })
    expect(await failureOf(open({ sshKey: 'not a key' }).head())).toEqual(['credential_refused', naming('sshKey', 'valid')])
    const locked = join(tempDir(), 'locked')
    Bun.spawnSync(['ssh-keygen', '-q', '-t', 'ed25519', '-N', 'secret', '-f', locked])
    expect(await failureOf(open({ sshKey: await Bun.file(locked).text() }).head())).toEqual([
      'credential_missing',
      naming('127.0.0.1', 'sshKey', 'passphrase'),
    ])
  })

  test('SO29 nothing of a key stays on the disk, after a success and after a failure; what a killed server left is removed', async () => {
    const dir = kit.newDir()
    await Bun.write(`${dir}.private-left/key`, 'left')
    const source = open({}, dir)
    await source.fetch()
    await failureOf(open({ sshKey: makeKey(join(tempDir(), 'other')).privateKey }, dir).fetch())
    expect(readdirSync(dirname(dir)).filter((name) => name.includes('.private'))).toEqual([])
  })

  test('SO29 a folder with spaces, per cent signs and shell characters in its name is no command', async () => {
    const dir = join(kit.root, "a b%h $(touch owned) ;'&", 'clone')
    expect(await open({}, dir).fetch()).toMatch(/^[0-9a-f]{40}$/)
    expect(readdirSync(kit.root)).not.toContain('owned')
  })

  test('SO29 without the git program or ssh it is said which one is missing', async () => {
    const programs = gitDeps().programs
    expect(await failureOf(kit.open({}, { programs: { ...programs, git: null } }).head())).toEqual([
      'git_program_missing',
      naming('git program'),
    ])
    expect(await failureOf(kit.open({}, { programs: { ...programs, ssh: null } }).head())).toEqual([
      'git_program_missing',
      naming('ssh program'),
    ])
    expect((await failureOf(kit.open({}, { programs: { ...programs, git: '/nowhere/git' } }).head()))[0]).toBe('git_program_missing')
  })

  test('SO33 a server that stops, a job that was given up, a time that is over, and a repository that is too large end git and all that it started', async () => {
    const stopping = new AbortController()
    stopping.abort()
    expect(await failureOf(kit.open({}, { stopping: stopping.signal }).fetch())).toEqual(['git_unreachable', naming('server stops')])
    expect((await failureOf(kit.open({}, { cancelled: () => AbortSignal.abort() }).fetch()))[1]).toContain('it was cancelled')
    expect(await failureOf(kit.open({ fetchMs: 1 }).fetch())).toEqual(['git_unreachable', naming('0.001 s')])
    const small = kit.open({ diskBytesMax: 100 })
    expect(await failureOf(small.fetch())).toEqual(['git_failed', expect.stringMatching(/main.* ssh:.* MiB .*disk/)])
    const running = Bun.spawnSync(['sh', '-c', 'ps -eo args | grep "[g]it-upload-pack" | grep -c "^ssh\\|/ssh "']).stdout.toString().trim()
    expect(running).toBe('0')
  })
})
