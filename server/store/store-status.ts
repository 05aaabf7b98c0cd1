// What agents reported: pushes that come together are committed together, and read as they were written.
import { setImmediate } from 'node:timers/promises'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { Dictionary } from './dictionary.ts'
import { createGroupCommit } from './group-commit.ts'
import { noteChange, upsertStatus } from './status-ingest.ts'
import { listStatus, nameSlices } from './status-read.ts'
import { dropRows, heldRows, namedRows } from './status-sweep.ts'
import { noteReports, StatusTx, writeStatuses } from './status-tx.ts'
import type { Store } from './store.ts'
import type { StoreDb, Tx } from './store-db.ts'

type StatusStore = Pick<Store, 'upsertStatus' | 'listStatus' | 'deleteStatusOfService'>

export function createStatusStore(db: StoreDb, clock: Clock): StatusStore {
  const dictionary = new Dictionary(db.engine)
  const together = createGroupCommit<StatusTx>({ write: (work) => writeStatuses({ db, dictionary, clock }, work) })
  return {
    upsertStatus: (clusterId, rows, options) => together((status) => upsertStatus(status, clusterId, rows, options), rows.length),
    listStatus: (query) => listStatus(() => db.read, query),
    deleteStatusOfService: (clusterId, id) => together((status) => deleteStatusOfService(status, clusterId, id), 1),
  }
}

async function deleteStatusOfService(status: StatusTx, clusterId: ClusterId, id: ServiceId): Promise<void> {
  const { sql: trx } = status.tx
  const cluster = await trx.selectFrom('clusters').select(['no', 'row_count']).where('cluster_id', '=', clusterId).executeTakeFirst()
  if (cluster === undefined) return
  const key = serviceKey(id)
  const ranges = [{ kind: 'service', key } as const, ...(['object', 'drift'] as const).map((kind) => ({ kind, keyPrefix: `${key}/` }))]
  const gone: Array<{ kind: string; key: string; doc: null }> = []
  for (const range of ranges)
    for await (const names of nameSlices(() => trx, range)) {
      const rows = await namedRows(status).where('cluster_no', '=', cluster.no).where('name_id', 'in', names).execute()
      await dropRows(status, cluster.no, rows)
      gone.push(...rows.map((row) => ({ kind: row.kind, key: row.key, doc: null })))
    }
  if (gone.length === 0) return
  await trx
    .updateTable('clusters')
    .set({ row_count: cluster.row_count - gone.length })
    .where('cluster_id', '=', clusterId)
    .execute()
  await noteReports(status, clusterId, gone)
  noteChange(status, clusterId, gone)
}

/** The rows of a cluster that goes, and what they count; its own row goes after them. */
export async function deleteStatusOfCluster(tx: Tx, engine: StoreDb['engine'], clusterNo: number): Promise<void> {
  const status = new StatusTx(tx, await new Dictionary(engine).open(tx), () => setImmediate())
  for await (const rows of heldRows(status, clusterNo)) await dropRows(status, clusterNo, rows)
  await status.write()
}
