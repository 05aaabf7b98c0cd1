// The server's guard: which removals may go out at once and which wait for a person. Small numbers may always; a wrong
// selector or a wrong delete must not empty a fleet. The agent has a guard of its own for the objects of a service.
import { questionText } from '../messages/confirmation-messages.ts'

/** TG3: never too many. */
export const REMOVALS_SMALL = 5
/** TG3: of the clusters that have the service. */
export const REMOVALS_PERCENT_MAX = 10

export interface Removals {
  cause: 'service_deleted' | 'left_targets'
  /** `protect` of the service. */
  protect: boolean
  /** Clusters that have the service now, without those that `ordered` counts. */
  holders: number
  leaving: number
  /**
   * Clusters that left before, by a removal order without a confirmation that is not carried out yet. Many small
   * removals in a row are one large one.
   */
  ordered: number
  /**
   * The number of leaving clusters that leave because the service's targets were changed, not because they were
   * relabelled.
   */
  leftByNewTargets: number
  /** Number of leaving clusters that the targets match but no destination of the project selects. Absent means none. */
  leftOut?: number
  /** Clusters that its targets match now. */
  targets: number
}

export type GuardVerdict = { kind: 'pass' } | { kind: 'wait'; why: string }

export function guardRemovals({
  cause,
  protect,
  holders,
  leaving,
  ordered,
  leftByNewTargets,
  leftOut = 0,
  targets,
}: Removals): GuardVerdict {
  if (leaving === 0) return { kind: 'pass' }
  const leavingCode = ordered === 0 ? 'leaving' : 'leaving_more'
  const what = questionText(cause === 'service_deleted' ? 'deleting' : leavingCode, { leaving, holders, ordered })
  const all = leaving + ordered
  if (protect) return { kind: 'wait', why: questionText('protected', { what }) }
  if (leftOut > 0) return { kind: 'wait', why: questionText('no_destination', { what, count: leftOut }) }
  if (all > REMOVALS_SMALL && all * 100 > (holders + ordered) * REMOVALS_PERCENT_MAX)
    return { kind: 'wait', why: questionText('too_many', { what, most: REMOVALS_SMALL, percent: REMOVALS_PERCENT_MAX }) }
  if (cause === 'left_targets' && targets === 0 && leftByNewTargets > 0)
    return { kind: 'wait', why: questionText('no_target_left', { what }) }
  return { kind: 'pass' }
}
