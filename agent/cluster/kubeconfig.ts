// Reads the credentials of the pod's ServiceAccount or of a kubeconfig, with credential plugins. This file is the only
// importer of @kubernetes/client-node and uses its KubeConfig alone: on Bun, its HTTP client ignores the CA and client
// certificates. The library costs 20 MB, so it is loaded only for what plain-kubeconfig.ts cannot read.
import { readFile } from 'node:fs/promises'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { KubeAccess, KubeCredentials } from './kube-credentials.ts'
import { readPlainKubeconfig } from './plain-kubeconfig.ts'
import { safeText } from './redact/safe-text.ts'

export const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'
/** Time limit of a credential plugin. A plugin may call a cloud; one that hangs must not hang the agent. */
const PLUGIN_TIMEOUT_MS = 60_000

export interface KubeconfigOptions {
  /** Path of the file; absent means in-cluster. */
  kubeconfig?: string
  /** Name in the kubeconfig; absent means its current-context. */
  context?: string
  /** Has KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in a pod. */
  env: Readonly<Record<string, string | undefined>>
  serviceAccountFolder?: string
}

/** Reads once, to find mistakes early; the transport reads again later. Throws AppError `kube_config` with file and
 *  context. */
export async function loadKubeCredentials(options: KubeconfigOptions, deps: { clock: Clock; log: Logger }): Promise<KubeCredentials> {
  const credentials =
    options.kubeconfig === undefined ? inCluster(options) : await fromKubeconfig(options.kubeconfig, options.context, deps.clock)
  const { tls } = await credentials.read()
  if (tls.insecure)
    deps.log.warn('the certificate of the API server is not verified, because insecure-skip-tls-verify is set', {
      source: credentials.source,
    })
  return credentials
}

/** KA9: reads the files of the ServiceAccount again whenever it is called. */
function inCluster({ env, context, serviceAccountFolder = SERVICE_ACCOUNT_FOLDER }: KubeconfigOptions): KubeCredentials {
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT']
  if (!host || !port) throw configError('--kubeconfig is not set and this process does not run in a Kubernetes pod')
  if (context !== undefined) throw configError(`--context ${context} needs --kubeconfig`)
  return {
    source: 'in-cluster',
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    async read(): Promise<KubeAccess> {
      const [token, ca] = await Promise.all(['token', 'ca.crt'].map((name) => readText(`${serviceAccountFolder}/${name}`)))
      if (!token?.trim()) throw configError(`${serviceAccountFolder}/token is empty`)
      if (!ca?.trim()) throw configError(`${serviceAccountFolder}/ca.crt is empty`)
      return { tls: { ca, insecure: false }, authorization: `Bearer ${token.trim()}` }
    },
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw configError(causeText(cause, `cannot read ${path}`))
  }
}

async function fromKubeconfig(path: string, context: string | undefined, clock: Clock): Promise<KubeCredentials> {
  const plain = readPlainKubeconfig(path, context)
  if (plain === null) return byKubeConfig(path, context, clock)
  const source = `context ${plain.name} of ${path}`
  let full: KubeCredentials | null = null
  return {
    source,
    server: plain.server.replace(/\/+$/, ''),
    ...(plain.proxyUrl === undefined ? {} : { proxyUrl: plain.proxyUrl }),
    async read(options) {
      const now = readPlainKubeconfig(path, plain.name)
      // The file needs the library now, or is broken; the library reports which.
      if (now === null) {
        full ??= await byKubeConfig(path, plain.name, clock)
        return full.read(options)
      }
      full = null
      try {
        return now.access()
      } catch (cause) {
        throw configError(`${source}: ${causeText(cause)}`)
      }
    },
  }
}

async function byKubeConfig(path: string, context: string | undefined, clock: Clock): Promise<KubeCredentials> {
  const { KubeConfig } = await import('@kubernetes/client-node')
  const load = () => {
    const config = new KubeConfig()
    try {
      config.loadFromFile(path)
    } catch (cause) {
      throw configError(`cannot read ${path}: ${causeText(cause)}`)
    }
    const name = context ?? config.getCurrentContext()
    if (!name) throw configError(`${path} has no current-context; set --context to one of: ${namesOf(config.getContexts())}`)
    if (config.getContextObject(name) === null) throw configError(`${path} has no context ${name}; it has ${namesOf(config.getContexts())}`)
    config.setCurrentContext(name)
    const cluster = config.getCurrentCluster()
    if (cluster === null) throw configError(`context ${name} of ${path} refers to a cluster that is not in the file`)
    if (config.getCurrentUser() === null) throw configError(`context ${name} of ${path} refers to a user that is not in the file`)
    if (!cluster.server.startsWith('https://')) throw configError(`server of context ${name} is not an https URL`)
    describeToPlugin(config.getCurrentUser()?.exec)
    return { config, cluster, name }
  }

  const first = load()
  let config = first.config
  const { cluster, name } = first
  const source = `context ${name} of ${path}`
  return {
    source,
    server: cluster.server.replace(/\/+$/, ''),
    ...(cluster.proxyUrl ? { proxyUrl: cluster.proxyUrl } : {}),
    async read({ refused } = { refused: false }) {
      // A KubeConfig reads a token file only when it is loaded, so it is loaded again. With a plugin it is kept: it
      // caches the answer of the plugin until that expires, and a new one would run the plugin once a minute.
      if (refused || !config.getCurrentUser()?.exec) config = load().config
      const options: TlsOptions = {}
      try {
        await within(clock, PLUGIN_TIMEOUT_MS, config.applyToHTTPSOptions(options))
      } catch (cause) {
        throw configError(`${source}: ${causeText(cause)}`)
      }
      return accessOf(options, config.getCurrentUser()?.impersonateUser)
    },
  }
}

/** The members that KubeConfig sets in the options of node:https. */
interface TlsOptions {
  ca?: string | Buffer
  cert?: string | Buffer
  key?: string | Buffer
  servername?: string
  rejectUnauthorized?: boolean
  auth?: string
  headers?: Record<string, string>
}

function accessOf(options: TlsOptions, impersonateUser: string | null | undefined): KubeAccess {
  const { ca, cert, key, servername, rejectUnauthorized, auth, headers } = options
  const basic = auth === undefined ? null : `Basic ${Buffer.from(auth).toString('base64')}`
  return {
    tls: {
      ...(ca === undefined ? {} : { ca: ca.toString() }),
      ...(cert === undefined ? {} : { cert: cert.toString() }),
      ...(key === undefined ? {} : { key: key.toString() }),
      ...(servername === undefined ? {} : { serverName: servername }),
      insecure: rejectUnauthorized === false,
    },
    authorization: headers?.['Authorization'] ?? basic,
    ...(impersonateUser ? { impersonateUser } : {}),
  }
}

/** Some plugins refuse to run without KUBERNETES_EXEC_INFO, which client-go sets and client-node does not. */
function describeToPlugin(exec: unknown): void {
  if (exec === null || typeof exec !== 'object' || !('apiVersion' in exec)) return
  const plugin = exec as { apiVersion: unknown; env?: Array<{ name: string; value: string }> | null }
  const info = { apiVersion: plugin.apiVersion, kind: 'ExecCredential', spec: { interactive: false } }
  plugin.env = [...(plugin.env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }]
}

async function within<T>(clock: Clock, timeoutMs: number, work: Promise<T>): Promise<T> {
  const timer = new AbortController()
  const late = clock.sleep(timeoutMs, timer.signal).then(() => {
    throw new Error(`no answer of the credential plugin within ${timeoutMs / 1000} s`)
  })
  late.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    timer.abort()
  }
}

const namesOf = (named: ReadonlyArray<{ name: string }>): string => named.map(({ name }) => name).join(', ') || 'none'

const configError = (detail: string): AppError => new AppError('kube_config', { doing: 'load kubernetes credentials', detail })

/** KA54: a parser quotes the lines around a mistake, and a plugin may print anything: tokens among it. Errors of files
 *  name a path only. */
function causeText(cause: unknown, otherwise = ''): string {
  if (!(cause instanceof Error)) return otherwise || 'failed'
  if ('code' in cause && 'path' in cause && typeof cause.path === 'string') return `cannot read ${cause.path} (${cause.code})`
  return safeText(cause.message.trim().split('\n')[0] ?? '', { isSecret: true }) || otherwise
}
