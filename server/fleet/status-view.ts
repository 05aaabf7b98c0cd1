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
import { mayNeedCluster } from '../render/for-nobody.ts'
import { absence } from './liveness.ts'
import { nextStep } from './next-steps.ts'
import { foldSummary, isFine, nameList, type PlacementsSummary, summaryCounts } from './placements-summary.ts'
import type { ClusterRecord, Confirmation, DesiredService, RenderState, RepositoryState, StoredError } from './records.ts'
import { type OrderedSuspension, suspensionView } from './suspensions.ts'
import { failedAtText, keptText } from './unrendered.ts'

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`

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
  const details = `\`skerry get objects -p ${desired.project} --service ${desired.service} --cluster ${cluster.name}\` shows each object.`
  if (doc === null) return { ...last, reason: 'Removed', message: 'no objects are left in this cluster', next: '' }
  const [suspension] = suspensions
  if (suspension !== undefined) return { ...last, ...suspendedState(suspension, status, doc.removal !== undefined, away) }
  if (doc.removal !== undefined) {
    const { policy, by, why, atMs } = doc.removal
    const how = policy !== 'orphan' ? 'its objects are being deleted' : 'its objects are being released and stay in the cluster'
    const removing = {
      ...last,
      sinceMs: atMs,
      message: `removed by ${by} (${why}): ${how}${status === null ? '' : sentence(status.message)}`,
    }
    if (status?.refusal !== undefined && status.refusal.digest === confirmationToken(doc))
      return { ...removing, reason: 'ConfirmationPending', next: confirmationStep(confirmation, away) }
    return {
      ...removing,
      reason: 'Removing',
      next: away?.next ?? `No action needed: it is removed when the agent has reported the removal. ${details}`,
    }
  }
  if (status === null) {
    const waiting = {
      reason: 'NotReported',
      message: 'the agent has not reported this service yet',
      next: 'No action needed: wait for the agent.',
    }
    return { ...last, ...(away ?? waiting) }
  }
  if (status.reason === 'Suspended')
    return {
      ...last,
      reason: 'Resuming',
      message: 'the agent has not received the resume yet',
      next: away?.next ?? 'No action needed: it is being sent.',
    }
  if (status.refusal !== undefined) {
    const { names, count: total, why, only = false } = status.refusal
    const named = `${why}: ${nameList(names)}${total > names.length ? ` (${total} in total)` : ''}`
    if (confirmation?.refused !== undefined) return { ...last, ...keptState(confirmation, confirmation.refused, named) }
    return {
      ...last,
      reason: only ? 'ConfirmationPending' : 'PruneBlocked',
      message: only ? why : named,
      next:
        confirmation !== null
          ? `\`skerry confirm ${confirmation.id}\` shows the names and asks for confirmation; to keep the objects, restore the manifests.`
          : 'The confirmation is being sent to the cluster.',
    }
  }
  if (status.received?.digest !== doc.digest) {
    const held = status.received === undefined ? 'it has no revision yet' : `it holds ${revisionWords(status.received.commit)}`
    return {
      ...last,
      reason: away?.reason ?? 'NotReceived',
      message: `${revisionWords(doc.commit)} has not arrived there, ${held}${away === null ? '' : `; ${away.message}`}`,
      next: away?.next ?? 'No action needed: it is being sent.',
    }
  }
  if (status.applied?.digest !== doc.digest && status.sync === 'Synced') {
    const message = `${revisionWords(doc.commit)} arrived and is not applied yet${away === null ? '' : `; ${away.message}`}`
    return { ...last, reason: 'NotApplied', message, next: away?.next ?? `No action needed: it is being applied. ${details}` }
  }
  if (isFine(status))
    return { ...last, reason: away?.reason ?? status.reason, message: away?.message ?? status.message, next: away?.next ?? '' }
  const step = nextStep(status.reason, { project: desired.project, service: desired.service, cluster: cluster.name })
  const told = status.message === '' ? `${status.healthyCount} of ${status.objectCount} objects are healthy` : status.message
  return { ...last, reason: status.reason, message: `${told}${sentence(away?.message ?? '')}`, next: away?.next ?? step ?? details }
}

/** ST24: a person has decided, and the cluster differs from Git because of it. */
const keptState = (
  { id }: Pick<Confirmation, 'id'>,
  { by, why }: NonNullable<Confirmation['refused']>,
  what: string,
): Pick<State, 'reason' | 'message' | 'next'> => ({
  reason: 'Kept',
  message: `kept by ${by} (${why}): ${what}`,
  next: `No action needed if it is intended; to keep the objects for good, restore the manifests or the targets. \`skerry confirm ${id}\` deletes them after all.`,
})

/** SU8. The agent's own word says whether it has taken the suspension. */
function suspendedState(
  suspension: OrderedSuspension,
  status: ServiceStatus | null,
  leaves: boolean,
  away: Pick<State, 'message'> | null,
): Pick<State, 'reason' | 'message' | 'next'> {
  const untold = status?.reason === 'Suspended' ? '' : '; the agent has not confirmed it yet'
  const waits = leaves ? '; its removal waits' : ''
  return {
    reason: 'Suspended',
    message: `${suspendedText(suspension, suspension)}${waits}${untold}${untold === '' ? '' : sentence(away?.message ?? '')}`,
    next: `No action needed if the suspension is intended. Otherwise run \`skerry resume ${resumeFlags(suspension)}\`.`,
  }
}

/** RM1: the next step while a deletion of data waits for a person. */
const confirmationStep = (confirmation: Confirmation | null, away: Pick<State, 'message'> | null): string =>
  confirmation === null
    ? `The confirmation is being sent to the cluster${sentence(away?.message ?? '')}.`
    : `\`skerry confirm ${confirmation.id}\` shows the names and asks for confirmation; all other objects are deleted meanwhile.`

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
  const clusters = suspensions.flatMap(({ cluster }) => cluster ?? [])
  if (state.reason !== '') return { ...state, message: `suspended in ${nameList(clusters)}; ${state.message}` }
  return {
    ...state,
    reason: 'PartlySuspended',
    message: `suspended in ${nameList(clusters)}`,
    next: 'No action needed if it is intended; see `skerry get suspensions`.',
  }
}

/** SU8: what a person has to do besides keeps its reason; the suspension begins the message, which a narrow table cuts
 *  at its end. */
function withSuspension(state: State, suspension: OrderedSuspension | undefined): State {
  if (suspension === undefined) return state
  const message = suspendedText(suspension, suspension)
  if (SAID_FIRST.has(state.reason)) return { ...state, message: `${message}; ${state.message}` }
  return {
    ...state,
    reason: 'Suspended',
    message,
    next: `No action needed if the suspension is intended. Otherwise run \`skerry resume ${resumeFlags(suspension)}\`.`,
  }
}
const SAID_FIRST: ReadonlySet<string> = new Set([
  ...['WaitingForConfirmation', 'Deleting', 'RepositoryNotFound', 'RepositoryUnreadable', 'RepositoryNotRead', 'RenderFailed'],
])

function serviceState(input: ServiceInput, question: Confirmation | undefined): State {
  const { id, render, repository, placements, remaining, deletingMs } = input
  const folded = foldSummary(placements)
  const { project, service } = id
  const describe = `\`skerry describe service ${service} -p ${project}\` shows each cluster.`
  if (question?.refused !== undefined && question.kind !== 'prune')
    return {
      ...folded,
      ...{ sync: 'OutOfSync', sinceMs: question.refused.atMs },
      ...keptState(question, question.refused, `${question.why}: ${nameList(question.names)}`),
    }
  if (question !== undefined && question.kind !== 'prune') {
    const what =
      question.kind === 'remove_service'
        ? 'its deletion'
        : question.kind === 'release'
          ? 'a new version of a render tool'
          : 'leaving clusters'
    return {
      ...folded,
      sync: 'OutOfSync',
      sinceMs: question.createdMs,
      reason: 'WaitingForConfirmation',
      message: `${what} waits for confirmation: ${question.why}: ${nameList(question.names)}`,
      next: `\`skerry confirm ${question.id}\` shows the names and asks for confirmation. ${
        question.kind === 'release'
          ? 'Clusters keep their state until then.'
          : question.kind === 'remove_service'
            ? 'To undo the deletion, apply the service again.'
            : 'To undo it, restore its targets or the labels of the clusters.'
      }`,
    }
  }
  if (deletingMs !== null) {
    const waits =
      question === undefined
        ? 'No action needed: it is removed when each cluster has reported the removal.'
        : `\`skerry confirm ${question.id}\` shows the pending confirmation.`
    return {
      ...folded,
      sync: 'OutOfSync',
      sinceMs: deletingMs,
      reason: 'Deleting',
      message:
        remaining.length === 0
          ? 'the removal is almost complete'
          : `${count(remaining.length, 'cluster')} still ${remaining.length === 1 ? 'has' : 'have'} it: ${nameList(remaining)}`,
      next: `${waits} ${describe}`,
    }
  }
  if (repository.state === null) {
    return {
      ...folded,
      sync: 'OutOfSync',
      reason: 'RepositoryNotFound',
      message: `${missingRepository(input)}; ${keptText(render.digest, render.error)}`,
      next: 'Create it with `skerry apply -f`, or correct spec.source.repository.',
    }
  }
  if (render.error !== null) {
    return { ...folded, sync: 'OutOfSync', ...errorState('RenderFailed', render.error, keptText(render.digest, render.error)) }
  }
  if (repository.state.error !== null && render.commit === null)
    return { ...folded, ...unreadable(repository.name, repository.state.error, repository.isOneOfMany) }
  const isPlaced = placements.counts.length > 0
  if (repository.state.commit === null && repository.state.error === null && render.commit === null)
    return { ...folded, sync: 'OutOfSync', ...neverRead(repository.name, project) }
  if (render.generation < input.generation || (render.commit === null && isPlaced)) {
    return { ...folded, sync: 'OutOfSync', reason: 'Rendering', message: 'not rendered yet', next: RENDERING }
  }
  if (!isPlaced) return { ...folded, ...placedNowhere(input) }
  if (repository.state.error !== null && isFine(folded))
    return { ...folded, ...unreadable(repository.name, repository.state.error, repository.isOneOfMany) }
  return isFine(folded) ? folded : { ...folded, next: folded.next === '' ? describe : `${folded.next} ${describe}` }
}

const RENDERING = 'No action needed: it is being rendered.'

const neverRead = (repository: string, project: string) => ({
  reason: 'RepositoryNotRead',
  message: `repository ${repository} has not been read yet`,
  next: `\`skerry describe repository ${repository} -p ${project}\` shows the time of the next read.`,
})

/** As the render found it, with the name that was probably meant. */
function missingRepository({ id, repository, render }: ServiceInput): string {
  const { code, message = '' } = render.error ?? {}
  const plain = `repository ${repository.name} does not exist in project ${id.project}`
  return code === 'repository_missing' ? message : plain
}

function placedNowhere({ id, render, waiting, leftOut = 0 }: ServiceInput): Omit<State, 'sinceMs'> {
  const { young = [], others = [] } = waiting ?? {}
  if (young.length > 0) {
    const many = young.length > 1
    const who = `${many ? 'clusters' : 'cluster'} ${nameList(young)} just joined and ${many ? 'have' : 'has'} not reported the served kinds yet`
    const message = `${who}; the render follows within 60 s`
    return {
      sync: 'OutOfSync',
      health: 'Unknown',
      reason: 'WaitingForFacts',
      message,
      next: 'No action needed: it continues automatically.',
    }
  }
  if (others.length > 0) {
    const message = `not rendered for ${nameList(others)} yet`
    return { sync: 'OutOfSync', health: 'Unknown', reason: 'Rendering', message, next: RENDERING }
  }
  if (leftOut > 0) {
    const message = `project ${id.project} has no destination for ${leftOut} ${leftOut === 1 ? 'cluster' : 'clusters'} that spec.targets matches`
    const next = `Give the clusters labels that a destination selects, or add one: \`skerry describe project ${id.project}\` shows them.`
    return { sync: 'Synced', health: 'Healthy', reason: 'NoDestination', message, next }
  }
  const doubts = doubtsText(render)
  return {
    ...{ sync: 'Synced', health: 'Healthy', reason: 'NoTargets' },
    message: `spec.targets matches no cluster${doubts}`,
    next: `Compare spec.targets with \`skerry get clusters -o wide\`, which shows their labels.${doubts === '' ? '' : ` \`skerry render ${id.service} -p ${id.project}\` shows the missing values.`}`,
  }
}

/** RD10: the warnings of a service that was rendered for no cluster. */
function doubtsText({ commit, release }: RenderState): string {
  const doubts = (release?.warnings ?? []).filter(mayNeedCluster)
  if (doubts.length > 0) return `, and without one it does not render${problemsText(doubts)}`
  return commit === null ? ', and without one it cannot be rendered' : ''
}

/** With several repositories, the message names the one. */
function unreadable(name: string, error: StoredError, isOneOfMany = false): ReturnType<typeof errorState> {
  const state = errorState('RepositoryUnreadable', error)
  return isOneOfMany ? { ...state, message: `repository ${name}: ${state.message}` } : state
}

function problemsText([first, ...more]: readonly Problem[]): string {
  if (first === undefined) return ''
  const place = first.path === '' ? '' : `${first.path}: `
  return `: ${place}${first.message}${more.length === 0 ? '' : ` (and ${count(more.length, 'more problem')})`}`
}

/** A stored error in a person's words: the first problems with file and line, and the remedy of its code. */
function errorState(reason: string, error: StoredError, kept?: string): Pick<State, 'reason' | 'message' | 'next' | 'sinceMs'> {
  const where = problemsText(error.problems)
  return {
    reason,
    message: `${error.message}${where}${failedAtText(error)}${kept === undefined ? '' : `; ${kept}`}`,
    next: error.remedy ?? (isErrorCode(error.code) ? ERRORS[error.code].remedy : 'Correct it and push again.'),
    sinceMs: error.sinceMs,
  }
}

/** But for the looks at it, which the store does not hold. */
type RepositoryStatus = Omit<RepositoryView['status'], 'lastReadMs' | 'nextReadMs'>

export function repositoryStatusView({ commit, tag, fetchedMs, error }: RepositoryState): RepositoryStatus {
  const base = { commit, tag, fetchedMs, problems: error?.problems ?? [] }
  if (error !== null) return { ...base, ready: false, ...errorState(codeReason(error.code), error) }
  if (commit === null) {
    return {
      ...base,
      ready: false,
      reason: 'NotFetched',
      message: 'not read yet',
      next: 'No action needed: it is being fetched.',
      sinceMs: null,
    }
  }
  return { ...base, ready: true, reason: 'Fetched', message: '', next: '', sinceMs: fetchedMs }
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
    const { cause, remedy } = ERRORS.restore_pending
    return { ...base, ...folded, sync: 'Unknown', reason: 'RestorePending', message: cause, next: remedy, sinceMs: restoreSinceMs }
  }
  if (away !== null && liveness.word !== 'Offline') return { ...base, ...folded, ...away, sinceMs: liveness.lastSeenMs ?? cluster.joinedMs }
  // A hold may have ended since without a report.
  if (problem !== undefined && (away === null || problem.code !== 'held')) {
    const reason = codeReason(problem.code)
    const step = nextStep(reason, { project: '', service: '', cluster: cluster.name })
    const remedy = isErrorCode(problem.code) ? ERRORS[problem.code].remedy : (step ?? 'Run `skerry-agent status` in the cluster.')
    return { ...base, ...folded, reason, message: problem.message, next: remedy, sinceMs: problem.sinceMs }
  }
  if (away !== null) return { ...base, ...folded, ...away, sinceMs: liveness.lastSeenMs }
  const suspension = suspensions.find(({ service }) => service === null)
  return { ...base, ...withSuspension(folded, suspension) }
}

const behindProblem = ({ sinceMs, error }: { sinceMs: number; error: string }): ClusterView['status']['problems'][number] => ({
  code: 'shard_behind',
  message: `the server cannot write new revisions to the shard file of this cluster: ${error}; retrying`,
  sinceMs,
})

const NOTHING_PLACED = { sync: 'Synced', health: 'Healthy', reason: 'NoServices', message: 'no service is placed here' } as const

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
  const next = isFine(status)
    ? ''
    : (away?.next ?? step ?? `In the cluster: \`kubectl describe ${kind.toLowerCase()} ${ref.name}${place}\`.`)
  return { ...id, cluster: cluster.name, liveness, ...ref, ...status, next, drift }
}
