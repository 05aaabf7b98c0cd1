// The audit log for people who may read it: a list with filters, and the whole log in its order, with the keys to
// verify it elsewhere.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { type AuditRecord, auditHeadBytes, auditPageSchema, auditRecordSchema, auditStateSchema } from '../../shared/model/audit.ts'
import { AUDIT_RESULTS } from '../../shared/model/audit-words.ts'
import { listOf } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import type { Scope } from '../fleet/rights.ts'
import { forbidden } from './auth.ts'
import type { AdminDeps } from './deps.ts'
import { continueQuery, decodeContinue, encodeContinue, limitQuery } from './query.ts'

const text = z.string().min(1).max(256).optional()
const listQuery = z.object({
  limit: limitQuery,
  continue: continueQuery,
  since: z.iso.datetime({ offset: true }).optional(),
  until: z.iso.datetime({ offset: true }).optional(),
  actor: text,
  verb: text,
  kind: text,
  project: nameSchema.optional(),
  name: text,
  cluster: nameSchema.optional(),
  result: z.enum(AUDIT_RESULTS).optional(),
})
const pageQuery = z.object({ after: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).default(0), limit: limitQuery })

export function auditRoutes({ store, authorizer, principal, serverKeys, clock }: AdminDeps) {
  return new Elysia({ tags: ['audit'] })
    .get(
      '/audit',
      async ({ query: { limit, continue: from, since, until, project, ...wanted }, request }) => {
        const caller = principal(request)
        const projects = projectsOf(authorizer.scope(caller, 'audit:read', 'Audit'))
        if (projects?.length === 0) throw forbidden(caller, { verb: 'audit:read', kind: 'Audit' })
        const { items, next } = await store.audit.list({
          ...{ ...wanted, limit, before: positionOf(from) },
          sinceMs: since === undefined ? undefined : Date.parse(since),
          untilMs: until === undefined ? undefined : Date.parse(until),
          projects: project === undefined ? projects : [project].filter((one) => projects === undefined || projects.includes(one)),
        })
        return { items, continue: next === null ? null : encodeContinue(String(next)) }
      },
      {
        query: listQuery,
        response: listOf(auditRecordSchema),
        detail: { summary: 'List the audit log, newest first; a page may be empty and go on' },
      },
    )
    .get(
      '/audit/state',
      async () => {
        const { seq, hash, anchor } = await store.audit.head()
        const head = { seq, hash, at: new Date(clock.nowMs()).toISOString(), key: serverKeys.publicKeys[0] }
        return { head: { ...head, signature: serverKeys.sign(auditHeadBytes(head)) }, anchor, keys: keysOf(serverKeys) }
      },
      {
        response: auditStateSchema,
        detail: { summary: 'Signed newest position of the audit log, and the anchor that replaces deleted entries' },
      },
    )
    .get(
      '/audit/entries',
      async ({ query: { after, limit } }) => {
        const rows = await store.audit.read({ after, limit })
        const items = rows.map(({ seq, hash, doc }): AuditRecord | { seq: number; hash: string; unreadable: true } => {
          const entry = auditRecordSchema.safeParse({ ...parsed(doc), hash })
          return entry.success ? entry.data : { seq, hash, unreadable: true }
        })
        return { items, mismatched: rows.filter(({ columnsMatch }) => !columnsMatch).map(({ seq }) => seq) }
      },
      {
        query: pageQuery,
        response: auditPageSchema,
        detail: { summary: 'Entries of the whole audit log, oldest first, for export and verification' },
      },
    )
}

/** Undefined means all of them. A grant for some services or clusters says nothing of the log. */
function projectsOf(scope: Scope): readonly string[] | undefined {
  const whole = scope.filter(({ services, clusters }) => services === null && clusters === null)
  if (whole.some(({ projects }) => projects === null)) return undefined
  return whole.flatMap(({ projects }) => projects ?? [])
}

function positionOf(from: string | undefined): number | undefined {
  const position = decodeContinue(from)
  if (position === undefined) return undefined
  if (/^\d{1,16}$/.test(position)) return Number(position)
  throw new AppError('bad_request', {
    detail: 'continue is not from this list',
    problems: [{ path: 'continue', message: 'expected the value from the previous page' }],
  })
}

const keysOf = ({ history }: AdminDeps['serverKeys']) => history.map(({ publicKey, isRevoked }) => ({ publicKey, isRevoked }))

function parsed(doc: string): object {
  try {
    const value: unknown = JSON.parse(doc)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
