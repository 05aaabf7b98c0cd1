// The port to the outbox of notifications. The event stream is the log of what happened; a plan moves the cursor over
// it and writes the messages in one transaction, so that a crash loses no event and plans none twice.
import type { NewNotification, NotificationRecord, NotificationState } from '../../fleet/notification-records.ts'

/** Messages that are closed or dead, as many as are kept. */
export const NOTIFICATIONS_KEPT_MAX = 10_000

export interface PlanWrite {
  /** Over the event stream. Absent means that the messages are of no event. `from`: the cursor that the plan began
   *  with, another one by now writes nothing. */
  cursor?: { from: number; to: number }
  created: readonly NewNotification[]
  changed: readonly NotificationRecord[]
}

export interface NotificationQuery {
  /** Project of the route; '' is the fleet, absent all. */
  project?: string
  sink?: string
  route?: string
  state?: NotificationState
  /** Strictly older than that one. */
  before?: number
  limit: number
}

export interface SinkCounts {
  waiting: number
  dead: number
  lastSentMs: number | null
  /** Error of the newest message whose last attempt failed, unless a later one was delivered. */
  error: string | null
}

export interface NotificationOutbox {
  /** Number of the last event that is planned. The first call begins at the newest event: history is not news. */
  cursor(): Promise<number>
  /** Writes a plan. Null means another process planned meanwhile. Ids of `created`, in order. */
  plan(write: PlanWrite): Promise<number[] | null>
  /** Moves a cursor that there is to the newest event: nobody wanted what came before. */
  skipToNewest(): Promise<void>
  /** All that may still change or be sent. */
  pending(): Promise<NotificationRecord[]>
  /** After a try, or a change of its state. */
  settle(record: NotificationRecord): Promise<void>
  get(id: number): Promise<NotificationRecord | null>
  /** Newest first. */
  list(query: NotificationQuery): Promise<NotificationRecord[]>
  countsOf(project: string, sink: string): Promise<SinkCounts>
  openOf(project: string, route: string): Promise<number>
  /** Over all sinks. `failingSinceMs`: the first failed attempt of any of `failed`. Null means none fails. */
  totals(): Promise<{ waiting: number; failed: number; dead: number; failingSinceMs: number | null }>
  /** NO8: removes what is beyond NOTIFICATIONS_KEPT_MAX. How many went. */
  prune(): Promise<number>
}
