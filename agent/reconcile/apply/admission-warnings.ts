// Warnings of the API server about objects: a deprecated version, a violated security standard. They stand in the status of
// an object until a write brings others or none, and each is told once. Pure.
import { type ObjectRef, refText } from '../../../shared/kube/object.ts'
import type { EventStatus } from '../../../shared/model/status.ts'

export interface Warned {
  ref: ObjectRef
  /** The warnings of this write. */
  warnings: readonly string[]
  /** In the status of the object before this write. */
  known: readonly string[]
  /** The API server refused the write, so that the object is as it was. */
  isRefused: boolean
}

export interface WarningNews {
  /** For the status of the object. Null: those that it has stay. */
  warnings: readonly string[] | null
  /** Null if every warning was told before. */
  event: Pick<EventStatus, 'type' | 'reason' | 'message'> | null
}

/** AW1, AW2 */
export function warningNews({ ref, warnings, known, isRefused }: Warned): WarningNews {
  if (isRefused && warnings.length === 0) return { warnings: null, event: null }
  const added = warnings.filter((text) => !known.includes(text))
  if (added.length === 0) return { warnings, event: null }
  return { warnings, event: { type: 'Warning', reason: 'AdmissionWarning', message: `${refText(ref)}: ${added.join('; ')}` } }
}
