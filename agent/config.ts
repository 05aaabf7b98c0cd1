// Every option of `skerry-agent run`.
import type { OptionTable } from '../shared/runtime/options.ts'

export const RUN_OPTIONS = {
  data: {
    type: 'text',
    placeholder: 'DIR',
    help: 'Folder for the key, replica and state; must persist across restarts.',
    default: '/var/lib/skerry-agent',
  },
  server: {
    type: 'text',
    placeholder: 'URL',
    help: 'URL of the Skerry server; required to join and sync, but not to enforce.',
    required: true,
  },
  cluster: { type: 'text', placeholder: 'NAME', help: 'Name of this cluster in the fleet; used at the join.' },
  joinToken: {
    type: 'text',
    placeholder: 'TOKEN',
    help: 'Join token of `skerry join-token create`; used once, at the first start.',
    secret: true,
  },
  joinTokenFile: { type: 'text', placeholder: 'FILE', help: 'File with the join token; may be deleted after the join.' },
  kubeconfig: { type: 'text', placeholder: 'FILE', help: 'Kubernetes credentials; default: the ServiceAccount of the pod.' },
  context: { type: 'text', placeholder: 'NAME', help: 'Context of the kubeconfig; default its current one.' },
  serverCa: {
    type: 'text',
    placeholder: 'FILE',
    help: 'PEM file of the certificate authority of the server, instead of the system authorities; reloaded when it changes.',
  },
  insecureHttp: {
    type: 'flag',
    help: 'Allow an http:// server on another host, if the network protects the link by other means. Default: only https:// or loopback.',
  },
  wait: {
    type: 'integer',
    placeholder: 'SECONDS',
    help: 'Maximum duration of a poll, in seconds; default adapts to the network, up to 110 (900 with --metered).',
  },
  metered: { type: 'flag', help: 'Save bytes on a metered link: longer polls, batched reports.' },
  dailyBytes: {
    type: 'integer',
    placeholder: 'BYTES',
    help: 'Daily byte budget (UTC) of the server link. Beyond it, polls have their maximum duration and reports are hourly. 0: none. Default with --metered: 1000000.',
  },
  kubeEvents: {
    type: 'text',
    placeholder: 'WHICH',
    help: 'Kubernetes Events to create for managed objects: none, problems (failures and corrected drift), or all (also applied and pruned).',
    default: 'problems',
    choices: ['none', 'problems', 'all'],
  },
  podLogs: {
    type: 'integer',
    placeholder: 'LINES',
    help: 'Log lines of a failing container to include in the status of its workload, up to 20. Logs may contain secrets.',
  },
  resync: {
    type: 'interval',
    placeholder: 'DURATION',
    help: 'Interval of the comparison of each watched kind with a full list, which finds missed events; off disables it.',
    default: '24h',
    leastMs: 3_600_000,
  },
  reportMetrics: {
    type: 'interval',
    placeholder: 'DURATION',
    help: 'Interval of reports of the metrics of this agent to the server, about 500 bytes each; off disables them.',
    default: 'off',
    leastMs: 60_000,
  },
  policy: {
    type: 'text',
    placeholder: 'FILE',
    help: 'YAML policy file that limits what services may do at this site, in addition to the limits of the server; reloaded when it changes. Default none.',
  },
  sopsKeys: {
    type: 'text',
    placeholder: 'DIR',
    help: 'Folder with age keys (*.agekey) that open SOPS files at this site, in addition to labelled Secrets; keys in its folder NAME serve project NAME only. Reloaded when it changes.',
  },
  asking: {
    type: 'text',
    placeholder: 'LEVEL',
    help: 'Questions that people may ask this cluster through the server: off, read (live objects, logs, differences, dry runs), or restart (also restarts of workloads).',
    default: 'restart',
    choices: ['off', 'read', 'restart'],
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
