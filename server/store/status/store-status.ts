// Reports of agents: pushes that arrive together are committed together, and read as they were written.
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import type { Store } from '../store.ts'
import type { StoreDb, Tx } from '../store-db.ts'
import { Backlog } from './backlog.ts'
import { Dictionary } from './dictionary.ts'
import { EventBounds } from './event-bounds.ts'
import { createForgetting, FORGET_ROWS, type Forget, forgetServices } from './forget-services.ts'
import { createGroupCommit } from './group-commit.ts'
import { type Push, type Pushed, upsertStatuses } from './status-ingest.ts'
import { listStatus } from './status-read.ts'
import { dropRows, heldRows } from './status-sweep.ts'
import { StatusTx, writeStatuses } from './status-tx.ts'

type StatusStore = Pick<Store, 'upsertStatus' | 'statusBacklog' | 'listStatus' | 'deleteStatusOfService'>

/** Work that waits to be committed with other work. */
type Waiting = Push | Forget
/** For a Forget: the start of its next step. */
type Written = Pushed & { next?: number }

export function createStatusStore(db: StoreDb, { clock, random }: { clock: Clock; random: Random }): StatusStore {
  const backlog = new Backlog(clock, random)
  const writer = { db, dictionary: new Dictionary(db.engine), eventBounds: new EventBounds(), clock }
  const together = createGroupCommit<Waiting, Written>({
    rowsOf: (one) => ('rows' in one ? one.rows.length : FORGET_ROWS),
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
    deleteStatusOfService: createForgetting(async (work) => (await together(work)).next ?? null),
  }
}

const NOTHING: Pushed = { ack: 0, had: 0, changed: [] }

/** In their order, as far as one could tell: pushes of different clusters are written at once. */
async function writeAll(status: StatusTx, group: readonly Waiting[]): Promise<Written[]> {
  const done: Written[] = []
  let pushes: Push[] = []
  const write = async () => {
    done.push(...(await upsertStatuses(status, pushes)))
    pushes = []
  }
  for (const one of group) {
    if (!('rows' in one) || pushes.some(({ clusterId }) => clusterId === one.clusterId)) await write()
    if ('rows' in one) {
      pushes.push(one)
      continue
    }
    const next = await forgetServices(status, one)
    done.push(next === null ? NOTHING : { ...NOTHING, next })
  }
  await write()
  return done
}

/** The rows of a cluster that goes, and what they count; its own row goes after them. */
export async function deleteStatusOfCluster(tx: Tx, engine: StoreDb['engine'], clusterNo: number): Promise<void> {
  const status = new StatusTx(tx, await new Dictionary(engine).open(tx), new EventBounds(), () => setImmediate())
  const of = { no: clusterNo, rowCount: 0 }
  for await (const rows of heldRows(status, clusterNo)) await dropRows(status, of, rows)
  await status.write()
}
