// What agents reported: pushes that come together are committed together, and read as they were written.
import { setImmediate } from 'node:timers/promises'
import { type ClusterId, type ServiceId, serviceKey } from '../../../shared/model/ids.ts'
import { AppError } from '../../../shared/protocol/error.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import type { Store } from '../store.ts'
import type { StoreDb, Tx } from '../store-db.ts'
import { Backlog } from './backlog.ts'
import { Dictionary } from './dictionary.ts'
import { EventBounds } from './event-bounds.ts'
import { createGroupCommit } from './group-commit.ts'
import { type Push, type Pushed, upsertStatuses } from './status-ingest.ts'
import { listStatus } from './status-read.ts'
import { dropRows, heldRows, type NamedRow } from './status-sweep.ts'
import { noteChange, noteReports, type Report, StatusTx, serviceOf, writeStatuses } from './status-tx.ts'

type StatusStore = Pick<Store, 'upsertStatus' | 'statusBacklog' | 'listStatus' | 'deleteStatusOfService'>

/** What waits to be committed with others. */
type Waiting = Push | { clusterId: ClusterId; forget: ServiceId }

export function createStatusStore(db: StoreDb, { clock, random }: { clock: Clock; random: Random }): StatusStore {
  const backlog = new Backlog(clock, random)
  const writer = { db, dictionary: new Dictionary(db.engine), eventBounds: new EventBounds(), clock }
  const together = createGroupCommit<Waiting, Pushed>({
    rowsOf: (one) => ('rows' in one ? one.rows.length : 1),
    commit: (group) => writeStatuses(writer, (status) => writeAll(status, group)),
  })
  return {
    upsertStatus: async (clusterId, rows, options) => {
      const retryAfterMs = backlog.retryAfterMs(clusterId)
      if (retryAfterMs !== null)
        throw new AppError('too_many_requests', { doing: 'take status', detail: 'the store is behind', retryAfterMs })
      const leave = backlog.enter(Math.max(1, rows.length), clusterId)
      try {
        return await together({ clusterId, rows, options })
      } finally {
        leave()
      }
    },
    statusBacklog: backlog,
    listStatus: (query) => listStatus(() => db.read, query),
    deleteStatusOfService: async (clusterId, id) => {
      await together({ clusterId, forget: id })
    },
  }
}

const NOTHING: Pushed = { ack: 0, had: 0, changed: [] }

/** In their order, as far as one could tell: pushes of different clusters are written at once. */
async function writeAll(status: StatusTx, group: readonly Waiting[]): Promise<Pushed[]> {
  const done: Pushed[] = []
  let pushes: Push[] = []
  const forgotten = new Map<ClusterId, ServiceId[]>()
  const write = async () => {
    done.push(...(await upsertStatuses(status, pushes)))
    pushes = []
    for (const [clusterId, services] of forgotten) {
      await deleteStatusOfServices(status, clusterId, services)
      done.push(...services.map(() => NOTHING))
    }
    forgotten.clear()
  }
  for (const one of group) {
    const before = pushes.some(({ clusterId }) => clusterId === one.clusterId)
    if (before || 'forget' in one !== forgotten.size > 0) await write()
    if ('rows' in one) pushes.push(one)
    else {
      const services = forgotten.get(one.clusterId) ?? []
      forgotten.set(one.clusterId, services)
      services.push(one.forget)
    }
  }
  await write()
  return done
}

/** One look at what the cluster has, however many of its services go. */
async function deleteStatusOfServices(status: StatusTx, clusterId: ClusterId, ids: readonly ServiceId[]): Promise<void> {
  const { sql: trx } = status.tx
  const cluster = await trx.selectFrom('clusters').select(['no', 'row_count']).where('cluster_id', '=', clusterId).executeTakeFirst()
  if (cluster === undefined) return
  const keys = new Set(ids.map(serviceKey))
  const isOfThem = ({ key }: NamedRow) => keys.has(serviceOf(key))
  const of = { no: cluster.no, rowCount: cluster.row_count }
  const gone: Report[] = []
  // By what this cluster has, and not by the names of the service: another cluster may make up a hundred thousand of them.
  for await (const held of heldRows(status, of.no)) {
    const rows = held.filter(isOfThem)
    if (rows.length === 0) continue
    await dropRows(status, of, rows)
    gone.push(...rows.map((row) => ({ clusterId, kind: row.kind, key: row.key, doc: null })))
  }
  if (gone.length === 0) return
  await trx.updateTable('clusters').set({ row_count: of.rowCount }).where('cluster_id', '=', clusterId).execute()
  await noteReports(status, gone)
  noteChange(status, clusterId, gone)
}

/** The rows of a cluster that goes, and what they count; its own row goes after them. */
export async function deleteStatusOfCluster(tx: Tx, engine: StoreDb['engine'], clusterNo: number): Promise<void> {
  const status = new StatusTx(tx, await new Dictionary(engine).open(tx), new EventBounds(), () => setImmediate())
  const of = { no: clusterNo, rowCount: 0 }
  for await (const rows of heldRows(status, clusterNo)) await dropRows(status, of, rows)
  await status.write()
}
