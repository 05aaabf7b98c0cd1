// One hook, one phase, one revision: its object, and its next action. Pure.
import { canonicalJson, sha256Hex } from '../../../../shared/kube/canonical.ts'
import { markObject } from '../../../../shared/kube/clean.ts'
import { lossKind } from '../../../../shared/kube/data-loss.ts'
import { type K8sObject, type ObjectRef, refText } from '../../../../shared/kube/object.ts'
import { HOOK_RUN_ANNOTATION, type Phase } from '../../../../shared/kube/waves.ts'
import type { ServiceId } from '../../../../shared/runtime/ids.ts'
import { orderText } from '../../../messages/service-messages.ts'
import { type HookEnd, type HookRun, type HookSpec, runsToAnEnd } from '../../snapshot/hook-spec.ts'
import { endOf } from '../../snapshot/live-run.ts'
import type { LiveObject, LiveView } from '../../snapshot/watch/live-object.ts'
import { type Permit, permitHook } from '../prune/deletion.ts'

/** HK2: a hook runs once for this revision, manifest and phase. */
export const runIdOf = (digest: string, hash: string, phase: Phase): string => sha256Hex(`${digest}\0${hash}\0${phase}`).slice(0, 20)

/** A generated name fits where names are labels too, as those of Jobs are. */
const PREFIX_CHARS_MAX = 53

/** HK9: the same run has the same name, so that a crash makes no second object. */
export function runRef({ ref, generateName }: HookSpec, runId: string): ObjectRef {
  return generateName === null ? ref : { ...ref, name: generateName.slice(0, PREFIX_CHARS_MAX) + runId.slice(0, 10) }
}

/** The sent document. */
export function runDocument(spec: HookSpec, runId: string, clusterId: string, service: ServiceId): string {
  const object = JSON.parse(spec.doc) as K8sObject
  const { generateName: _, ...metadata } = object.metadata
  const named = {
    ...object,
    metadata: {
      ...metadata,
      name: runRef(spec, runId).name,
      annotations: { ...metadata.annotations, [HOOK_RUN_ANNOTATION]: runId },
    },
  }
  return canonicalJson(markObject(named, clusterId, service))
}

export type RunStep =
  | { kind: 'over'; end: HookEnd }
  /** It ended now. */
  | { kind: 'end'; end: HookEnd }
  /** Its object is there, and that is not known yet. */
  | { kind: 'meet'; uid: string }
  | { kind: 'wait'; why: string }
  /** Its Job is gone, and Events may tell how it ended. */
  | { kind: 'ask'; uid: string }
  /** The object of a former run is deleted first. */
  | { kind: 'clear'; ref: ObjectRef; uid: string; resourceVersion: string; permit: Permit }
  | { kind: 'begin' }

export interface RunFacts {
  spec: HookSpec
  runId: string
  record: HookRun | null
  /** Under the name of this run. */
  live: LiveView
  /** Under the name of the recorded run, where that is another one. */
  former: LiveView | null
  /** The state of the recorded object from a watch, or an Event. */
  seen: HookEnd | null
  /** Events about the recorded object were searched. */
  wasAsked: boolean
  /** It had its time (HE2). */
  isOverdue: boolean
  /** The live object is of a run of this service's hook: other objects of its name are never deleted for it. */
  isOfHook(live: LiveObject, ref: ObjectRef): boolean
}

/** HK11: `recorded`: UIDs that this service recorded for the name. Another service that has the object in its inventory
 *  is not asked here. */
export function isOfHook(live: LiveObject, isOurs: boolean, recorded: ReadonlyArray<string | null | undefined>): boolean {
  const isRecorded = live.uid !== '' && recorded.includes(live.uid)
  if (live.owner.kind === 'service' && !isOurs) return false
  return isRecorded || (isOurs && (live.run?.id ?? '') !== '')
}

const wait = (why: string): RunStep => ({ kind: 'wait', why })
const failedRun = (message: string): RunStep => ({ kind: 'end', end: { outcome: 'failed', message } })

/** HK2, HK4, HK6: decides the next step of one hook: create, wait, delete or finish. */
export function judgeRun(facts: RunFacts): RunStep {
  const { spec, runId, record, live, former, seen, wasAsked, isOverdue } = facts
  const begun = record?.run === runId ? record : null
  if (begun !== null && begun.outcome !== 'running') return { kind: 'over', end: begun }
  if (begun !== null && seen !== null) return { kind: 'end', end: seen }
  if (live.kind === 'unknown' || former?.kind === 'unknown') return wait(orderText('kind_unread'))
  if (live.kind === 'present' && live.live.run?.id === runId && facts.isOfHook(live.live, runRef(spec, runId)))
    return judgeOwn(spec, live.live, begun, isOverdue)
  if (begun !== null && begun.uid !== null) {
    if (spec.ref.kind === 'Job' && !wasAsked) return { kind: 'ask', uid: begun.uid }
    return failedRun(orderText('run_deleted'))
  }
  return judgeFormer(facts) ?? { kind: 'begin' }
}

function judgeOwn({ ref }: HookSpec, live: LiveObject, begun: HookRun | null, isOverdue: boolean): RunStep {
  // Applied over during its deletion: the run has no object yet (RC20).
  if (begun?.uid !== live.uid && live.deleting !== null && !runsToAnEnd(ref)) return wait(live.deleting)
  if (begun?.uid !== live.uid) return { kind: 'meet', uid: live.uid }
  const end = endOf(live)
  if (end !== null) return { kind: 'end', end }
  if (live.deleting !== null) return wait(live.deleting)
  const { message, reason } = live.health
  if (isOverdue) return failedRun(orderText('run_overdue', { why: message || reason }))
  return wait(message || reason)
}

/** Null if there is no obstacle. */
function judgeFormer({ spec, record, live, former, isOfHook }: RunFacts): RunStep | null {
  const replaces = spec.policies.includes('before-hook-creation')
  for (const [found, ref] of [
    [live, spec.ref],
    [former, record?.ref],
  ] as const) {
    if (found?.kind !== 'present' || ref === undefined || !isOfHook(found.live, ref)) continue
    const { deleting, run, uid, resourceVersion, keep } = found.live
    const permit = permitHook(ref, found.live)
    const object = refText(ref)
    if (deleting !== null) return wait(orderText('previous_deleting', { object, deleting }))
    // HK5: only the run of an older revision is replaced before it has ended.
    if (run?.ended === 'no' && !replaces) return wait(orderText('previous_running', { object }))
    const isKept = keep !== null || permit === null
    if (found === live && spec.generateName === null) {
      // Applied over, if it may.
      if (runsToAnEnd(ref) && isKept) return failedRun(orderText('previous_kept', { object, mark: keep ?? '' }))
      if (!runsToAnEnd(ref) && (isKept || !replaces)) continue
    } else if (isKept) continue
    if (permit !== null) return { kind: 'clear', ref, uid, resourceVersion, permit }
  }
  return null
}

/** HK6: its policies delete the object after this end. */
export function goesAfter({ policies, ref }: HookSpec, outcome: HookRun['outcome']): boolean {
  if (lossKind(ref) !== null) return false
  return (outcome === 'succeeded' && policies.includes('hook-succeeded')) || (outcome === 'failed' && policies.includes('hook-failed'))
}
