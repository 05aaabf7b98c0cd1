// Options of a server: `serve.ts` reads them from flags, environment and files, and tests give them.
import type { SignInPlace } from './access/oidc/sign-in.ts'
import type { ServerSopsKeys } from './access/sops-keys.ts'
import type { BackupPlan } from './backup/archive/backups.ts'
import type { RenderPlace } from './control/render-place.ts'
import type { UnixSocket } from './http/listen-place.ts'
import type { TlsPaths } from './http/tls-files.ts'
import type { KeyService } from './key-service.ts'
import type { Series } from './observe/fleet-gauges.ts'
import type { AddressRange } from './sources/address/range.ts'
import type { PostgresPlace } from './store/store-place.ts'
import type { Retention } from './store/upkeep/upkeep.ts'
import type { KubernetesPlace } from './values/kubernetes-values.ts'

export interface ServerOptions {
  dataDir: string
  /** Default: a SQLite file in the data folder. */
  store?: PostgresPlace | null
  /** How people and pipelines sign in; default: not possible. */
  signIn?: SignInPlace
  /** Default: `keys/secrets.json` has the master key of the secrets of Configs. */
  keyService?: KeyService
  /** Folder with values for Configs; default: they cannot read files. */
  valueFiles?: string
  /** Where Configs may read Secrets; default nowhere. */
  valueSecrets?: KubernetesPlace
  /** Default: `admin-token` in the data folder. */
  adminTokenFile?: string
  /** Default: RETENTION. */
  retention?: Retention
  /** Default: it makes no backups. */
  backups?: BackupPlan
  /** Age of the oldest entries of the audit log; default AUDIT_DAYS_DEFAULT. */
  auditDays?: number
  /** RU3: compute all counts again. */
  recount?: boolean
  /** Default: bubblewrap, with no program but this one. */
  rendering?: RenderPlace
  hostname: string
  port: number
  /** In place of hostname and port. */
  socket?: UnixSocket | null
  /** Serves HTTPS with this certificate, which is read again when it changes; default HTTP. */
  tls?: TlsPaths | null
  /** API requests of each credential; default REQUESTS_PER_SECOND. */
  requestsPerSecond?: number
  /** How agents and forges reach it; default the listen address. */
  externalUrl?: string
  /** Inner addresses at which sources may be (SO1), as `--source-addresses` has them; default none. */
  sourceAddresses?: string
  /** Age keys of the operator; default none. */
  sopsKeys?: ServerSopsKeys
  /** Proxies in front of this server whose `x-forwarded-for` names the caller; default none. */
  trustedProxies?: readonly AddressRange[]
  /** The peer of a Unix socket is such a proxy. */
  trustsSocket?: boolean
  /** Default: every series, and no address of their own. */
  metrics?: { series: Series; listen?: { hostname: string; port: number } }
  /** Processes that read content of tenants; default one. */
  workers?: number
  /** The memory of each worker; default WORKER_MEMORY_MIB_DEFAULT. */
  workerMemoryMib?: number
  /** PATH and outbound proxies for those; default none. */
  env?: Readonly<Record<string, string | undefined>>
}
