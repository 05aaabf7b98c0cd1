// The fields of a wanted object that are left to others, by the service's rules, by annotations of the manifest, or
// because an autoscaler has them. One answer for compare and apply (shape.ts); null for almost every object, at no
// cost.
import { ignoredPointers, pointerSegments } from '../../../../shared/kube/ignore-marks.ts'
import type { K8sObject, ObjectRef } from '../../../../shared/kube/object.ts'
import type { IgnoreRule } from '../../../../shared/model/resources.ts'

/** Matches every item of a list; no pointer can spell it. */
export const EACH = '\u0000each'

export interface Leave {
  paths: ReadonlyArray<readonly string[]>
  /** All fields of these managers are theirs. */
  managers: readonly string[]
}

/** Fields of a manifest that an autoscaler may want. */
export type Scaled = 'replicas'

/** Computed once, when a row is read; absent if there is nothing. */
export interface LeaveFacts extends Leave {
  scaled: readonly Scaled[]
}

export const SCALED_PATHS: Record<Scaled, readonly string[][]> = { replicas: [['spec', 'replicas']] }

/** One value for thousands of workloads. */
const SCALED_ONLY: LeaveFacts = { paths: [], managers: [], scaled: ['replicas'] }

export function leaveFacts(object: K8sObject, ref: ObjectRef, rules: readonly IgnoreRule[]): LeaveFacts | null {
  const paths = ignoredPointers(object.metadata.annotations).map(pointerSegments)
  const managers = new Set<string>()
  for (const rule of rules) {
    if (!isMeant(rule, ref)) continue
    for (const pointer of rule.jsonPointers ?? []) paths.push(pointerSegments(pointer))
    for (const manager of rule.managers ?? []) managers.add(manager)
  }
  const scaled = scaledOf(object)
  if (paths.length + managers.size > 0) return { paths, managers: [...managers].sort(), scaled }
  return scaled.length === 0 ? null : SCALED_ONLY
}

/** Reads the rules of an applied document, which is used before a revision is read. */
export function heldLeaveFacts(sent: string, ref: ObjectRef): LeaveFacts | null {
  // Parsed only if it can say anything: this runs over all that a cluster has.
  return /"replicas"|\/ignore"|\/ignore-fields"/.test(sent) ? leaveFacts(JSON.parse(sent) as K8sObject, ref, []) : null
}

const isMeant = ({ group, kind, namespace, name }: IgnoreRule, ref: ObjectRef): boolean =>
  kind === ref.kind &&
  (group ?? ref.group) === ref.group &&
  (namespace ?? ref.namespace) === ref.namespace &&
  (name ?? ref.name) === ref.name

const scaledOf = (object: K8sObject): Scaled[] => (typeof recordIn(object, 'spec')?.['replicas'] === 'number' ? ['replicas'] : [])

function recordIn(value: unknown, name: string): Record<string, unknown> | null {
  if (value === null || typeof value !== 'object') return null
  const member = (value as Record<string, unknown>)[name]
  return member !== null && typeof member === 'object' && !Array.isArray(member) ? (member as Record<string, unknown>) : null
}

/** `autoscaled`: the fields that autoscalers of the object want now. */
export function leaveOf(facts: LeaveFacts | undefined, autoscaled: readonly Scaled[]): Leave | null {
  if (facts === undefined) return null
  const yielded = facts.scaled.filter((part) => autoscaled.includes(part)).flatMap((part) => SCALED_PATHS[part])
  if (facts.paths.length + facts.managers.length + yielded.length === 0) return null
  return { paths: yielded.length === 0 ? facts.paths : [...facts.paths, ...yielded], managers: facts.managers }
}
