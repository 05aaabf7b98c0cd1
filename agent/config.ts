// Every option of `skerry-agent run`.
import type { OptionTable } from '../shared/runtime/options.ts'

export const RUN_OPTIONS = {
  data: {
    type: 'text',
    placeholder: 'DIR',
    help: 'Folder for key, replica and state; must survive restarts.',
    default: '/var/lib/skerry-agent',
  },
  server: {
    type: 'text',
    placeholder: 'URL',
    help: 'URL of the Skerry server; needed to join and to sync, not to enforce.',
    required: true,
  },
  cluster: { type: 'text', placeholder: 'NAME', help: 'Name of this cluster in the fleet; used when it joins.' },
  joinToken: {
    type: 'text',
    placeholder: 'TOKEN',
    help: 'Join token of `skerry join-token create`; used once, at the first start.',
    secret: true,
  },
  joinTokenFile: { type: 'text', placeholder: 'FILE', help: 'File with the join token.' },
  kubeconfig: { type: 'text', placeholder: 'FILE', help: 'Kubernetes credentials; default those of the pod.' },
  context: { type: 'text', placeholder: 'NAME', help: 'Context of the kubeconfig; default its current one.' },
  serverCa: {
    type: 'text',
    placeholder: 'FILE',
    help: 'PEM file of the certificate authority of the server, in place of those of the system; read again when it changes.',
  },
  insecureHttp: {
    type: 'flag',
    help: 'Allow an http:// server on another host, on a network that protects the link by other means. Default: only https://, or loopback.',
  },
  wait: {
    type: 'integer',
    placeholder: 'SECONDS',
    help: 'Maximum duration of a poll; default adapts to the network, up to 110, with --metered up to 900.',
  },
  metered: { type: 'flag', help: 'Save bytes on a metered link: longer polls, batched reports.' },
  dailyBytes: {
    type: 'integer',
    placeholder: 'BYTES',
    help: 'Daily budget (UTC) of the server link; when it is used up, polls are longest and reports hourly. 0: none. Default with --metered 1000000.',
  },
  kubeEvents: {
    type: 'text',
    placeholder: 'WHICH',
    help: 'Kubernetes Events on managed objects: none, problems (failures and corrected drift), all (also applied and pruned).',
    default: 'problems',
    choices: ['none', 'problems', 'all'],
  },
  podLogs: {
    type: 'integer',
    placeholder: 'LINES',
    help: 'Last log lines of a failing container to add to the status of its workload, up to 20. Logs may contain secrets.',
  },
  resync: {
    type: 'interval',
    placeholder: 'DURATION',
    help: 'Interval at which each watched kind is compared with a list, in case an event was missed; off disables it.',
    default: '24h',
    leastMs: 3_600_000,
  },
  policy: {
    type: 'text',
    placeholder: 'FILE',
    help: 'YAML file with what services may do at this site; narrows what the server allows, and is read again when it changes. Default none.',
  },
  probes: { type: 'address', help: 'Address for /healthz, /readyz and /metrics; default off.' },
  logLevel: {
    type: 'text',
    placeholder: 'LEVEL',
    help: 'Minimum log level.',
    default: 'info',
    choices: ['debug', 'info', 'warn', 'error'],
  },
} as const satisfies OptionTable
