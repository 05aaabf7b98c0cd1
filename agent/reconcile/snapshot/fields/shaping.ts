// Combines rules, autoscalers and takeovers with the plan: the document to send for a wanted object now, and whether it
// is applied already.
import type { SyncOptions } from '../../../../shared/model/resources.ts'
import type { Wanted } from '../wanted.ts'
import type { LiveView } from '../watch/live-object.ts'
import { type Take, type TakeMoment, toTake } from './client-side.ts'
import { type DriftNote, pathText } from './drift.ts'
import type { Leave } from './ignore.ts'
import type { OtherFields } from './other-fields.ts'
import { shapeDoc } from './shape.ts'

export const othersIn = (live: LiveView): readonly OtherFields[] | null => (live.kind === 'present' ? (live.live.others ?? null) : null)

/** DR9. `applied`: the applied document, null if the object must be created. */
export const shapedDoc = (
  { sent }: Pick<Wanted, 'sent'>,
  leave: Leave | null,
  others: readonly OtherFields[] | null,
  applied: string | null,
): string => (leave === null ? sent : shapeDoc(sent, leave, others, applied).doc)

/** Is the applied document all that the wanted one asks for, except fields left to others? */
export const isInForce = (
  { sent }: Pick<Wanted, 'sent'>,
  leave: Leave | null,
  others: readonly OtherFields[] | null,
  applied: string | null,
): boolean => applied !== null && (applied === sent || (leave !== null && shapeDoc(sent, leave, others, applied).doc === applied))

/** Did others take only fields that are left to them? */
export function isAllLeft(
  note: DriftNote | undefined,
  { sent }: Pick<Wanted, 'sent'>,
  leave: Leave | null,
  others: readonly OtherFields[] | null,
): boolean {
  if (note === undefined || note.paths.length === 0 || leave === null) return false
  const left = new Set(shapeDoc(sent, leave, others, sent).left.map(({ keys }) => pathText(keys)))
  return note.paths.every((path) => left.has(path))
}

/** TK1: null for almost every object. Without `sync.force` nothing is taken. */
export function takeFor(
  { sent }: Pick<Wanted, 'sent'>,
  leave: Leave | null,
  others: readonly OtherFields[] | null,
  moment: TakeMoment,
  sync: Pick<SyncOptions, 'force'>,
): Take | null {
  if (others === null || !sync.force) return null
  const take = { moment, leave, wanted: sent }
  return toTake(others, take).length === 0 ? null : take
}
