// The loop that makes the cluster equal to its rows. A turn belongs to one service and looks at everything that service has become: which event
// woke it is forgotten by then. It runs from replica and agent state alone; no server is asked for anything.
import { parseServiceKey, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError, runLoop } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { Cluster, Discovery } from '../cluster/cluster.ts'
import type { PodLogs } from '../cluster/pod-logs.ts'
import type { Replica } from '../replica/replica.ts'
import type { AgentState } from '../state/agent-state.ts'
import { REQUESTS_MAX, RequestGate } from './apply/request-gate.ts'
import { type ClaimState, keepClaim } from './claim/claim-keeper.ts'
import { Autoscalers } from './fields/autoscalers.ts'
import { Dependents } from './gates/dependents.ts'
import { carryOutOrder, type EdgeAnswer, type EdgeOrder } from './gates/edge-orders.ts'
import { Holds } from './gates/hold.ts'
import { revisionGate } from './gates/revision-gate.ts'
import { type ServiceWindows, TimeGates, type WindowSource } from './gates/time-gates.ts'
import { farewellRounds, phaseRounds } from './order/phase-rounds.ts'
import { pruneRounds } from './prune/prune-rounds.ts'
import { recallInventory } from './prune/recall.ts'
import { readRevision, retryWhatIsDue, wasRemoved, widenInventory } from './revision.ts'
import type { ServiceModel } from './service-model.ts'
import { Explainer } from './tell/explainer.ts'
import { HealthChoices } from './tell/health-choices.ts'
import type { KubeEvents } from './tell/kube-event.ts'
import { KubeEventWriter, tellKubernetes } from './tell/kube-events.ts'
import { publish, touchOverdue } from './tell/publish.ts'
import type { TurnDeps } from './turn-deps.ts'
import { FirstContacts } from './watch/first-contacts.ts'
import { OwnedObjects } from './watch/owned-objects.ts'
import { ServedKinds } from './watch/served-kinds.ts'
import { Watches } from './watch/watches.ts'
import { WorkQueue } from './work-queue.ts'

export interface ReconcilerDeps {
  replica: Replica
  state: AgentState
  cluster: Cluster
  /** Of this agent: whose marks are ours, and what the claim says. */
  identity: { clusterId: string; agentId: string; incarnation: number }
  /** CM5: where this process runs; absent: that cannot be told. */
  place?: string | null
  clock: Clock
  random: Random
  log: Logger
  /** Windows of services; absent: none. */
  windowsOf?: WindowSource
  /** PR7: since this process started the server confirmed the replica, or brought a newer one. Absent: nobody could have set it back. */
  isCurrent?(): boolean
  /** Told of every change of the claim. */
  onClaim(claim: ClaimState): void
  /** Null: discovery answers. Else why nothing can begin. */
  onUnreachable(message: string | null): void
  /** Of each time that the cluster said what it serves. */
  onDiscovery?(discovery: Discovery): void
  /** Absent: no log is read (HE8). */
  podLogs?: PodLogs & { lines: number }
  /** Kubernetes Events on users' objects; absent: none. */
  kubeEvents?: KubeEvents
  /** A turn said something new of this many objects. */
  onLargeTurn?(objects: number): void
}

export interface Reconciler {
  /** The sync loop committed new rows of these services. */
  revisionsChanged(services: readonly ServiceId[]): void
  /** `isCurrent` is true from now on. */
  becameCurrent(): void
  /** What a person at the site asks for. */
  order(order: EdgeOrder): EdgeAnswer
  /** Asks the cluster what it serves; nothing before it was asked for the first time. */
  discover(): Promise<void>
  /** Runs until the signal aborts, and lets begun requests finish. */
  run(signal: AbortSignal): Promise<void>
}

/** Services that have their turn at the same time: as many as there may be requests, since a small service has one at a time. */
const TURNS_MAX = REQUESTS_MAX
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
  let carryOut: (order: EdgeOrder) => EdgeAnswer = () => ({
    kind: 'refused',
    message: 'the agent does not enforce yet; ask again when it does',
  })
  return {
    revisionsChanged: (services) => wakeServices(services),
    becameCurrent: () => wakeAll(),
    discover: () => discover(),
    order: (order) => carryOut(order),
    run: async (signal) => {
      const { owned, turnDeps, queue, holds } = assemble(deps, signal)
      wakeServices = (services) => owned.revisionsChanged(services)
      wakeAll = () => {
        for (const id of deps.replica.services()) queue.wake(serviceKey(id))
      }
      await discoverFirst(deps, turnDeps.kinds, signal)
      if (signal.aborted) return
      discover = () => turnDeps.kinds.refresh()
      await turnDeps.healthChoices.load(deps.state)
      owned.load()
      const services = () => [...new Map([...deps.state.services(), ...deps.replica.services()].map((id) => [serviceKey(id), id])).values()]
      carryOut = (order) => carryOutOrder(order, { holds, turn: turnDeps, modelOf: (key) => owned.known(key), services })
      const { agentId: agent, incarnation } = deps.identity
      const onChange = (claim: ClaimState) => {
        // CM4: once held, only another agent's claim takes it away.
        if (claim.kind !== 'asking') queue.setOpen(claim.kind === 'held')
        deps.onClaim(claim)
      }
      await keepClaim({ ...deps, own: { agent, incarnation }, place: deps.place ?? null, signal, onChange })
      await queue.idle()
    },
  }
}

/** One turn; how many objects it had something to say of. */
async function reconcileService(model: ServiceModel, deps: TurnDeps): Promise<number> {
  const beganMs = deps.clock.nowMs()
  model.hold = deps.times.hold(model.id, beganMs)
  model.forgetContacts()
  touchOverdue(model, beganMs)
  do {
    if (model.revisionPending) await readRevision(model, deps) // RV1: a complete revision, or what was applied stays in force
    const shut = deps.times.shut(model.id, deps.clock.nowMs())
    model.noteShut(shut !== null)
    model.markGated(shut ?? revisionGate(model, deps, false))
    await retryWhatIsDue(model, deps)
    if (!(await recallInventory(model, deps))) break // IV6
    widenInventory(model, deps) // IV1: owned on paper before it exists
    if (model.reading.kind === 'absent') break // only a removal order removes anything
    await phaseRounds(model, deps) // OR3: phases, waves, stages
    await farewellRounds(model, deps, 'pre-delete')
    await pruneRounds(model, deps) // PR1: past the guard, after health
    if (model.row?.removal !== undefined && (await farewellRounds(model, deps, 'post-delete'))) await pruneRounds(model, deps)
  } while (model.revisionPending && !deps.isHalted()) // RC14
  finishRemoval(model, deps)
  deps.explainer.look(model, deps) // HE8
  const objects = model.touched.size
  publish(model, deps)
  // CM2: what was not begun is begun when the claim comes back.
  if (deps.isHalted()) deps.wake(model.key)
  return objects
}

/** A removal order is carried out when the inventory is empty; the service is forgotten when that is in the outbox. */
function finishRemoval(model: ServiceModel, deps: TurnDeps): void {
  if (model.inventory.size > 0) return
  const order = model.reading.kind === 'complete' ? model.row?.removal : undefined
  if (order !== undefined && model.recalledOrderMs !== order.atMs) return
  if (order !== undefined && model.row?.restored !== true && model.hooks.awaitsFarewell(order)) return // HK10
  if (order !== undefined && model.removedOrderMs !== order.atMs) {
    model.removedOrderMs = order.atMs
    const message = `${model.key} was removed (${order.policy})`
    // After a restart the order may still stand: the server has not read yet that it was carried out.
    if (!wasRemoved(model, deps)) deps.emit({ type: 'Normal', reason: 'Removed', message, service: model.key })
  }
  if (order === undefined && model.reading.kind !== 'absent') return
  deps.state.forgetService(model.id)
  deps.times.forget(model.id)
  model.progress = { applied: null, healthy: null }
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
  const { replica, state, cluster, clock, random, log } = deps
  const kinds = new ServedKinds(cluster, deps.onDiscovery?.bind(deps))
  const reports: Parameters<AgentState['report']>[0][number][] = []
  let eventCount = 0
  const owned: OwnedObjects = new OwnedObjects({
    state,
    replica,
    kinds,
    clusterId: deps.identity.clusterId,
    clock,
    random,
    log,
    signal,
    wake: (key) => queue.wake(key),
    follow: (resources) => watches.follow(resources),
    live: () => watches.all(),
    autoscalers: () => autoscalers,
  })
  const autoscalers = new Autoscalers({
    cluster,
    find: kinds.find.bind(kinds),
    log,
    signal,
    changed: (targets) => owned.rescaled(targets),
  })
  const healthChoices = new HealthChoices()
  const healthOptions = healthChoices.of.bind(healthChoices)
  const watches = new Watches({ cluster, clock, random, log, signal, sink: owned, healthOptions })
  const holds = new Holds(state)
  const gate = new RequestGate({ clock, signal })
  const kubeEvents = new KubeEventWriter({
    mode: deps.kubeEvents ?? 'none',
    cluster,
    clock,
    log,
    signal,
    agent: deps.identity.agentId,
    isStrained: () => gate.limit() < REQUESTS_MAX / 2,
  })
  const turnDeps: TurnDeps = {
    times: new TimeGates(holds, deps.windowsOf ?? (() => NO_WINDOWS)),
    replica,
    state,
    cluster,
    clusterId: deps.identity.clusterId,
    kinds,
    watches,
    gate,
    firstContacts: new FirstContacts({ cluster, clock, signal }),
    lacking: owned.lacking,
    causeChanged: (key, isHealthy) => owned.causeChanged(key, isHealthy),
    clock,
    random,
    log,
    signal,
    owners: owned.owners,
    othersWanting: (model, key) => owned.othersWanting(model, key),
    othersNeeding: (model, key) => owned.othersNeeding(model, key),
    dependents: new Dependents(),
    modelOf: (key) => owned.known(key),
    autoscalers,
    healthChoices,
    explainer: new Explainer({ logs: deps.podLogs ?? null }),
    revisionsSeen: () => owned.revisionsSeen(),
    waitsForOthers: (model) => owned.waitsForOthers(model),
    wakeWhenRead: (model) => owned.wakeWhenRead(model),
    taker: (id) => owned.taker(id),
    uidsInForce: () => owned.uidsInForce(),
    revisionRead: () => owned.revisionRead(),
    isCurrent: () => deps.isCurrent?.() ?? true,
    followKinds: (model) => owned.followKinds(model),
    strays: (model) => owned.strays.of(model.key),
    isHalted: () => signal.aborted || !queue.isOpen(),
    wake: (key) => queue.wake(key),
    wakeAt: (key, atMs) => queue.wakeAt(key, atMs),
    emitOnObject: (event) => tellKubernetes(event, owned, kubeEvents),
    emit: (event) => {
      tellKubernetes(event, owned, kubeEvents)
      const atMs = clock.nowMs()
      eventCount += 1
      reports.push({ kind: 'event', key: `${String(atMs).padStart(13, '0')}-${eventCount}`, doc: { atMs, ...event } })
      log.info('event', { ...event })
    },
    report: (rows) => void reports.push(...rows),
    flushReports: (turn) => state.report(reports.splice(0), turn),
  }
  const queue: WorkQueue = new WorkQueue({
    clock,
    concurrency: TURNS_MAX,
    signal,
    turn: async (key) => {
      const model = owned.model(parseServiceKey(key))
      try {
        const objects = await reconcileService(model, turnDeps)
        if (objects >= LARGE_TURN_OBJECTS) deps.onLargeTurn?.(objects)
        if (!isForgotten(model)) return
        owned.drop(model)
        healthChoices.forget(model.id)
        turnDeps.times.forget(model.id)
      } catch (error) {
        log.error('turn failed', { service: key, error: describeError(error), retryInMs: BROKEN_TURN_WAIT_MS })
        queue.wakeAt(key, clock.nowMs() + BROKEN_TURN_WAIT_MS)
        try {
          owned.recover(model)
        } catch (unreadable) {
          log.error('inventory cannot be read', { service: key, error: describeError(unreadable) })
          model.markAll()
        }
      }
    },
  })
  return { owned, turnDeps, queue, holds }
}
