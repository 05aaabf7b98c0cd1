// What each cluster shall have of each service. The ordinal is taken from the cluster's row in the transaction that writes the desired row (CU7), so a
// shard that lags knows exactly what it lacks.
import type { Kysely, Transaction } from 'kysely'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import type { DesiredService, Store } from './store.ts'
import type { Tables } from './tables.ts'

type DesiredStore = Pick<Store, 'desiredInCluster' | 'desiredOfService' | 'publish' | 'clusterOrdinals'>

export function createDesiredStore(db: Kysely<Tables>): DesiredStore {
  return {
    desiredInCluster: async (clusterId) => {
      const rows = await db.selectFrom('desired').selectAll().where('cluster_id', '=', clusterId).orderBy('ordinal').execute()
      return rows.map(toDesired)
    },
    desiredOfService: async ({ project, service }) => {
      const rows = await db
        .selectFrom('desired')
        .selectAll()
        .where('project', '=', project)
        .where('service', '=', service)
        .orderBy('cluster_id')
        .execute()
      return rows.map(toDesired)
    },
    publish: (rows) =>
      db.transaction().execute(async (trx) => {
        const published: Array<{ changed: boolean; ordinal: number }> = []
        for (const row of rows) published.push(await publish(trx, row))
        return published
      }),
    clusterOrdinals: async () => {
      const rows = await db.selectFrom('clusters').select(['cluster_id', 'ordinal']).execute()
      return new Map(rows.map((row) => [row.cluster_id, row.ordinal]))
    },
  }
}

async function publish(trx: Transaction<Tables>, row: Omit<DesiredService, 'ordinal'>): Promise<{ changed: boolean; ordinal: number }> {
  const { clusterId, project, service, placedBy } = row
  const doc = row.doc === null ? null : canonicalJson(row.doc)
  const held = await trx
    .selectFrom('desired')
    .selectAll()
    .where('cluster_id', '=', clusterId)
    .where('project', '=', project)
    .where('service', '=', service)
    .executeTakeFirst()
  if (held === undefined ? doc === null : held.doc === doc && held.set_sha === row.setSha) {
    // Who placed it is the server's own note: the shard has no part in it, so it takes no ordinal.
    if (held !== undefined && held.placed_by !== placedBy) {
      await trx
        .updateTable('desired')
        .set({ placed_by: placedBy })
        .where('cluster_id', '=', clusterId)
        .where('project', '=', project)
        .where('service', '=', service)
        .execute()
    }
    return { changed: false, ordinal: held?.ordinal ?? 0 }
  }
  const cluster = await trx
    .updateTable('clusters')
    .set((eb) => ({ ordinal: eb('ordinal', '+', 1) }))
    .where('cluster_id', '=', clusterId)
    .returning('ordinal')
    .executeTakeFirst()
  if (cluster === undefined) return { changed: false, ordinal: 0 } // the cluster was deleted meanwhile
  const columns = { ordinal: cluster.ordinal, doc, set_sha: row.setSha, placed_by: placedBy }
  await trx
    .insertInto('desired')
    .values({ cluster_id: clusterId, project, service, ...columns })
    .onConflict((on) => on.columns(['cluster_id', 'project', 'service']).doUpdateSet(columns))
    .execute()
  return { changed: true, ordinal: cluster.ordinal }
}

const toDesired = (row: Tables['desired']): DesiredService => ({
  clusterId: row.cluster_id,
  project: row.project,
  service: row.service,
  ordinal: row.ordinal,
  doc: row.doc === null ? null : serviceRowSchema.parse(JSON.parse(row.doc)),
  setSha: row.set_sha,
  placedBy: row.placed_by,
})
