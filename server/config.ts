// Every option of `skerry server`.
import type { OptionTable } from '../shared/runtime/options.ts'
import { WORKER_MEMORY_MIB_DEFAULT } from './control/workers/open-workers.ts'
import { SANDBOX_MODES } from './render/sandbox/runs.ts'
import { EVENTS_MAX } from './store/status/store-events.ts'
import { RETENTION } from './store/upkeep/upkeep.ts'

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
  storeFile: { type: 'text', placeholder: 'FILE', help: 'File with that URL, if there is a password in it.' },
  listen: { type: 'address', help: 'Where API and agents are served.', default: '127.0.0.1:8080' },
  adminTokenFile: {
    type: 'text',
    placeholder: 'FILE',
    help: 'File for the first admin token, mode 0600; default admin-token in the data folder.',
  },
  externalUrl: {
    type: 'text',
    placeholder: 'URL',
    help: 'How agents and forges reach this server; default http:// and the listen address.',
  },
  trustedProxies: {
    type: 'text',
    placeholder: 'CIDR,…',
    help: 'Addresses of reverse proxies in front of this server, whose X-Forwarded-For header is believed; default none.',
  },
  sourceAddresses: {
    type: 'text',
    placeholder: 'CIDR,…',
    help: 'Private, loopback and other inner addresses at which sources may be, such as 10.0.0.0/8; default none.',
  },
  eventsKept: {
    type: 'integer',
    placeholder: 'COUNT',
    help: `How many events are kept, the newest; 0: as many as there can be, which is ${EVENTS_MAX}.`,
    default: String(RETENTION.eventsKept),
    max: EVENTS_MAX,
  },
  eventsDays: { type: 'integer', placeholder: 'DAYS', help: 'Older events go; 0: no limit.', default: String(RETENTION.eventsDays) },
  historyDays: {
    type: 'integer',
    placeholder: 'DAYS',
    help: 'How long the changes of a service in a cluster are kept, of each the newest 100; 0: no limit.',
    default: String(RETENTION.historyDays),
  },
  revisionsKept: {
    type: 'integer',
    placeholder: 'COUNT',
    help: 'Revisions of each service that are kept, with their rendered sets; what a cluster shall have is not counted; 0: no limit.',
    default: String(RETENTION.revisionsKept),
  },
  changesKept: {
    type: 'integer',
    placeholder: 'COUNT',
    help: 'How many changes those who follow this server may be behind; 0: no limit.',
    default: String(RETENTION.changesKept),
  },
  recount: { type: 'flag', help: 'At this start, counts what the fleet store holds anew: for counts that `skerry doctor` finds wrong.' },
  renderSandbox: {
    type: 'text',
    placeholder: 'MODE',
    help: 'How programs that render are kept apart; limits: no TypeScript and no renderers of others; it needs Landlock (Linux 5.13).',
    default: 'bubblewrap',
    choices: SANDBOX_MODES,
  },
  helm: { type: 'text', placeholder: 'FILE', help: 'Helm 4; default: helm on PATH or beside this program.' },
  helm3: { type: 'text', placeholder: 'FILE', help: 'Helm 3; default: helm3 on PATH or beside this program.' },
  kustomize: { type: 'text', placeholder: 'FILE', help: 'Kustomize 5; default: kustomize on PATH or beside this program.' },
  renderers: {
    type: 'text',
    placeholder: 'FILE',
    help: 'YAML or JSON with the programs that services may render with: name: {command, args, readOnly, memory, timeout}.',
  },
  workers: {
    type: 'integer',
    placeholder: 'COUNT',
    help: 'Processes that read the content of repositories and render it; a project is worked on by one of them.',
    default: '1',
    min: 1,
    max: 64,
  },
  workerMemory: {
    type: 'integer',
    placeholder: 'MIB',
    help: 'Memory at which a worker process is stopped; programs that it starts have limits of their own.',
    default: String(WORKER_MEMORY_MIB_DEFAULT),
    min: 256,
    max: 1_048_576,
  },
  logLevel: {
    type: 'text',
    placeholder: 'LEVEL',
    help: 'Least severe line that is logged.',
    default: 'info',
    choices: ['debug', 'info', 'warn', 'error'],
  },
} as const satisfies OptionTable
