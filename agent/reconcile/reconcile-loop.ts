// The loop that makes the cluster equal to its rows. A reconciliation belongs to one service and evaluates its whole
// present state, whatever event woke it. It runs from replica and agent state alone, without a server.

import type { Clock } from '../../shared/runtime/clock.ts'
import { parseServiceKey, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError, runLoop } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { Watch } from '../../shared/runtime/watchdog.ts'
import type { ApiResource, Cluster, Discovery } from '../cluster/cluster.ts'
import type { PodLogs } from '../cluster/pod-logs.ts'
import { news } from '../messages/event-messages.ts'
import { refusedOrder } from '../messages/site-messages.ts'
import type { Replica } from '../replica/replica.ts'
import type { AgentState } from '../state/agent-state.ts'
import { noteShut, nothingBegun, revisionGate, takeHold } from './apply/begin.ts'
import { ContentsReader } from './apply/contents.ts'
import { settleJobs } from './apply/gone-jobs.ts'
import { MarkedSearch } from './apply/marked-search.ts'
import { phaseRounds, removalHookRounds } from './apply/phase-rounds.ts'
import { pruneRounds } from './apply/prune-rounds.ts'
import { forgetService, keepBesideTurns, recallService, remember } from './apply/remember.ts'
import { readRevision, recallInventory, retryWhatIsDue, wasRemoved, widenInventory } from './apply/revision.ts'
import { applyRounds } from './apply/rounds.ts'
import type { ClaimState } from './claim/claim-keeper.ts'
import { createEnforcement } from './claim/enforcement.ts'
import { carryOutOrder, type EdgeAnswer, type EdgeOrder } from './edge-orders.ts'
import { Holds, suspensionFacts } from './plan/gates/hold.ts'
import { type ServiceWindows, TimeGates, type WindowSource } from './plan/gates/time-gates.ts'
import type { Reports, Requests, Services, Site, Storage, Turns } from './ports.ts'
import { HealthChoices } from './report/health-choices.ts'
import type { KubeEvents } from './report/kube-event.ts'
import { KubeEventWriter, tellKubernetes } from './report/kube-events.ts'
import { publish, published, touchOverdue } from './report/publish.ts'
import { createReports } from './report/reports.ts'
import { asking } from './requests/placed-cluster.ts'
import { REQUESTS_MAX, RequestScheduler } from './requests/request-scheduler.ts'
import { Dependents } from './snapshot/dependents.ts'
import type { SitePolicy } from './snapshot/permits.ts'
import type { ServiceModel } from './snapshot/service-model.ts'
import { type Decryption, NO_DECRYPTION } from './snapshot/wanted.ts'
import { Autoscalers } from './snapshot/watch/autoscalers.ts'
import { checkedCluster } from './snapshot/watch/checked-answers.ts'
import { Definitions } from './snapshot/watch/definitions.ts'
import { EventRouter } from './snapshot/watch/event-router.ts'
import { FirstContacts } from './snapshot/watch/first-contacts.ts'
import { OwnedIndex, type SourcedObject } from './snapshot/watch/owned-index.ts'
import { Resync, type ResyncCount } from './snapshot/watch/resync.ts'
import { ServedKinds } from './snapshot/watch/served-kinds.ts'
import { ServiceRegistry } from './snapshot/watch/service-registry.ts'
import { StorageClasses } from './snapshot/watch/storage-classes.ts'
import { Watches } from './snapshot/watch/watches.ts'
import { TURN_BUDGET_MS, type Urgency, WorkQueue } from './work-queue.ts'

export interface ReconcilerDeps {
  replica: Replica
  state: AgentState
  cluster: Cluster
  /** Identity of this agent: the owner of marks, and the content of the claim. */
  identity: { clusterId: string; agentId: string; incarnation: number; formerClusters?: readonly string[] }
  /** For the claim: where this agent is registered. */
  server?: string
  /** CM9: the server stated that this cluster was removed from it. */
  isRemoved?: boolean
  /** CM5: the place of this process. Absent means unknown. */
  place?: string | null
  clock: Clock
  random: Random
  log: Logger
  /** LX1: the present policy of the site. Absent means none. */
  policy?(): SitePolicy | null
  sops?: Decryption // SP4; absent: the site opens no SOPS documents
  /** Windows of services. Absent means none. */
  windowsOf?: WindowSource
  /** PR7: the server confirmed the replica since this process started. Absent if the replica cannot be older. */
  isCurrent?(): boolean
  /** SU4: other services are suspended than before. */
  onSuspended?(): void
  /** Called for every change of the claim. */
  onClaim(claim: ClaimState): void
  /** How often each watched kind is compared with a list of it (LS6). Null or absent means never. */
  resyncMs?: number | null
  /** Null if discovery answers. Otherwise the reason why nothing can begin. */
  onUnreachable(message: string | null): void
  onDiscovery?(discovery: Discovery): void // called for each answer of discovery
  /** Absent means that no log is read (HE8). */
  podLogs?: PodLogs & { lines: number }
  /** Kubernetes Events on users' objects. Absent means none. */
  kubeEvents?: KubeEvents
  /** A reconciliation reported changes of this many objects. */
  onLargeTurn?(objects: number): void
  watch?: Watch // told of each turn
}

export interface Reconciler {
  /** The sync loop committed new rows of these services. */
  revisionsChanged(services: readonly ServiceId[]): void
  /** `isCurrent` is true from now on. */
  becameCurrent(): void
  /** LX4: every service is reconciled again. */
  policyChanged(): void
  /** An order of a person at the site. */
  order(order: EdgeOrder): EdgeAnswer
  /** CM9: the server stated that this cluster was removed from it, or knows it again. */
  setRemoved(isRemoved: boolean): void
  /** Asks discovery; does nothing before the first answer. */
  discover(): Promise<void>
  /** The source of each applied object's changes; nothing before it enforces. */
  sources(): Iterable<SourcedObject>
  /** Differences that resyncs found since this process started. */
  resynced(): ResyncCount
  /** Runs until the signal aborts, and lets begun requests finish. */
  run(signal: AbortSignal): Promise<void>
}

/** Services that reconcile at the same time: as many as requests, since a small service sends one at a time. */
const TURNS_MAX = REQUESTS_MAX
/** Reconciliations beside those, for services that heal. */
const TURNS_FOR_HEALING = 4
/** The callers of requests that belong to no service; no service has such a name. */
const [DEFINITIONS, WATCHES, RESYNC, KUBE_EVENTS, MARKED, CLAIMS] = [
  '(definitions)',
  '(watches)',
  '(resync)',
  '(events)',
  '(marked)',
  '(volume claims)',
]
const NO_WINDOWS: ServiceWindows = { windows: [] }
const START_BACKOFF = { baseMs: 500, capMs: 30_000 }
/** Objects of a turn after which there is memory to give back. */
const LARGE_TURN_OBJECTS = 500
/** A turn that broke on a bug is not repeated in a hurry. */
const BROKEN_TURN_WAIT_MS = 30_000

export function createReconciler(deps: ReconcilerDeps): Reconciler {
  let wakeServices: (services: readonly ServiceId[]) => void = () => {}
  let wakeAll: () => void = () => {}
  let discover: () => Promise<void> = async () => {}
  let sources: () => Iterable<SourcedObject> = () => []
  let resynced: ResyncCount = { compared: 0, differences: 0 }
  let isRemoved = deps.isRemoved ?? false
  let setRemoved: (isRemoved: boolean) => void = () => {}
  let carryOut: (order: EdgeOrder) => EdgeAnswer = () => refusedOrder('not_enforcing')
  return {
    revisionsChanged: (services) => wakeServices(services),
    becameCurrent: () => wakeAll(),
    policyChanged: () => wakeAll(),
    discover: () => discover(),
    sources: () => sources(),
    resynced: () => resynced,
    order: (order) => carryOut(order),
    setRemoved: (value) => {
      isRemoved = value
      setRemoved(value)
    },
    run: async (signal) => {
      const { registry, index, ports, queue, holds, resync, healthChoices, kubeEvents, registeredBefore } = assemble(deps, signal)
      const rulesCame = () => healthChoices.rulesCame(deps, (changed) => ports.watches.judgeKindAgain(changed))
      const services = () => [...new Map([...deps.state.services(), ...deps.replica.services()].map((id) => [serviceKey(id), id])).values()]
      wakeServices = (changed) => {
        void rulesCame()
        // Each service reads its row again, so that a turn under way is pre-empted.
        registry.revisionsChanged(takeSuspensions(deps, holds) ? services() : changed)
      }
      wakeAll = () => {
        for (const id of deps.replica.services()) queue.wake(serviceKey(id))
      }
      await discoverFirst(deps, ports.kinds, signal)
      if (signal.aborted) return
      discover = () => ports.kinds.refresh()
      sources = () => index.sources(ports.watches)
      resynced = resync.count
      await healthChoices.load(deps.state)
      await rulesCame()
      takeSuspensions(deps, holds)
      // Everything in replica or inventory is evaluated once.
      for (const id of services()) registry.model(id).markAll()
      index.followKinds()
      for (const { key } of registry.all()) queue.wake(key)
      void resync.run()
      const { agentId: agent, incarnation, clusterId, formerClusters = [] } = deps.identity
      const { keeper, takeOver } = createEnforcement({
        ...deps,
        own: { agent, incarnation, cluster: clusterId, server: deps.server ?? '' },
        formerByServer: formerClusters,
        place: deps.place ?? null,
        signal,
        setOpen: (isOpen) => queue.setOpen(isOpen),
        onFormer: registeredBefore,
        emit: ports.emit,
        flushReports: () => ports.flushReports(),
        kubeEvents,
      })
      setRemoved = (value) => keeper.setRemoved(value)
      setRemoved(isRemoved)
      const edge = { holds, turn: ports, modelOf: (key: string) => registry.known(key), services }
      carryOut = (order) => (order.kind === 'take_over' ? takeOver(order.by, order.why) : carryOutOrder(order, edge))
      await keeper.run()
      await queue.idle()
    },
  }
}

/** SU1: stored beside the replica, in case that cannot be read. True: the suspended services changed. */
function takeSuspensions({ replica, state, log, onSuspended }: ReconcilerDeps, holds: Holds): boolean {
  const rows = replica.suspensions()
  if (rows === null || holds.isSuspendedAs(rows)) return false
  const { owner, facts } = suspensionFacts(rows)
  try {
    remember({ id: owner }, { state }, facts)
  } catch (error) {
    log.error('cannot save the suspensions', { error: describeError(error) })
  }
  log.info('suspensions changed', { suspensions: rows.length })
  holds.suspend(rows)
  onSuspended?.()
  return true
}

type Ports = Site & Requests & Storage & Services & Turns & Reports

/** One turn; how many objects it had something to say of. */
async function reconcileService(model: ServiceModel, deps: Ports): Promise<number> {
  const isStopped = () => deps.isHalted() || deps.mustYield(model.key)
  const beganMs = deps.clock.nowMs()
  takeHold(model, deps, beganMs)
  model.forgetContacts()
  touchOverdue(model, beganMs)
  do {
    model.placeBy(deps.kinds.scopes(), deps.policy())
    if (model.revisionPending) await readRevision(model, deps) // RV1: a complete revision, or what was applied stays in force
    const shut = deps.times.shut(model.id, deps.clock.nowMs())
    noteShut(model, shut !== null)
    model.markGated(shut ?? revisionGate(model, deps))
    model.planHeldAgain()
    await retryWhatIsDue(model, deps)
    model.placeBy(deps.kinds.scopes(), deps.policy())
    if (!(await recallInventory(model, deps))) break // IV6
    await widenInventory(model, deps) // IV1: owned on paper before it exists
    if (model.reading.kind === 'absent') break // only a removal order removes anything
    await settleJobs(model, deps) // JB1: what has ended is not missing
    if (model.hooks.isInUse())
      await phaseRounds(model, deps) // OR3: phases, waves, stages
    else await applyRounds(model, deps)
    if (hasRemovalHooks(model)) await removalHookRounds(model, deps, 'pre-delete')
    await pruneRounds(model, deps) // PR1: past the guard, after health
    if (hasRemovalHooks(model) && (await removalHookRounds(model, deps, 'post-delete'))) await pruneRounds(model, deps)
  } while (model.revisionPending && !isStopped()) // RC14
  finishRemoval(model, deps)
  deps.explainer.look(model, deps) // HE8
  const objects = model.queue.touched.size
  const said = publish(model, deps)
  await deps.recordTurn(said.record)
  published(model, deps, said)
  // CM2, RC30: the rest begins when the claim returns, or in the service's next reconciliation.
  if (isStopped()) {
    const pauseMs = deps.scheduler.pausedForMs()
    if (pauseMs === null) deps.wake(model.key)
    else deps.wakeAt(model.key, deps.clock.nowMs() + pauseMs)
  }
  return objects
}

const hasRemovalHooks = ({ row, hooks }: ServiceModel): boolean => row?.removal !== undefined && hooks.awaitsRemovalHooks(row.removal)

/** A removal order is carried out when the inventory is empty; the service is forgotten when that is in the outbox. */
function finishRemoval(model: ServiceModel, deps: Storage & Turns & Reports): void {
  if (model.inventory.size > 0) return
  const order = model.reading.kind === 'complete' ? model.row?.removal : undefined
  if (order !== undefined && !model.removal.isRecalled(order)) return
  if (order !== undefined && model.row?.restored !== true && model.hooks.awaitsRemovalHooks(order)) return // HK10
  if (order !== undefined && !model.removal.isCarriedOut(order)) {
    model.removal.carriedOut(order)
    const event = news('Removed', { service: model.key, policy: order.policy })
    // After a restart the order may still stand: the server has not read yet that it was carried out.
    if (!wasRemoved(model)) deps.emit({ ...event, service: model.key })
  }
  if (order === undefined && model.reading.kind !== 'absent') return
  forgetService(model, deps)
  nothingBegun(model)
  deps.times.forget(model.id)
}

/** Nothing of it is left, here or in the cluster. */
const isForgotten = ({ reading, revisionPending, inventory }: ServiceModel): boolean =>
  reading.kind === 'absent' && !revisionPending && inventory.size === 0

function discoverFirst(deps: ReconcilerDeps, kinds: ServedKinds, signal: AbortSignal): Promise<void> {
  const done = new AbortController()
  const turn = async () => {
    await kinds.refresh()
    deps.onUnreachable(null)
    done.abort()
  }
  return runLoop({
    ...deps,
    name: 'discovery',
    turn,
    backoff: START_BACKOFF,
    signal: AbortSignal.any([signal, done.signal]),
    onFailure: (failure) => failure !== null && deps.onUnreachable(describeError(failure.error)),
  })
}

function assemble(deps: ReconcilerDeps, signal: AbortSignal) {
  const { replica, state, clock, random, log, sops = NO_DECRYPTION } = deps
  const { clusterId } = deps.identity
  const former = new Set<string>()
  const cluster = checkedCluster(deps.cluster, () => watches)
  const kinds = new ServedKinds(cluster, deps.onDiscovery?.bind(deps))
  const scheduler = new RequestScheduler({ clock, signal })
  const wake = (key: string, urgency?: Urgency) => {
    queue.wake(key, urgency)
    // RC14: waiting requests are not sent.
    scheduler.reconsider(key)
  }
  const registry = new ServiceRegistry({
    recall: (id) => recallService(id, state),
    inventory: (id) => state.inventory(id),
    isLeaving: (id) => replica.isLeaving(id),
    wake,
    release: (key) => watches.release(key),
  })
  const index: OwnedIndex = new OwnedIndex({
    registry,
    kinds,
    clusterId,
    former,
    follow: (resources) => {
      watches.follow(resources)
      definitions.follow(resources.values())
    },
    live: () => watches.all(),
    autoscalers: () => autoscalers,
  })
  const router: EventRouter = new EventRouter({
    registry,
    index,
    keep: keepBesideTurns({ state }, () => reports.flushReports()),
    kinds,
    clusterId,
    former,
    clock,
    random,
    log,
    signal,
    wake,
    autoscalers: () => autoscalers,
  })
  const autoscalers = new Autoscalers({
    cluster,
    clock,
    find: kinds.find.bind(kinds),
    log,
    signal,
    changed: (targets) => router.rescaled(targets),
  })
  const healthChoices = new HealthChoices()
  const health = { optionsOf: healthChoices.of.bind(healthChoices) }
  const ask: Requests['asking'] = (who) => asking(cluster, scheduler, who)
  const classes = new StorageClasses({
    cluster,
    list: ask({ service: CLAIMS }).list,
    find: kinds.find.bind(kinds),
    clock,
    log,
    signal,
    changed: () => watches.bindingsChanged(),
  })
  const contents = new ContentsReader({
    asking: ask,
    kinds,
    clusterId,
    former,
    signal,
    otherOf: (model, key) => registry.otherOf(model, key),
    isLeaving: (key) => registry.known(key)?.row?.removal !== undefined,
  })
  const definitions = new Definitions({ cluster: ask({ service: DEFINITIONS }), kinds, state, log })
  const watches: Watches = new Watches({
    // RC5: the read that judges a deletion.
    cluster: { get: ask({ service: WATCHES, purpose: 'heal' }).get, watch: cluster.watch.bind(cluster) },
    clock,
    random,
    log,
    signal,
    owned: index,
    sink: router,
    health,
    classes,
  })
  const isWatched = (resource: ApiResource) => watches.isComplete(resource)
  const marked = new MarkedSearch({ asking: ask({ service: MARKED }), kinds, clusterId, former, isWatched, clock, log, signal })
  const resync = new Resync({
    list: ask({ service: RESYNC }).list,
    clusterId,
    intervalMs: deps.resyncMs ?? null,
    clock,
    log,
    signal,
    watches: () => watches.kinds(),
  })
  const holds = new Holds(state)
  const kubeEvents = new KubeEventWriter({
    mode: deps.kubeEvents ?? 'none',
    cluster: ask({ service: KUBE_EVENTS }),
    clock,
    log,
    signal,
    agent: deps.identity.agentId,
    isStrained: () => scheduler.limit() < REQUESTS_MAX / 2,
  })
  const policy = () => deps.policy?.() ?? null
  const site: Site = { cluster, clusterId, former, kinds, watches, autoscalers, healthChoices, policy, sops, clock, random, log, signal }
  const requests: Requests = {
    scheduler,
    asking: ask,
    firstContacts: new FirstContacts({ cluster, clock, signal }),
    evidence: { definitions, contents, marked },
  }
  const services: Services = {
    owners: registry.owners,
    hasOthersIn: (namespace, own) => registry.owners.hasOthersIn(namespace, own),
    modelOf: (key) => registry.known(key),
    othersWanting: (model, key) => registry.othersWanting(model, key),
    othersNeeding: (model, key) => registry.othersNeeding(model, key),
    unrecorded: (model) => index.unrecorded.of(model.key),
    isUidInForce: (uid) => registry.isUidInForce(uid),
    taker: (id) => registry.taker(id),
    dependents: new Dependents(),
    revisionsSeen: () => registry.revisionsSeen(),
    takersSeen: () => registry.takersSeen(),
    revisionRead: (model) => registry.revisionRead(model),
    waitsForOthers: (model) => registry.waitsForOthers(model),
    wakeWhenRead: (model) => registry.wakeWhenRead(model),
    lacking: router.lacking,
    causeChanged: (key, isHealthy) => router.causeChanged(key, isHealthy),
    followKinds: (model) => index.followKinds(model),
  }
  /** RC30: the API server asked for a pause that ends after the time of the reconciliation, which reports its
   *  results before the pause. */
  const isOutlasted = (key: string): boolean => {
    const pauseMs = scheduler.pausedForMs()
    const lastedMs = queue.lastedMs(key)
    return pauseMs !== null && lastedMs !== null && lastedMs + pauseMs >= TURN_BUDGET_MS.other
  }
  const turns: Turns = {
    isHalted: () => signal.aborted || !queue.isOpen(),
    mustYield: (key) => queue.mustYield(key) || isOutlasted(key),
    isCurrent: () => deps.isCurrent?.() ?? true,
    times: new TimeGates(holds, deps.windowsOf ?? (() => NO_WINDOWS)),
    wake: (key) => queue.wake(key),
    wakeAt: (key, atMs) => queue.wakeAt(key, atMs),
  }
  const traceOf = (key: string) => registry.known(key)?.row?.trace
  const reports = createReports({ clock, log, state, podLogs: deps.podLogs, traceOf, signal }, (event) =>
    tellKubernetes(event, registry, kubeEvents),
  )
  const ports: Ports = { ...site, ...requests, state, replica, ...services, ...turns, ...reports }
  /** CM8: objects with these marks can be taken over, from the next reconciliation on. */
  const registeredBefore = (clusters: readonly string[]) => {
    const known = former.size
    for (const id of clusters) former.add(id)
    if (former.size === known) return
    index.unrecorded.maybeNew()
    for (const model of registry.all()) {
      model.expectNewObjects()
      model.markAll()
      queue.wake(model.key)
    }
  }
  const queue: WorkQueue = new WorkQueue({
    ...{ clock, concurrency: TURNS_MAX, reserved: TURNS_FOR_HEALING, signal, watch: deps.watch },
    mustYield: (key) => scheduler.reconsider(key),
    turn: async (key) => {
      const model = registry.model(parseServiceKey(key))
      try {
        const objects = await reconcileService(model, ports)
        if (objects >= LARGE_TURN_OBJECTS) deps.onLargeTurn?.(objects)
        if (!isForgotten(model)) return
        registry.drop(model)
        router.forget(model)
        index.forget(model)
        healthChoices.forget(model.id)
        ports.times.forget(model.id)
      } catch (error) {
        log.error('turn failed', { service: key, error: describeError(error), retryInMs: BROKEN_TURN_WAIT_MS })
        queue.wakeAt(key, clock.nowMs() + BROKEN_TURN_WAIT_MS)
        try {
          registry.recover(model)
        } catch (unreadable) {
          log.error('inventory cannot be read', { service: key, error: describeError(unreadable) })
          model.markAll()
        }
      }
    },
  })
  return { registry, index, ports, queue, holds, resync, healthChoices, kubeEvents, registeredBefore }
}
