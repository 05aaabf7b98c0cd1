// What each service was rendered to, one number after the other: a render that brings another digest is its next revision.
import type { Transaction } from 'kysely'
import type { ServiceId } from '../../../shared/model/ids.ts'
import type { RenderState, Revision } from '../records.ts'
import type { Store } from '../store.ts'
import type { StoreDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'

export function createRevisionStore(db: StoreDb): Pick<Store, 'revisions'> {
  return {
    revisions: async ({ project, service }, { before, limit }) => {
      let query = ofService(db.read, { project, service }).selectAll()
      if (before !== undefined) query = query.where('number', '<', before)
      const rows = await query.orderBy('number', 'desc').limit(limit).execute()
      if (rows.length === 0) return []
      const counted = await db.read
        .selectFrom('desired')
        .select((eb) => ['digest', eb.fn.countAll<number>().as('clusters')])
        .where('project', '=', project)
        .where('service', '=', service)
        .where('digest', 'is not', null)
        .groupBy('digest')
        .execute()
      const clusters = new Map(counted.map((row) => [row.digest, Number(row.clusters)]))
      return rows.map((row) => toRevision(row, clusters.get(row.digest) ?? 0))
    },
  }
}

const ofService = (db: Pick<Transaction<Tables>, 'selectFrom'>, { project, service }: ServiceId) =>
  db.selectFrom('revisions').where('project', '=', project).where('service', '=', service)

/** In the transaction that writes what the last render brought. A failed one changes no digest. */
export async function noteRevision(trx: Transaction<Tables>, id: ServiceId, state: RenderState): Promise<void> {
  if (state.digest === null) return
  const newest = await ofService(trx, id).select(['number', 'digest']).orderBy('number', 'desc').limit(1).executeTakeFirst()
  if (newest?.digest === state.digest) return
  await trx
    .insertInto('revisions')
    .values({
      project: id.project,
      service: id.service,
      number: (newest?.number ?? 0) + 1,
      commit_id: state.commit,
      generation: state.generation,
      digest: state.digest,
      object_count: state.objectCount,
      set_sha: await knownSet(trx, id, state.digest),
      rendered_ms: state.renderedMs ?? 0,
    })
    .execute()
}

/** Of a digest that was there before: clusters that have it take no new set. */
async function knownSet(trx: Transaction<Tables>, id: ServiceId, digest: string): Promise<string | null> {
  const row = await ofService(trx, id)
    .select('set_sha')
    .where('digest', '=', digest)
    .where('set_sha', 'is not', null)
    .limit(1)
    .executeTakeFirst()
  return row?.set_sha ?? null
}

/** In the transaction that gives revisions to clusters: from now on their sets are kept for as long as the revisions are. */
export async function noteSet(trx: Transaction<Tables>, id: ServiceId, digest: string, setSha: string): Promise<void> {
  await trx
    .updateTable('revisions')
    .set({ set_sha: setSha })
    .where('project', '=', id.project)
    .where('service', '=', id.service)
    .where('digest', '=', digest)
    .where('set_sha', 'is', null)
    .execute()
}

/** With the service. */
export async function forgetRevisions(trx: Transaction<Tables>, { project, service }: ServiceId): Promise<void> {
  await trx.deleteFrom('revisions').where('project', '=', project).where('service', '=', service).execute()
}

const toRevision = (row: Tables['revisions'], clusters: number): Revision => ({
  number: row.number,
  commit: row.commit_id,
  generation: row.generation,
  digest: row.digest,
  objectCount: row.object_count,
  setSha: row.set_sha,
  renderedMs: row.rendered_ms,
  clusters,
})
