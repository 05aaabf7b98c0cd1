// OciSource against a real registry, with charts that the real helm pushed and artifacts of all forms that are read.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createOciSource } from '../../server/sources/oci/oci-source.ts'
import { openRegistry } from '../../server/sources/oci/pull.ts'
import type { OpenedSource, Source } from '../../server/sources/source.ts'
import { createUnpacked } from '../../server/sources/stored/unpacked.ts'
import type { OciSpec } from '../../shared/model/sources.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { askHelm, packChart } from '../support/helm-charts.ts'
import { naming } from '../support/naming.ts'
import { digestOf, OCI_INDEX, OCI_MANIFEST, type PushedLayer, pusherTo, type RegistryProcess, startRegistry } from '../support/registry.ts'
import { createRegistryFront, type RegistryFront } from '../support/registry-front.ts'
import { loopbackGuard } from '../support/source-guard.ts'
import { gzipped, tarOf } from '../support/tar-writer.ts'
import { tempDir } from '../support/temp-dir.ts'
import { describeSource } from './source.contract.ts'

const FLUX = 'application/vnd.cncf.flux.content.v1.tar+gzip'
const TAR = 'application/vnd.oci.image.layer.v1.tar'
const TAR_GZIP = `${TAR}+gzip`

let registry: RegistryProcess
let front: RegistryFront
let repositories = 0
beforeAll(async () => {
  registry = await startRegistry()
})
afterAll(() => registry.stop())
beforeEach(async () => {
  front = await createRegistryFront(registry.host)
})
afterEach(() => front.stop())

const newPath = () => `team/app-${repositories++}`
const archive = (files: Record<string, string>): Uint8Array =>
  gzipped(tarOf(Object.entries(files).map(([name, bytes]) => ({ name, bytes }))))
const flux = (files: Record<string, string>): PushedLayer => ({ mediaType: FLUX, bytes: archive(files) })

interface Open {
  dir?: string
  host?: string
  insecure?: boolean
  secretRef?: string
  secrets?: Record<string, string>
  guard?: ReturnType<typeof loopbackGuard>
}
function sourceOf(path: string, wanted: Pick<OciSpec, 'tag' | 'semver' | 'digest'>, open: Open = {}): Source {
  const { dir = tempDir(), host = front.host, insecure = true, secretRef = null, secrets = {}, guard = loopbackGuard() } = open
  const spec = { url: `oci://${host}/${path}`, insecure, ...wanted }
  const credential = { secretRef, read: async () => secrets }
  return createOciSource({ ...openRegistry(spec, guard, credential), dir, unpacked: createUnpacked() })
}
const contents = async ({ tree, root }: OpenedSource): Promise<Record<string, string>> =>
  Object.fromEntries([...(await tree.files(root, () => true))].map(([path, { bytes }]) => [path, new TextDecoder().decode(bytes)]))
const read = async (source: Source, path = '.') => contents(await source.open(await source.fetch(), { path }))
const refusal = async (asked: Promise<unknown>): Promise<string> => {
  const error = await asked.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  return error instanceof AppError ? `${error.code}: ${error.data.detail}` : `no AppError: ${error}`
}

describe('an OCI artifact', () => {
  describeSource(async () => {
    const path = newPath()
    const dir = tempDir()
    return {
      open: () => sourceOf(path, { tag: 'latest' }, { dir }),
      pick: { path: './deploy/' },
      path: 'value.txt',
      publish: async (value) => {
        await pusherTo(registry.host, path).push('latest', [
          flux({ 'deploy/value.txt': value, 'deploy/more/a.yaml': 'a: 1', 'other.txt': value }),
        ])
      },
      away: (isAway) => front.away(isAway),
      requests: () => front.requests.splice(0).length,
    }
  })
})

test('SO17 a chart that helm pushed is the chart’s folder; its digest is that of helm', async () => {
  const archivePath = packChart({ name: 'shop', version: '1.2.3+build', files: { 'files/value.txt': 'one' } }, tempDir())
  const path = `charts-${repositories++}`
  await askHelm('push', archivePath, `oci://${registry.host}/${path}`, '--plain-http')
  const shown = await askHelm('show', 'chart', `oci://${registry.host}/${path}/shop`, '--version', '1.2.3+build', '--plain-http')
  expect(shown).toContain('version: 1.2.3+build')
  const source = sourceOf(`${path}/shop`, { semver: '^1' })
  const opened = await source.open(await source.fetch(), { path: '.' })
  expect(await contents(opened)).toMatchObject({ 'files/value.txt': 'one', 'values.yaml': 'value: 1.2.3+build\n' })
  expect((await opened.tree.list(''))?.map(({ name }) => name)).toEqual(['Chart.yaml', 'files', 'templates', 'values.yaml'])
  expect(opened.version).toMatch(/^1\.2\.3_build sha256:[0-9a-f]{64}$/)
})

const LAYERS: ReadonlyArray<readonly [what: string, layers: readonly PushedLayer[], files: Record<string, string>]> = [
  ['of Flux', [flux({ './a.yaml': '1' })], { 'a.yaml': '1' }],
  ['a tar archive', [{ mediaType: TAR, bytes: tarOf([{ name: 'a.yaml', bytes: '1' }]) }], { 'a.yaml': '1' }],
  ['a tar archive with gzip', [{ mediaType: TAR_GZIP, bytes: archive({ 'a.yaml': '1' }) }], { 'a.yaml': '1' }],
  ['single files', [file('a.yaml', '1'), file('deep/b.yaml', '2')], { 'a.yaml': '1', 'deep/b.yaml': '2' }],
  [
    'a folder',
    [{ ...file('deploy', ''), mediaType: TAR_GZIP, bytes: archive({ 'deploy/a': '1' }), ...unpack('deploy') }],
    { 'deploy/a': '1' },
  ],
  ['later layers over earlier ones', [flux({ a: '1', b: '1' }), flux({ b: '2', 'c/d': '2' })], { a: '1', b: '2', 'c/d': '2' }],
]
function file(title: string, bytes: string): PushedLayer {
  return { mediaType: TAR, bytes, annotations: { 'org.opencontainers.image.title': title } }
}
function unpack(title: string): Pick<PushedLayer, 'annotations'> {
  return { annotations: { 'org.opencontainers.image.title': title, 'io.deis.oras.content.unpack': 'true' } }
}
test.each(LAYERS)('SO17 layers: %s', async (_, layers, files) => {
  const path = newPath()
  await pusherTo(registry.host, path).push('v1', layers)
  expect(await read(sourceOf(path, { tag: 'v1' }))).toEqual(files)
})

const REFUSED: ReadonlyArray<readonly [what: string, layers: readonly PushedLayer[], values: readonly string[]]> = [
  ['a type that is not known', [{ mediaType: 'application/wasm', bytes: 'x' }], ['layer', '"application/wasm"']],
  ['whiteouts', [flux({ a: '1' }), flux({ '.wh.a': '' })], ['".wh.a"', 'earlier layer']],
  ['a file over a folder', [flux({ 'a/b': '1' }), flux({ a: '1' })], ['"a"', 'file', 'folder']],
  ['an archive that leads out', [flux({ '../a': '1' })], ['archive', '"../a"', 'outside']],
  ['a title that leads out', [file('../a', '1')], ['title "../a"', 'relative path']],
  ['an absolute title', [file('/etc/x', '1')], ['title "/etc/x"', 'relative path']],
  ['no layers', [], ['no files']],
  [
    'a chart that is none',
    [{ mediaType: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip', bytes: archive({ a: '1' }) }],
    ['not a chart'],
  ],
]
test.each(REFUSED)('SO17 refused: %s', async (_, layers, values) => {
  const path = newPath()
  await pusherTo(registry.host, path).push('v1', layers)
  const said = await refusal(read(sourceOf(path, { tag: 'v1' })))
  expect(said).toStartWith('source_refused: ')
  expect(said).toEqual(naming(...values, `${front.host}/${path}`))
})

test('SO17 what is announced too large is refused before it is asked for', async () => {
  const path = newPath()
  const pusher = pusherTo(registry.host, path)
  await pusher.push('v1', [flux({ a: '1' })])
  const bytes = JSON.stringify({
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    layers: [{ mediaType: TAR, digest: digestOf('x'), size: 64 * 1024 * 1024 + 1 }],
  })
  front.instead = ({ url }) =>
    url.includes('/manifests/') ? new Response(bytes, { headers: { 'docker-content-digest': digestOf(bytes) } }) : null
  expect(await refusal(read(sourceOf(path, { tag: 'v1' })))).toEqual(naming('source_refused', 67_108_865, '64 MiB'))
  expect(front.requests.filter((request) => request.path.includes('/blobs/'))).toEqual([])
})

test('SO17 an index of one artifact is that artifact; of several it is refused by their names', async () => {
  const path = newPath()
  const pusher = pusherTo(registry.host, path)
  const [one, two] = [await pusher.push('one', [flux({ a: '1' })]), await pusher.push('two', [flux({ a: '2' })])]
  const size = (
    await (await fetch(`http://${registry.host}/v2/${path}/manifests/one`, { headers: { accept: OCI_MANIFEST } })).arrayBuffer()
  ).byteLength
  const entry = (digest: string, more: object = {}) => ({ mediaType: OCI_MANIFEST, digest, size, ...more })
  const attestation = entry(two, { annotations: { 'vnd.docker.reference.type': 'attestation-manifest' } })
  const index = (manifests: object[]) => ({ schemaVersion: 2, mediaType: OCI_INDEX, manifests })
  const revision = await pusher.manifest('single', index([entry(one), attestation]))
  const source = sourceOf(path, { tag: 'single' })
  expect(await source.fetch()).toBe(revision)
  expect(await read(source)).toEqual({ a: '1' })
  await pusher.manifest(
    'multi',
    index([
      entry(one, { platform: { os: 'linux', architecture: 'amd64' } }),
      entry(two, { platform: { os: 'linux', architecture: 'arm64' } }),
    ]),
  )
  expect(await refusal(read(sourceOf(path, { tag: 'multi' })))).toEqual(naming('source_refused', 'index', 2, 'linux/amd64, linux/arm64'))
})

test('SO18 what is pinned by digest and was fetched is never asked for again', async () => {
  const path = newPath()
  const digest = await pusherTo(registry.host, path).push('v1', [flux({ a: '1' })])
  const dir = tempDir()
  expect(await read(sourceOf(path, { digest }, { dir }))).toEqual({ a: '1' })
  expect(front.requests.map(({ path: asked }) => asked.split('/').at(-2))).toEqual(['manifests', 'blobs'])
  front.requests.length = 0
  await front.away(true)
  const later = sourceOf(path, { digest }, { dir })
  expect([await later.head(), await later.has(digest), await read(later)]).toEqual([digest, true, { a: '1' }])
})

test('SO18 a tag that did not move costs one request, and its digest decides', async () => {
  const path = newPath()
  const pusher = pusherTo(registry.host, path)
  await pusher.push('v1', [flux({ a: '1' })])
  const source = sourceOf(path, { tag: 'v1' })
  const first = await source.fetch()
  front.requests.length = 0
  expect(await source.head()).toBe(first)
  expect(front.requests).toMatchObject([{ method: 'HEAD', status: 200 }])
  await pusher.push('v1', [flux({ a: '2' })])
  expect(await source.head()).not.toBe(first)
})

test('SO6 SO18 of a range the greatest tag of all pages is taken', async () => {
  const path = newPath()
  const pusher = pusherTo(registry.host, path)
  const digests = new Map<string, string>()
  for (const tag of ['v1.0.0', '1.2.0', '1.10.0', '2.0.0-rc.1', 'latest', '0.1.0_build'])
    digests.set(tag, await pusher.push(tag, [flux({ tag })]))
  front.instead = ({ url }) => {
    const asked = new URL(url)
    if (!asked.pathname.endsWith('/tags/list') || asked.searchParams.get('n') === '2') return null
    return new Response(JSON.stringify({ tags: ['0.1.0_build'] }), {
      headers: { link: `<${asked.pathname}?n=2&last=0.1.0_build>; rel="next"` },
    })
  }
  const head = (semver: string) => sourceOf(path, { semver }).head()
  expect(await head('^1')).toBe(digests.get('1.10.0') ?? '')
  expect(await head('<1')).toBe(digests.get('0.1.0_build') ?? '')
  expect(await head('>=2.0.0-0')).toBe(digests.get('2.0.0-rc.1') ?? '')
  expect(await refusal(head('^7'))).toEqual(
    naming('source_refused', `oci://${front.host}/${path}`, '^7', '2.0.0-rc.1, 1.10.0, 1.2.0, v1.0.0, 0.1.0+build'),
  )
})

test('SO19 a layer that breaks off is asked on from there, in the same go and after a restart', async () => {
  const path = newPath()
  const content = Array.from({ length: 20_000 }, (_, n) => Bun.hash(`${n}`).toString(36)).join('')
  const layer = { mediaType: TAR, bytes: tarOf([{ name: 'a', bytes: content }]) }
  await pusherTo(registry.host, path).push('v1', [layer])
  front.cuts = [50_000, 30_000]
  expect(await read(sourceOf(path, { tag: 'v1' }))).toEqual({ a: content })
  const ranges = () => front.requests.flatMap(({ path: asked, range, status }) => (asked.includes('/blobs/') ? [[range, status]] : []))
  expect(ranges()).toEqual([
    [null, 200],
    ['bytes=50000-', 206],
    ['bytes=80000-', 206],
  ])
  front.requests.length = 0
  const dir = tempDir()
  front.cuts = [40_000, 0]
  expect(await refusal(read(sourceOf(path, { tag: 'v1' }, { dir })))).toContain('source_unreachable')
  expect(await read(sourceOf(path, { tag: 'v1' }, { dir }))).toEqual({ a: content })
  expect(ranges().at(-1)).toEqual(['bytes=40000-', 206])
})

test('SO19 a manifest or layer that is not what its digest says is refused and not kept', async () => {
  const path = newPath()
  const digest = await pusherTo(registry.host, path).push('v1', [flux({ a: '1' })])
  const dir = tempDir()
  for (const kind of ['manifests', 'blobs']) {
    front.instead = ({ url }) => (url.includes(`/${kind}/`) ? new Response('{}') : null)
    expect(await refusal(read(sourceOf(path, { digest }, { dir })))).toMatch(
      /^source_refused: .*(manifest|layer) sha256:[0-9a-f]{64} .*digest/,
    )
  }
  front.instead = null
  expect(await read(sourceOf(path, { digest }, { dir }))).toEqual({ a: '1' })
})

test('SO20 a chart that another one depends on, of the same registry, is what it was when it was fetched first', async () => {
  const path = `charts-${repositories++}`
  const push = async (value: string) =>
    askHelm(
      'push',
      packChart({ name: 'common', version: '1.0.0+x', files: { 'files/value.txt': value } }, tempDir()),
      `oci://${registry.host}/${path}`,
      '--plain-http',
    )
  await push('one')
  const dir = tempDir()
  const chart = async (source: Source, repository = `oci://${front.host}/${path}/`, version = '1.0.0+x') => {
    const opened = await source.chart?.(repository, 'common', version)
    return opened === undefined ? null : { ...(await contents(opened)), version: opened.version }
  }
  const first = await chart(sourceOf(path, { tag: 'any' }, { dir }))
  expect(first).toMatchObject({ 'files/value.txt': 'one', version: expect.stringMatching(/^1\.0\.0\+x sha256:/) })
  await push('two')
  expect(await chart(sourceOf(path, { tag: 'any' }, { dir }))).toEqual(first)
  expect(await chart(sourceOf(path, { tag: 'any' }))).toMatchObject({ 'files/value.txt': 'two' })
  expect(await refusal(chart(sourceOf(path, { tag: 'any' }), 'oci://other.example/charts'))).toEqual(
    naming('source_refused', 'oci://other.example/charts', front.host),
  )
  expect(await refusal(chart(sourceOf(path, { tag: 'any' }), undefined, '9.9.9'))).toContain('the tag 9.9.9 of oci://')
})

test('SO18 of a registry with tags without end no more are kept than there may be', async () => {
  let page = 0
  front.instead = () => {
    const tags = Array.from({ length: 60_000 }, (_, at) => `1.${page}.${at}`)
    return Response.json({ tags }, { headers: { link: `</v2/x/tags/list?page=${++page}>; rel="next"` } })
  }
  expect(await refusal(sourceOf(newPath(), { semver: '*' }).head())).toContain('are more than 100000')
  expect(page).toBe(2)
})

describe('SO15 credentials', () => {
  test('SO15 SO46 name and password', async () => {
    const path = newPath()
    await pusherTo(registry.host, path).push('v1', [flux({ a: '1' })])
    const guarded = await startRegistry({ storage: registry.storage, users: { ada: 's3cret' } })
    try {
      const open = (more: Open) => sourceOf(path, { tag: 'v1' }, { host: guarded.host, ...more })
      expect(await read(open({ secretRef: 'reg', secrets: { username: 'ada', password: 's3cret\n' } }))).toEqual({ a: '1' })
      expect(await read(open({ secretRef: 'reg', secrets: { username: 'ada', token: 's3cret' } }))).toEqual({ a: '1' })
      const wrong = await refusal(read(open({ secretRef: 'reg', secrets: { username: 'ada', password: 'wr0ng' } })))
      expect(wrong).toEqual(naming('credential_refused', 'Config reg', 401))
      expect(wrong).not.toContain('wr0ng')
      expect(await refusal(read(open({})))).toStartWith('credential_missing: ')
    } finally {
      await guarded.stop()
    }
  })

  test('SO15 tokens of a token server, with and without a credential', async () => {
    const path = newPath()
    await pusherTo(registry.host, path).push('v1', [flux({ a: '1' })])
    const tokens = await tokenServer()
    const guarded = await startRegistry({ storage: registry.storage, tokens })
    try {
      const open = (more: Open) => sourceOf(path, { tag: 'v1' }, { host: guarded.host, ...more })
      const source = open({ secretRef: 'reg', secrets: { username: 'ada', password: 's3cret' } })
      expect(await read(source)).toEqual({ a: '1' })
      expect(tokens.asked).toEqual([
        { scope: `repository:${path}:pull`, service: 'registry.test', authorization: `Basic ${btoa('ada:s3cret')}` },
      ])
      await source.head()
      expect(tokens.asked.length).toBe(1) // the token is used as long as it is taken
      expect(await refusal(read(open({})))).toContain('credential_missing: a token for ')
      expect(await refusal(read(open({ secretRef: 'reg', secrets: { token: 'not.a.token' } })))).toContain('credential_refused')
    } finally {
      await guarded.stop()
      await tokens.stop()
    }
  })

  test('SO15 a host that a registry redirects to names no token server', async () => {
    const path = newPath()
    const asked: (string | null)[] = []
    const other = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => {
        asked.push(request.headers.get('authorization'))
        const realm = `${new URL(request.url).origin}/token`
        return new Response('', { status: 401, headers: { 'www-authenticate': `Bearer realm="${realm}",service="x"` } })
      },
    })
    try {
      front.instead = () => new Response('', { status: 307, headers: { location: `http://127.0.0.1:${other.port}/blob` } })
      const source = sourceOf(path, { tag: 'v1' }, { secretRef: 'reg', secrets: { username: 'ada', password: 's3cret' } })
      expect(await refusal(source.fetch())).toContain('credential_refused: ')
      expect(asked).toEqual([null])
    } finally {
      await other.stop(true)
    }
  })

  test('SO1 SO15 over https by name, with the CA that the Config holds', async () => {
    const path = newPath()
    await pusherTo(registry.host, path).push('v1', [flux({ a: '1' })])
    const dir = tempDir()
    const [key, cert] = [`${dir}/key.pem`, `${dir}/cert.pem`]
    const names = ['-subj', '/CN=registry.test', '-addext', 'subjectAltName=DNS:registry.test']
    const made = Bun.spawnSync([
      'openssl',
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '3',
      '-keyout',
      key,
      '-out',
      cert,
      ...names,
    ])
    expect(made.exitCode).toBe(0)
    const caCert = await Bun.file(cert).text()
    const guarded = await startRegistry({ storage: registry.storage, tls: { cert, key } })
    try {
      const guard = loopbackGuard({ resolve: async () => ['127.0.0.1'] })
      const open = (name: string, secrets: Record<string, string>) =>
        read(
          sourceOf(
            path,
            { tag: 'v1' },
            { host: guarded.host.replace('127.0.0.1', name), insecure: false, guard, secretRef: 'reg', secrets },
          ),
        )
      expect(await open('registry.test', { caCert })).toEqual({ a: '1' })
      expect(await refusal(open('other.test', { caCert }))).toEqual(
        naming('source_unreachable', 'certificate', 'ERR_TLS_CERT_ALTNAME_INVALID'),
      )
      expect(await refusal(open('registry.test', {}))).toEqual(naming('source_unreachable', 'caCert', 'auth.secretRef'))
    } finally {
      await guarded.stop()
    }
  })

  test('SO5 a registry that plain HTTP is not allowed for is not asked', async () => {
    const path = newPath()
    await pusherTo(registry.host, path).push('v1', [flux({ a: '1' })])
    const nobody = loopbackGuard({ allowed: [] })
    expect(await refusal(read(sourceOf(path, { tag: 'v1' }, { guard: nobody })))).toContain('source_address_refused')
    expect(await refusal(read(sourceOf(path, { tag: 'v1' }, { insecure: false })))).toContain('source_unreachable')
    expect(front.requests).toEqual([])
  })
})

test('SO14 a tag that is not there, a registry that is away: with host and tag', async () => {
  const path = newPath()
  await pusherTo(registry.host, path).push('v1', [flux({ a: '1' })])
  expect(await refusal(read(sourceOf(path, { tag: 'v2' })))).toEqual(
    naming('source_not_found', 'tag v2', `oci://${front.host}/${path}`, 404),
  )
  const source = sourceOf(path, { tag: 'v1' })
  expect(await refusal(source.open(await source.fetch(), { chart: 'x' }))).toEqual(naming('source_refused', 'source.path'))
})

/** Signs what it is asked for, for ada only. */
async function tokenServer() {
  const dir = tempDir()
  const made = Bun.spawnSync([
    'openssl',
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '3',
    '-subj',
    '/CN=tokens',
    '-keyout',
    `${dir}/key.pem`,
    '-out',
    `${dir}/cert.pem`,
  ])
  expect(made.exitCode).toBe(0)
  const der = (text: string) => text.replace(/-----[^-]*-----|\s/g, '')
  const x5c = [der(await Bun.file(`${dir}/cert.pem`).text())]
  const key = await crypto.subtle.importKey(
    'pkcs8',
    Buffer.from(der(await Bun.file(`${dir}/key.pem`).text()), 'base64'),
    { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
    false,
    ['sign'],
  )
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const asked: Array<{ scope: string | null; service: string | null; authorization: string | null }> = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { searchParams } = new URL(request.url)
      const [scope, service, authorization] = [searchParams.get('scope'), searchParams.get('service'), request.headers.get('authorization')]
      if (authorization !== `Basic ${btoa('ada:s3cret')}`) return new Response('no', { status: 401 })
      asked.push({ scope, service, authorization })
      const now = Math.floor(Date.now() / 1000)
      const [type, name, action] = (scope ?? '').split(':')
      const claims = {
        iss: 'tokens.test',
        sub: 'ada',
        aud: service,
        exp: now + 300,
        nbf: now - 10,
        iat: now,
        jti: `${now}`,
        access: [{ type, name, actions: [action] }],
      }
      const signed = `${part({ typ: 'JWT', alg: 'RS256', x5c })}.${part(claims)}`
      const signature = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', key, Buffer.from(signed))
      return Response.json({ token: `${signed}.${Buffer.from(signature).toString('base64url')}` })
    },
  })
  return {
    asked,
    realm: `http://127.0.0.1:${server.port}/token`,
    service: 'registry.test',
    issuer: 'tokens.test',
    bundle: `${dir}/cert.pem`,
    stop: () => server.stop(true),
  }
}
