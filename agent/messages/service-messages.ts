// Texts of the statuses of services: what a revision waits for, and where it ended.
import { statusesOf, type Table, textsOf } from '../../shared/runtime/messages.ts'

interface Waited {
  /** The object, with its phase or wave. */
  what: string
  since: string
}
interface Other {
  service: string
  /** Other services that it waits for. */
  more: number
}
const andFor = (more: number): string => (more === 0 ? '' : ` (and for ${more} more)`)

export const SERVICE = {
  Unclaimed: {
    text: 'the service does not exist on the server; its objects are kept',
    next: 'create the service again, or delete the objects by hand',
  },
  RevisionIncomplete: { text: ({ why }: { why: string }) => `${why}; the last complete revision stays active` },
  ConfirmationPending: {
    text: ({ what, why }: { what: string; why: string }) => `${what} waits for confirmation (\`skerry confirm\`): ${why}`,
  },
  PruneBlocked: {
    text: ({ why, names }: { why: string; names: string }) => `${why}; nothing of this revision is pruned until it is confirmed: ${names}`,
  },
  ManualSync: {
    text: ({ digest, commit }: { digest: string; commit: string }) =>
      `revision ${digest} of commit ${commit} waits for approval (sync.mode is manual)`,
    next: ({ service, project }: { service: string; project: string }) =>
      `run \`skerry sync ${service} -p ${project}\` to see the plan and approve it`,
  },
  'BlockedBy.cycle': {
    text: ({ cycle }: { cycle: string }) => `dependency cycle: ${cycle}`,
    next: 'remove one of these from spec.dependsOn',
  },
  'BlockedBy.absent': {
    text: ({ service, more }: Other) => `waiting for ${service}, which is not in this cluster${andFor(more)}`,
    next: 'add this cluster to its targets, or remove it from spec.dependsOn',
  },
  'BlockedBy.removing': {
    text: ({ service, more }: Other) => `waiting for ${service}, which is being removed from this cluster${andFor(more)}`,
    next: 'keep that service, or remove it from spec.dependsOn',
  },
  'BlockedBy.unready': {
    text: ({ service, more, now }: Other & { now: string }) =>
      `waiting for ${service} to be Healthy at its newest revision (now ${now})${andFor(more)}`,
  },
  OutsideWindow: { text: ({ windows }: { windows: string }) => `outside of the windows ${windows}` },
  'OutsideWindow.one': { text: ({ windows }: { windows: string }) => `outside of the window ${windows}` },
  'OutsideWindow.denied': { text: ({ window }: { window: string }) => `changes are denied by the window ${window}` },
  'OutsideWindow.invalid': {
    text: ({ what }: { what: string }) => `invalid window (${what})`,
    next: 'changes are blocked until the window is corrected',
  },
  'OutsideWindow.opens': { text: ({ closed }: { closed: string }) => closed, next: ({ at }: { at: string }) => `opens at ${at}` },
  'OutsideWindow.never': { text: ({ closed }: { closed: string }) => closed, next: 'no window opens soon: change the windows' },
  'OutsideWindow.later': { text: ({ closed }: { closed: string }) => closed, next: 'checked again later' },
  Held: {
    text: ({ by, since, until, why }: { by: string; since: string; until: string; why: string }) =>
      `held by ${by} since ${since}${until === '' ? '' : ` until ${until}`}: ${why}`,
    next: ({ scope }: { scope: string }) => `\`skerry-agent unhold ${scope}\` ends the hold`,
  },
} satisfies Table

export const serviceText = textsOf(SERVICE)
export const serviceStatus = statusesOf(SERVICE)

/** Waits and failures in the order of phases and waves. The gate gives the reason: HookFailed, WaitingForHook or
 *  WaitingForWave. */
export const ORDER = {
  hook_running: { text: ({ what, since }: Waited) => `waiting for ${what} to end since ${since}` },
  hook_failed: {
    text: ({ what, since, why }: Waited & { why: string }) => `${what} failed at ${since}: ${why}`,
    next: 'correct it and commit; a new revision runs it again',
  },
  removal_hook_failed: {
    text: ({ what, since, why }: Waited & { why: string }) => `${what} failed at ${since}: ${why}`,
    next: 'nothing is removed; correct the cause and request the removal again to run the hook again',
  },
  not_applied: { text: ({ what, since }: Waited) => `waiting for ${what} to be applied since ${since}` },
  not_healthy: { text: ({ what, since }: Waited) => `waiting for ${what} to be healthy since ${since}` },
  // A refusal names its remedy, a workload does not.
  refused: {
    text: ({ what, since, why }: Waited & { why: string }) => `waiting for ${what}, which is not applied since ${since}: ${why}`,
    next: 'the sync continues when it is applied',
  },
  degraded: {
    text: ({ what, since, why }: Waited & { why: string }) => `waiting for ${what}, which is not healthy since ${since}: ${why}`,
    next: 'correct it in Git, and the sync continues when it is healthy',
  },
  hook: { text: ({ phase, object }: { phase: string; object: string }) => `the ${phase} hook ${object}` },
  wave: { text: ({ wave, object }: { wave: number; object: string }) => `wave ${wave}: ${object}` },
  phase: { text: ({ phase, object }: { phase: string; object: string }) => `${phase}: ${object}` },
  detailed: { text: ({ text, detail }: { text: string; detail: string }) => `${text} (${detail})` },
  // The end of a hook, or what its run waits for.
  it_failed: { text: 'it failed' },
  kind_unread: { text: 'cannot read the kind of the hook yet' },
  run_deleted: { text: 'its object was deleted before the run ended' },
  run_overdue: { text: ({ why }: { why: string }) => `not healthy in time: ${why}` },
  previous_deleting: { text: ({ object, deleting }: { object: string; deleting: string }) => `${object} of the previous run: ${deleting}` },
  previous_held: { text: ({ object, why }: { object: string; why: string }) => `${object} of the previous run: ${why}` },
  previous_running: { text: ({ object }: { object: string }) => `${object} of the previous run has not ended` },
  previous_kept: { text: ({ object, mark }: { object: string; mark: string }) => `${object} of the previous run is blocked by ${mark}` },
  namesake_deleting: { text: ({ deleting }: { deleting: string }) => `an object of that name that is being deleted (${deleting})` },
} satisfies Table

export const orderText = textsOf(ORDER)

/** Parts of these texts. */
export const SERVICE_PARTS = {
  window: {
    text: ({ schedule, duration, zone }: { schedule: string; duration: string; zone: string }) => `"${schedule}" for ${duration} (${zone})`,
  },
  window_schedule: { text: ({ schedule }: { schedule: string }) => `schedule ${schedule}` },
  window_duration: { text: ({ duration }: { duration: string }) => `duration ${duration}` },
  window_time_zone: { text: ({ timeZone }: { timeZone: string }) => `time zone ${timeZone}` },
  // Why a revision is not complete.
  awaits_refetch: { text: 'the replica waits to be fetched again' },
  row_unreadable: { text: 'this version cannot read the service row: upgrade the agent' },
  fields_unreadable: {
    text: ({ fields }: { fields: string }) => `this version cannot read ${fields} of the service row: upgrade the agent`,
  },
  objects_missing: { text: ({ have, count }: { have: number; count: number }) => `${have} of ${count} objects` },
  objects_differ: { text: 'its objects differ from its digest' },
  removal_with_objects: { text: ({ count }: { count: number }) => `a removal order with ${count} objects` },
  not_evaluated: { text: 'not evaluated yet' },
  no_readable_suspension: { text: 'in a form that this version of the agent cannot read' },
  the_server: { text: 'the server' },
  first_of: {
    text: ({ object, message, more }: { object: string; message: string; more: number }) =>
      `${object}: ${message}${more === 0 ? '' : ` (and ${more} more)`}`,
  },
} satisfies Table

export const servicePart = textsOf(SERVICE_PARTS)
