// The server's guard: which removals may go out at once and which wait for a person. Small numbers may always; a wrong
// selector or a wrong delete must not empty a fleet. The agent has a guard of its own for the objects of a service.

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
  const of = `${leaving} of ${holders} ${holders === 1 ? 'cluster' : 'clusters'}`
  const before = ordered === 0 ? '' : `, in addition to ${ordered} from which it is being removed`
  const what = cause === 'service_deleted' ? `deleting it removes it from ${of}` : `it would be removed from ${of}${before}`
  const all = leaving + ordered
  if (protect) return { kind: 'wait', why: `the service is protected, and ${what}` }
  if (leftOut > 0) return { kind: 'wait', why: `its project has no destination for ${leftOut} of its clusters, and ${what}` }
  if (all > REMOVALS_SMALL && all * 100 > (holders + ordered) * REMOVALS_PERCENT_MAX)
    return { kind: 'wait', why: `${what}: more than ${REMOVALS_SMALL} clusters and more than ${REMOVALS_PERCENT_MAX} % of them` }
  if (cause === 'left_targets' && targets === 0 && leftByNewTargets > 0)
    return { kind: 'wait', why: `the changed targets no longer match any cluster, and ${what}` }
  return { kind: 'pass' }
}
