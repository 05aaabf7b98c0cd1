// When the words of a service in a cluster changed, by the clock of the server. What comes and goes within seconds is
// one change, so that an object that flaps fills nothing.
import type { Selectable, Transaction } from 'kysely'
import { serviceStatusSchema } from '../../../shared/model/status.ts'
import { parseServiceKey } from '../../../shared/runtime/ids.ts'
import type { HistoryEntry, KeptCause } from '../../fleet/records.ts'
import { type Bulk, runBulk } from '../bulk.ts'
import type { Store } from '../store.ts'
import type { StoreDb, Tx } from '../store-db.ts'
import type { Tables } from '../tables.ts'

/** A change this soon after the one before takes its place. */
export const FLAP_MS = 10_000

type Row = Selectable<Tables['status_history']>
type Words = Pick<Row, 'sync' | 'health' | 'reason'>
type Said = Words & Pick<Row, 'commit_id'>
export type HistoryNote = Words & Pick<Row, 'project' | 'service' | 'commit_id'>
/** A note with its cluster and time. */
export type PlacedNote = HistoryNote & { clusterNo: number; nowMs: number }

export function createHistoryStore(db: StoreDb): Pick<Store, 'statusHistory' | 'clusterHistory'> {
  return {
    statusHistory: async (clusterId, { project, service }, { before, limit }) => {
      let query = db.read
        .selectFrom('status_history')
        .innerJoin('clusters', 'clusters.no', 'status_history.cluster_no')
        .select(['at_ms', 'sync', 'health', 'reason', 'commit_id', 'cause'])
        .where('clusters.cluster_id', '=', clusterId)
        .where('project', '=', project)
        .where('service', '=', service)
      if (before !== undefined) query = query.where('at_ms', '<', before)
      const rows = await query.orderBy('at_ms', 'desc').limit(limit).execute()
      return rows.map(toEntry)
    },

    clusterHistory: async (clusterId, { before, limit }) => {
      let query = db.read
        .selectFrom('status_history')
        .innerJoin('clusters', 'clusters.no', 'status_history.cluster_no')
        .select(['project', 'service', 'at_ms', 'sync', 'health', 'reason', 'commit_id', 'cause'])
        .where('clusters.cluster_id', '=', clusterId)
      if (before !== undefined) query = query.where('at_ms', '<', before)
      const rows = await query.orderBy('at_ms', 'desc').orderBy('project').orderBy('service').limit(limit).execute()
      return rows.map(({ project, service, ...row }) => ({ project, service, ...toEntry(row) }))
    },
  }
}

export const toEntry = ({ at_ms, commit_id, cause, ...words }: Said & Pick<Row, 'at_ms' | 'cause'>): HistoryEntry => ({
  ...{ sync: words.sync, health: words.health, reason: words.reason },
  ...{ atMs: at_ms, commit: commit_id },
  ...(cause === null ? {} : { kept: JSON.parse(cause) as KeptCause | null }),
})

/** The notes to keep for changed rows. A service that is gone has no words. */
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
  newest: (Said & { at_ms: number }) | undefined,
  before: Said | undefined,
  now: Said,
  nowMs: number,
): HistoryStep {
  if (newest === undefined) return { kind: 'add', atMs: nowMs }
  // HI2: another commit is no flap. What was live, however shortly, has a row.
  if (newest.commit_id !== now.commit_id) return { kind: 'add', atMs: Math.max(nowMs, newest.at_ms + 1) }
  if (same(newest, now)) return { kind: 'nothing' }
  const sinceMs = nowMs - newest.at_ms
  // A clock that was set back: the order of rows is the order of what happened.
  if (sinceMs < 0 || sinceMs >= FLAP_MS) return { kind: 'add', atMs: Math.max(nowMs, newest.at_ms + 1) }
  return before !== undefined && before.commit_id === now.commit_id && same(before, now) ? { kind: 'take back' } : { kind: 'replace' }
}

const same = (a: Words, b: Words): boolean => a.sync === b.sync && a.health === b.health && a.reason === b.reason

// The casts: PostgreSQL takes parameters in a list of values for text. A cross join: SQLite would otherwise read the
// whole table to meet a few values.
const LAST_TWO: Bulk = {
  before: 'select h.* from (values',
  row: '(cast(? as bigint), ?, ?)',
  after: `) as v cross join status_history h where h.cluster_no = v.column1 and h.project = v.column2 and h.service = v.column3 and h.at_ms >= coalesce((
    select at_ms from status_history where cluster_no = v.column1 and project = v.column2 and service = v.column3 order by at_ms desc limit 1 offset 1), 0)`,
  types: ['bigint', 'text', 'text'],
}
/** Cluster number, project, service, time. */
export const DROP_HISTORY: Bulk = {
  before: 'delete from status_history where (cluster_no, project, service, at_ms) in (values',
  row: '(cast(? as bigint), ?, ?, cast(? as bigint))',
  after: ')',
  types: ['bigint', 'text', 'text', 'bigint'],
}
const ADD_ROWS: Bulk = {
  before: 'insert into status_history (cluster_no, project, service, at_ms, sync, health, reason, commit_id) values',
  row: '(?, ?, ?, ?, ?, ?, ?, ?)',
  after: '',
  types: ['bigint', 'text', 'text', 'bigint', 'text', 'text', 'text', 'text'],
}

/** In the transaction that writes what clusters reported, each service of a cluster once. */
export async function noteHistory({ sql: trx, engine }: Tx, notes: readonly PlacedNote[]): Promise<void> {
  const last = new Map<string, Row[]>()
  const named = notes.map(({ clusterNo, project, service }) => [clusterNo, project, service])
  for (const row of await runBulk<Row>(trx, engine, LAST_TWO, named)) {
    const key = placement(row)
    last.set(key, [...(last.get(key) ?? []), row])
  }
  const [added, dropped]: [Array<Omit<Row, 'cause'>>, Row[]] = [[], []]
  for (const { clusterNo: cluster_no, nowMs, ...note } of notes) {
    const [newest, before] = (last.get(placement({ ...note, cluster_no })) ?? []).sort((a, b) => b.at_ms - a.at_ms)
    const step = historyStep(newest, before, note, nowMs)
    if (step.kind === 'add') added.push({ ...note, cluster_no, at_ms: step.atMs })
    if ((step.kind === 'replace' || step.kind === 'take back') && newest !== undefined) dropped.push(newest)
    if (step.kind === 'replace' && newest !== undefined) added.push({ ...note, cluster_no, at_ms: newest.at_ms })
  }
  await runBulk(
    trx,
    engine,
    DROP_HISTORY,
    dropped.map(({ cluster_no, project, service, at_ms }) => [cluster_no, project, service, at_ms]),
  )
  await runBulk(
    trx,
    engine,
    ADD_ROWS,
    added.map((row) => [row.cluster_no, row.project, row.service, row.at_ms, row.sync, row.health, row.reason, row.commit_id]),
  )
}

const placement = ({ cluster_no, project, service }: Pick<Row, 'cluster_no' | 'project' | 'service'>): string =>
  `${cluster_no} ${project}/${service}`

/** With the cluster. */
export async function forgetHistory(trx: Transaction<Tables>, clusterNo: number): Promise<void> {
  await trx.deleteFrom('status_history').where('cluster_no', '=', clusterNo).execute()
}
