// The view of a fleet for people: resource, render, desired rows, agents' reports and liveness become words. Pure.
// Every state that is not Synced and Healthy has a reason, a message and a next step. A cluster that is offline shows
// its last report, and its absence never makes it green or red.
import { confirmationToken } from '../../shared/model/desired.ts'
import { placementWords } from '../../shared/model/placement-words.ts'
import { revisionWords } from '../../shared/model/revision-text.ts'
import type { ClusterStatus, DriftStatus, FactsStatus, ObjectStatus, ServiceStatus } from '../../shared/model/status.ts'
import { resumeFlags, suspendedText } from '../../shared/model/suspension.ts'
import type { ClusterView, Liveness, ObjectView, PlacementView, RepositoryView, ServiceView, State } from '../../shared/model/views.ts'
import { isErrorCode, type Problem } from '../../shared/runtime/error.ts'
import { ERRORS } from '../../shared/runtime/error-table.ts'
import { withTrace } from '../../shared/runtime/trace-id.ts'
import { clusterSays, placementSays, repositorySays, serviceSays, statusPart, stepText } from '../messages/status-messages.ts'
import { mayNeedCluster } from '../render/for-nobody.ts'
import { absence } from './liveness.ts'
import { nextStep } from './next-steps.ts'
import { foldSummary, isFine, nameList, type PlacementsSummary, summaryCounts } from './placements-summary.ts'
import type { ClusterRecord, Confirmation, DesiredService, RenderState, RepositoryState, StoredError } from './records.ts'
import { type OrderedSuspension, suspensionView } from './suspensions.ts'
import { failedAtText, keptText, remedyText } from './unrendered.ts'

export interface PlacementInput {
  cluster: Pick<ClusterRecord, 'name'>
  liveness: Liveness
  desired: DesiredService
  status: ServiceStatus | null
  /** Open question about pruning this service in this cluster; null when it was answered, too. */
  confirmation: Confirmation | null
  /** That concern it, the widest first. Absent means none. */
  suspensions?: readonly OrderedSuspension[]
}

export function placementView(input: PlacementInput): PlacementView {
  const { cluster, liveness, desired, status, confirmation, suspensions = [] } = input
  const { project, service, doc } = desired
  const row = doc === null || doc.removal !== undefined ? null : doc
  return {
    project,
    service,
    cluster: cluster.name,
    liveness,
    ...placementState(input),
    desired: row === null ? null : { commit: row.commit, digest: row.digest, count: row.count, ...withTrace(row.trace) },
    received: status?.received ?? null,
    applied: status?.applied ?? null,
    healthy: status?.healthy ?? null,
    objectCount: status?.objectCount ?? row?.count ?? 0,
    healthyCount: status?.healthyCount ?? 0,
    removal: doc?.removal ?? null,
    refusal: status?.refusal ?? null,
    confirmationId: confirmation?.id ?? null,
    suspensions: suspensions.map(suspensionView),
  }
}

function placementState({ cluster, liveness, desired, status, confirmation, suspensions = [] }: PlacementInput): State {
  const { doc } = desired
  const away = absence(cluster.name, liveness)
  const words = placementWords(doc === null ? null : { digest: doc.removal === undefined ? doc.digest : null }, status)
  const last = { sync: words?.sync ?? 'Synced', health: status?.health ?? 'Unknown', sinceMs: status?.sinceMs ?? null } as const
  const place = { project: desired.project, service: desired.service, cluster: cluster.name }
  if (doc === null) return { ...last, ...placementSays('Removed') }
  const [suspension] = suspensions
  if (suspension !== undefined) return { ...last, ...suspendedState(suspension, status, doc.removal !== undefined, away) }
  if (doc.removal !== undefined) {
    const { policy, by, why, atMs } = doc.removal
    const how = statusPart(policy !== 'orphan' ? 'objects_deleted' : 'objects_released')
    const removal = { by, why, how, report: status?.message ?? '' }
    const since = { ...last, sinceMs: atMs }
    if (status?.refusal === undefined || status.refusal.digest !== confirmationToken(doc))
      return { ...since, ...unless(away, placementSays('Removing', { ...removal, ...place })) }
    return confirmation === null
      ? { ...since, ...placementSays('ConfirmationPending.removing_sent', { ...removal, away: away?.message ?? '' }) }
      : { ...since, ...placementSays('ConfirmationPending.removing', { ...removal, confirmation: confirmation.id }) }
  }
  if (status === null) return { ...last, ...(away ?? placementSays('NotReported')) }
  if (status.reason === 'Suspended') return { ...last, ...unless(away, placementSays('Resuming')) }
  if (status.refusal !== undefined) {
    const { names, count: total, why, only = false } = status.refusal
    const shown = { why, names: nameList(names) }
    const named = total > names.length ? statusPart('named_some', { ...shown, total }) : statusPart('named', shown)
    if (confirmation?.refused !== undefined) return { ...last, ...keptState(confirmation, confirmation.refused, named) }
    if (confirmation === null) return { ...last, ...placementSays(only ? 'ConfirmationPending.sent' : 'PruneBlocked.sent', { why, named }) }
    return { ...last, ...placementSays(only ? 'ConfirmationPending' : 'PruneBlocked', { why, named, confirmation: confirmation.id }) }
  }
  const revision = { revision: revisionWords(doc.commit), away: away?.message ?? '' }
  if (status.received?.digest !== doc.digest) {
    const said =
      status.received === undefined
        ? placementSays('NotReceived.first', revision)
        : placementSays('NotReceived', { ...revision, held: revisionWords(status.received.commit) })
    return { ...last, ...unless(away, said), reason: away?.reason ?? said.reason }
  }
  if (status.applied?.digest !== doc.digest && status.sync === 'Synced')
    return { ...last, ...unless(away, placementSays('NotApplied', { ...revision, ...place })) }
  if (isFine(status))
    return { ...last, reason: away?.reason ?? status.reason, message: away?.message ?? status.message, next: away?.next ?? '' }
  const step = away?.next ?? nextStep(status.reason, place) ?? stepText('objects', place)
  const counts = { healthy: status.healthyCount, total: status.objectCount }
  const told = status.message === '' ? statusPart('healthy_objects', counts) : status.message
  return { ...last, reason: status.reason, message: `${told}${sentence(away?.message ?? '')}`, next: step }
}

/** The step of a cluster that is away comes before any other. */
const unless = <S extends Said>(away: Said | null, said: S): S => (away === null ? said : { ...said, next: away.next })
type Said = Pick<State, 'reason' | 'message' | 'next'>

/** ST24: a person has decided, and the cluster differs from Git because of it. */
const keptState = ({ id }: Pick<Confirmation, 'id'>, { by, why }: NonNullable<Confirmation['refused']>, what: string): Said =>
  placementSays('Kept', { by, why, what, confirmation: id })

/** SU8. The agent's own word says whether it has taken the suspension. */
function suspendedState(
  suspension: OrderedSuspension,
  status: ServiceStatus | null,
  leaves: boolean,
  away: Pick<State, 'message'> | null,
): Said {
  const ordered = orderedText(suspension)
  if (status?.reason === 'Suspended') return placementSays(leaves ? 'Suspended.leaving' : 'Suspended', ordered)
  const code = leaves ? 'Suspended.leaving_unconfirmed' : 'Suspended.unconfirmed'
  return placementSays(code, { ...ordered, away: away?.message ?? '' })
}

const orderedText = (suspension: OrderedSuspension) => ({
  suspension: suspendedText(suspension, suspension),
  scope: resumeFlags(suspension),
})

const sentence = (text: string): string => (text === '' ? '' : `; ${text}`)

export interface ServiceInput {
  id: { project: string; service: string }
  generation: number
  deletingMs: number | null
  /** The one that hinders it most. */
  repository: { name: string; state: RepositoryState | null; isOneOfMany?: boolean }
  render: RenderState
  placements: PlacementsSummary
  /** Clusters that still have a service which is being deleted. */
  remaining: readonly string[]
  /** Targets of a service that is placed nowhere; `young`: those of them that joined just now and have not said what
   *  they serve (FA6). Absent means that there are none. */
  waiting?: { young: readonly string[]; others: readonly string[] }
  /** PJ11: how many targets its project leaves out. Absent means none, or not looked for. */
  leftOut?: number
  /** Open questions of this service. */
  confirmations: readonly Confirmation[]
  /** That concern it somewhere, the widest first. Absent means none. */
  suspensions?: readonly OrderedSuspension[]
}

export function serviceStatusView(input: ServiceInput): ServiceView['status'] {
  const { render, placements } = input
  const question = input.confirmations.find((confirmation) => confirmation.cluster === null) ?? input.confirmations[0]
  const { suspensions = [] } = input
  return {
    ...withSuspensions(serviceState(input, question), suspensions),
    suspensions: suspensions.map(suspensionView),
    commit: render.commit,
    objectCount: render.objectCount,
    renderedMs: render.renderedMs,
    clusters: summaryCounts(placements),
    variants: render.release?.variants ?? 1,
    revisions: { ...render.release?.revisions },
    tools: { ...render.release?.tools },
    warnings: render.release?.warnings ?? [],
    problems: render.error?.problems ?? [],
    failedAt: render.error?.at ?? null,
    confirmationId: question?.id ?? null,
  }
}

function withSuspensions(state: State, suspensions: readonly OrderedSuspension[]): State {
  const everywhere = suspensions.find(({ cluster }) => cluster === null)
  if (everywhere !== undefined || suspensions.length === 0) return withSuspension(state, everywhere)
  const said = serviceSays('PartlySuspended', { clusters: nameList(suspensions.flatMap(({ cluster }) => cluster ?? [])) })
  return state.reason === '' ? { ...state, ...said } : { ...state, message: suspendedAnd(said.message, state) }
}

const suspendedAnd = (suspension: string, { message }: State): string => statusPart('suspended_and', { suspension, message })

/** SU8: what a person has to do besides keeps its reason; the suspension begins the message, which a narrow table cuts
 *  at its end. */
function withSuspension(state: State, suspension: OrderedSuspension | undefined): State {
  if (suspension === undefined) return state
  const ordered = orderedText(suspension)
  if (SAID_FIRST.has(state.reason)) return { ...state, message: suspendedAnd(ordered.suspension, state) }
  return { ...state, ...serviceSays('Suspended', ordered) }
}
const SAID_FIRST: ReadonlySet<string> = new Set([
  ...['WaitingForConfirmation', 'Deleting', 'RepositoryNotFound', 'RepositoryUnreadable', 'RepositoryNotRead', 'RenderFailed'],
])

function serviceState(input: ServiceInput, question: Confirmation | undefined): State {
  const { id, render, repository, placements, remaining, deletingMs } = input
  const folded = foldSummary(placements)
  if (question?.refused !== undefined && question.kind !== 'prune')
    return {
      ...folded,
      ...{ sync: 'OutOfSync', sinceMs: question.refused.atMs },
      ...keptState(question, question.refused, statusPart('named', { why: question.why, names: nameList(question.names) })),
    }
  if (question !== undefined && question.kind !== 'prune') {
    const kind = question.kind === 'remove_service' || question.kind === 'release' ? question.kind : 'leaving'
    const asked = { why: question.why, names: nameList(question.names), confirmation: question.id }
    return {
      ...folded,
      sync: 'OutOfSync',
      sinceMs: question.createdMs,
      ...serviceSays(`WaitingForConfirmation.${kind}`, asked),
    }
  }
  if (deletingMs !== null) {
    const left = { ...id, count: remaining.length, clusters: nameList(remaining) }
    const said =
      question === undefined ? serviceSays('Deleting', left) : serviceSays('Deleting.question', { ...left, confirmation: question.id })
    return { ...folded, sync: 'OutOfSync', sinceMs: deletingMs, ...said }
  }
  if (repository.state === null) {
    const kept = keptText(render.digest, render.error)
    return { ...folded, sync: 'OutOfSync', ...serviceSays('RepositoryNotFound', { missing: missingRepository(input), kept }) }
  }
  if (render.error !== null) {
    const failed = { ...errorWords(render.error), kept: keptText(render.digest, render.error) }
    return { ...folded, sync: 'OutOfSync', sinceMs: render.error.sinceMs, ...serviceSays('RenderFailed', failed) }
  }
  if (repository.state.error !== null && render.commit === null)
    return { ...folded, ...unreadable(repository.name, repository.state.error, repository.isOneOfMany) }
  const isPlaced = placements.counts.length > 0
  if (repository.state.commit === null && repository.state.error === null && render.commit === null)
    return { ...folded, sync: 'OutOfSync', ...serviceSays('RepositoryNotRead', { repository: repository.name, project: id.project }) }
  if (render.generation < input.generation || (render.commit === null && isPlaced)) {
    return { ...folded, sync: 'OutOfSync', ...serviceSays('Rendering') }
  }
  if (!isPlaced) return { ...folded, ...placedNowhere(input) }
  if (repository.state.error !== null && isFine(folded))
    return { ...folded, ...unreadable(repository.name, repository.state.error, repository.isOneOfMany) }
  if (isFine(folded)) return folded
  const describe = stepText('service', id)
  return { ...folded, next: folded.next === '' ? describe : `${folded.next} ${describe}` }
}

/** As the render found it, with the name that was probably meant. */
function missingRepository({ id, repository, render }: ServiceInput): string {
  const { code, message = '' } = render.error ?? {}
  return code === 'repository_missing' ? message : statusPart('repository_missing', { repository: repository.name, project: id.project })
}

function placedNowhere({ id, render, waiting, leftOut = 0 }: ServiceInput): Omit<State, 'sinceMs'> {
  const { young = [], others = [] } = waiting ?? {}
  if (young.length > 0) {
    const said = serviceSays('WaitingForFacts', { count: young.length, clusters: nameList(young) })
    return { sync: 'OutOfSync', health: 'Unknown', ...said }
  }
  if (others.length > 0)
    return { sync: 'OutOfSync', health: 'Unknown', ...serviceSays('Rendering.clusters', { clusters: nameList(others) }) }
  const nothing = { sync: 'Synced', health: 'Healthy' } as const
  if (leftOut > 0) return { ...nothing, ...serviceSays('NoDestination', { project: id.project, count: leftOut }) }
  const doubts = (render.release?.warnings ?? []).filter(mayNeedCluster)
  if (doubts.length > 0) return { ...nothing, ...serviceSays('NoTargets.doubts', { ...id, problems: problemsText(doubts) }) }
  return { ...nothing, ...(render.commit === null ? serviceSays('NoTargets.unrendered', id) : serviceSays('NoTargets')) }
}

/** With several repositories, the message names the one. */
function unreadable(repository: string, error: StoredError, isOneOfMany = false): Said & Pick<State, 'sinceMs'> {
  const code = isOneOfMany ? 'RepositoryUnreadable.one_of_many' : 'RepositoryUnreadable'
  return { ...serviceSays(code, { repository, ...errorWords(error) }), sinceMs: error.sinceMs }
}

function problemsText([first, ...more]: readonly Problem[]): string {
  if (first === undefined) return ''
  const place = first.path === '' ? '' : `${first.path}: `
  return `: ${place}${first.message}${more.length === 0 ? '' : ` ${statusPart('more_problems', { count: more.length })}`}`
}

/** A stored error in a person's words: the first problems with file and line, and the remedy of its code. */
const errorWords = (error: StoredError): { failure: string; remedy: string } => ({
  failure: `${error.message}${problemsText(error.problems)}${failedAtText(error)}`,
  remedy: remedyText(error),
})

/** But for the looks at it, which the store does not hold. */
type RepositoryStatus = Omit<RepositoryView['status'], 'lastReadMs' | 'nextReadMs'>

export function repositoryStatusView({ commit, tag, fetchedMs, error }: RepositoryState): RepositoryStatus {
  const base = { commit, tag, fetchedMs, problems: error?.problems ?? [] }
  if (error !== null) {
    const { failure, remedy } = errorWords(error)
    return { ...base, ready: false, reason: codeReason(error.code), message: failure, next: remedy, sinceMs: error.sinceMs }
  }
  if (commit === null) return { ...base, ready: false, ...repositorySays('NotFetched'), sinceMs: null }
  return { ...base, ready: true, ...repositorySays('Fetched'), sinceMs: fetchedMs }
}

/** `git_unreachable` → `GitUnreachable`. */
const codeReason = (code: string): string => code.replace(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase())

export interface ClusterInput {
  cluster: ClusterRecord
  liveness: Liveness
  report: ClusterStatus | null
  /** Absent in lists: those of a fleet would be many megabytes. */
  facts?: FactsStatus | null
  /** The ConfigMaps that it reports; null means none. */
  site?: ClusterView['status']['site']
  placements: PlacementsSummary
  /** Since when the server, restored from a backup, waits for a person (RP2). Null means that it does not. */
  restoreSinceMs: number | null
  /** Why revisions cannot be written to its shard file. Absent or null means that they can. */
  behind?: { sinceMs: number; error: string } | null
  /** That concern something in it, the widest first. Absent means none. */
  suspensions?: readonly OrderedSuspension[]
}

export function clusterStatusView({
  cluster,
  liveness,
  report,
  facts = null,
  site = null,
  placements,
  restoreSinceMs,
  behind = null,
  suspensions = [],
}: ClusterInput): ClusterView['status'] {
  const services = summaryCounts(placements)
  const base = {
    liveness,
    joinedMs: cluster.joinedMs,
    agentVersion: report?.agentVersion ?? null,
    facts,
    site,
    kubernetesVersion: report?.kubernetesVersion ?? null,
    nodeCount: report?.nodeCount ?? null,
    services,
    suspensions: suspensions.map(suspensionView),
    problems: [...(behind === null ? [] : [behindProblem(behind)]), ...(report?.problems ?? [])],
  }
  const folded = { ...foldSummary(placements), ...(services.total === 0 ? NOTHING_PLACED : {}) }
  const away = absence(cluster.name, liveness)
  // The server knows its own orders better than an older report.
  const problem = base.problems.find(({ code }) => code !== 'suspended')
  if (restoreSinceMs !== null) {
    return { ...base, ...folded, sync: 'Unknown', ...clusterSays('RestorePending', ERRORS.restore_pending), sinceMs: restoreSinceMs }
  }
  if (away !== null && liveness.word !== 'Offline') return { ...base, ...folded, ...away, sinceMs: liveness.lastSeenMs ?? cluster.joinedMs }
  // A hold may have ended since without a report.
  if (problem !== undefined && (away === null || problem.code !== 'held')) {
    const reason = codeReason(problem.code)
    const step = nextStep(reason, { project: '', service: '', cluster: cluster.name })
    const remedy = isErrorCode(problem.code) ? ERRORS[problem.code].remedy : (step ?? stepText('agent'))
    return { ...base, ...folded, reason, message: problem.message, next: remedy, sinceMs: problem.sinceMs }
  }
  if (away !== null) return { ...base, ...folded, ...away, sinceMs: liveness.lastSeenMs }
  const suspension = suspensions.find(({ service }) => service === null)
  return { ...base, ...withSuspension(folded, suspension) }
}

const behindProblem = ({ sinceMs, error }: { sinceMs: number; error: string }): ClusterView['status']['problems'][number] => ({
  code: 'shard_behind',
  message: statusPart('shard_behind', { failure: error }),
  sinceMs,
})

const NOTHING_PLACED = { sync: 'Synced', health: 'Healthy', ...clusterSays('NoServices') } as const

export interface ObjectInput {
  cluster: Pick<ClusterRecord, 'name'>
  liveness: Liveness
  id: { project: string; service: string }
  ref: { group: string; kind: string; namespace: string; name: string }
  status: ObjectStatus
  drift: DriftStatus | null
}

export function objectView({ cluster, liveness, id, ref, status, drift }: ObjectInput): ObjectView {
  const place = ref.namespace === '' ? '' : ` -n ${ref.namespace}`
  const kind = ref.group === '' ? ref.kind : `${ref.kind}.${ref.group}`
  const away = absence(cluster.name, liveness)
  const step = nextStep(status.reason, { ...id, cluster: cluster.name })
  const next = isFine(status) ? '' : (away?.next ?? step ?? stepText('object', { object: `${kind.toLowerCase()} ${ref.name}${place}` }))
  return { ...id, cluster: cluster.name, liveness, ...ref, ...status, next, drift }
}
