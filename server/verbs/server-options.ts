// Every option of `skerry server`.
import type { OptionTable } from '../../shared/runtime/options.ts'
import { AUDIT_DAYS_DEFAULT } from '../actions/audit-retention.ts'
import { BACKUP_OPTIONS } from '../backup/archive/options.ts'
import { WORKER_MEMORY_MIB_DEFAULT } from '../control/workers/open-workers.ts'
import { REQUESTS_PER_SECOND } from '../http/rate-limits.ts'
import { SERIES } from '../observe/fleet-gauges.ts'
import { SANDBOX_MODES } from '../render/sandbox/runs.ts'
import { EVENTS_MAX } from '../store/status/store-events.ts'
import { RETENTION } from '../store/upkeep/upkeep.ts'

/** Options of each verb that renders. */
export const RENDER_OPTIONS = {
  renderSandbox: {
    type: 'text',
    placeholder: 'MODE',
    help: 'Isolation of render programs; limits needs Landlock (Linux 5.13) and excludes TypeScript and --renderers.',
    default: 'bubblewrap',
    choices: SANDBOX_MODES,
  },
  helm: { type: 'text', placeholder: 'FILE', help: 'Helm 4; default: helm on PATH or beside this program.' },
  helm3: { type: 'text', placeholder: 'FILE', help: 'Helm 3; default: helm3 on PATH or beside this program.' },
  kustomize: { type: 'text', placeholder: 'FILE', help: 'Kustomize 5; default: kustomize on PATH or beside this program.' },
  renderers: {
    type: 'text',
    placeholder: 'FILE',
    help: 'YAML or JSON file with render programs for services: name: {command, args, readOnly, memory, timeout}.',
  },
} as const satisfies OptionTable

export const SERVER_OPTIONS = {
  data: {
    type: 'text',
    placeholder: 'DIR',
    help: 'Folder for the fleet store, shard files, content and keys.',
    default: '/var/lib/skerry',
  },
  store: {
    type: 'text',
    placeholder: 'URL',
    help: 'PostgreSQL database for the fleet store: postgres://user@host/database; default a SQLite file in the data folder.',
    secret: true,
  },
  storeFile: { type: 'text', placeholder: 'FILE', help: 'File with the URL of --store, for a URL with a password.' },
  listen: { type: 'listen', help: 'Address to listen on, for the API and agents, or unix:PATH.', default: '127.0.0.1:8080' },
  socketMode: { type: 'mode', placeholder: 'MODE', help: 'File mode of the socket of --listen unix:PATH.', default: '0660' },
  tlsCert: {
    type: 'text',
    placeholder: 'FILE',
    help: 'PEM certificate chain for HTTPS, server certificate first; reloaded when it changes.',
  },
  tlsKey: { type: 'text', placeholder: 'FILE', help: 'Unencrypted PEM private key for --tls-cert.' },
  metricsListen: { type: 'address', help: 'Address for /metrics without a token; default off. With a token: /api/v1/metrics.' },
  metricsSeries: {
    type: 'text',
    placeholder: 'SET',
    help: 'Metrics to serve; fleet omits the series of single services and clusters.',
    default: 'all',
    choices: SERIES,
  },
  adminTokenFile: {
    type: 'text',
    placeholder: 'FILE',
    help: 'File for the first admin token, mode 0600; default admin-token in the data folder.',
  },
  externalUrl: {
    type: 'text',
    placeholder: 'URL',
    help: 'URL of this server for agents and webhooks; default the listen address.',
  },
  oidcConfig: {
    type: 'text',
    placeholder: 'FILE',
    help: 'YAML or JSON file with identity providers and trusted JWT issuers; default: sign-in is off.',
  },
  keyService: {
    type: 'text',
    placeholder: 'FILE',
    help: 'YAML or JSON file with the Vault or OpenBao transit key that wraps data keys of Configs; default the data folder.',
  },
  valueFiles: {
    type: 'text',
    placeholder: 'DIR',
    help: 'Folder with values for Configs, one subfolder for each project; default: Configs cannot read files.',
  },
  valueSecrets: {
    type: 'flag',
    help: 'In a cluster: let Configs read Secrets of the namespace of this server that name their project in an annotation.',
  },
  trustedProxies: {
    type: 'text',
    placeholder: 'CIDR,…',
    help: 'CIDRs of reverse proxies whose X-Forwarded-For header is trusted; unix trusts the peer of a Unix socket. Default none.',
  },
  sopsKeys: {
    type: 'text',
    placeholder: 'DIR',
    help: 'Folder with age keys (*.agekey) for SOPS files that a render needs in clear: Helm values files and env files of Kustomize; keys in its folder NAME serve project NAME only. Default none: such files are refused.',
  },
  sourceAddresses: {
    type: 'text',
    placeholder: 'CIDR,…',
    help: 'Private CIDRs that sources may use, such as 10.0.0.0/8; default none.',
  },
  requestsPerSecond: {
    type: 'integer',
    placeholder: 'COUNT',
    help: 'API requests per second for each credential, with bursts of five times as many; 0: no limit.',
    default: String(REQUESTS_PER_SECOND),
  },
  eventsKept: {
    type: 'integer',
    placeholder: 'COUNT',
    help: `Number of events to keep; 0: the maximum, ${EVENTS_MAX}.`,
    default: String(RETENTION.eventsKept),
    max: EVENTS_MAX,
  },
  eventsDays: {
    type: 'integer',
    placeholder: 'DAYS',
    help: 'Maximum age of events, in days; 0: no limit.',
    default: String(RETENTION.eventsDays),
  },
  historyDays: {
    type: 'integer',
    placeholder: 'DAYS',
    help: 'Maximum age of the status changes of a placement, in days; at most 100 changes each; 0: no limit.',
    default: String(RETENTION.historyDays),
  },
  revisionsKept: {
    type: 'integer',
    placeholder: 'COUNT',
    help: 'Revisions of each service to keep, in addition to those in use; 0: no limit.',
    default: String(RETENTION.revisionsKept),
  },
  changesKept: {
    type: 'integer',
    placeholder: 'COUNT',
    help: 'Change-feed entries to keep for watchers; 0: no limit.',
    default: String(RETENTION.changesKept),
  },
  auditRetention: {
    type: 'integer',
    placeholder: 'DAYS',
    help: 'Maximum age of entries of the audit log, in days; 0: no limit.',
    default: String(AUDIT_DAYS_DEFAULT),
  },
  ...BACKUP_OPTIONS,
  recount: { type: 'flag', help: 'Recompute all counts at this start; use it if `skerry doctor` reports wrong counts.' },
  ...RENDER_OPTIONS,
  workers: {
    type: 'integer',
    placeholder: 'COUNT',
    help: 'Worker processes that read repositories and render; each project uses one of them.',
    default: '1',
    min: 1,
    max: 64,
  },
  workerMemory: {
    type: 'integer',
    placeholder: 'MIB',
    help: 'Memory limit of a worker process; render programs have separate limits.',
    default: String(WORKER_MEMORY_MIB_DEFAULT),
    min: 256,
    max: 1_048_576,
  },
  logLevel: {
    type: 'text',
    placeholder: 'LEVEL',
    help: 'Minimum log level.',
    default: 'info',
    choices: ['debug', 'info', 'warn', 'error'],
  },
} as const satisfies OptionTable
