// A real OCI registry as a process, open or with a password or tokens, and a pusher for artifacts that no tool at hand
// makes.
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, startChild, waitUntil } from '../../scripts/local-cluster/child-process.ts'
import { renderProgram } from './render-programs.ts'
import { tempDir } from './temp-dir.ts'

export interface RegistryProcess {
  /** 127.0.0.1:port. */
  host: string
  storage: string
  stop(): Promise<void>
}

export interface RegistryOptions {
  /** That of another registry: what is pushed there is here, too. */
  storage?: string
  /** Who may read: name → password. */
  users?: Readonly<Record<string, string>>
  tokens?: { realm: string; service: string; issuer: string; bundle: string }
  tls?: { cert: string; key: string }
}

export async function startRegistry({ storage = tempDir(), users, tokens, tls }: RegistryOptions = {}): Promise<RegistryProcess> {
  const dir = tempDir()
  const host = `127.0.0.1:${freePort()}`
  mkdirSync(storage, { recursive: true })
  const auth: Record<string, unknown> = {}
  if (users !== undefined) {
    const lines = Object.entries(users).map(
      ([name, password]) => `${name}:${Bun.password.hashSync(password, { algorithm: 'bcrypt', cost: 4 })}`,
    )
    writeFileSync(join(dir, 'htpasswd'), `${lines.join('\n')}\n`)
    auth['htpasswd'] = { realm: 'test', path: join(dir, 'htpasswd') }
  }
  if (tokens !== undefined)
    auth['token'] = { realm: tokens.realm, service: tokens.service, issuer: tokens.issuer, rootcertbundle: tokens.bundle }
  const config = {
    version: 0.1,
    log: { level: 'error', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: storage }, delete: { enabled: true } },
    http: { addr: host, ...(tls === undefined ? {} : { tls: { certificate: tls.cert, key: tls.key } }) },
    ...(Object.keys(auth).length === 0 ? {} : { auth }),
  }
  writeFileSync(join(dir, 'config.yml'), JSON.stringify(config))
  const child = startChild([renderProgram('registry'), 'serve', join(dir, 'config.yml')], join(dir, 'log'), {
    OTEL_TRACES_EXPORTER: 'none',
  })
  const url = `${tls === undefined ? 'http' : 'https'}://${host}/v2/`
  const answers = async () => [200, 401].includes((await fetch(url, { tls: { rejectUnauthorized: false } })).status)
  await waitUntil('the registry', answers, { child })
  return { host, storage, stop: () => child.kill() }
}

export const digestOf = (bytes: Uint8Array | string): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

export interface PushedLayer {
  mediaType: string
  bytes: Uint8Array | string
  annotations?: Readonly<Record<string, string>>
}

export const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
export const OCI_INDEX = 'application/vnd.oci.image.index.v1+json'

export interface Pusher {
  /** Digest of the manifest. */
  push(tag: string | null, layers: readonly PushedLayer[], change?: Readonly<Record<string, unknown>>): Promise<string>
  manifest(tag: string | null, document: Readonly<Record<string, unknown>>): Promise<string>
}

export function pusherTo(host: string, repository: string): Pusher {
  const at = (path: string) => `http://${host}/v2/${repository}/${path}`
  const ok = async (asked: Promise<Response>) => {
    const answer = await asked
    if (!answer.ok) throw new Error(`push: HTTP ${answer.status} ${await answer.text()}`)
    return answer
  }
  const blob = async (bytes: Uint8Array | string) => {
    const begun = await ok(fetch(at('blobs/uploads/'), { method: 'POST' }))
    const to = new URL(begun.headers.get('location') ?? '', at(''))
    to.searchParams.set('digest', digestOf(bytes))
    const body = typeof bytes === 'string' ? bytes : new Uint8Array(bytes)
    await ok(fetch(to, { method: 'PUT', body, headers: { 'content-type': 'application/octet-stream' } }))
    return { digest: digestOf(bytes), size: Buffer.byteLength(bytes) }
  }
  const manifest: Pusher['manifest'] = async (tag, document) => {
    const body = JSON.stringify(document)
    const type = String(document['mediaType'] ?? OCI_MANIFEST)
    await ok(fetch(at(`manifests/${tag ?? digestOf(body)}`), { method: 'PUT', body, headers: { 'content-type': type } }))
    return digestOf(body)
  }
  return {
    manifest,
    async push(tag, layers, change = {}) {
      const described = []
      for (const { bytes, ...layer } of layers) described.push({ ...layer, ...(await blob(bytes)) })
      const config = { mediaType: 'application/vnd.oci.empty.v1+json', ...(await blob('{}')) }
      return manifest(tag, { schemaVersion: 2, mediaType: OCI_MANIFEST, config, layers: described, ...change })
    },
  }
}
