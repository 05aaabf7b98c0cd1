// Causes outlive their events: before events expire, the changes of that time get the causes that the events show, in
// rows of the history. A change that no state shows (a drift that was corrected at once) becomes a row of its own.
import type { Selectable } from 'kysely'
import { writtenByOf } from '../../../shared/model/commits.ts'
import { CAUSE_AFTER_MS, CAUSE_BEFORE_MS, isCause, ofEvent, withCauses } from '../../fleet/history/causes.ts'
import type { FleetEvent, HistoryEntry } from '../../fleet/records.ts'
import { toEntry } from '../status/status-history.ts'
import { toEvent } from '../status/store-events.ts'
import { createCommitStore } from '../store-commits.ts'
import type { ReadDb, StoreDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'

type Row = Selectable<Tables['status_history']>
type Placement = Pick<Row, 'cluster_no' | 'project' | 'service'>

/** Rows that get their causes in one transaction. */
const ROWS_A_TIME = 100
const EVENTS_READ = 2_000
/** Events of a change may still be on their way from an agent. */
const SETTLED_AFTER_MS = 15 * 60_000
/** A placement with more changes gets no rows for events that changed no state: they would take the place of changes.
 */
const ROWS_WITHOUT_CHANGE_MAX = 50

/** The causes of changes up to that time, some at once. How many rows; 0: all have theirs. */
export async function keepCauses(db: StoreDb, upToMs: number, nowMs: number): Promise<number> {
  const untilMs = Math.min(upToMs + CAUSE_BEFORE_MS, nowMs - SETTLED_AFTER_MS)
  const due = await db.read
    .selectFrom('status_history')
    .selectAll()
    .where('cause', 'is', null)
    .where('at_ms', '<=', untilMs)
    .orderBy('at_ms')
    .limit(ROWS_A_TIME)
    .execute()
  const caused: Array<Row & { kept: string }> = []
  for (const rows of Map.groupBy(due, placementText).values()) {
    const causes = await causesOf(db, rows)
    for (const row of rows) caused.push({ ...row, kept: JSON.stringify(causes.get(row.at_ms) ?? null) })
  }
  if (caused.length === 0) return 0
  await db.write(async ({ sql: trx }) => {
    for (const { kept, ...row } of caused)
      await trx
        .updateTable('status_history')
        .set({ cause: kept })
        .where('cluster_no', '=', row.cluster_no)
        .where('project', '=', row.project)
        .where('service', '=', row.service)
        .where('at_ms', '=', row.at_ms)
        // Another change may have taken its place meanwhile.
        .where('reason', '=', row.reason)
        .where('cause', 'is', null)
        .execute()
  })
  return caused.length
}

const placementText = ({ cluster_no, project, service }: Placement): string => `${cluster_no} ${project}/${service}`

const historyOf = (db: ReadDb, { cluster_no, project, service }: Placement) =>
  db.selectFrom('status_history').where('cluster_no', '=', cluster_no).where('project', '=', project).where('service', '=', service)

/** By the time of the row. `rows`: of one placement, oldest first. */
async function causesOf(db: StoreDb, rows: readonly Row[]): Promise<Map<number, HistoryEntry['kept']>> {
  const [first, last] = [rows[0], rows.at(-1)]
  if (first === undefined || last === undefined) return new Map()
  const before = await historyOf(db.read, first)
    .selectAll()
    .where('at_ms', '<', first.at_ms)
    .orderBy('at_ms', 'desc')
    .limit(1)
    .executeTakeFirst()
  const events = await eventsAround(db.read, first, { fromMs: first.at_ms - CAUSE_BEFORE_MS, toMs: last.at_ms + CAUSE_AFTER_MS })
  const notes = await createCommitStore(db).commitsOf(
    first.project,
    rows.flatMap(({ commit_id }) => commit_id ?? []),
  )
  const entries = withCauses(rows.map(toEntry).reverse(), before === undefined ? null : toEntry(before), events, (commit) =>
    writtenByOf(notes.get(commit)),
  )
  // Entries of events alone have times of their own; a row of the same time is the later one in the list of its time.
  const times = new Set(rows.map(({ at_ms }) => at_ms))
  return new Map(entries.filter(({ atMs }) => times.has(atMs)).map(({ atMs, cause }) => [atMs, cause]))
}

interface Window {
  fromMs: number
  toMs: number
}

async function eventsAround(db: ReadDb, { cluster_no, project, service }: Placement, { fromMs, toMs }: Window): Promise<FleetEvent[]> {
  const cluster = await db.selectFrom('clusters').select('name').where('no', '=', cluster_no).executeTakeFirst()
  const within = () =>
    db.selectFrom('events').selectAll().where('at_ms', '>=', fromMs).where('at_ms', '<=', toMs).orderBy('id', 'desc').limit(EVENTS_READ)
  const ofService = within().where('project', '=', project).where('service', '=', service)
  const found = await ofService.where((eb) => eb.or([eb('cluster', 'is', null), eb('cluster', '=', cluster?.name ?? '')])).execute()
  const ofCluster = cluster === undefined ? [] : await within().where('cluster', '=', cluster.name).where('service', 'is', null).execute()
  return [...found, ...ofCluster].map(toEvent)
}

/** Keeps as rows what events that expire tell and no state shows. */
export async function keepEntries(db: StoreDb, expired: readonly FleetEvent[]): Promise<void> {
  for (const event of expired) {
    const { cluster, project, service, atMs } = event
    if (!isCause(event) || cluster === null || project === null || service === null) continue
    const held = await db.read.selectFrom('clusters').select('no').where('name', '=', cluster).executeTakeFirst()
    if (held === undefined) continue
    const placement = { cluster_no: held.no, project, service }
    const rows = await historyOf(db.read, placement).selectAll().orderBy('at_ms', 'desc').limit(ROWS_WITHOUT_CHANGE_MAX).execute()
    const state = rows.find(({ at_ms }) => at_ms <= atMs)
    const cause = ofEvent(event)
    const isTold = rows.some(({ cause: kept }) => kept !== null && isSame(JSON.parse(kept), cause))
    if (state === undefined || state.at_ms === atMs || isTold || rows.length >= ROWS_WITHOUT_CHANGE_MAX) continue
    await db.write(({ sql: trx }) =>
      trx
        .insertInto('status_history')
        .values({
          ...placement,
          at_ms: atMs,
          sync: state.sync,
          health: state.health,
          reason: state.reason,
          commit_id: state.commit_id,
          cause: JSON.stringify(cause),
        })
        .onConflict((on) => on.doNothing())
        .execute(),
    )
  }
}

const isSame = (kept: HistoryEntry['kept'], { atMs, text }: { atMs: number | null; text: string }): boolean =>
  kept != null && kept.atMs === atMs && kept.text === text
