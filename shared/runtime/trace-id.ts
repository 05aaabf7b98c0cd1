// The correlation id of a change: 32 hex digits from a commit to the objects it changed, in logs, events and status. It
// is the trace id of OpenTelemetry, too.
import { createHash } from 'node:crypto'
import { z } from 'zod'

export const TRACE_ID_CHARS = 32
const SPAN_ID_CHARS = 16
/** A sender that is newer may use another form: it correlates nothing here. */
export const traceIdSchema = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .optional()
  .catch(undefined)

/** The same parts give the same id: a server that is restarted during a publication continues with it. */
export function traceIdOf(salt: string, parts: readonly string[]): string {
  const id = createHash('sha256')
    .update(JSON.stringify(['skerry', salt, ...parts]))
    .digest('hex')
    .slice(0, TRACE_ID_CHARS)
  return isAllZero(id) ? id.replace(/.$/, '1') : id // W3C: no id is all zeros
}

/** The span that begins a trace; the parent of every span whose own parent is in another process. */
export function rootSpanId(traceId: string): string {
  const id = traceId.slice(-SPAN_ID_CHARS)
  return isAllZero(id) ? id.replace(/.$/, '1') : id
}

/** W3C trace context, version 00. */
export const traceparentOf = (traceId: string, isSampled: boolean): string =>
  `00-${traceId}-${rootSpanId(traceId)}-${isSampled ? '01' : '00'}`

const isAllZero = (id: string): boolean => /^0+$/.test(id)

/** For fields of a log line or a document; nothing where no id is known. */
export const withTrace = (trace: string | undefined): { trace?: string } => (trace === undefined ? {} : { trace })
