// Composes the agent: sync receives rows, reconcile enforces them, and neither waits for the other. Without a server or
// a network the agent enforces its rows; without an API server it continues to sync.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { LogFile } from '../shared/adapters/log-sync.ts'
import type { NativeGuard } from '../shared/adapters/native-guard.ts'
import { isDiskFull } from '../shared/adapters/sqlite.ts'
import type { ClusterStatus } from '../shared/model/status.ts'
import type { Clock } from '../shared/runtime/clock.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import { describeError, runLoop } from '../shared/runtime/loop.ts'
import type { Random } from '../shared/runtime/random.ts'
import type { RecordSpan } from '../shared/runtime/spans.ts'
import type { Watch } from '../shared/runtime/watchdog.ts'
import type { AskAnswerer } from './ask/ask-desk.ts'
import { createSiteAnswerer } from './ask/site-answerer.ts'
import type { Cluster, ClusterInfo, Discovery } from './cluster/cluster.ts'
import { LOG_LINES_MAX, type LogStreams, type PodLogs } from './cluster/pod-logs.ts'
import { enforcementOf } from './enforcement-report.ts'
import { FactsKeeper } from './facts-keeper.ts'
import { loadAgentKeys, recipientFingerprint, recipientsOf, rotateRecipient } from './link/agent-keys.ts'
import { mayJoinAnew } from './link/join.ts'
import type { Fetcher } from './link/server-client.ts'
import { agentProblem, refusedOrder } from './messages/site-messages.ts'
import { ChangeSpans } from './observe/change-spans.ts'
import { reportMetrics } from './observe/metrics-report.ts'
import { type AgentReport, agentReport, linkReport } from './observe/report.ts'
import type { QuestionLog } from './order-log.ts'
import { type PolicyFile, policyText } from './policy-file.ts'
import { claimantText } from './reconcile/claim/claim.ts'
import type { ClaimState } from './reconcile/claim/claim-keeper.ts'
import type { EdgeAnswer, EdgeOrder } from './reconcile/edge-orders.ts'
import { holdOfCluster, holdText } from './reconcile/plan/gates/hold.ts'
import { createReconciler, type Reconciler, type ReconcilerDeps } from './reconcile/reconcile-loop.ts'
import type { KubeEvents } from './reconcile/report/kube-event.ts'
import type { ActiveHold } from './reconcile/snapshot/kept-notes.ts'
import { createCrdtReplica } from './replica/crdt-replica.ts'
import { SiteConfigKeeper } from './site-config.ts'
import { createSopsDecrypter, type SopsDecrypter } from './sops/decrypter.ts'
import { createDiskReserve, type DiskReserve } from './state/disk-reserve.ts'
import { openAgentState } from './state/sqlite-agent-state.ts'
import { createStateBox } from './state/state-box.ts'
import { createPartStage } from './sync/part-stage.ts'
import { SyncLoop } from './sync/sync-loop.ts'
import { createTrafficDay } from './sync/traffic-day.ts'

export interface AgentOptions {
  dataDir: string
  serverUrl: string
  clusterName: string
  /** Null if it must have joined before. */
  joinToken: string | null
  /** Longest wait of a poll. Null means what the network bears. */
  waitSeconds: number | null
  /** Every byte to the server is paid for. */
  metered?: boolean
  /** Budget a day of the link to the server; 0 is none. */
  dailyBytes?: number
  /** Kubernetes Events on users’ objects. Absent means none. */
  kubeEvents?: KubeEvents
  /** Last log lines of failing containers that are read. 0 or absent means none. */
  podLogLines?: number
  /** How often each watched kind is compared with a list of it. 0 or absent means never. */
  resyncMs?: number
  reportMetricsMs?: number // 0, or absent: metrics stay here
  sopsKeys?: string | undefined // folder of `*.agekey` files; absent: none
  version: string
}

export interface AgentDeps {
  cluster: Cluster
  logs?: PodLogs & Partial<LogStreams>
  fetcher: Fetcher
  clock: Clock
  random: Random
  /** For values that must not be guessable. */
  randomBytes(count: number): Uint8Array
  log: Logger
  /** The place of this process and its data folder. Null means unknown. */
  place: string | null
  guard?: NativeGuard
  /** The audit log of the site, and whether people may restart workloads. Absent means that the agent takes no
   *  questions. */
  questions?: QuestionLog & { restarts: boolean }
  /** LX1. Absent means that the site has no policy. */
  policy?: PolicyFile | undefined
  /** Where the state waits for the disk; default the log of its file. */
  logFile?: LogFile
  /** Told of each reconciliation. Absent means that nobody watches. */
  watch?: Watch
  /** Absent means that traces are off. */
  recordSpan?: RecordSpan
  /** Gives memory back to the machine, if there was work since the last time. */
  freeMemory(): void
}

export interface Agent {
  /** Until the signal; begun requests are finished. `join_anew`: the removed cluster comes back with an unused token
   *  (CM10), so another agent is to be created on this data folder. */
  run(signal: AbortSignal): Promise<'stopped' | 'join_anew'>
  report(): AgentReport
  /** Carries out the order of a person at the site. */
  order(order: EdgeOrder): EdgeAnswer
  close(): void
}

/** Where the files of the data folder are. */
export const agentFiles = (dataDir: string) => ({
  state: join(dataDir, 'agent.sqlite'),
  replica: join(dataDir, 'replica.sqlite'),
  library: join(dataDir, 'lib'),
  traffic: join(dataDir, 'traffic.json'),
})

const INFO_BACKOFF = { baseMs: 500, capMs: 30_000 }
/**
 * After a reconciliation of thousands of objects most of the heap is unreferenced answers. After this time the other
 * work of the revision has ended too.
 */
const FREE_MEMORY_AFTER_MS = 2_000
/** How soon a disk that was full is known to have space again. */
const RESTOCK_MS = 30_000
/** How long the first contact with the server waits for the cluster's own identity. */
const INFO_PATIENCE_MS = 5_000

export function createAgent(options: AgentOptions, deps: AgentDeps): Agent {
  return new RunningAgent(options, deps)
}

class RunningAgent implements Agent {
  readonly #options: AgentOptions
  readonly #deps: AgentDeps
  readonly #reserve: DiskReserve
  readonly #state
  readonly #sync: SyncLoop
  readonly #spans: ChangeSpans | null
  #reconciler: Reconciler | null = null
  #siteConfig: SiteConfigKeeper | null = null
  #joined: () => void = () => {}
  #info: ClusterInfo | null = null
  #claim: ClaimState = { kind: 'asking', message: null }
  #unreachable: string | null = null
  #freeing = new AbortController()
  #holdEnd = new AbortController()
  #current = false
  #discovery: Discovery | null = null
  #sops: SopsDecrypter | null = null
  readonly #anew = new AbortController()
  #isClosed = false
  readonly #problemSince = new Map<string, number>()

  constructor(options: AgentOptions, deps: AgentDeps) {
    this.#options = options
    this.#deps = deps
    const { clock, random, log, fetcher } = deps
    const { dataDir, serverUrl, clusterName, joinToken, waitSeconds, metered = false, dailyBytes = 0, version } = options
    const files = agentFiles(dataDir)
    this.#reserve = createDiskReserve(dataDir, () => this.#isClosed || this.#reportCluster())
    const keys = loadAgentKeys(dataDir)
    const state = openAgentState(files.state, this.#reserve, deps.logFile, createStateBox(keys.state))
    this.#state = state
    this.#spans = deps.recordSpan === undefined ? null : new ChangeSpans(deps.recordSpan, clock)
    if (mayJoinAnew(state, joinToken)) {
      log.info('the cluster was removed from its server: joining again', { before: state.removal()?.clusterId })
      state.forgetRegistration()
      for (const path of [files.replica, `${files.replica}-wal`, `${files.replica}-shm`]) rmSync(path, { force: true })
    }
    if (state.removal() !== null) this.#claim = { kind: 'removed' }
    const uid = () => this.#info?.uid ?? ''
    this.#sync = new SyncLoop({
      watch: deps.watch,
      serverUrl,
      fetcher,
      keys,
      rotateRecipient: () => rotateRecipient(dataDir, keys),
      join: {
        joinToken,
        clusterName,
        get clusterUid() {
          return uid()
        },
        agentVersion: version,
      },
      state,
      openReplica: ({ clusterId }) => {
        this.#joined()
        return createCrdtReplica({
          path: files.replica,
          clusterId,
          serverKeys: () => state.identity()?.serverKeys ?? [],
          recipients: recipientsOf(dataDir, keys),
          log,
          libraryDir: files.library,
          ...(deps.guard === undefined ? {} : { guard: deps.guard }),
          onDiskFull: (doing) => this.#reserve.giveBack(doing),
          onDamage: () => this.#sync.replicaDamaged(),
        })
      },
      onChange: (services) => {
        this.#reconciler?.revisionsChanged(services)
        this.#siteConfig?.changed()
      },
      onPage: (startMs, endMs) => this.#spans?.pageApplied(startMs, endMs),
      onRemoved: (isRemoved) => this.#onRemoved(isRemoved),
      onRecipient: () => this.#reportCluster(),
      onCurrent: () => {
        if (this.#current) return
        this.#current = true
        this.#reconciler?.becameCurrent()
      },
      clock,
      random,
      randomBytes: deps.randomBytes,
      log: log.with({ part: 'sync' }),
      ...(waitSeconds === null ? {} : { waitSeconds }),
      metered,
      traffic: createTrafficDay({ path: files.traffic, budgetBytes: dailyBytes, clock }),
      parts: createPartStage(dataDir),
      ...this.#answering(),
    })
  }

  #answering(): { answerer?: AskAnswerer } {
    const { questions, cluster, policy, clock } = this.#deps
    if (questions === undefined) return {}
    const { logStream } = this.#deps.logs ?? {}
    const site = {
      ...{ discovery: () => this.#discovery, policy: () => policy?.policy() ?? null, ...questions },
      ...{ replica: () => this.#sync.replica(), logs: logStream === undefined ? undefined : { logStream } },
    }
    return { answerer: createSiteAnswerer({ ...site, cluster, clock, state: this.#state }) }
  }

  async run(stop: AbortSignal): Promise<'stopped' | 'join_anew'> {
    const broken = new AbortController()
    const signal = AbortSignal.any([stop, broken.signal, this.#anew.signal])
    const learned = this.#learnCluster(signal)
    const syncing = async () => {
      // A join that names its cluster lets the server know it again when this disk is lost (RP6).
      if (this.#state.identity() === null) await Promise.race([learned, this.#deps.clock.sleep(INFO_PATIENCE_MS, signal)])
      await this.#sync.run(signal)
    }
    // With sync alone running, a supervisor would not see that the agent has ended.
    const endAll = (error: unknown) => {
      broken.abort()
      throw error
    }
    const parts = [learned, syncing(), this.#enforce(signal), this.#tend(signal), this.#followPolicy(signal)].map((part) =>
      part.catch(endAll),
    )
    await Promise.allSettled(parts)
    await Promise.all(parts)
    return this.#anew.signal.aborted && !stop.aborted ? 'join_anew' : 'stopped'
  }

  order(order: EdgeOrder): EdgeAnswer {
    const answer = this.#reconciler?.order(order)
    if (answer === undefined) return refusedOrder('not_enforcing')
    if (answer.kind === 'done' && (order.kind === 'hold' || order.kind === 'unhold') && order.service === null) this.#reportCluster()
    return answer
  }

  /** CM9: enforcement ends while the server states that this cluster was removed. */
  #onRemoved(isRemoved: boolean): void {
    const { log } = this.#deps
    if (isRemoved) log.error('the cluster was removed from its server: enforcement stops, all objects stay')
    else log.warn('the server accepts this cluster again: enforcement continues')
    if (isRemoved && mayJoinAnew(this.#state, this.#options.joinToken)) {
      this.#anew.abort()
      return
    }
    if (isRemoved) this.#claim = { kind: 'removed' }
    else if (this.#claim.kind === 'removed') this.#claim = { kind: 'asking', message: null }
    this.#reconciler?.setRemoved(isRemoved)
  }

  /** Begins as soon as there is an identity and a replica; a network is not needed. */
  async #enforce(signal: AbortSignal): Promise<void> {
    await this.#identityKnown(signal)
    const identity = this.#state.identity()
    const replica = this.#sync.replica()
    if (signal.aborted || identity === null || replica === null) return
    const { cluster, clock, random, log, place } = this.#deps
    const looks = { look: async () => this.#reconciler?.discover(), info: () => cluster.info(), version: this.#info?.version ?? '' }
    const facts = new FactsKeeper({ state: this.#state, clock, random, log: log.with({ part: 'facts' }), ...looks })
    const changed = () => this.#reconciler?.revisionsChanged(replica.services())
    this.#sops = createSopsDecrypter({ cluster, state: this.#state, folder: this.#options.sopsKeys, changed, clock, log, signal })
    this.#reconciler = createReconciler({
      sops: this.#sops,
      onDiscovery: (discovery) => {
        this.#discovery = discovery
        if (!this.#isClosed) facts.noteDiscovery(discovery)
      },
      replica,
      isCurrent: () => this.#current,
      state: this.#spans?.watching(this.#state) ?? this.#state,
      cluster,
      identity,
      server: originOf(this.#options.serverUrl),
      isRemoved: this.#state.removal() !== null,
      place,
      clock,
      random,
      log: log.with({ part: 'reconcile' }),
      onClaim: (claim) => {
        this.#claim = claim
        this.#reportCluster()
      },
      onSuspended: () => this.#reportCluster(),
      onUnreachable: (message) => {
        if (message === this.#unreachable) return
        this.#unreachable = message
        this.#reportCluster()
      },
      ...this.#told(),
      policy: () => this.#deps.policy?.policy() ?? null,
      resyncMs: this.#options.resyncMs || null,
      ...(this.#deps.watch === undefined ? {} : { watch: this.#deps.watch }),
      onLargeTurn: () => void this.#freeMemoryLater(signal),
    })
    void this.#freeMemoryLater(signal) // what only the start needed
    const reporting = { state: this.#state, read: () => this.report(), everyMs: this.#options.reportMetricsMs ?? 0, clock, random, log }
    const site = { replica, cluster, state: this.#state, policy: () => this.#deps.policy?.policy() ?? null, clock, log }
    this.#siteConfig = new SiteConfigKeeper(site)
    await Promise.all([this.#reconciler.run(signal), facts.run(signal), this.#siteConfig.run(signal), reportMetrics(reporting, signal)])
  }

  #told(): Pick<ReconcilerDeps, 'kubeEvents' | 'podLogs'> {
    const { kubeEvents, podLogLines = 0 } = this.#options
    const { logs } = this.#deps
    const lines = Math.min(podLogLines, LOG_LINES_MAX)
    const podLogs = lines > 0 && logs !== undefined ? { podLogs: { logTail: logs.logTail.bind(logs), lines } } : {}
    return { ...(kubeEvents === undefined ? {} : { kubeEvents }), ...podLogs }
  }

  /** LX4: an unreadable policy file is a problem of the cluster. */
  async #followPolicy(signal: AbortSignal): Promise<void> {
    await this.#deps.policy?.follow(this.#deps.clock, signal, (isPolicy) => {
      this.#reportCluster()
      if (isPolicy) this.#reconciler?.policyChanged()
      if (isPolicy) this.#siteConfig?.changed()
    })
  }

  /** RP4: the agent recovers by itself, and frees the memory of small work as often. */
  async #tend(signal: AbortSignal): Promise<void> {
    const { clock, random, log, freeMemory } = this.#deps
    const turn = async () => {
      this.#reserve.restock()
      freeMemory()
      await clock.sleep(RESTOCK_MS * (0.5 + random()), signal)
    }
    await runLoop({ name: 'upkeep', turn, backoff: { baseMs: RESTOCK_MS, capMs: RESTOCK_MS }, clock, random, log, signal })
  }

  async #freeMemoryLater(signal: AbortSignal): Promise<void> {
    this.#freeing.abort() // counted from the last of them
    const freeing = new AbortController()
    this.#freeing = freeing
    const both = AbortSignal.any([signal, freeing.signal])
    await this.#deps.clock.sleep(FREE_MEMORY_AFTER_MS, both)
    if (!both.aborted) this.#deps.freeMemory()
  }

  async #identityKnown(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (this.#state.identity() === null || this.#sync.replica() === null)) {
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve(), { once: true })
        // Called while the replica is being opened; the replica exists one turn of the event loop later.
        this.#joined = () => setImmediate(resolve)
      })
    }
  }

  async #learnCluster(signal: AbortSignal): Promise<void> {
    const { cluster, clock, random, log } = this.#deps
    const learned = new AbortController()
    await runLoop({
      name: 'cluster info',
      turn: async () => {
        this.#info = await cluster.info()
        this.#unreachable = null
        this.#reportCluster()
        learned.abort()
      },
      onFailure: (failure) => {
        if (failure !== null) this.#unreachable = describeError(failure.error)
      },
      backoff: INFO_BACKOFF,
      clock,
      random,
      log,
      signal: AbortSignal.any([signal, learned.signal]),
    })
  }

  #reportCluster(): void {
    if (this.#info === null || this.#state.identity() === null) return
    const doc: ClusterStatus = {
      agentVersion: this.#options.version,
      kubernetesVersion: this.#info.version,
      clusterUid: this.#info.uid,
      problems: this.#problems(),
    }
    try {
      this.#state.report([{ kind: 'cluster', key: 'cluster', doc }])
    } catch (error) {
      // The failure ends nothing, least of all enforcement. The reserve reports it again when there is space (RP4).
      if (!isDiskFull(error)) this.#deps.log.error('cannot save the state of the cluster', { error: describeError(error) })
    }
  }

  /** The stored hold of the whole cluster. Its end is reported when it comes. */
  #holdOfCluster(): ActiveHold | null {
    const { clock } = this.#deps
    const hold = holdOfCluster(this.#state, clock.nowMs())
    this.#holdEnd.abort()
    if (hold?.untilMs !== undefined) {
      this.#holdEnd = new AbortController()
      const { signal } = this.#holdEnd
      void clock.sleep(hold.untilMs - clock.nowMs(), signal).then(() => signal.aborted || this.#isClosed || this.#reportCluster())
    }
    return hold
  }

  #problems(): ClusterStatus['problems'] {
    const found: Array<{ code: string; message: string; sinceMs?: number }> = []
    const claim = this.#claim
    if (claim.kind === 'superseded') found.push(agentProblem('superseded', { agent: claim.by.agent }))
    if (claim.kind === 'contested') found.push(agentProblem('contested', { other: claimantText(claim.by) }))
    if (claim.kind === 'unclear') found.push(agentProblem('claim_unclear', { message: claim.message }))
    if (this.#unreachable !== null) found.push(agentProblem('kube_unreachable', { failure: this.#unreachable }))
    const full = this.#reserve.problem()
    if (full !== null) found.push({ code: 'disk_full', message: full })
    const other = this.#sync.foreignRecipient
    if (other !== null) found.push(agentProblem('recipient_substituted', { other, own: recipientFingerprint(this.#options.dataDir) ?? '' }))
    const policy = this.#deps.policy?.report() ?? null
    if (policy !== null && policy.problem !== null)
      found.push(agentProblem('policy_unreadable', { file: policy.file, problem: policy.problem }))
    const hold = this.#holdOfCluster()
    if (hold !== null) {
      const problem = agentProblem(hold.suspended === undefined ? 'held' : 'suspended', { hold: holdText(hold) })
      found.push({ ...problem, sinceMs: Math.max(0, hold.sinceMs) })
    }
    for (const code of [...this.#problemSince.keys()]) if (!found.some((problem) => problem.code === code)) this.#problemSince.delete(code)
    return found.map((problem) => {
      const sinceMs = this.#problemSince.get(problem.code) ?? this.#deps.clock.nowMs()
      this.#problemSince.set(problem.code, sinceMs)
      return { sinceMs, ...problem }
    })
  }

  report(): AgentReport {
    const hold = holdOfCluster(this.#state, this.#deps.clock.nowMs())
    const enforcement = enforcementOf(this.#claim, this.#unreachable, this.#sync.replica() !== null, hold)
    return agentReport({
      ...{ running: true, version: this.#options.version, state: this.#state },
      recipient: recipientFingerprint(this.#options.dataDir),
      foreignRecipient: this.#sync.foreignRecipient,
      replica: this.#sync.replica(),
      link: linkReport(this.#options.serverUrl, this.#sync.status()),
      enforcement,
      todayBytes: this.#sync.status().today.bytes,
      disk: this.#reserve.problem(),
      resync: this.#reconciler?.resynced() ?? null,
      policy: this.#policyReport(),
      ageKeys: this.#sops?.report() ?? null,
    })
  }

  #policyReport(): AgentReport['policy'] {
    const report = this.#deps.policy?.report()
    return report === undefined ? null : { file: report.file, rules: policyText(report.policy), problem: report.problem }
  }

  close(): void {
    this.#isClosed = true
    this.#holdEnd.abort()
    this.#sync.replica()?.close()
    this.#state.close()
    this.#reserve.restock() // out of what their logs took, for the next start
  }
}

/** Without credentials that the URL may have. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : ''
}
