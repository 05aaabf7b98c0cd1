// Takes over from tools that applied whole manifests by other means: their fields stay in their own managers' entries,
// so that fields removed from Git would never be removed. Their entries first become part of our Apply entry; the next
// apply then removes all fields that Git does not name. client-go calls this csaupgrade; here for more tools.

import { FIELD_MANAGER } from '../../../../shared/kube/marks.ts'
import { groupOf, type K8sObject, type ManagedFieldsEntry } from '../../../../shared/kube/object.ts'
import { BEFORE_FIRST_APPLY, isNode, type Split, splitCommon } from './common-fields.ts'
import { EACH, type Leave } from './ignore.ts'
import type { OtherFields } from './other-fields.ts'
import { childOf, type FieldsNode, hasKeyFields, isOwnEntry } from './owned-fields.ts'

/** Each writes the whole manifest at every write: its fields were in some manifest. Also on an object that is ours
 *  already. */
const WHOLE_MANIFEST: ReadonlySet<string> = new Set([
  'Update kubectl-client-side-apply',
  `Update ${BEFORE_FIRST_APPLY}`,
  'Update helm',
  'Apply helm',
  'Update Helm',
  'Update helm-controller',
  'Update argocd-controller',
  'Apply argocd-controller',
  'Update argocd-application-controller',
  'Update fleetagent',
  'Update fleet-agent',
  'Apply kustomize-controller',
  'Update kustomize-controller',
  'Apply helm-controller',
  'Apply application/apply-patch',
  'Apply plural-agent',
])

/** Manual changes, which count for the manifest only until Git has the object: on an object of ours they are drift.
 *  Without `kubectl label`, `annotate`, `scale`, `rollout`, `taint`: their changes were in no manifest, and a
 *  removed `restartedAt` would restart the pods. */
const BEFORE_ADOPTION: ReadonlySet<string> = new Set([
  'Update kubectl-create',
  'Update kubectl-edit',
  'Update kubectl-patch',
  'Update kubectl-replace',
  'Update kubectl-run',
  'Update kubectl-expose',
  'Update kubectl-set',
  'Apply kubectl',
])

/** `adopt`: Git has the object from now on. `keep`: it is ours, and such a tool wrote to it. */
export type TakeMoment = 'adopt' | 'keep'

interface Holder {
  manager?: string | undefined
  operation?: string | undefined
  subresource?: string | undefined
}

/** Their entries of `status` and `scale` are no manifest either. */
function isTaken({ manager = '', operation = '', subresource = '' }: Holder, moment: TakeMoment, leave: Leave | null): boolean {
  if (subresource !== '' || leave?.managers.includes(manager)) return false
  const name = `${operation} ${manager}`
  return WHOLE_MANIFEST.has(name) || (moment === 'adopt' && BEFORE_ADOPTION.has(name))
}

/** The fields to take over before an apply, and the manifest of the rules (canonical JSON). */
export interface Take {
  moment: TakeMoment
  leave: Leave | null
  wanted: string
}
/** The fields that a rule leaves to others, and the manifest of its indices (canonical JSON). */
export type Spared = Pick<Take, 'leave' | 'wanted'>

/** TK1: the managers whose fields are to become ours before the next apply; empty for almost every object. */
export function toTake(others: readonly OtherFields[] | null, { moment, leave, wanted }: Take): string[] {
  const entries = (others ?? []).filter((entry) => isTaken(entry, moment, leave))
  if (entries.length === 0) return []
  const paths = leave?.paths ?? []
  const object: unknown = paths.length === 0 ? undefined : JSON.parse(wanted)
  const found = entries.filter(({ fields }) => splitRuled(JSON.parse(fields) as FieldsNode, paths, object).taken !== null)
  return [...new Set(found.map(({ manager }) => manager))].sort()
}

/** A live object with its metadata; nothing else is needed here. */
export type Managed = Pick<K8sObject, 'apiVersion' | 'metadata'>

const NOTHING_TAKEN: Split = { taken: null, left: null }

/** TK2: null means nothing to take. Paths that a rule leaves to others keep their owners. */
export function takenManagedFields(live: Managed, { moment, leave, wanted }: Take): ManagedFieldsEntry[] | null {
  const paths = leave?.paths ?? []
  const object: unknown = JSON.parse(wanted)
  return withTaken(live, (entry, own) => (isTaken(entry, moment, leave) ? splitTaken(entry, own, paths, object) : null))
}

/**
 * Kinds of which the API server fills `rollingUpdate` with defaults without an owner, and refuses it beside another
 * type.
 */
const ROLLING_UPDATE: Readonly<Record<string, string>> = { 'apps/Deployment': 'strategy', 'apps/StatefulSet': 'updateStrategy' }

/** RC35: the path of a member that the object's union does not choose. Null means that there is none, or the object
 *  names it all the same. */
export function unchosenMember(object: K8sObject): readonly string[] | null {
  const name = ROLLING_UPDATE[`${groupOf(object.apiVersion)}/${object.kind}`]
  if (name === undefined) return null
  const strategy = childOf(object['spec'], `f:${name}`)
  if (!isNode(strategy) || (strategy['type'] ?? 'RollingUpdate') === 'RollingUpdate' || isNode(strategy['rollingUpdate'])) return null
  return ['spec', name, 'rollingUpdate']
}

/** RC35: the managedFields in which Skerry owns the member at this path; with `force`, as the only owner. */
export function ownedMember(live: Managed, path: readonly string[], force: boolean): ManagedFieldsEntry[] | null {
  const member = path.reduceRight<FieldsNode>((inner, name) => ({ [`f:${name}`]: inner }), {})
  const takeMember = ({ fieldsV1 = {} }: ManagedFieldsEntry): Split => {
    const { taken: left, left: taken } = splitRuled(fieldsV1, [path], undefined)
    return { taken, left }
  }
  return withTaken(live, (entry) => (force ? takeMember(entry) : null), member)
}

/**
 * The managedFields in which Skerry's entry has `nobodys` and the part of the others that `splitOf` takes. Null:
 * nothing is taken. An entry for which it returns null stays unchanged.
 */
export function withTaken(
  live: Managed,
  splitOf: (entry: ManagedFieldsEntry, own: FieldsNode | undefined) => Split | null,
  nobodys: FieldsNode = {},
): ManagedFieldsEntry[] | null {
  const entries = live.metadata.managedFields ?? []
  const own = entries.find(isOwnEntry)
  let fields = union(own?.fieldsV1 ?? {}, nobodys)
  let isChanged = Object.keys(nobodys).length > 0
  const stay: ManagedFieldsEntry[] = []
  for (const entry of entries) {
    if (entry === own) continue
    const { taken, left } = (entry.fieldsV1 === undefined ? null : splitOf(entry, own?.fieldsV1)) ?? NOTHING_TAKEN
    if (taken === null) {
      stay.push(entry)
      continue
    }
    isChanged = true
    fields = union(fields, taken)
    if (left !== null) stay.push({ ...entry, fieldsV1: left })
  }
  if (!isChanged) return null
  const ours: ManagedFieldsEntry = own ?? {
    manager: FIELD_MANAGER,
    operation: 'Apply',
    apiVersion: live.apiVersion,
    time: latestTime(entries),
    fieldsType: 'FieldsV1',
  }
  return [...stay, { ...ours, fieldsV1: fields }]
}

function splitTaken(entry: ManagedFieldsEntry, own: FieldsNode | undefined, paths: Leave['paths'], object: unknown): Split {
  const fields = entry.fieldsV1 ?? {}
  if (entry.manager !== BEFORE_FIRST_APPLY) return splitRuled(fields, paths, object)
  const common = splitCommon(fields, own ?? {})
  if (common.taken === null) return common
  const { taken, left } = splitRuled(common.taken, paths, object)
  return { taken, left: left === null ? common.left : union(common.left ?? {}, left) }
}

const latestTime = (entries: readonly ManagedFieldsEntry[]): string =>
  entries
    .map(({ time = '' }) => time)
    .sort()
    .at(-1) ?? '1970-01-01T00:00:00Z'

/** An empty node owns the whole value and includes everything under it. */
export function union(a: FieldsNode, b: FieldsNode): FieldsNode {
  const result: FieldsNode = { ...a }
  for (const [key, node] of Object.entries(b)) {
    const known = result[key]
    if (!isNode(node)) continue
    if (!isNode(known)) result[key] = node
    else if (Object.keys(known).length === 0 || Object.keys(node).length === 0) result[key] = Object.keys(known).length === 0 ? known : node
    else result[key] = union(known, node)
  }
  return result
}

/** `value`: of the manifest, whose indices the rules count by. */
export function splitRuled(fields: FieldsNode, paths: Leave['paths'], value: unknown): Split {
  if (paths.length === 0) return { taken: fields, left: null }
  if (paths.some((path) => path.length === 0)) return { taken: null, left: fields }
  const taken: FieldsNode = {}
  const left: FieldsNode = {}
  for (const [key, node] of Object.entries(fields)) {
    if (!isNode(node)) continue
    const under = paths.flatMap(([first, ...rest]) => (namesOf(key, value).includes(first ?? '') ? [rest] : []))
    const split = under.length === 0 ? { taken: node, left: null } : splitRuled(node, under, memberOf(value, key))
    if (split.taken !== null) taken[key] = split.taken
    if (split.left !== null) left[key] = split.left
  }
  const hasTaken = Object.keys(taken).some((key) => key !== '.')
  const hasLeft = Object.keys(left).length > 0
  return { taken: hasTaken || !hasLeft ? taken : null, left: hasLeft ? left : null }
}

function namesOf(key: string, list: unknown): string[] {
  if (key.startsWith('f:')) return [key.slice(2)]
  if (!key.startsWith('k:') || !Array.isArray(list)) return []
  const index = list.findIndex((item) => hasKeyFields(item, key.slice(2)))
  const item: unknown = list[index]
  return [EACH, String(index), ...(isNode(item) && typeof item['name'] === 'string' ? [item['name']] : [])]
}

function memberOf(value: unknown, key: string): unknown {
  if (key.startsWith('f:')) return isNode(value) ? value[key.slice(2)] : undefined
  return Array.isArray(value) ? value.find((item) => hasKeyFields(item, key.slice(2))) : undefined
}
