// OciSource against answers that no registry in order gives: pages of a proxy in the place of content, names that lead
// elsewhere. Answers are made here, nothing is on a network.
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates } from 'node:tls'
import type { WebFetcher } from '../../server/sources/address/guard.ts'
import { createOciSource } from '../../server/sources/oci/oci-source.ts'
import { openRegistry } from '../../server/sources/oci/pull.ts'
import { sha256Of } from '../../server/sources/stored/files.ts'
import { createUnpacked } from '../../server/sources/stored/unpacked.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Seen {
  path: string
  range: string | null
  authorization: string | null
  /** PEMs that its certificate is held against. Null means those of this machine. */
  authorities: number | null
}
type Answer = (seen: Seen) => Response

const layer = new TextEncoder().encode('x'.repeat(100_000))
const digestOf = (bytes: Uint8Array) => `sha256:${sha256Of(bytes)}`
const title = { 'org.opencontainers.image.title': 'a.yaml' }
const manifest = new TextEncoder().encode(
  JSON.stringify({
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    layers: [{ mediaType: 'text/plain', digest: digestOf(layer), size: layer.byteLength, annotations: title }],
  }),
)

function world(answer: Answer, { dir = tempDir(), secrets = {} }: { dir?: string; secrets?: Record<string, string> } = {}) {
  const seen: Seen[] = []
  const fetcher: WebFetcher = async (url, init) => {
    const headers = new Headers(init.headers)
    const ca = init.tls?.ca
    const authorities = Array.isArray(ca) ? ca.length : ca === undefined ? null : 1
    const one = { path: new URL(url).pathname, range: headers.get('range'), authorization: headers.get('authorization'), authorities }
    seen.push(one)
    if (one.path.includes('/manifests/') && one.path.startsWith('/v2/team-a/'))
      return new Response(manifest, { headers: { 'docker-content-digest': digestOf(manifest) } })
    return answer(one)
  }
  const secretRef = Object.keys(secrets).length === 0 ? null : 'reg'
  const addresses = { fetcher, namedOnly: fetcher, allowedAddress: async () => '', proxyOf: () => null }
  const registry = openRegistry({ url: 'oci://reg.example/team-a', tag: 'v1' }, addresses, { secretRef, read: async () => secrets })
  return { seen, dir, source: () => createOciSource({ ...registry, dir, unpacked: createUnpacked() }) }
}
const refusal = (asked: Promise<unknown> | undefined): Promise<string> =>
  (asked ?? Promise.resolve()).then(
    () => 'read',
    (error: unknown) => (error instanceof AppError ? `${error.code}: ${error.data.detail}` : `no AppError: ${error}`),
  )

test('CG8 a token server on another host is asked with the credential only if that is for it', async () => {
  const asked: string[] = []
  const fetcher: WebFetcher = async (url, init) => {
    const { host } = new URL(url)
    asked.push(`${host} ${new Headers(init.headers).get('authorization') === null ? 'without' : 'with'}`)
    const realm = 'https://auth.example/token'
    return new Response('', { status: 401, headers: { 'www-authenticate': `Bearer realm="${realm}",service="x"` } })
  }
  const addresses = { fetcher, namedOnly: fetcher, allowedAddress: async () => '', proxyOf: () => null }
  const wanted: Array<string | undefined> = []
  const read = async (tokenServer?: string) => {
    wanted.push(tokenServer)
    if (tokenServer !== undefined) throw new AppError('source_refused', { detail: tokenServer })
    return { username: 'me', password: 'secret' }
  }
  const { registry } = openRegistry({ url: 'oci://reg.example/a', tag: 'v1' }, addresses, { secretRef: 'reg', read })
  expect(await refusal(registry.digestOf('v1'))).toBe('source_refused: auth.example')
  expect(wanted).toEqual([undefined, 'auth.example'])
  expect(asked).toEqual(['reg.example without'])
})

/** Bytes, and then the connection is gone. */
function brokenOff(text: string, init: ResponseInit = {}): Response {
  let isSent = false
  const body = new ReadableStream({
    pull(controller) {
      if (isSent) controller.error(new Error('cut'))
      else controller.enqueue(new TextEncoder().encode(text))
      isSent = true
    },
  })
  return new Response(body, init)
}
const whole: Answer = ({ range }) => {
  if (range === null) return new Response(layer)
  const from = Number(/bytes=(\d+)-/.exec(range)?.[1])
  return new Response(layer.subarray(from), {
    status: 206,
    headers: { 'content-range': `bytes ${from}-${layer.byteLength - 1}/${layer.byteLength}` },
  })
}
const held = (dir: string) => readdirSync(join(dir, 'blobs')).map((name) => name.replace(/^[0-9a-f]{64}/, ''))

test('SO19 a part that is not the beginning of its layer is thrown away, and the layer is asked for from its start', async () => {
  let isBad = true
  const { seen, dir, source } = world((one) => {
    if (!isBad) return whole(one)
    if (one.range !== null) throw new Error('away')
    return brokenOff('<html>bad gateway')
  })
  expect(await refusal(source().fetch())).toContain('source_unreachable')
  expect(held(dir)).toContain('.part')
  isBad = false
  seen.length = 0
  const opened = await source().open(await source().fetch(), { path: '.' })
  expect([...(await opened.tree.files('', () => true)).keys()]).toEqual(['a.yaml'])
  expect(seen.flatMap(({ path, range }) => (path.includes('/blobs/') ? [range] : []))).toEqual(['bytes=17-', null])
  expect(held(dir)).not.toContain('.part')
})

test('SO19 a layer that breaks off each time is asked on from there 5 times in one go, and again in the next', async () => {
  const { seen, source } = world(({ range }) => {
    const from = range === null ? 0 : Number(/bytes=(\d+)-/.exec(range)?.[1])
    const rest = new TextDecoder().decode(layer.subarray(from, from + 10))
    const headers = { 'content-range': `bytes ${from}-${layer.byteLength - 1}/${layer.byteLength}` }
    return range === null ? brokenOff(rest) : brokenOff(rest, { status: 206, headers })
  })
  const ranges = () => seen.splice(0).flatMap(({ path, range }) => (path.includes('/blobs/') ? [range] : []))
  expect(await refusal(source().fetch())).toContain('source_unreachable')
  expect(ranges()).toEqual([null, 'bytes=10-', 'bytes=20-', 'bytes=30-', 'bytes=40-', 'bytes=50-'])
  expect(await refusal(source().fetch())).toContain('source_unreachable')
  expect(ranges().slice(0, 2)).toEqual(['bytes=60-', 'bytes=70-'])
})

/** Answers of a registry that is made here. */
function answering(answer: (path: string) => Response, wanted: { tag: string } | { semver: string }) {
  const fetcher: WebFetcher = async (url) => answer(new URL(url).pathname + new URL(url).search)
  const addresses = { fetcher, namedOnly: fetcher, allowedAddress: async () => '', proxyOf: () => null }
  const registry = openRegistry({ url: 'oci://reg.example/a', ...wanted }, addresses, { secretRef: null, read: async () => ({}) })
  return createOciSource({ ...registry, dir: tempDir(), unpacked: createUnpacked() })
}

test.each([
  [100, 'source_unreachable'],
  [101, 'source_refused'],
] as const)('SO17 an artifact of %d layers', async (count, code) => {
  const one = { mediaType: 'text/plain', digest: digestOf(layer), size: layer.byteLength, annotations: title }
  const bytes = JSON.stringify({
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    layers: Array.from({ length: count }, () => one),
  })
  const headers = { 'docker-content-digest': digestOf(new TextEncoder().encode(bytes)) }
  const source = answering((path) => (path.includes('/manifests/') ? new Response(bytes, { headers }) : new Response('', { status: 500 })), { tag: 'v1' }) // biome-ignore format: short
  expect(await refusal(source.fetch())).toStartWith(`${code}: `)
})

test.each([
  [100, 'read'],
  [101, 'more than 100 pages'],
] as const)('SO18 a registry with %d pages of tags', async (pages, said) => {
  const source = answering(
    (path) => {
      if (!path.includes('/tags/list')) return new Response('', { headers: { 'docker-content-digest': digestOf(layer) } })
      const page = Number(/page=(\d+)/.exec(path)?.[1] ?? 1)
      const more: Record<string, string> = page === pages ? {} : { link: `</v2/a/tags/list?page=${page + 1}>; rel="next"` }
      return Response.json({ tags: [`1.0.${page}`] }, { headers: more })
    },
    { semver: '*' },
  )
  expect(await refusal(source.head())).toContain(said)
})

test('SO19 what is wrong from its start is asked for no second time, and nothing of it is kept', async () => {
  const { seen, dir, source } = world(() => new Response('<html>log in first'))
  expect(await refusal(source().fetch())).toMatch(/\bdigest sha256:/)
  expect(seen.filter(({ path }) => path.includes('/blobs/')).length).toBe(1)
  expect(held(dir)).toEqual([''])
})

test('SO19 an error page that breaks off is no part of a layer', async () => {
  const { dir, source } = world(() => brokenOff('<html>bad gateway', { status: 502 }))
  expect(await refusal(source().fetch())).toContain('source_unreachable')
  expect(held(dir)).toEqual([''])
})

test.each([
  ['x\\..\\..\\team-b\\secret', '1.0.0', 'chart name'],
  ['x/%2e%2e/%2e%2e/team-b/secret', '1.0.0', 'chart name'],
  ['../../api/v2.0/users', 'a?b#', 'chart name'],
  ['..', '1.0.0', 'chart name'],
  ['common', '../../../team-b/secret/manifests/1', 'valid tag'],
  ['common', 'a?b#', 'valid tag'],
])('SO20 a dependency %p %p is refused before anything is asked', async (name, version, detail) => {
  const { seen, source } = world(() => new Response('', { status: 404 }), { secrets: { username: 'u', password: 'p' } })
  const said = await refusal(source().chart?.('oci://reg.example/team-a', name, version))
  expect([said.startsWith('source_refused: '), said.includes(detail), seen]).toEqual([true, true, []])
})

test('SO20 a path that a URL would change is no address of a registry', () => {
  const { registryAt } = openRegistry(
    { url: 'oci://reg.example/team-a', tag: 'v1' },
    { fetcher: fetch, namedOnly: fetch, allowedAddress: async () => '', proxyOf: () => null },
    { secretRef: null, read: async () => ({}) },
  )
  for (const path of ['team-a/../team-b', 'a\\..\\b', 'a/%2e%2e/b', 'a?b', 'a#b'])
    expect(() => registryAt(`oci://reg.example/${path}`)).toThrow(expect.objectContaining({ code: 'source_refused' }))
})

test('SO38 of the tags that a moving revision had the newest 20 are kept', async () => {
  let revision = 0
  const fetcher: WebFetcher = async () =>
    new Response(null, { headers: { 'docker-content-digest': digestOf(new TextEncoder().encode(`${revision}`)) } })
  const addresses = { fetcher, namedOnly: fetcher, allowedAddress: async () => '', proxyOf: () => null }
  const registry = openRegistry({ url: 'oci://reg.example/a', tag: 'v1' }, addresses, { secretRef: null, read: async () => ({}) })
  const dir = tempDir()
  const source = createOciSource({ ...registry, dir, unpacked: createUnpacked() })
  let last = ''
  for (; revision < 25; revision++) last = await source.head()
  expect(readdirSync(dir).filter((name) => name.startsWith('tag-')).length).toBe(20)
  expect(readdirSync(dir)).toContain(`tag-${last.replace('sha256:', '')}`)
})

test('SO45 the CA of a registry counts alone for its own token server, and beside the public ones for a token server elsewhere', async () => {
  for (const [realm, others] of [
    ['https://auth.example/token', getCACertificates('default').length],
    ['https://reg.example/token', 0],
  ] as const) {
    const { seen, source } = world(
      ({ path }) =>
        path === '/token'
          ? Response.json({ token: 't' })
          : new Response('', { status: 401, headers: { 'www-authenticate': `Bearer realm="${realm}"` } }),
      { secrets: { username: 'ada', password: 's3cret', caCert: 'PEM' } },
    )
    await refusal(source().fetch())
    expect(seen.map(({ path, authorities }) => [path.split('/')[1], authorities])).toEqual([
      ['v2', 1],
      ['v2', 1],
      ['v2', 1],
      ['token', others + 1],
      ['v2', 1],
    ])
  }
})
