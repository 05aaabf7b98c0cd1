// Evidence that a fleet store was set back (RP2): proofs that its own server once sent more than it holds, until a
// person resolves it.
import { sql } from 'kysely'
import type { RestoreProof } from '../fleet/records.ts'
import { leapChanges } from './feed/change-log.ts'
import type { Store } from './store.ts'
import type { StoreDb } from './store-db.ts'
import type { Tables } from './tables.ts'

type RestoreStore = Pick<Store, 'distrustLogs' | 'restoreFacts' | 'restoreProofs' | 'recordRestoreProofs' | 'settleRestore'>

/** Past every epoch that the time that is gone can have reached, in clusters that were not heard of, too. It is beyond
 *  the seconds of the clock as well, so that a second restore of the same backup does not give out the epochs of the
 *  first again. */
const EPOCH_LEAP = 1_000
/** Rows in one statement. */
const PROOFS_A_TIME = 500

export function createRestoreStore(db: StoreDb): RestoreStore {
  return {
    distrustLogs: async () => {
      await db.write(({ sql: trx }) =>
        trx
          .updateTable('clusters')
          .set((eb) => ({ adopted_ordinal: eb.ref('ordinal') }))
          .whereRef('adopted_ordinal', '<', 'ordinal')
          .execute(),
      )
    },
    restoreFacts: async (clusterId) => {
      const row = await db.read
        .selectFrom('clusters')
        .select(['epoch', 'ordinal', 'adopted_ordinal', 'settled_epoch'])
        .where('cluster_id', '=', clusterId)
        .executeTakeFirst()
      if (row === undefined) return null
      return { epoch: row.epoch, ordinal: row.ordinal, adoptedOrdinal: row.adopted_ordinal, settledEpoch: row.settled_epoch }
    },
    restoreProofs: async () => {
      const rows = await db.read.selectFrom('restore_proofs').selectAll().orderBy('cluster_id').execute()
      return rows.map((row) => ({ clusterId: row.cluster_id, epoch: row.epoch, ordinal: row.ordinal, atMs: row.at_ms }))
    },
    recordRestoreProofs: (proofs) =>
      db.write(async ({ sql: trx, changes }) => {
        const held = await trx.selectFrom('restore_proofs').selectAll().execute()
        if (!saysMore(held, proofs)) return
        // The store was restored, perhaps to a long past state: watchers have numbers of the lost time.
        if (held.length === 0) await leapChanges(trx, Math.max(...proofs.map(({ atMs }) => atMs)))
        changes.add({ topic: 'restore', keys: proofs.map(({ clusterId }) => clusterId) })
        for (let start = 0; start < proofs.length; start += PROOFS_A_TIME)
          await trx
            .insertInto('restore_proofs')
            .values(
              proofs
                .slice(start, start + PROOFS_A_TIME)
                .map(({ clusterId, epoch, ordinal, atMs }) => ({ cluster_id: clusterId, epoch, ordinal, at_ms: atMs })),
            )
            .onConflict((on) =>
              on.column('cluster_id').doUpdateSet({
                epoch: sql<number>`case when excluded.epoch > restore_proofs.epoch then excluded.epoch else restore_proofs.epoch end`,
                ordinal: sql<number>`case when excluded.ordinal > restore_proofs.ordinal then excluded.ordinal else restore_proofs.ordinal end`,
              }),
            )
            .execute()
      }),
    settleRestore: (nowMs) =>
      db.write(async ({ sql: trx, changes, audit }) => {
        await leapChanges(trx, nowMs)
        changes.add({ topic: 'restore' })
        audit.add({ verb: 'confirm-restore', kind: 'FleetStore' })
        const proofs = await trx.selectFrom('restore_proofs').select('epoch').execute()
        const least = Math.max(
          proofs.reduce((max, { epoch }) => Math.max(max, epoch), 0),
          Math.floor(nowMs / 1_000),
        )
        const epoch = sql<number>`(case when epoch > ${least} then epoch else ${least} end) + ${EPOCH_LEAP}`
        await trx.updateTable('clusters').set({ epoch, settled_epoch: epoch }).execute()
        await trx.deleteFrom('restore_proofs').execute()
      }),
  }
}

/** Than what was recorded. */
function saysMore(rows: ReadonlyArray<Tables['restore_proofs']>, proofs: readonly RestoreProof[]): boolean {
  const held = new Map(rows.map((row) => [row.cluster_id, row]))
  return proofs.some(({ clusterId, epoch, ordinal }) => {
    const row = held.get(clusterId)
    return row === undefined || epoch > row.epoch || ordinal > row.ordinal
  })
}
