// Every option of `skerry server`.
import type { OptionTable } from '../shared/runtime/options.ts'

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
    help: 'Writes the first admin token there (mode 0600) rather than to the terminal.',
  },
  externalUrl: {
    type: 'text',
    placeholder: 'URL',
    help: 'How agents and forges reach this server; default http:// and the listen address.',
  },
  logLevel: {
    type: 'text',
    placeholder: 'LEVEL',
    help: 'Least severe line that is logged.',
    default: 'info',
    choices: ['debug', 'info', 'warn', 'error'],
  },
} as const satisfies OptionTable
