// Retention: deletes events, histories, revisions and changes past the configured limits, join tokens that expired long
// ago, names and states that no row refers to. Once an hour, in slices of a few milliseconds (for names and states
// more, with other work in between) and pauses between them, so that it is not noticeable.
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import { CHANGES_KEPT_MAX } from '../feed/change-feed.ts'

/** The operator's choice of retention; 0 keeps all. */
export interface Retention {
  eventsKept: number
  eventsDays: number
  historyDays: number
  /** The number for each service. */
  revisionsKept: number
  changesKept: number
}

export const RETENTION: Retention = {
  eventsKept: 100_000,
  eventsDays: 0,
  historyDays: 90,
  revisionsKept: 20,
  changesKept: CHANGES_KEPT_MAX,
}

/** The same as bounds; what is unbounded is Infinity, and a time long ago. */
export interface KeepBounds {
  nowMs: number
  eventsMax: number
  eventsSinceMs: number
  historySinceMs: number
  revisionsMax: number
  changesMax: number
}

export const UPKEEP_TASKS = ['events', 'history', 'revisions', 'changes', 'tokens', 'names', 'states', 'counts'] as const
export type UpkeepTask = (typeof UPKEEP_TASKS)[number]

export interface UpkeepSlice {
  removed: number
  /** The place to continue. Null means that everything was read. */
  next: string | null
  /** It wrote something else than it removed. */
  pauses?: boolean
}

export interface StoreUpkeep {
  /** Until the signal: what the database needs while it is used. A PostgreSQL looks after itself. */
  attend(log: Logger, signal: AbortSignal): Promise<void>
  /** At most 200 rows go (of names and states 5,000, of changes 2,000), in one transaction. `from`: null at the
   *  beginning, then what the slice before answered. */
  slice(task: UpkeepTask, keep: KeepBounds, from: string | null): Promise<UpkeepSlice>
}

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
/** A server that is started again and again does not begin with this each time. */
const FIRST_AFTER_MS = 60_000
/** After a slice that removed something: it is no hurry. */
const PAUSE_MS = 20
/**
 * After names or states were collected: every cache of their numbers is read again, in ingest and queries, which at
 * millions of rows takes a while.
 */
const LEARN_MS = 60_000
const REMEMBERED: ReadonlySet<UpkeepTask> = new Set(['names', 'states'])

export function keepBounds({ eventsKept, eventsDays, historyDays, revisionsKept, changesKept }: Retention, nowMs: number): KeepBounds {
  const count = (kept: number): number => (kept === 0 ? Number.POSITIVE_INFINITY : kept)
  const since = (days: number): number => (days === 0 ? 0 : Math.max(0, nowMs - days * DAY_MS))
  return {
    nowMs,
    eventsMax: count(eventsKept),
    eventsSinceMs: since(eventsDays),
    historySinceMs: since(historyDays),
    revisionsMax: count(revisionsKept),
    changesMax: count(changesKept),
  }
}

export interface UpkeepDeps {
  upkeep: StoreUpkeep
  retention: Retention
  clock: Clock
  random: Random
  log: Logger
}

/** Until the signal. */
export async function keepUp(deps: UpkeepDeps, signal: AbortSignal): Promise<void> {
  const { clock, random, log } = deps
  await clock.sleep(FIRST_AFTER_MS * (1 + random()), signal)
  while (!signal.aborted) {
    try {
      const removed = await upkeepRound(deps, signal)
      if (Object.keys(removed).length > 0) log.info('expired rows of the fleet store deleted', removed)
    } catch (error) {
      // The next round does what this one left.
      if (!signal.aborted) log.warn('retention of the fleet store failed', { error: describeError(error) })
    }
    await clock.sleep(HOUR_MS * (0.75 + random() / 2), signal)
  }
}

/** How many rows went, by task. */
export async function upkeepRound(
  { upkeep, retention, clock }: UpkeepDeps,
  signal: AbortSignal,
): Promise<Partial<Record<UpkeepTask, number>>> {
  const keep = keepBounds(retention, clock.nowMs())
  const gone: Partial<Record<UpkeepTask, number>> = {}
  for (const task of UPKEEP_TASKS) {
    if (signal.aborted) break
    let from: string | null = null
    do {
      const { removed, next, pauses = false }: UpkeepSlice = await upkeep.slice(task, keep, from)
      if (removed > 0) gone[task] = (gone[task] ?? 0) + removed
      from = next
      await clock.sleep(removed === 0 && !pauses ? 0 : REMEMBERED.has(task) ? LEARN_MS : PAUSE_MS, signal)
    } while (from !== null && !signal.aborted)
  }
  return gone
}
