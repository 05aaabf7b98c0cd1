// A message to one sink, as the store keeps it: what it says, how far its delivery is, and what the sink called it.
import type { Severity } from '../../shared/model/notifications.ts'

/** `open`: it may still change. `closed`: it is told. `dead`: it could not be delivered, and is not tried again by
 *  itself. */
export type NotificationState = 'open' | 'closed' | 'dead'

/** A group of events of one route. */
export interface EventsDoc {
  type: 'events'
  reason: string
  severity: Severity
  project: string | null
  service: string | null
  /** `apps@4be19d0`. Null means not about a commit. */
  after: string | null
  /** `fix the port (Ana Example)`. Absent means not known. */
  commit?: string
  /** Message of the newest event. */
  message: string
  /** Those that it is about now: clusters, or objects where no cluster is named. */
  members: string[]
  /** Names of clusters, for texts. */
  ofClusters: boolean
  /** Those that were too many to be named. */
  unnamed: number
  /** All that it was ever about. */
  total: number
  /** Counts by `reason project/service` of a digest. Absent means no digest. */
  digest?: Record<string, number>
  firstMs: number
  lastMs: number
  resolved: boolean
}

/** The state of a commit for one service over the fleet. */
export interface CommitDoc {
  type: 'commit'
  project: string
  service: string
  sha: string
  state: 'pending' | 'success' | 'failure'
  description: string
}

export type NotificationDoc = EventsDoc | CommitDoc

export interface NotificationRecord {
  id: number
  /** Project of route and sink; '' is the fleet. */
  project: string
  /** '' for a commit status. */
  route: string
  sink: string
  groupKey: string
  state: NotificationState
  /** Grows with each text that is to be sent. */
  version: number
  /** The last version that was delivered; 0: none. */
  sentVersion: number
  /** Failed tries since the last delivery. */
  attempts: number
  /** When to send. Null means that there is nothing to send. */
  nextMs: number | null
  createdMs: number
  updatedMs: number
  sentMs: number | null
  /** The first failed attempt since the last delivery; 0: none. */
  triedMs: number
  error: string | null
  /** Id of the message at the sink, for updates; null if not sent, or if the sink has no ids. */
  ref: string | null
  doc: NotificationDoc
}

export type NewNotification = Omit<NotificationRecord, 'id'>
