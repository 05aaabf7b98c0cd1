// Reads, verifies and shortens the audit log. Entries of a change are written with it (`audit-log.ts`).
import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { type AuditAnchor, type AuditRecord, auditAnchorSchema, auditEntrySchema } from '../../../shared/model/audit.ts'
import type { StoreDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import type { Deed } from './audit-log.ts'
import { readAuditHead } from './audit-log.ts'

export interface AuditQuery {
  /** Strictly below that entry. */
  before?: number | undefined
  sinceMs?: number | undefined
  untilMs?: number | undefined
  actor?: string | undefined
  verb?: string | undefined
  kind?: string | undefined
  /** Any of them. */
  projects?: readonly string[] | undefined
  name?: string | undefined
  cluster?: string | undefined
  result?: string | undefined
  limit: number
}

/** As the row says it; whether that is right is the verifier's business. */
export interface AuditRow {
  seq: number
  hash: string
  doc: string
  /** Whether the columns for look-ups say what `doc` says. */
  columnsMatch: boolean
}

export interface AuditStore {
  /** For deeds that change nothing else in the store: denials, sign-ins, changes of key files. */
  append(deeds: readonly Deed[]): Promise<void>
  /**
   * Newest first. A page may have fewer entries than its limit, even none, and continue: the number of entries that one
   * page reads is bounded.
   */
  list(query: AuditQuery): Promise<{ items: AuditRecord[]; next: number | null }>
  /** Oldest first, strictly after that entry. */
  read(query: { after: number; limit: number }): Promise<AuditRow[]>
  head(): Promise<{ seq: number; hash: string; anchor: AuditAnchor | null }>
  /** Deletes at most `limit` of the oldest entries before that time and anchors what is left. How many went. */
  drop(beforeMs: number, limit: number, anchorOf: AnchorOf): Promise<number>
}

/** Signs what stands in the place of deleted entries. */
export type AnchorOf = (last: { seq: number; hash: string; deleted: number }) => AuditAnchor

/** Looked through between two turns of everybody else. */
const SLICE = 5_000
/** Looked through for one page. */
const SLICES_MAX = 40

export function createAuditStore(db: StoreDb): { audit: AuditStore } {
  return {
    audit: {
      append: (deeds) =>
        db.write(async ({ audit }) => {
          for (const deed of deeds) audit.add(deed)
        }),
      list: (query) => list(db, query),
      async read({ after, limit }) {
        const rows = await db.read.selectFrom('audit').selectAll().where('seq', '>', after).orderBy('seq').limit(limit).execute()
        return rows.map(toRow)
      },
      async head() {
        const { rows } = await sql<Tables['audit_head']>`select seq, hash, anchor from audit_head`.execute(db.read)
        const [head] = rows
        if (head === undefined) throw new Error('the store has no head of its audit log')
        return { seq: head.seq, hash: head.hash, anchor: readAnchor(head.anchor) }
      },
      drop: (beforeMs, limit, anchorOf) => drop(db, beforeMs, limit, anchorOf),
    },
  }
}

const readAnchor = (text: string | null): AuditAnchor | null => (text === null ? null : auditAnchorSchema.parse(JSON.parse(text)))

const EQUAL = ['actor', 'verb', 'kind', 'name', 'cluster', 'result'] as const

async function list(db: StoreDb, query: AuditQuery): Promise<{ items: AuditRecord[]; next: number | null }> {
  const { limit, sinceMs, untilMs, projects } = query
  if (projects?.length === 0) return { items: [], next: null }
  const items: AuditRecord[] = []
  const { seq: newest } = await readAuditHead(db.read)
  let upTo = Math.min(query.before ?? newest + 1, newest + 1)
  upTo = Math.min(upTo, await endOf(db, untilMs))
  for (let slice = 0; slice < SLICES_MAX && upTo > 1; slice++) {
    if (slice > 0) await setImmediate()
    const from = Math.max(1, upTo - SLICE)
    let select = db.read.selectFrom('audit').select(['seq', 'at_ms', 'hash', 'doc']).where('seq', '>=', from).where('seq', '<', upTo)
    for (const column of EQUAL) {
      const wanted = query[column]
      if (wanted !== undefined) select = select.where(column, '=', wanted)
    }
    if (projects !== undefined) select = select.where('project', 'in', projects)
    if (sinceMs !== undefined) select = select.where('at_ms', '>=', sinceMs)
    if (untilMs !== undefined) select = select.where('at_ms', '<', untilMs)
    for (const { hash, doc } of await select
      .orderBy('seq', 'desc')
      .limit(limit - items.length)
      .execute())
      items.push({ ...auditEntrySchema.parse(JSON.parse(doc)), hash })
    const last = items.at(-1)
    if (last !== undefined && items.length === limit) return { items, next: last.seq }
    if (await isBefore(db, from, sinceMs)) return { items, next: null }
    upTo = from
  }
  return { items, next: upTo > 1 ? upTo : null }
}

/** The position after the newest entry of before that time. */
async function endOf(db: StoreDb, untilMs: number | undefined): Promise<number> {
  if (untilMs === undefined) return Number.POSITIVE_INFINITY
  const found = db.read.selectFrom('audit').select('seq').where('at_ms', '<', untilMs)
  const row = await found.orderBy('at_ms', 'desc').orderBy('seq', 'desc').limit(1).executeTakeFirst()
  return (row?.seq ?? 0) + 1
}

/** Clocks go back by seconds; entries that far before `sinceMs` have none after them that is newer. */
const CLOCK_SLACK_MS = 3_600_000
async function isBefore(db: StoreDb, seq: number, sinceMs: number | undefined): Promise<boolean> {
  if (sinceMs === undefined) return false
  const row = await db.read.selectFrom('audit').select('at_ms').where('seq', '=', seq).executeTakeFirst()
  return row === undefined || row.at_ms < sinceMs - CLOCK_SLACK_MS
}

function toRow(row: Tables['audit']): AuditRow {
  const { seq, hash, doc } = row
  const entry = parseEntry(doc)
  const columnsMatch =
    entry !== null &&
    entry.seq === seq &&
    Date.parse(entry.at) === row.at_ms &&
    entry.actor.name === row.actor &&
    entry.verb === row.verb &&
    entry.kind === row.kind &&
    (entry.project ?? null) === row.project &&
    (entry.name ?? null) === row.name &&
    (entry.cluster ?? null) === row.cluster &&
    entry.result === row.result
  return { seq, hash, doc, columnsMatch }
}

function parseEntry(doc: string) {
  try {
    return auditEntrySchema.safeParse(JSON.parse(doc)).data ?? null
  } catch {
    return null
  }
}

/** The anchor is signed before the entries go, in the transaction that deletes them. An entry that is not old is never
 *  skipped: what goes is a beginning of the log. */
const drop = (db: StoreDb, beforeMs: number, limit: number, anchorOf: AnchorOf): Promise<number> =>
  db.write(async ({ sql: trx, audit }) => {
    const oldest = await trx.selectFrom('audit').select(['seq', 'at_ms', 'hash']).orderBy('seq').limit(limit).execute()
    const young = oldest.findIndex(({ at_ms }) => at_ms >= beforeMs)
    const old = young < 0 ? oldest : oldest.slice(0, young)
    const last = old.at(-1)
    if (last === undefined) return 0
    const { rows } = await sql<{ anchor: string | null }>`select anchor from audit_head`.execute(trx)
    const deleted = (readAnchor(rows[0]?.anchor ?? null)?.deleted ?? 0) + old.length
    const anchor = anchorOf({ seq: last.seq, hash: last.hash, deleted })
    await sql`update audit_head set anchor = ${JSON.stringify(anchor)}`.execute(trx)
    await trx.deleteFrom('audit').where('seq', '<=', last.seq).execute()
    audit.add({ verb: 'expire', kind: 'Audit', detail: `${old.length} entries up to ${last.seq}` })
    return old.length
  })
