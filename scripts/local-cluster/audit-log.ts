// The API server's own record of requests and their users: the only count of requests by user agent (its metrics have
// none).
import { readFileSync, statSync } from 'node:fs'

/** One answered request, as the API server logs it; a watch is logged when it begins (ResponseStarted) and when it ends. */
export interface AuditEvent {
  stage: 'ResponseStarted' | 'ResponseComplete' | 'Panic'
  verb: string
  requestURI: string
  userAgent?: string
  user: { username: string }
  objectRef?: { resource: string; namespace?: string; name?: string; apiGroup?: string; subresource?: string }
  responseStatus?: { code: number; reason?: string }
  requestReceivedTimestamp: string
  stageTimestamp: string
}

export interface AuditFilter {
  /** A part of the user agent, for example `skerry-agent`. */
  userAgent?: string
  verbs?: readonly string[]
  /** Only what was logged after this mark was taken. */
  since?: number
}

export const AUDIT_POLICY = JSON.stringify({
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata' }],
})

/** Verbs that change something. */
export const WRITE_VERBS = ['create', 'update', 'patch', 'delete', 'deletecollection'] as const

export function parseAuditLog(text: string, { userAgent, verbs }: AuditFilter): AuditEvent[] {
  const events: AuditEvent[] = []
  for (const line of text.split('\n')) {
    if (line === '') continue
    if (userAgent !== undefined && !line.includes(userAgent)) continue
    const event = JSON.parse(line) as AuditEvent
    if (userAgent !== undefined && !event.userAgent?.includes(userAgent)) continue
    if (verbs !== undefined && !verbs.includes(event.verb)) continue
    events.push(event)
  }
  return events
}

/** The end of the log now, to be given as `since` later. */
export const auditMark = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

export function readAuditLog(path: string, filter: AuditFilter): AuditEvent[] {
  const bytes = readFileSync(path).subarray(filter.since ?? 0)
  // A line that is being written now has no end yet and belongs to the next call.
  return parseAuditLog(bytes.subarray(0, bytes.lastIndexOf(10) + 1).toString(), filter)
}
