// Removes the status rows of services that left a cluster, in steps of a bounded number of rows, so that no transaction
// holds the write lock for long. Services that leave one cluster together share the steps.
import type { Transaction } from 'kysely'
import { type ClusterId, type ServiceId, serviceKey } from '../../../shared/runtime/ids.ts'
import { type Bulk, runBulk } from '../bulk.ts'
import type { Tables } from '../tables.ts'
import { dropRows, type NamedRow, namedRows } from './status-sweep.ts'
import { noteChange, noteReports, type Report, ROWS_A_TURN, type StatusTx, serviceOf } from './status-tx.ts'

/** Rows of the cluster that one step looks at. */
export const FORGET_ROWS = 2 * ROWS_A_TURN

/** One step. */
export interface Forget {
  clusterId: ClusterId
  services: readonly ServiceId[]
  /** Number of the last name that the step before read; 0: none. */
  after: number
}

interface Leaving {
  id: ServiceId
  resolve(): void
  reject(error: unknown): void
}

/** `step` answers where the next step begins. Null means that it was the last one. */
export function createForgetting(step: (work: Forget) => Promise<number | null>): (clusterId: ClusterId, id: ServiceId) => Promise<void> {
  const leaving = new Map<ClusterId, Leaving[]>()

  async function run(clusterId: ClusterId): Promise<void> {
    for (let some = leaving.get(clusterId) ?? []; some.length > 0; some = leaving.get(clusterId) ?? []) {
      leaving.set(clusterId, [])
      try {
        const services = some.map(({ id }) => id)
        for (let after: number | null = 0; after !== null; ) after = await step({ clusterId, services, after })
        for (const { resolve } of some) resolve()
      } catch (error) {
        for (const { reject } of some) reject(error)
      }
    }
    leaving.delete(clusterId)
  }

  return (clusterId, id) =>
    new Promise((resolve, reject) => {
      const others = leaving.get(clusterId)
      if (others !== undefined) return void others.push({ id, resolve, reject })
      leaving.set(clusterId, [{ id, resolve, reject }])
      void Promise.resolve().then(() => run(clusterId)) // services that leave in this turn share the first step
    })
}

const CLEANED: Bulk = {
  before: 'update desired set cleanup = 0 where cluster_id = ? and (project, service) in (values',
  row: '(?, ?)',
  after: ')',
  types: ['text', 'text'],
}

/** Where the next step begins. Null means that no status row of these services is left. */
export async function forgetServices(status: StatusTx, { clusterId, services, after }: Forget): Promise<number | null> {
  const { sql: trx, engine } = status.tx
  const cluster = await trx.selectFrom('clusters').select(['no', 'row_count']).where('cluster_id', '=', clusterId).executeTakeFirst()
  if (cluster === undefined) return null
  // By the rows of this cluster, and not by the names of the service: another cluster may make up a hundred thousand of
  // them.
  const held = await namedRows(status)
    .where('status_rows.cluster_no', '=', cluster.no)
    .where('name_id', '>', after)
    .orderBy('name_id')
    .limit(FORGET_ROWS)
    .execute()
  const keys = new Set(services.map(serviceKey)).difference(await placedIn(trx, clusterId))
  await drop(
    status,
    clusterId,
    { no: cluster.no, rowCount: cluster.row_count },
    held.filter(({ key }) => keys.has(serviceOf(key))),
  )
  if (held.length === FORGET_ROWS) return held.at(-1)?.name_id ?? null
  await runBulk(
    trx,
    engine,
    CLEANED,
    services.map(({ project, service }) => [project, service]),
    [clusterId],
  )
  return null
}

/** Services that were placed again meanwhile: their agent reports again. */
async function placedIn(trx: Transaction<Tables>, clusterId: ClusterId): Promise<Set<string>> {
  const placed = trx.selectFrom('desired').select(['project', 'service']).where('cluster_id', '=', clusterId).where('doc', 'is not', null)
  return new Set((await placed.execute()).map(serviceKey))
}

async function drop(
  status: StatusTx,
  clusterId: ClusterId,
  of: { no: number; rowCount: number },
  rows: readonly NamedRow[],
): Promise<void> {
  if (rows.length === 0) return
  await dropRows(status, of, rows)
  const gone = rows.map(({ kind, key }): Report => ({ clusterId, kind, key, doc: null }))
  await status.tx.sql.updateTable('clusters').set({ row_count: of.rowCount }).where('cluster_id', '=', clusterId).execute()
  await noteReports(status, gone)
  noteChange(status, clusterId, gone)
}
