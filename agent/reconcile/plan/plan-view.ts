// The inputs of a plan, and its result for one object.
import { versionOf } from '../../../shared/kube/object.ts'
import type { SyncOptions } from '../../../shared/model/resources.ts'
import type { ServiceId } from '../../../shared/runtime/ids.ts'
import type { ApiResource } from '../../cluster/cluster.ts'
import type { InventoryEntry } from '../../state/agent-state.ts'
import type { Contest } from '../snapshot/fields/contest.ts'
import type { DriftNote } from '../snapshot/fields/drift.ts'
import type { Leave } from '../snapshot/fields/ignore.ts'
import type { OtherFields } from '../snapshot/fields/other-fields.ts'
import type { Recreate } from '../snapshot/kept-notes.ts'
import type { Contact, Problem } from '../snapshot/situation.ts'
import type { Wanted } from '../snapshot/wanted.ts'
import type { LiveView, Registrations } from '../snapshot/watch/live-object.ts'
import type { KindLookup } from '../snapshot/watch/served-kinds.ts'
import type { Gate } from './gates/gates.ts'
import type { ConfirmedNames } from './prune/deletion.ts'
import type { DeletionHold } from './prune/prune-guard.ts'
import type { Step } from './step.ts'

export interface PlanView extends Registrations {
  id: ServiceId
  sync: SyncOptions
  /** Commit and digest of the row. Null if no complete revision was read. */
  commit: string | null
  revision: string | null
  wanted: ReadonlyMap<string, Wanted>
  inventory: ReadonlyMap<string, InventoryEntry>
  problems: ReadonlyMap<string, Problem>
  contacts: ReadonlyMap<string, Contact>
  contests: ReadonlyMap<string, Contest>
  notes: ReadonlyMap<string, DriftNote>
  /** Work that may not be done yet. */
  gate: Gate
  /**
   * The fields that are left to others; null for almost every object. `met`: the owners of fields of an object that is
   * not watched yet.
   */
  leave(wanted: Wanted, met?: readonly OtherFields[] | null): Leave | null
  view(resource: ApiResource, key: string): LiveView
  find(group: string, version: string, kind: string): KindLookup
  /** In any served version: for what is only to be deleted. */
  findAny(group: string, version: string, kind: string): KindLookup
  /** AO5: objects that were deleted in order to be recreated, and do not exist yet. */
  recreates?: ReadonlyMap<string, Recreate>
  /** Nothing of the service is deleted without a confirmation. */
  protect?: boolean
  /** PR14: null means that objects may be deleted. */
  deletionHold: DeletionHold | null
  /** The confirmed names of this revision. */
  confirmed: ConfirmedNames
  /** Another service of this cluster that owns the object, or null. */
  takenBy(key: string): ServiceId | null
  nowMs: number
}

/** Unknown: also where its kind is not served in that version. */
export function viewIn(
  view: Pick<PlanView, 'find' | 'view'>,
  { key, ref, apiVersion }: Pick<Wanted, 'key' | 'ref' | 'apiVersion'>,
): LiveView {
  const lookup = view.find(ref.group, versionOf(apiVersion), ref.kind)
  return lookup.kind === 'served' ? view.view(lookup.resource, key) : { kind: 'unknown' }
}

export type Verdict =
  | { kind: 'fine' }
  | { kind: 'step'; step: Step; contest?: Contest }
  | { kind: 'problem'; problem: Problem; contest?: Contest }
export const problem = (value: Problem): Verdict => ({ kind: 'problem', problem: value })
