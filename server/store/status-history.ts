// When the words of a service in a cluster changed, by the clock of the server. What comes and goes within seconds is one change, so that an object that flaps fills nothing.
import { sql, type Transaction } from 'kysely'
import { parseServiceKey } from '../../shared/model/ids.ts'
import { serviceStatusSchema } from '../../shared/model/status.ts'
import type { HistoryEntry, Store } from './store.ts'
import type { StoreDb } from './store-db.ts'
import type { Tables } from './tables.ts'

/** A change this soon after the one before takes its place. */
export const FLAP_MS = 10_000

type Row = Tables['status_history']
type Words = Pick<Row, 'sync' | 'health' | 'reason'>
export type HistoryNote = Words & Pick<Row, 'project' | 'service' | 'commit_id'>
/** Of a cluster, at a time. */
export type PlacedNote = HistoryNote & { clusterNo: number; nowMs: number }

export function createHistoryStore(db: StoreDb): Pick<Store, 'statusHistory'> {
  return {
    statusHistory: async (clusterId, { project, service }, { before, limit }) => {
      let query = db.read
        .selectFrom('status_history')
        .innerJoin('clusters', 'clusters.no', 'status_history.cluster_no')
        .select(['at_ms', 'sync', 'health', 'reason', 'commit_id'])
        .where('clusters.cluster_id', '=', clusterId)
        .where('project', '=', project)
        .where('service', '=', service)
      if (before !== undefined) query = query.where('at_ms', '<', before)
      const rows = await query.orderBy('at_ms', 'desc').limit(limit).execute()
      return rows.map(({ at_ms, commit_id, ...words }): HistoryEntry => ({ ...words, atMs: at_ms, commit: commit_id }))
    },
  }
}

/** What is to be remembered of rows that changed; a service that is gone has no words. */
export function historyNotes(rows: ReadonlyArray<{ kind: string; key: string; doc: unknown }>): HistoryNote[] {
  return rows.flatMap(({ kind, key, doc }): HistoryNote[] => {
    if (kind !== 'service' || doc === null) return []
    const status = serviceStatusSchema.safeParse(doc).data
    if (status === undefined) return []
    const { sync, health, reason, applied, received } = status
    return [{ ...parseServiceKey(key), sync, health, reason, commit_id: (applied ?? received)?.commit ?? null }]
  })
}

export type HistoryStep =
  | { kind: 'nothing' }
  | { kind: 'add'; atMs: number }
  /** The newest row says this from now on. */
  | { kind: 'replace' }
  /** The newest row goes: it is again as it was before it. */
  | { kind: 'take back' }

/** `newest`, `before`: the last two rows that are held, if there are. */
export function historyStep(
  newest: (Words & { at_ms: number }) | undefined,
  before: Words | undefined,
  now: Words,
  nowMs: number,
): HistoryStep {
  if (newest === undefined) return { kind: 'add', atMs: nowMs }
  if (same(newest, now)) return { kind: 'nothing' }
  const sinceMs = nowMs - newest.at_ms
  // A clock that was set back: the order of rows is the order of what happened.
  if (sinceMs < 0 || sinceMs >= FLAP_MS) return { kind: 'add', atMs: Math.max(nowMs, newest.at_ms + 1) }
  return before !== undefined && same(before, now) ? { kind: 'take back' } : { kind: 'replace' }
}

const same = (a: Words, b: Words): boolean => a.sync === b.sync && a.health === b.health && a.reason === b.reason

/** Services in one statement. */
const BATCH_SERVICES = 200

/** In the transaction that writes what clusters reported, each service of a cluster once. */
export async function noteHistory(trx: Transaction<Tables>, notes: readonly PlacedNote[]): Promise<void> {
  for (let start = 0; start < notes.length; start += BATCH_SERVICES) await noteSome(trx, notes.slice(start, start + BATCH_SERVICES))
}

async function noteSome(trx: Transaction<Tables>, notes: readonly PlacedNote[]): Promise<void> {
  const newest = new Map((await newestOf(trx, notes)).map((row) => [placement(row), row]))
  const added: Row[] = []
  for (const { clusterNo: cluster_no, nowMs, ...note } of notes) {
    const held = newest.get(placement({ ...note, cluster_no }))
    const flaps = held !== undefined && nowMs - held.at_ms < FLAP_MS
    const before = flaps && !same(held, note) ? await rowBefore(trx, held) : undefined
    const step = historyStep(held, before, note, nowMs)
    if (step.kind === 'add') added.push({ ...note, cluster_no, at_ms: step.atMs })
    else if (step.kind === 'replace' && held !== undefined) await atRow(trx.updateTable('status_history').set(note), held).execute()
    else if (step.kind === 'take back' && held !== undefined) await atRow(trx.deleteFrom('status_history'), held).execute()
  }
  if (added.length > 0) await trx.insertInto('status_history').values(added).execute()
}

const placement = ({ cluster_no, project, service }: Pick<Row, 'cluster_no' | 'project' | 'service'>): string =>
  `${cluster_no} ${project}/${service}`

async function newestOf(trx: Transaction<Tables>, notes: readonly PlacedNote[]): Promise<Row[]> {
  const named = sql.join(notes.map(({ clusterNo, project, service }) => sql`(cast(${clusterNo} as bigint), ${project}, ${service})`))
  const { rows } = await sql<Row>`select h.* from (values ${named}) as v join status_history h
    on h.cluster_no = v.column1 and h.project = v.column2 and h.service = v.column3 and h.at_ms = (
      select max(at_ms) from status_history where cluster_no = v.column1 and project = v.column2 and service = v.column3)`.execute(trx)
  return rows
}

const rowBefore = (trx: Transaction<Tables>, { cluster_no, project, service, at_ms }: Row) =>
  trx
    .selectFrom('status_history')
    .select(['sync', 'health', 'reason'])
    .where('cluster_no', '=', cluster_no)
    .where('project', '=', project)
    .where('service', '=', service)
    .where('at_ms', '<', at_ms)
    .orderBy('at_ms', 'desc')
    .limit(1)
    .executeTakeFirst()

interface Placed {
  where(column: 'cluster_no' | 'at_ms', operator: '=', value: number): this
  where(column: 'project' | 'service', operator: '=', value: string): this
}
const atRow = <T extends Placed>(query: T, { cluster_no, project, service, at_ms }: Row): T =>
  query.where('cluster_no', '=', cluster_no).where('project', '=', project).where('service', '=', service).where('at_ms', '=', at_ms)

/** With the cluster. */
export async function forgetHistory(trx: Transaction<Tables>, clusterNo: number): Promise<void> {
  await trx.deleteFrom('status_history').where('cluster_no', '=', clusterNo).execute()
}
