// Names of data that a person confirmed together with a change: they are kept until the orders that follow from it have
// them.
import { type ClusterId, parseServiceKey, serviceKey } from '../../shared/runtime/ids.ts'
import type { Store } from './store.ts'
import type { StoreDb } from './store-db.ts'
import { readNames } from './tables.ts'

type ConfirmedDataStore = Pick<Store, 'noteConfirmedData' | 'confirmedData' | 'dropConfirmedData'>

const CLUSTERS_A_TIME = 500

export function createConfirmedDataStore(db: StoreDb): ConfirmedDataStore {
  return {
    noteConfirmedData: async (confirmed) => {
      if (confirmed.size === 0) return
      await db.write(async ({ sql: trx }) => {
        for (const [key, clusters] of confirmed) {
          const { project, service } = parseServiceKey(key)
          for (const [clusterId, names] of clusters) {
            const at = { project, service, cluster_id: clusterId }
            const held = trx.selectFrom('confirmed_data').select('names').where('project', '=', project).where('service', '=', service)
            const known = await held.where('cluster_id', '=', clusterId).executeTakeFirst()
            const all = JSON.stringify([...new Set([...(known === undefined ? [] : readNames(known.names)), ...names])])
            await trx
              .insertInto('confirmed_data')
              .values({ ...at, names: all })
              .onConflict((on) => on.columns(['project', 'service', 'cluster_id']).doUpdateSet({ names: all }))
              .execute()
          }
        }
      })
    },
    confirmedData: async () => {
      const found = new Map<string, Map<ClusterId, readonly string[]>>()
      for (const { project, service, cluster_id, names } of await db.read.selectFrom('confirmed_data').selectAll().execute()) {
        const key = serviceKey({ project, service })
        found.set(key, (found.get(key) ?? new Map<ClusterId, readonly string[]>()).set(cluster_id, readNames(names)))
      }
      return found
    },
    dropConfirmedData: async ({ project, service }, clusters) => {
      for (let start = 0; start < clusters.length; start += CLUSTERS_A_TIME) {
        const some = clusters.slice(start, start + CLUSTERS_A_TIME)
        await db.write(({ sql: trx }) =>
          trx
            .deleteFrom('confirmed_data')
            .where('project', '=', project)
            .where('service', '=', service)
            .where('cluster_id', 'in', some)
            .execute(),
        )
      }
    },
  }
}
