// Where credentials come from: the pod's ServiceAccount, or a kubeconfig with all its plugins. The only importer of @kubernetes/client-node,
// and of its KubeConfig alone: its HTTP ignores authority and certificates on Bun, and loading it costs 20 MB, so it is loaded only where a kubeconfig
// is more than certificates and tokens (plain-kubeconfig.ts).
import { readFile } from 'node:fs/promises'
import { AppError } from '../../shared/protocol/error.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { KubeAccess, KubeCredentials } from './kube-credentials.ts'
import { readPlainKubeconfig } from './plain-kubeconfig.ts'

export const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'
/** A credential plugin may ask a cloud, but a hanging one must not hang the agent. */
const PLUGIN_TIMEOUT_MS = 60_000

export interface KubeconfigOptions {
  /** Path; absent means in-cluster. */
  kubeconfig?: string
  /** Name in the kubeconfig; absent means its current-context. */
  context?: string
  /** KUBERNETES_SERVICE_HOST and _PORT are read from it. */
  env: Readonly<Record<string, string | undefined>>
  serviceAccountFolder?: string
}

/** Reads once to find mistakes early; later reads are the transport's. Throws AppError `kube_config` that names file and context. */
export async function loadKubeCredentials(options: KubeconfigOptions, deps: { clock: Clock; log: Logger }): Promise<KubeCredentials> {
  const credentials =
    options.kubeconfig === undefined ? inCluster(options) : await fromKubeconfig(options.kubeconfig, options.context, deps.clock)
  const { tls } = await credentials.read()
  if (tls.insecure) deps.log.warn('certificate of the api server is not verified: insecure-skip-tls-verify', { source: credentials.source })
  return credentials
}

/** KA9 */
function inCluster({ env, context, serviceAccountFolder = SERVICE_ACCOUNT_FOLDER }: KubeconfigOptions): KubeCredentials {
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT']
  if (!host || !port) throw configError('neither --kubeconfig was given nor does this process run in a Kubernetes pod')
  if (context !== undefined) throw configError(`--context ${context} was given without --kubeconfig`)
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
    throw configError(`cannot read ${path}`, cause)
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
      // Somebody changed it into what the library has to read, or broke it, which the library tells.
      if (now === null) {
        full ??= await byKubeConfig(path, plain.name, clock)
        return full.read(options)
      }
      full = null
      try {
        return now.access()
      } catch (cause) {
        throw configError(`${source}: ${cause instanceof Error ? cause.message : String(cause)}`, cause)
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
      throw configError(`cannot read ${path}: ${cause instanceof Error ? cause.message : String(cause)}`, cause)
    }
    const name = context ?? config.getCurrentContext()
    if (!name) throw configError(`${path} has no current-context; choose one with --context: ${namesOf(config.getContexts())}`)
    if (config.getContextObject(name) === null) throw configError(`${path} has no context ${name}; it has ${namesOf(config.getContexts())}`)
    config.setCurrentContext(name)
    const cluster = config.getCurrentCluster()
    if (cluster === null) throw configError(`context ${name} of ${path} names a cluster that is not there`)
    if (config.getCurrentUser() === null) throw configError(`context ${name} of ${path} names a user that is not there`)
    if (!cluster.server.startsWith('https://')) throw configError(`server ${cluster.server} of context ${name} is not https`)
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
      // A KubeConfig reads a token file only when it is loaded, so it is loaded again; but it also holds what a plugin said until that
      // expires (for ever, where no expiry is named), and running a plugin for each read would be a process a minute.
      if (refused || !config.getCurrentUser()?.exec) config = load().config
      const options: TlsOptions = {}
      try {
        await within(clock, PLUGIN_TIMEOUT_MS, config.applyToHTTPSOptions(options))
      } catch (cause) {
        throw configError(`${source}: ${cause instanceof Error ? cause.message.trim() : String(cause)}`, cause)
      }
      return accessOf(options, config.getCurrentUser()?.impersonateUser)
    },
  }
}

/** What KubeConfig fills in; its own parameter type is node:https's, of which these are the members that it sets. */
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

/** client-go tells plugins which API version to answer in; some refuse to run without it, and client-node leaves it out. */
function describeToPlugin(exec: unknown): void {
  if (exec === null || typeof exec !== 'object' || !('apiVersion' in exec)) return
  const plugin = exec as { apiVersion: unknown; env?: Array<{ name: string; value: string }> | null }
  const info = { apiVersion: plugin.apiVersion, kind: 'ExecCredential', spec: { interactive: false } }
  plugin.env = [...(plugin.env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }]
}

async function within<T>(clock: Clock, timeoutMs: number, work: Promise<T>): Promise<T> {
  const timer = new AbortController()
  const late = clock.sleep(timeoutMs, timer.signal).then(() => {
    throw new Error(`the credential plugin gave no answer within ${timeoutMs / 1000} s`)
  })
  late.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    timer.abort()
  }
}

const namesOf = (named: ReadonlyArray<{ name: string }>): string => named.map(({ name }) => name).join(', ') || 'none'

const configError = (detail: string, cause?: unknown): AppError =>
  new AppError('kube_config', { doing: 'load kubernetes credentials', detail }, cause === undefined ? {} : { cause })
