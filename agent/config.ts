// Every option of `skerry-agent run`.
import type { OptionTable } from '../shared/runtime/options.ts'

export const RUN_OPTIONS = {
  data: {
    type: 'text',
    placeholder: 'DIR',
    help: 'Folder for key, replica and state; must outlive restarts.',
    default: '/var/lib/skerry-agent',
  },
  server: {
    type: 'text',
    placeholder: 'URL',
    help: 'The Skerry server; only needed to join and to sync, never to enforce.',
    required: true,
  },
  cluster: { type: 'text', placeholder: 'NAME', help: 'What this cluster is called in the fleet; used when it joins.' },
  joinToken: { type: 'text', placeholder: 'TOKEN', help: 'From `skerry join-token create`; used once, at the first start.', secret: true },
  joinTokenFile: { type: 'text', placeholder: 'FILE', help: 'A file that holds the join token.' },
  kubeconfig: { type: 'text', placeholder: 'FILE', help: 'Kubernetes credentials; without it those of the pod are used.' },
  context: { type: 'text', placeholder: 'NAME', help: 'Context of the kubeconfig; default its current one.' },
  serverCa: {
    type: 'text',
    placeholder: 'FILE',
    help: 'PEM of the authority that signed the server’s certificate, in place of the system’s; read again when it changes.',
  },
  insecureHttp: {
    type: 'flag',
    help: 'Allow an http:// server on another host, on a network that protects the link by other means. Default: only https://, or loopback.',
  },
  wait: {
    type: 'integer',
    placeholder: 'SECONDS',
    help: 'Longest time that a poll stays open; without it, what the network bears: up to 110, with --metered up to 900.',
  },
  metered: { type: 'flag', help: 'Every byte to the server is paid for: longer polls, gathered reports.' },
  dailyBytes: {
    type: 'integer',
    placeholder: 'BYTES',
    help: 'Budget a day (UTC) for the server link; once spent, polls are longest and reports hourly. 0: none. Default with --metered 1000000.',
  },
  kubeEvents: {
    type: 'text',
    placeholder: 'WHICH',
    help: 'Kubernetes Events on users’ objects: none, problems (what went wrong and what was put back), all (applied and pruned besides).',
    default: 'problems',
    choices: ['none', 'problems', 'all'],
  },
  podLogs: {
    type: 'integer',
    placeholder: 'LINES',
    help: 'Last log lines of a failing container that go into the status of its workload, and so to the server; up to 20. Logs may hold secrets.',
  },
  resync: {
    type: 'interval',
    placeholder: 'DURATION',
    help: 'Interval at which each watched kind is compared with a list, in case an event was missed; off disables it.',
    default: '24h',
    leastMs: 3_600_000,
  },
  probes: { type: 'address', help: 'Serves /healthz and /readyz there; off without it.' },
  logLevel: {
    type: 'text',
    placeholder: 'LEVEL',
    help: 'Least severe line that is logged.',
    default: 'info',
    choices: ['debug', 'info', 'warn', 'error'],
  },
} as const satisfies OptionTable
