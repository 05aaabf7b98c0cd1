// The guard against real sockets: names that change, redirects, and what the other side gets to see.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { getCACertificates } from 'node:tls'
import { type AddressGuard, REDIRECTS_MAX } from '../../server/sources/address/guard.ts'
import { askWeb } from '../../server/sources/web-request.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { naming } from '../support/naming.ts'
import { loopbackGuard } from '../support/source-guard.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Seen {
  host: string | null
  authorization: string | null
  method: string
  path: string
  body: string
}
let seen: Seen[] = []
const redirects: Record<string, { to: string; status: number }> = {}

const answer = async (request: Request): Promise<Response> => {
  const { pathname } = new URL(request.url)
  const { headers, method } = request
  seen.push({ host: headers.get('host'), authorization: headers.get('authorization'), method, path: pathname, body: await request.text() })
  const redirect = redirects[pathname]
  if (redirect !== undefined) return new Response('moved', { status: redirect.status, headers: { location: redirect.to } })
  return new Response('here')
}
let plain: Bun.Server<undefined>
let secure: Bun.Server<undefined>
let ca = ''
let identity = { cert: '', key: '' }

beforeAll(async () => {
  const dir = tempDir()
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
  const name = ['-subj', '/CN=git.example', '-addext', 'subjectAltName=DNS:git.example']
  const made = Bun.spawnSync(
    ['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '3', '-keyout', key].concat(
      ['-out', cert],
      name,
    ),
  )
  expect(made.exitCode).toBe(0)
  ca = await Bun.file(cert).text()
  identity = { cert: ca, key: await Bun.file(key).text() }
  plain = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  secure = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: identity, fetch: answer })
})
afterAll(() => Promise.all([plain.stop(true), secure.stop(true)]))

/** Each look at a name takes the next answer; the last one stays. */
function resolverOf(names: Record<string, string[][]>) {
  const looks: string[] = []
  return {
    looks,
    resolve: async (host: string) => {
      looks.push(host)
      const answers = names[host]
      if (answers === undefined) throw Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' })
      return (answers.length > 1 ? answers.shift() : answers[0]) ?? []
    },
  }
}
const refusal = async (asked: Promise<unknown>): Promise<string> => {
  const error = await asked.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  return error instanceof AppError ? `${error.code} ${error.data.detail}` : String(error)
}
const ask = (guard: AddressGuard, url: string, init: BunFetchRequestInit = {}) => {
  seen = []
  return guard.fetcher(url, init)
}

test('SO1 a name is asked for once, and the connection goes to the address that was checked', async () => {
  const { resolve, looks } = resolverOf({ 'git.example': [['127.0.0.1'], ['10.0.0.1']] })
  const response = await ask(loopbackGuard({ resolve }), `http://git.example:${plain.port}/a?b=c`)
  expect([await response.text(), response.url]).toEqual(['here', `http://git.example:${plain.port}/a?b=c`])
  expect(looks).toEqual(['git.example'])
  expect(seen).toMatchObject([{ host: `git.example:${plain.port}`, path: '/a' }])
})

test('SO1 TLS is for the name, not for the address', async () => {
  const { resolve } = resolverOf({ 'git.example': [['127.0.0.1']], 'other.example': [['127.0.0.1']] })
  const guard = loopbackGuard({ resolve })
  const response = await ask(guard, `https://git.example:${secure.port}/`, { tls: { ca } })
  expect(await response.text()).toBe('here')
  expect(await refusal(ask(guard, `https://other.example:${secure.port}/`, { tls: { ca } }))).toContain('ERR_TLS_CERT_ALTNAME_INVALID')
  expect(await refusal(ask(guard, `https://git.example:${secure.port}/`))).toContain('self signed')
})

test('SO1 what leads to inner addresses only is refused before anything is sent', async () => {
  const { resolve } = resolverOf({ 'inner.example': [['10.0.0.1', 'fd00::1']], 'zone.example': [['fe80::1%eth0']] })
  const guard = loopbackGuard({ resolve, allowed: [] })
  const urls = {
    'http://inner.example/': ['source_address_refused', 'inner.example', '10.0.0.0/8'],
    'http://zone.example/': ['source_address_refused', 'zone.example'],
    [`http://127.0.0.1:${plain.port}/`]: ['source_address_refused', '127.0.0.1', '127.0.0.0/8'],
    [`http://2130706433:${plain.port}/`]: ['source_address_refused', '127.0.0.1', '127.0.0.0/8'],
    [`http://0177.1:${plain.port}/`]: ['source_address_refused', '127.0.0.1', '127.0.0.0/8'],
    [`http://[::ffff:127.0.0.1]:${plain.port}/`]: ['source_address_refused', '::ffff:7f00:1', '127.0.0.0/8'],
    'http://169.254.169.254/latest/meta-data/': ['source_address_refused', '169.254.169.254', '169.254.0.0/16'],
    'file:///etc/passwd': ['source_refused', 'file:', 'http: or https:'],
  }
  for (const [url, expected] of Object.entries(urls)) expect(await refusal(ask(guard, url))).toEqual(naming(...expected))
  expect(seen).toEqual([])
})

test('SO1 a name with inner and outer addresses is used at those that are allowed, and the next is tried when one does not answer', async () => {
  const { resolve } = resolverOf({ 'git.example': [['10.9.9.9', '127.0.0.2', '127.0.0.1']] })
  expect((await ask(loopbackGuard({ resolve }), `http://git.example:${plain.port}/`)).status).toBe(200)
})

test('SO4 every redirect is checked as the first address was', async () => {
  const { resolve } = resolverOf({ 'git.example': [['127.0.0.1']], 'inner.example': [['10.0.0.1']] })
  redirects['/inner'] = { to: 'http://inner.example/secret', status: 302 }
  redirects['/file'] = { to: 'file:///etc/passwd', status: 302 }
  const at = (path: string) => `http://git.example:${plain.port}${path}`
  expect(await refusal(ask(loopbackGuard({ resolve }), at('/inner')))).toBe(
    'source_address_refused inner.example: a private address (10.0.0.0/8)',
  )
  expect(await refusal(ask(loopbackGuard({ resolve }), at('/file')))).toEqual(naming('source_refused', 'file:', 'http: or https:'))
})

test('SO4 at most five redirects are followed', async () => {
  for (let n = 1; n <= REDIRECTS_MAX + 1; n++) redirects[`/r${n}`] = { to: n === 1 ? '/end' : `/r${n - 1}`, status: 302 }
  const at = (n: number) => `http://127.0.0.1:${plain.port}/r${n}`
  const response = await ask(loopbackGuard(), at(REDIRECTS_MAX))
  expect([await response.text(), new URL(response.url).pathname]).toEqual(['here', '/end'])
  expect(await refusal(ask(loopbackGuard(), at(REDIRECTS_MAX + 1)))).toEqual(naming('source_refused', 'redirects', REDIRECTS_MAX))
})

test('SO4 a credential stays with the host, port and scheme that it was for', async () => {
  const { resolve } = resolverOf({ 'git.example': [['127.0.0.1']], 'cdn.example': [['127.0.0.1']] })
  redirects['/same'] = { to: '/blob', status: 307 }
  redirects['/other'] = { to: `http://cdn.example:${plain.port}/blob`, status: 307 }
  const init = { method: 'POST', body: 'want', headers: { authorization: 'Bearer s3cret' } }
  for (const [path, expected] of [
    ['/same', 'Bearer s3cret'],
    ['/other', null],
  ] as const) {
    await ask(loopbackGuard({ resolve }), `http://git.example:${plain.port}${path}`, init)
    expect(seen.map(({ authorization }) => authorization)).toEqual(['Bearer s3cret', expected])
    expect(seen[1]).toMatchObject({ method: 'POST', body: 'want' })
  }
})

test('SO45 a CA of its own counts alone where the request begins, and beside the public ones where it is redirected to', async () => {
  const given: unknown[] = []
  const hops = ['https://git.example/b', 'https://store.example/c', 'https://other.example/d', null]
  const fetcher = async (_: string, { tls }: BunFetchRequestInit) => {
    given.push(tls?.ca)
    const to = hops[given.length - 1]
    return to == null ? new Response('here') : new Response('', { status: 307, headers: { location: to } })
  }
  const guard = loopbackGuard({ resolve: async () => ['127.0.0.1'], fetcher })
  await guard.fetcher('https://git.example/a', { tls: { ca } })
  const beside = [...getCACertificates('default'), ca]
  expect(given).toEqual([ca, ca, beside, beside])
})

test('SO45 a host of the same house that a request is redirected to is trusted by the CA of the Config', async () => {
  const { resolve } = resolverOf({ 'git.example': [['127.0.0.1']] })
  const front = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    tls: identity,
    fetch: () => new Response('', { status: 307, headers: { location: `https://git.example:${secure.port}/blob` } }),
  })
  try {
    const answer = await ask(loopbackGuard({ resolve }), `https://git.example:${front.port}/`, { tls: { ca } })
    expect(await answer.text()).toBe('here')
  } finally {
    await front.stop(true)
  }
})

test('SO4 a POST that is answered with 302 or 303 goes on as GET without its body', async () => {
  redirects['/see'] = { to: '/blob', status: 303 }
  await ask(loopbackGuard(), `http://127.0.0.1:${plain.port}/see`, { method: 'POST', body: 'want' })
  expect(seen[1]).toMatchObject({ method: 'GET', body: '' })
})

test('SO4 https never becomes http', async () => {
  const { resolve } = resolverOf({ 'git.example': [['127.0.0.1']] })
  redirects['/down'] = { to: `http://git.example:${plain.port}/`, status: 302 }
  const asked = ask(loopbackGuard({ resolve }), `https://git.example:${secure.port}/down`, { tls: { ca } })
  expect(await refusal(asked)).toEqual(naming('source_refused', 'redirects', 'https to http'))
})

test('SO3 with an outbound proxy names are left to it; addresses and this host are checked all the same', async () => {
  const proxied: string[] = []
  const proxy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => {
      proxied.push(request.url)
      return new Response('by proxy')
    },
  })
  const { resolve, looks } = resolverOf({})
  const guard = loopbackGuard({ resolve, allowed: [], proxyFor: () => `http://127.0.0.1:${proxy.port}` })
  expect(await (await ask(guard, 'http://git.example/x')).text()).toBe('by proxy')
  for (const host of ['10.0.0.1', 'localhost', 'a.localhost', '[::1]', '127.1'])
    expect(await refusal(ask(guard, `http://${host}/`))).toContain('source_address_refused')
  expect([proxied, looks]).toEqual([['http://git.example/x'], []])
  await proxy.stop(true)
})

test('SO1 a program of others is given the address that was checked', async () => {
  const { resolve } = resolverOf({ 'git.example': [['10.9.9.9', '127.0.0.1']], 'inner.example': [['10.0.0.1']] })
  const { allowedAddress } = loopbackGuard({ resolve })
  expect(await allowedAddress('git.example')).toBe('127.0.0.1')
  for (const host of ['inner.example', '0x7f000001', '2130706433', '017700000001', '127.1', '::1%lo'])
    expect(await refusal(allowedAddress(host))).toContain('source_address_refused')
})

test('SO5 plain HTTP where it is for tests only: addresses that the operator named, and no others', async () => {
  const { resolve } = resolverOf({ 'git.example': [['127.0.0.1']], 'outer.example': [['8.8.8.8']] })
  const guard = loopbackGuard({ resolve })
  expect((await guard.namedOnly(`http://git.example:${plain.port}/`, {})).status).toBe(200)
  expect(await refusal(guard.namedOnly('http://outer.example/', {}))).toEqual(naming('source_address_refused', 'plain HTTP'))
  const proxied = loopbackGuard({ resolve, proxyFor: () => `http://127.0.0.1:${plain.port}` })
  for (const host of ['outer.example', '8.8.8.8']) expect(await refusal(proxied.namedOnly(`http://${host}/`, {}))).toContain('NO_PROXY')
})

test('SO1 who is refused reads which address to allow, and no more than that one', async () => {
  const guard = loopbackGuard({ allowed: [], resolve: async () => ['10.2.3.4'] })
  const error = await ask(guard, 'https://inner.example/').catch((reason: unknown) => reason)
  expect(error instanceof AppError ? error.remedy : '').toContain('`skerry server --source-addresses 10.2.3.4/32`')
})

test('SO14 plain HTTP in the place of TLS is told as that, with what there is for test registries', async () => {
  const url = `https://127.0.0.1:${plain.port}/`
  const error = await askWeb({ fetcher: (to, init) => fetch(to, init), url, what: 'the tag', bytesMax: 10 }).catch(
    (reason: unknown) => reason,
  )
  expect(error).toMatchObject({ code: 'source_unreachable', message: naming('tag', `127.0.0.1:${plain.port}`, 'TLS', 'EPROTO') })
  expect(error instanceof AppError ? error.remedy : '').toEqual(naming('`insecure: true`', 'spec.oci'))
})
