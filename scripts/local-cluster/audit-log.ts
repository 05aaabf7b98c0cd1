// The API server's own record of requests and their users: the only count of requests by user agent (its metrics have
// none).
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, parse } from 'node:path'

/** One answered request, as the API server logs it; a watch is logged when it begins (ResponseStarted) and when it
 *  ends. */
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

/**
 * True for a list, and for the begin of a watch that lists first (`sendInitialEvents`): both read every object of a
 * kind. The end of such a watch says nothing about when it listed. A watch of one object by name lists it whenever it
 * is renewed (KA41), which costs the server no more than resuming.
 */
export const isList = ({ stage, verb, requestURI }: Pick<AuditEvent, 'stage' | 'verb' | 'requestURI'>): boolean =>
  verb === 'list' || (verb === 'watch' && stage === 'ResponseStarted' && listsFirst(new URLSearchParams(requestURI.split('?')[1])))

const listsFirst = (query: URLSearchParams): boolean =>
  query.get('sendInitialEvents') === 'true' && !query.get('fieldSelector')?.startsWith('metadata.name=')

/** The end of the log now, to be given as `since` later: bytes since the first line, over all files. */
export const auditMark = (path: string): number => auditFiles(path).reduce((sum, file) => sum + statSync(file).size, 0)

export function readAuditLog(path: string, filter: AuditFilter): AuditEvent[] {
  const bytes = Buffer.concat(auditFiles(path).map((file) => readFileSync(file))).subarray(filter.since ?? 0)
  // A line that is being written now has no end yet and belongs to the next call.
  return parseAuditLog(bytes.subarray(0, bytes.lastIndexOf(10) + 1).toString(), filter)
}

/**
 * The files of the log, the oldest first. At 100 MiB the API server renames `audit.log` to `audit-TIME.log`, keeps it
 * (`--audit-log-maxbackup` is 0) and begins a new one.
 */
function auditFiles(path: string): string[] {
  const { dir, name, ext } = parse(path)
  if (!existsSync(dir)) return []
  const rotated = readdirSync(dir).filter((file) => file.startsWith(`${name}-`) && file.endsWith(ext) && /\d{4}-\d\d-\d\dT/.test(file))
  return [...rotated.sort().map((file) => join(dir, file)), ...(existsSync(path) ? [path] : [])]
}
