// `skerry-agent run | status | version`. `status` works with no network and with no agent running.
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Command, CommanderError, Option } from 'commander'
import { disableCoreDumps } from '../../shared/adapters/core-dumps.ts'
import { loadNativeLibrary } from '../../shared/adapters/crdt-db.ts'
import { type DataFolder, openDataFolder } from '../../shared/adapters/data-folder.ts'
import { createNativeGuard } from '../../shared/adapters/native-guard.ts'
import { addOptions } from '../../shared/adapters/option-flags.ts'
import { createPinoLogger } from '../../shared/adapters/pino-logger.ts'
import { openRunRecord } from '../../shared/adapters/run-record.ts'
import { openTelemetry } from '../../shared/adapters/telemetry.ts'
import { versionInfo, versionText } from '../../shared/adapters/version-info.ts'
import { toYaml } from '../../shared/adapters/yaml.ts'
import { VERSION } from '../../shared/runtime/build-info.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { parseAddress, readOptions } from '../../shared/runtime/options.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { createWatchdog } from '../../shared/runtime/watchdog.ts'
import { agentFiles, createAgent } from '../agent.ts'
import { loadKubeCredentials } from '../cluster/kubeconfig.ts'
import { createRestCluster } from '../cluster/rest-cluster.ts'
import { RUN_OPTIONS } from '../config.ts'
import { recipientFingerprint } from '../link/agent-keys.ts'
import { createServerLink } from '../link/server-link.ts'
import { askRunningAgent, serveLocalApi } from '../local-api.ts'
import { enforcementText } from '../messages/site-messages.ts'
import { type AgentReport, agentReport } from '../observe/report.ts'
import { createQuestionLog } from '../order-log.ts'
import { PolicyFile } from '../policy-file.ts'
import { rbacManifests, rbacValues } from '../rbac.ts'
import type { KubeEvents } from '../reconcile/report/kube-event.ts'
import { createCrdtReplica } from '../replica/crdt-replica.ts'
import { openAgentState } from '../state/sqlite-agent-state.ts'
import { DAILY_BYTES_METERED, readToday } from '../sync/traffic-day.ts'
import { addAuditCommand } from './audit-command.ts'
import { addEdgeCommands, examples } from './edge-commands.ts'
import { createMemoryRelease, releaseOften } from './memory-release.ts'
import { addNodeCommands } from './node-commands.ts'
import { statusText } from './print-status.ts'
import { addProfileCommand } from './profile-command.ts'
import { addQueryCommand } from './query-command.ts'

export interface AgentIo {
  env: Record<string, string | undefined>
  out(text: string): void
  err(text: string): void
  onStop(listener: (signal: string) => void): void
}

/** 0 well, 1 a failure, 2 wrong usage. */
export async function runAgentCli(argv: readonly string[], io: AgentIo): Promise<number> {
  try {
    // A real option would need an action of the program itself, and then commander takes a misspelt command as its
    // argument.
    const [runtime = '', script = '', first, ...rest] = argv
    const words = first === undefined ? [] : [first === '--version' || first === '-v' ? 'version' : first, ...rest]
    await agentCommand(io).parseAsync([runtime, script, ...words])
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (error instanceof AppError) {
      const problems = (error.data.problems ?? []).map(({ path, message }) => `  ${path} ${message}\n`).join('')
      io.err(`skerry-agent: ${describeError(error)}\n${problems}${error.remedy}\n`)
    } else io.err(`skerry-agent: ${describeError(error)}\n`)
    return 1
  }
}

const RUN_EXAMPLE = 'run --data /var/lib/skerry-agent --server https://skerry.example.com --cluster oslo --join-token skj.…'

/** The table of commands and flags. */
export function agentCommand(io: AgentIo): Command {
  const program = new Command('skerry-agent')
    .description('Keep a Kubernetes cluster equal to its desired state, with or without a network')
    .addHelpText('before', examples(RUN_EXAMPLE, 'status', 'hold default/shop --reason stocktaking --for 8h', 'confirm default/shop'))
    .configureOutput({ writeOut: io.out, writeErr: io.err })
    .exitOverride()
    .showSuggestionAfterError()
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'yaml']).default('text'))
    .configureHelp({ showGlobalOptions: true })
  // Commander gives options of the program to it wherever they stand, so that `status -o json` is read from there.
  const format = () => program.opts<{ output: string }>().output
  addOptions(program.command('run'), RUN_OPTIONS)
    .description('Join if needed, then sync and enforce until stopped')
    .addHelpText(
      'before',
      examples(RUN_EXAMPLE, 'run --data ./agent --server https://skerry.example.com --kubeconfig ~/.kube/config --metered'),
    )
    .action((flags: Record<string, string | boolean | undefined>) => run(flags, io))
  program
    .command('status')
    .description('Show the status of this site, from the running agent or its data folder')
    .addHelpText('before', examples('status', 'status --data ./agent -o json'))
    .addOption(new Option('--data <DIR>', 'data folder of the agent').env('SKERRY_DATA').default(RUN_OPTIONS.data.default))
    .action(async ({ data }: { data: string }) => {
      const report = (await askRunningAgent(resolve(data))) ?? reportFromDisk(data)
      io.out(formatted(format(), report, () => statusText(report, systemClock.nowMs())))
    })
  program
    .command('rbac')
    .description('Print the least RBAC that the agent needs for a set of kinds')
    .addHelpText(
      'before',
      examples(RBAC_EXAMPLE, 'rbac --kinds apps/Deployment,v1/Service --namespaces web --service-accounts web/deployer'),
    )
    .requiredOption(
      '--kinds <LIST>',
      'kinds in services: apps/Deployment,v1/ConfigMap; custom kinds with their plural: example.com/Thing=things',
    )
    .option('--namespaces <LIST>', 'namespaces where the agent writes objects; default all')
    .option('--service-accounts <LIST>', 'ServiceAccounts (namespace/name) that the agent impersonates; it then writes no objects itself')
    .option('--agent <NAME>', 'ServiceAccount of the agent (namespace/name)', 'skerry-system/skerry-agent')
    .option('--pod-logs', 'the agent runs with --pod-logs')
    .option('--asking', 'the agent runs with --asking read or restart: it reads logs, children of workloads and nodes')
    .option('--sops', 'services have SOPS files: the agent reads age keys in Secrets of skerry-system')
    .option('--values', 'print values of the chart skerry-agent (rbac.preset: custom) instead of manifests')
    .action((flags: RbacFlags) => io.out(rbacText(flags, format())))
  addEdgeCommands(program, { out: io.out, clock: systemClock })
  addAuditCommand(program, { out: io.out, format })
  addProfileCommand(program, { out: io.out })
  addNodeCommands(program, { out: io.out })
  addQueryCommand(program, { out: io.out, format, nowMs: () => systemClock.nowMs() })
  program
    .command('version')
    .description('Show version, commit and libraries')
    .addHelpText('before', examples('version', 'version -o json'))
    .action(() => io.out(versionOutput(format())))
  return program
}

const RBAC_EXAMPLE = 'rbac --kinds apps/Deployment,v1/Service,v1/ConfigMap --namespaces web,shop'

interface RbacFlags {
  kinds: string
  namespaces?: string
  serviceAccounts?: string
  agent: string
  podLogs?: true
  asking?: true
  sops?: true
  values?: true
}

function rbacText({ kinds, namespaces, serviceAccounts, agent, podLogs, asking, sops, values }: RbacFlags, format: string): string {
  const listOf = (text: string) => text.split(',').map((one) => one.trim()).filter((one) => one !== '') // biome-ignore format: short
  const manifests = rbacManifests({
    kinds: listOf(kinds),
    namespaces: namespaces === undefined ? null : listOf(namespaces),
    serviceAccounts: listOf(serviceAccounts ?? ''),
    agent,
    podLogs: podLogs === true,
    asking: asking === true,
    sops: sops === true,
  })
  if (values === true) return formatted(format === 'json' ? 'json' : 'yaml', rbacValues(manifests), () => '')
  return format === 'json'
    ? `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }, null, 2)}\n`
    : manifests.map(toYaml).join('---\n')
}

function versionOutput(format: string): string {
  const info = versionInfo()
  return formatted(format, info, () => versionText('skerry-agent', info))
}

function formatted(format: string, value: unknown, text: () => string): string {
  if (format === 'json') return `${JSON.stringify(value, null, 2)}\n`
  return format === 'yaml' ? toYaml(value) : `${text()}\n`
}

async function run(flags: Record<string, string | boolean | undefined>, io: AgentIo): Promise<void> {
  const read = readOptions(RUN_OPTIONS, flags, io.env)
  if (read.kind === 'problems') throw new AppError('bad_options', { doing: 'read the options', problems: read.problems })
  const { data, server, cluster: clusterName, wait, logLevel, kubeconfig, context, probes, metered, dailyBytes, serverCa } = read.options
  const { kubeEvents, podLogs, resync, asking, reportMetrics } = read.options
  const log = createPinoLogger(logLevel as 'debug' | 'info' | 'warn' | 'error')
  if (!disableCoreDumps()) log.warn('core dumps cannot be disabled; they would hold secrets')
  const { joinTokenFile } = read.options
  const joinToken = read.options.joinToken ?? (joinTokenFile === undefined ? null : readTokenFile(joinTokenFile))
  const caFile = serverCa === undefined ? null : resolve(serverCa)
  const fetcher = createServerLink({ serverUrl: server, caFile, insecureHttp: read.options.insecureHttp, env: io.env, log })
  // Checked before the data folder is used: an agent with a configured policy never runs without it.
  const policy = read.options.policy === undefined ? undefined : new PolicyFile(resolve(read.options.policy), log)
  // The data folder becomes the working directory.
  const [kubeconfigPath, sopsKeys] = [kubeconfig, read.options.sopsKeys].map((path) => (path === undefined ? undefined : resolve(path)))
  const folder = openDataFolder(data)
  const record = openRunRecord(folder.path, { clock: systemClock, log })
  const { library: libraryDir } = agentFiles(folder.path)
  const guard = createNativeGuard({ run: record, libraryDir, deathsMax: DEATHS_MAX })
  const enforce = async () => {
    loadNativeLibrary(libraryDir)
    const credentials = await loadKubeCredentials(
      {
        ...(kubeconfigPath === undefined ? {} : { kubeconfig: kubeconfigPath }),
        ...(context === undefined ? {} : { context }),
        env: io.env,
      },
      { clock: systemClock, log },
    )
    const cluster = createRestCluster(credentials, {
      clock: systemClock,
      random: systemRandom,
      log: log.with({ part: 'cluster' }),
      userAgent: `skerry-agent/${VERSION}`,
    })
    const freeMemory = createMemoryRelease()
    const questions = asking === 'off' ? undefined : { ...createQuestionLog(folder.path, systemClock), restarts: asking === 'restart' }
    const telemetry = await openTelemetry({ env: io.env, service: 'skerry-agent', clock: systemClock, log })
    const watchdog = createWatchdog({ clock: systemClock, log, stuckAfterMs: STUCK_AFTER_MS })
    const create = () =>
      createAgent(
        {
          dataDir: folder.path,
          serverUrl: server,
          clusterName: clusterName ?? '',
          joinToken,
          waitSeconds: wait ?? null,
          metered,
          dailyBytes: dailyBytes ?? (metered ? DAILY_BYTES_METERED : 0),
          kubeEvents: kubeEvents as KubeEvents,
          podLogLines: podLogs ?? 0,
          resyncMs: resync,
          reportMetricsMs: reportMetrics,
          sopsKeys,
          version: VERSION,
        },
        {
          cluster,
          logs: cluster,
          fetcher,
          clock: systemClock,
          random: systemRandom,
          randomBytes,
          log,
          place: folder.place,
          guard,
          policy,
          ...(questions === undefined ? {} : { questions }),
          freeMemory,
          watch: watchdog.watch,
          ...(telemetry === null ? {} : { recordSpan: telemetry.record }),
        },
      )
    let agent = create()
    if (joinToken === null && joinTokenFile !== undefined && agent.report().clusterId === null) {
      agent.close()
      throw tokenMissing(joinTokenFile)
    }
    const stopping = new AbortController()
    io.onStop((signal) => {
      log.info('stopping', { signal })
      stopping.abort()
    })
    const address = probes === undefined ? null : parseAddress(probes)
    const local = serveLocalApi(
      folder.path,
      { report: () => agent.report(), order: (order) => agent.order(order), stuck: () => watchdog.problems() },
      ...(address === null ? [] : [address]),
    )
    const ended = new AbortController()
    void releaseOften(freeMemory, systemClock, ended.signal)
    void watchdog.run(ended.signal)
    log.info('agent started', { version: VERSION, data: folder.path, server, cluster: credentials.source })
    try {
      while ((await agent.run(stopping.signal)) === 'join_anew') {
        agent.close()
        agent = create()
      }
    } finally {
      ended.abort()
      await local.stop()
      agent.close()
      cluster.close()
      await telemetry?.stop()
    }
  }
  try {
    await enforce()
  } finally {
    record.end()
    folder.unlock()
  }
}

/** For one reconciliation. A slow API server stays far below it. */
const STUCK_AFTER_MS = 1_800_000

/** One death can have another cause, and a site without a network has no other replica. */
const DEATHS_MAX = 2

/** Null if the file does not exist: people delete the token after the join (IK14). */
function readTokenFile(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw new AppError('bad_options', { doing: `read --join-token-file ${path}` }, { cause: error })
  }
}

const tokenMissing = (path: string): AppError =>
  new AppError('bad_options', {
    doing: 'join',
    detail: `the agent has not joined yet, and --join-token-file ${path} does not exist`,
    remedy: 'Create a join token with `skerry join-token create` and write it to that file.',
  })

function takeFolder(data: string): DataFolder {
  try {
    return openDataFolder(data)
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'data_locked')) throw error
    throw new AppError('data_locked', {
      doing: 'read the status',
      detail: `the agent on ${resolve(data)} did not answer for 5 s`,
      remedy: 'Repeat the command. If the error persists, read the log of the agent and restart it.',
    })
  }
}

/** Takes the data folder's lock, so that it never reads under a running agent. */
function reportFromDisk(data: string): AgentReport {
  const files = agentFiles(resolve(data))
  if (!existsSync(files.state))
    throw new AppError('bad_options', {
      doing: 'read the status',
      detail: `${resolve(data)} is not the data folder of an agent`,
      remedy: 'Set --data or SKERRY_DATA. For an agent in a pod, run the command inside the pod.',
    })
  const folder = takeFolder(data)
  const state = openAgentState(files.state)
  const identity = state.identity()
  const replica =
    identity === null || !existsSync(files.replica)
      ? null
      : createCrdtReplica({
          path: files.replica,
          clusterId: identity.clusterId,
          serverKeys: () => identity.serverKeys,
          log: createPinoLogger('error'),
          libraryDir: files.library,
        })
  const report = agentReport({
    running: false,
    todayBytes: readToday(files.traffic, systemClock.nowMs()),
    version: VERSION,
    state,
    recipient: recipientFingerprint(data),
    replica,
    link: null,
    disk: null,
    resync: null,
    enforcement: { state: 'stopped', message: enforcementText('stopped') },
  })
  replica?.close()
  state.close()
  folder.unlock()
  return report
}
