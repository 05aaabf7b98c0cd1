// The port of sinks: one message in, what the receiver calls it out. A failure says whether another try can help; it
// never holds a secret.
import type { NotificationSinkSpec, Severity } from '../../../shared/model/notifications.ts'
import type { AddressGuard } from '../../sources/address/guard.ts'

/** The message for every type of sink. */
export interface Message {
  /** The same for every try of the same version: receivers that know it drop the second one. */
  dedupeKey: string
  /** Names the group over all its versions. */
  groupId: string
  version: number
  title: string
  text: string
  severity: Severity
  reason: string
  resolved: boolean
  project: string | null
  service: string | null
  /** `apps@4be19d0`. */
  after: string | null
  members: readonly string[]
  /** How many it is about now, and was about. */
  active: number
  total: number
  firstMs: number
  lastMs: number
  /** Page of the dashboard. */
  url: string
}

export interface Sending {
  spec: NotificationSinkSpec
  secrets: Readonly<Record<string, string>>
  /** Id of the message at the receiver; null means new. */
  ref: string | null
  addresses: AddressGuard
  signal: AbortSignal
  nowMs: number
}

export interface Sent {
  ref: string | null
  /** Answer of the receiver in a few words. */
  detail: string
}

export type Sink = (message: Message, sending: Sending) => Promise<Sent>

export class SinkError extends Error {
  /** Whether the same message may be taken later. */
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined

  constructor(message: string, { retryable, retryAfterMs }: { retryable: boolean; retryAfterMs?: number | undefined }) {
    super(message)
    this.retryable = retryable
    this.retryAfterMs = retryAfterMs
  }
}

export function secretOf(sending: Pick<Sending, 'secrets' | 'spec'>, name: string): string {
  const value = sending.secrets[name]?.trim()
  if (value !== undefined && value !== '') return value
  const config = sending.spec.auth?.secretRef
  throw new SinkError(`the Config ${config ?? 'of auth.secretRef'} has no secret ${name}; set it with \`skerry apply -f\``, {
    retryable: false,
  })
}
