// Spans of OpenTelemetry as the product knows them: a finished piece of work with its times. Only
// shared/adapters/telemetry.ts knows the library behind it.

/** Names are few and constant; values never hold secrets or content of objects. */
export interface FinishedSpan {
  name: 'ingest' | 'change' | 'render' | 'publish' | 'pull' | 'apply' | 'become healthy'
  /** Correlation id of the change (CO1), which is the id of the trace. */
  trace: string
  startMs: number
  endMs: number
  /** It begins the trace; every other span is a child of that one. */
  isRoot?: boolean
  attributes: Readonly<Record<string, string | number>>
  /** Absent means that it succeeded. */
  error?: string
}

/** Returns at once: what cannot be sent is dropped. */
export type RecordSpan = (span: FinishedSpan) => void
