// The plan for objects that the revision no longer names. Pure; the guard checks all of it before any step is carried
// out.
import { otherOwner } from '../../../../shared/kube/foreign-owners.ts'
import { allowsPrune, isKeptByOthers, keepMark, keepsFrom } from '../../../../shared/kube/keep-marks.ts'
import { groupOf, type K8sObject, type ObjectRef, refKey, versionOf } from '../../../../shared/kube/object.ts'
import { comparePrune, namespaceOfObject, PRUNE_STAGE_WAITED, pruneStage, STAGES } from '../../../../shared/kube/order.ts'
import { waveOfDocument } from '../../../../shared/kube/waves.ts'
import { deletes, type ServiceRow } from '../../../../shared/model/desired.ts'
import type { ServiceId } from '../../../../shared/runtime/ids.ts'
import { objectText } from '../../../messages/object-messages.ts'
import type { InventoryEntry } from '../../../state/agent-state.ts'
import type { Account } from '../../snapshot/account.ts'
import { isRefusedStill, namespaceKey, type Problem } from '../../snapshot/situation.ts'
import { rowContext, type WantedContext, wantedNamespace } from '../../snapshot/wanted.ts'
import type { KindEnd } from '../../snapshot/watch/definitions.ts'
import type { LiveObject } from '../../snapshot/watch/live-object.ts'
import { again, isOurs } from '../plan.ts'
import type { PlanView } from '../plan-view.ts'
import type { Step, StepOf } from '../step.ts'
import type { Decision } from './deletion.ts'

export interface PruneOptions {
  /** Another service has it in its revision, or in force. */
  wantedElsewhere(key: string): boolean
  /** An object of this UID is applied under a name that a revision gives: an API server may serve one object in two
   *  groups. */
  isUidInForce(uid: string): boolean
  /** Why it waits for the service that is to take it over, or null. */
  handover(key: string): string | null
  /** IV9: the fate of a kind that no API serves. */
  endOf(kind: ObjectRef): KindEnd
  /** A person confirmed that the object is dropped from the inventory, although it cannot be read. */
  isGivenUp(ref: ObjectRef): boolean
  /** NS2: the key of the namespace that is deleted with the service, or null. */
  namespaceGoes?: string | null
  /** IM4: the ServiceAccount as which the service is deleted, or null. */
  account?: Account | null
  /** The whole service is removed. */
  removal: boolean
  orphan: boolean
}

type Doomed = Omit<StepOf<'delete'>, 'permit'> & { live: LiveObject; allowed: boolean }

interface Pending {
  ref: ObjectRef
  allowed: boolean
  problem: Problem
}

export interface PrunePlan {
  /** All deletions: the guard counts them. */
  doomed: ObjectRef[]
  /** Those that could be deleted now, each in its read state. */
  candidates: readonly Doomed[]
  /** Steps that delete nothing. */
  quiet: readonly Step[]
  /** Objects that leave and cannot be deleted yet, and why. */
  pending: readonly Pending[]
  /** IV9: those whose kind no API serves, and whose CRD is unknown. */
  unreachable: readonly ObjectRef[]
  handedOver: readonly ObjectRef[]
  /** IM4: RBAC of the impersonated account is deleted last. */
  account: Account | null
  problems: Map<string, Problem | null>
}

/** PR6: the plan for objects that the revision no longer names. deletion.ts decides which of them may be deleted,
 *  and `nextSteps` in which order. */
export function planPrune(view: PlanView, leaving: Iterable<string>, options: PruneOptions): PrunePlan {
  const problems = new Map<string, Problem | null>()
  const quiet: Step[] = []
  const candidates: Doomed[] = []
  const pending: Pending[] = []
  const unreachable: ObjectRef[] = []
  const handedOver: ObjectRef[] = []
  /** A failure whose time has come stays until its next attempt is answered: otherwise no wait would ever grow. */
  const settle = (key: string) => view.problems.get(key)?.kind !== 'failed' && problems.set(key, null)
  for (const key of leaving) {
    const entry = view.inventory.get(key)
    if (entry === undefined) continue
    const waits = options.wantedElsewhere(key) ? null : options.handover(key)
    const verdict = judgeLeaving(view, key, entry, options)
    if (waits !== null && verdict.kind !== 'forget') {
      // Nothing waits for an object that does not exist or is no longer owned, and a removal ends.
      problems.set(key, { kind: 'waiting', on: key, message: waits })
      handedOver.push(entry.ref)
      continue
    }
    switch (verdict.kind) {
      case 'problem':
        problems.set(key, verdict.problem)
        pending.push({ ref: entry.ref, allowed: verdict.allowed === true, problem: verdict.problem })
        if (verdict.unreachable === true) unreachable.push(entry.ref)
        break
      case 'delete':
        settle(key)
        candidates.push(verdict.step)
        break
      default:
        settle(key)
        quiet.push(verdict)
    }
  }
  const doomed = [...candidates, ...pending].map(({ ref }) => ref).sort(comparePrune)
  return { doomed, candidates, quiet, pending, unreachable, handedOver, account: options.account ?? null, problems }
}

/** OR2, OR5: the first permitted deletes, and the searches before the next ones; steps without a delete never wait. */
export function nextSteps(view: PlanView, plan: PrunePlan, { permits, kept, unseen }: Decision): { steps: Step[]; looks: Doomed[] } {
  const keptRefs = plan.candidates.filter(({ key }) => kept.has(key)).map(({ ref }) => ref)
  const isUnseen = new Set(unseen.map(refKey))
  const [open, undecided] = [[] as Doomed[], plan.pending.map(({ ref }) => ref)]
  for (const candidate of plan.candidates) {
    if (permits.has(candidate.key) || isUnseen.has(candidate.key)) open.push(candidate)
    else if (!kept.has(candidate.key)) undecided.push(candidate.ref)
  }
  const stageOf = (ref: ObjectRef) => (goesLast(ref, plan.account) ? PRUNE_STAGE_ACCOUNT : pruneStage(ref))
  const isInWave = lastWave(view, stageOf, [...open.map(({ ref }) => ref), ...undecided])
  const next = nextToGo(
    open.filter(({ ref }) => isInWave(ref)),
    [...undecided.filter(isInWave), ...plan.handedOver],
    stageOf,
  ).filter(({ ref }) => !keptRefs.some((inside) => isInside(inside, ref)))
  const deletes = next.flatMap(({ live: _, allowed: __, ...step }) => {
    const permit = permits.get(step.key)
    return permit === undefined ? [] : [{ ...step, permit }]
  })
  const steps = [...plan.quiet, ...deletes].sort((a, b) => comparePrune(a.ref, b.ref))
  return { steps, looks: next.filter(({ key }) => isUnseen.has(key)) }
}

/** RM2: an object that is kept would go with its namespace. */
const isInside = ({ namespace }: ObjectRef, ref: ObjectRef): boolean => namespace !== '' && namespace === namespaceOfObject(ref)

const PRUNE_STAGE_LAST = STAGES.length - 1 - STAGES.indexOf('tenancy')
/** After Namespaces, which may take some of it along. */
const PRUNE_STAGE_ACCOUNT = STAGES.length

/** IM4: objects that may give the account its rights. All of them at once: the last one cannot be deleted with
 *  rights of the one before. */
const goesLast = ({ group, kind, namespace, name }: ObjectRef, account: Account | null): boolean =>
  account !== null &&
  (group === 'rbac.authorization.k8s.io' ||
    (group === '' && kind === 'ServiceAccount' && namespace === account.namespace && name === account.name))

/** OR5: waves run backwards, each when the one after it is gone. Objects without one are all of one wave; objects
 *  with content (a CRD, a Namespace) come after all of them, whatever their wave (OR2). */
function lastWave(view: PlanView, stageOf: (ref: ObjectRef) => number, open: readonly ObjectRef[]): (ref: ObjectRef) => boolean {
  const waveOf = (ref: ObjectRef) =>
    stageOf(ref) >= PRUNE_STAGE_LAST ? Number.NEGATIVE_INFINITY : waveOfDocument(view.inventory.get(refKey(ref))?.appliedDoc ?? null)
  let last = Number.NEGATIVE_INFINITY
  for (const ref of open) last = Math.max(last, waveOf(ref))
  return (ref) => waveOf(ref) === last
}

/** Deletes go stage by stage; custom resources must be gone before the next stage begins, and CRDs and Namespaces begin
 *  when all else is gone. */
function nextToGo<T extends { ref: ObjectRef }>(
  permitted: readonly T[],
  pending: readonly ObjectRef[],
  stageOf: (ref: ObjectRef) => number,
): T[] {
  const stage = Math.min(...permitted.map(({ ref }) => stageOf(ref)))
  const blocked = pending.some((ref) => stageOf(ref) < stage && (stageOf(ref) === PRUNE_STAGE_WAITED || stage >= PRUNE_STAGE_LAST))
  return blocked ? [] : permitted.filter(({ ref }) => stageOf(ref) === stage)
}

type Leaving =
  | StepOf<'forget' | 'orphan'>
  | { kind: 'delete'; step: Doomed }
  | { kind: 'problem'; problem: Problem; unreachable?: true; allowed?: boolean }

function judgeLeaving(
  view: PlanView,
  key: string,
  entry: InventoryEntry,
  { wantedElsewhere, isUidInForce, orphan, removal, namespaceGoes, endOf, isGivenUp }: PruneOptions,
): Leaving {
  const { ref, apiVersion, uid, appliedDoc } = entry
  const forget: Leaving = { kind: 'forget', key, ref }
  const problem = (value: Problem): Leaving => ({ kind: 'problem', problem: value })
  if (wantedElsewhere(key)) return forget
  const lookup = view.findAny(groupOf(apiVersion), versionOf(apiVersion), ref.kind)
  if (lookup.kind === 'unserved') {
    const end = endOf(ref)
    // A kind that is defined is served again before long: its objects are deleted then, as was confirmed.
    if (end.kind === 'deleted' || (end.kind === 'unknown' && isGivenUp(ref))) return forget
    const unserved = { ...again(view, key, 'unserved'), kind: 'unserved', message: endText(entry, end) } as const
    return end.kind === 'unknown' ? { kind: 'problem', problem: unserved, unreachable: true } : problem(unserved)
  }
  // No event would tell that it answers again: it may not be watched.
  if (lookup.kind === 'stale')
    return problem({ ...again(view, key, 'unserved'), kind: 'unserved', message: objectText('UnknownKind.keptSilent', { apiVersion }) })
  const { resource } = lookup
  const found = view.view(resource, key)
  if (found.kind === 'unknown') return problem(found)
  if (found.kind === 'absent') return forget
  const { live } = found
  // PR10: the very object that a revision names in another group or version of its kind.
  if (live.uid !== '' && isUidInForce(live.uid)) return forget
  const appliedByUs = appliedDoc !== null && uid === live.uid
  if (live.owner.kind === 'service' ? !isOurs(view, live) : !appliedByUs || wasLetGo(live)) return forget
  if (live.deleting !== null) return problem({ kind: 'waiting', on: key, message: live.deleting })
  const applied = appliedByUs ? marksOf(appliedDoc) : null
  const allowed = live.pruneAllowed === true || allowsPrune(applied?.annotations)
  const before = view.problems.get(key)
  if (isRefusedStill(before, view.nowMs)) return { kind: 'problem', problem: before, allowed }
  const kept = key === namespaceGoes ? isKeptByOthers(live.keep) || hasOtherMark(live, applied, ref) : isKept(live, applied, ref, removal)
  if (orphan || kept) return { kind: 'orphan', key, ref, resource }
  const { uid: seen, resourceVersion } = live
  return { kind: 'delete', step: { kind: 'delete', key, ref, resource, uid: seen, resourceVersion, live, allowed } }
}

function endText({ apiVersion, ref: { kind } }: InventoryEntry, end: Exclude<KindEnd, { kind: 'deleted' }>): string {
  if (end.kind === 'unknown') return objectText('UnknownKind.kept', { apiVersion, kind })
  const { crd, why } = end
  return why === null
    ? objectText('UnknownKind.keptDefined', { apiVersion, kind, crd })
    : objectText('UnknownKind.keptUnread', { apiVersion, kind, crd, failure: why })
}

/** RC12: no mark or field of ours is left: the answer to the release was lost with a crash or in transit. The former
 *  keep mark may be gone by now. */
const wasLetGo = ({ ownedHash }: LiveObject): boolean => ownedHash === ''

type Marks = Pick<K8sObject['metadata'], 'labels' | 'annotations'>

const marksOf = (doc: string): Marks => (JSON.parse(doc) as K8sObject).metadata

/** IV4: by its own mark, by the manifest applied last, or because another tool has put its mark on it. */
function isKept(live: LiveObject, applied: Marks | null, ref: ObjectRef, removal: boolean): boolean {
  const deed = removal ? 'removal' : 'prune'
  return keepsFrom(deed, live.keep) || keepsFrom(deed, keepMark(applied?.annotations)) || hasOtherMark(live, applied, ref)
}

const hasOtherMark = ({ otherMark }: LiveObject, applied: Marks | null, ref: ObjectRef): boolean =>
  otherMark !== undefined && (applied === null || otherOwner(applied, ref) !== otherMark)

interface LeavingService {
  id: ServiceId
  row: ServiceRow
  clusterId: string
  inventory: ReadonlyMap<string, InventoryEntry>
  /** Whether another service has an object in the namespace. */
  hasOthersIn(namespace: string): boolean
}

const NAMESPACE_STAYS = 'namespace/stays'

/**
 * NS2: an object in the namespace is released because it must stay (IV4): it would be deleted with the namespace. The
 * fact outlives a restart. Null means that there is no such step.
 */
export function keptFacts(row: ServiceRow, steps: ReadonlyArray<{ kind: string; ref: ObjectRef }>): ReadonlyMap<string, unknown> | null {
  const isInside = ({ kind, ref }: { kind: string; ref: ObjectRef }) => kind === 'orphan' && ref.namespace === row.namespace
  if (row.namespace === undefined || row.removal?.policy === 'orphan' || !steps.some(isInside)) return null
  return new Map([[NAMESPACE_STAYS, { namespace: row.namespace }]])
}

export const recallKept = (facts: ReadonlyMap<string, unknown>): boolean => facts.has(NAMESPACE_STAYS)

/** NS2: the key of the namespace that is deleted with its service, last. Only the very one that Skerry created, by
 *  its document; and not while another service has objects in it, which would be deleted with it. */
export function namespaceThatGoes({ id, row, clusterId, inventory, hasOthersIn }: LeavingService): string | null {
  const { namespace, sync, removal } = row
  if (removal === undefined || !deletes(removal) || sync.deleteNamespace !== true || namespace === undefined) return null
  const key = namespaceKey(namespace)
  const context: WantedContext = { ...rowContext(id, row, null), clusterId, find: () => ({ kind: 'stale' }) }
  if (inventory.get(key)?.appliedDoc !== wantedNamespace(namespace, context).sent) return null
  return hasOthersIn(namespace) ? null : key
}
