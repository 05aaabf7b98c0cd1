// The steps of a plan and their results: data, each kind with its executor (execute.ts).
import type { K8sObject, ObjectRef } from '../../../shared/kube/object.ts'
import type { ApiFailure, ApiResource } from '../../cluster/cluster.ts'
import type { Spared, Take } from '../snapshot/fields/client-side.ts'
import type { Contact } from '../snapshot/situation.ts'
import type { Permit } from './prune/deletion.ts'

export type ApplyReason = 'new' | 'changed' | 'drift' | 'takeover'
export type Step =
  /**
   * First contact with all `refs` of one resource and namespace: does an object of another owner exist? `key` and `ref`
   * are the first one's.
   */
  | { kind: 'inspect'; key: string; ref: ObjectRef; resource: ApiResource; refs: ObjectRef[] }
  | {
      kind: 'apply'
      key: string
      ref: ObjectRef
      resource: ApiResource
      doc: string
      /** RC24: the values of the annotations. Null means that there is none. */
      commit: string | null
      revision: string | null
      why: ApplyReason
      force: boolean
      /** RC19: the object itself was not read. */
      unseen?: true
      shaped?: Shaping
      /** AO3: set if the object is replaced instead of applied. */
      replace?: Spared
    }
  /** AO4: deleted in order to be recreated. */
  | { kind: 'recreate'; key: string; ref: ObjectRef; resource: ApiResource; uid: string; resourceVersion: string; permit: Permit }
  | {
      kind: 'delete'
      key: string
      ref: ObjectRef
      resource: ApiResource
      uid: string
      /** PR12: of the read state. */
      resourceVersion: string
      permit: Permit
    }
  /** Releases a live object: Skerry's marks and field entry are removed, its fields stay. */
  | { kind: 'orphan'; key: string; ref: ObjectRef; resource: ApiResource }
  /** No owned object exists (any more), or another service takes it over: only the inventory changes. */
  | { kind: 'forget'; key: string; ref: ObjectRef }

/** Only if fields are left to others, or taken from them. */
export interface Shaping {
  /** The source document of `doc`. */
  of: string
  /** TK1: before the apply. */
  take: Take | null
}

export type StepOf<K extends Step['kind']> = Extract<Step, { kind: K }>
export type StepResult =
  | { kind: 'inspected'; step: StepOf<'inspect'>; contacts: ReadonlyMap<string, Contact> }
  /** `withoutNulls`: the document that was applied, because the API server refused the nulls of the step's own (RC25).
   */
  | { kind: 'applied'; step: StepOf<'apply'>; object: K8sObject; created: boolean; withoutNulls?: string; warnings?: readonly string[] }
  /** Deleted, released, or never existed. */
  | { kind: 'gone'; step: StepOf<'delete' | 'orphan' | 'forget'> }
  | { kind: 'deleting'; step: StepOf<'delete' | 'recreate'>; finalizers: readonly string[] }
  /** PR12: not deleted, because it is this by now. */
  | { kind: 'changed'; step: StepOf<'delete' | 'recreate'>; object: K8sObject }
  /** AO4: deleted, to be recreated. */
  | { kind: 'cleared'; step: StepOf<'recreate'> }
  | { kind: 'failed'; step: Step; failure: ApiFailure; warnings?: readonly string[] }
