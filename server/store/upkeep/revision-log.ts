// The renders of each service, one number after the other: a render with another digest is its next revision.
import { setImmediate } from 'node:timers/promises'
import type { Transaction } from 'kysely'
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import type { ClusterId, ServiceId } from '../../../shared/runtime/ids.ts'
import type { RenderState, Revision, Variant } from '../../fleet/records.ts'
import { readSlices, SLICE_ROWS } from '../read-slices.ts'
import type { Store } from '../store.ts'
import type { ReadDb, StoreDb, Tx } from '../store-db.ts'
import { readSources, type Tables } from '../tables.ts'

export function createRevisionStore(
  db: StoreDb,
): Pick<Store, 'revisions' | 'revisionsFrom' | 'variant' | 'newestVariants' | 'addVariants' | 'isPublished'> {
  return {
    revisions: async ({ project, service }, { before, limit }) => {
      let query = ofService(db.read, { project, service }).selectAll()
      if (before !== undefined) query = query.where('number', '<', before)
      const rows = await query.orderBy('number', 'desc').limit(limit).execute()
      if (rows.length === 0) return []
      const clusters = await clustersByDigest(db.read, { project, service })
      const counted: Revision[] = []
      for (const row of rows) {
        const variants = await countVariants(db.read, { project, service }, row.number, clusters)
        counted.push(toRevision(row, variants ?? { variants: 1, clusters: clusters.get(row.digest) ?? 0 }))
      }
      return counted
    },
    revisionsFrom: async (project, services, commits) => {
      const wanted = new Set(commits)
      const found: Awaited<ReturnType<Store['revisionsFrom']>> = []
      for (let start = 0; start < services.length; start += SERVICES_A_TIME) {
        const rows = await db.read
          .selectFrom('revisions')
          .select(['service', 'number', 'object_count', 'given', 'commit_id', 'sources'])
          .where('project', '=', project)
          .where('service', 'in', services.slice(start, start + SERVICES_A_TIME))
          .where((eb) => eb.or([eb('commit_id', 'in', [...commits]), eb('sources', 'is not', null)]))
          .execute()
        for (const { service, number, object_count: objectCount, given, commit_id, sources } of rows) {
          const from = [...new Set([commit_id ?? '', ...Object.values(readSources(sources))])].filter((commit) => wanted.has(commit))
          if (from.length > 0) found.push({ service, number, objectCount, given, commits: from })
        }
      }
      return found
    },
    newestVariants: async (id, digests) => {
      const newest = await newestOf(db.read, id)
      if (newest === undefined) return new Set()
      const others = digests.filter((digest) => digest !== newest.digest).map((digest) => ({ digest }))
      const found = others.length === 0 ? new Set<string>() : await variantsAmong(db.read, id, newest.number, others)
      return digests.includes(newest.digest) ? found.add(newest.digest) : found
    },
    isPublished: (id, digest) => isPublished(db.read, id, digest),
    addVariants: (id, variants) => db.write((tx) => addVariants(tx, id, variants)),
    variant: async (id, digest) => {
      const columns = ['number', 'object_count', 'set_sha'] as const
      const whole = await ofService(db.read, id)
        .select(columns)
        .select('commit_id')
        .where('digest', '=', digest)
        .orderBy('number', 'desc')
        .limit(1)
        .executeTakeFirst()
      const part = await ofVariants(db.read, id)
        .select(columns)
        .where('digest', '=', digest)
        .orderBy('number', 'desc')
        .limit(1)
        .executeTakeFirst()
      if (whole !== undefined && whole.number >= (part?.number ?? 0))
        return { commit: whole.commit_id, objectCount: whole.object_count, setSha: whole.set_sha }
      if (part === undefined) return null
      const revision = await ofService(db.read, id).select('commit_id').where('number', '=', part.number).executeTakeFirst()
      return { commit: revision?.commit_id ?? null, objectCount: part.object_count, setSha: part.set_sha }
    },
  }
}

const ofService = (db: Pick<Transaction<Tables>, 'selectFrom'>, { project, service }: ServiceId) =>
  db.selectFrom('revisions').where('project', '=', project).where('service', '=', service)

const newestOf = (db: Pick<Transaction<Tables>, 'selectFrom'>, id: ServiceId) =>
  ofService(db, id).selectAll().orderBy('number', 'desc').limit(1).executeTakeFirst()

/** How many clusters shall have each digest. */
async function clustersByDigest(db: ReadDb, { project, service }: ServiceId): Promise<ReadonlyMap<string, number>> {
  const clusters = new Map<string, number>()
  const placed = db.selectFrom('desired').select(['cluster_id', 'digest']).where('project', '=', project).where('service', '=', service)
  await readSlices(
    (after: Pick<Tables['desired'], 'cluster_id' | 'digest'> | null) =>
      (after === null ? placed : placed.where('cluster_id', '>', after.cluster_id)).orderBy('cluster_id').limit(SLICE_ROWS).execute(),
    ({ digest }) => digest !== null && clusters.set(digest, (clusters.get(digest) ?? 0) + 1),
  )
  return clusters
}

/** Ends with the first cluster that shall have another revision, so that only a whole publication costs a read of all
 *  rows. */
async function isPublished(db: ReadDb, { project, service }: ServiceId, digest: string): Promise<boolean> {
  const id = { project, service }
  const newest = await newestOf(db, id)
  if (newest?.digest !== digest) return false
  const placed = db.selectFrom('desired').select(['cluster_id', 'digest']).where('project', '=', project).where('service', '=', service)
  const slice = placed.orderBy('cluster_id').limit(SLICE_ROWS)
  const known = new Set([digest])
  for (let after: ClusterId | null = null; ; ) {
    const rows: Array<Pick<Tables['desired'], 'cluster_id' | 'digest'>> = await (after === null
      ? slice
      : slice.where('cluster_id', '>', after)
    ).execute()
    const others = [...new Set(rows.flatMap((row) => row.digest ?? []))].filter((one) => !known.has(one)).map((one) => ({ digest: one }))
    if (others.length > 0) for (const one of await variantsAmong(db, id, newest.number, others)) known.add(one)
    if (others.some((one) => !known.has(one.digest))) return false
    after = rows.at(-1)?.cluster_id ?? null
    if (rows.length < SLICE_ROWS) return true
    await setImmediate()
  }
}

/** Null if the revision is the same in every cluster. */
async function countVariants(
  db: ReadDb,
  id: ServiceId,
  number: number,
  clusters: ReadonlyMap<string, number>,
): Promise<Pick<Revision, 'variants' | 'clusters'> | null> {
  const variants = ofVariants(db, id).select('digest').where('number', '=', number)
  const counts = await readSlices(
    (after: { digest: string } | null) =>
      (after === null ? variants : variants.where('digest', '>', after.digest)).orderBy('digest').limit(SLICE_ROWS).execute(),
    ({ digest }) => clusters.get(digest) ?? 0,
  )
  return counts.length === 0 ? null : { variants: counts.length, clusters: counts.reduce((sum, count) => sum + count, 0) }
}

const ofVariants = (db: Pick<Transaction<Tables>, 'selectFrom'>, { project, service }: ServiceId) =>
  db.selectFrom('revision_variants').where('project', '=', project).where('service', '=', service)

/** In the transaction that writes what the last render brought. A failed one changes no digest. */
export async function noteRevision(
  trx: Transaction<Tables>,
  id: ServiceId,
  state: RenderState,
  variants: readonly Variant[],
): Promise<void> {
  if (state.digest === null) return
  const newest = await newestOf(trx, id)
  if (newest?.digest === state.digest) return
  const number = (newest?.number ?? 0) + 1
  await trx
    .insertInto('revisions')
    .values({
      project: id.project,
      service: id.service,
      number,
      commit_id: state.commit,
      generation: state.generation,
      digest: state.digest,
      object_count: state.objectCount,
      set_sha: await knownSet(trx, id, state.digest),
      rendered_ms: state.renderedMs ?? 0,
      sources: sourcesText(state.release?.revisions ?? {}),
      given: 0,
    })
    .execute()
  if (variants.length > 1) await insertVariants(trx, id, number, variants, await setsInForce(trx, id))
}

const SERVICES_A_TIME = 200
/** Rows in one statement. */
const VARIANTS_A_TIME = 500

/** Sets by digest, of the clusters that have the service: a digest that they have already brings no new set. */
async function setsInForce(trx: Transaction<Tables>, { project, service }: ServiceId): Promise<ReadonlyMap<string, string>> {
  const rows = await trx
    .selectFrom('desired')
    .select((eb) => ['digest', eb.fn.max('set_sha').as('set_sha')])
    .where('project', '=', project)
    .where('service', '=', service)
    .where('digest', 'is not', null)
    .groupBy('digest')
    .execute()
  return new Map(rows.flatMap(({ digest, set_sha }) => (digest === null || set_sha === null ? [] : [[digest, set_sha]])))
}

const NO_SETS: ReadonlyMap<string, string> = new Map()

async function insertVariants(
  trx: Transaction<Tables>,
  { project, service }: ServiceId,
  number: number,
  variants: readonly Variant[],
  sets: ReadonlyMap<string, string>,
): Promise<void> {
  for (let start = 0; start < variants.length; start += VARIANTS_A_TIME) {
    const some = variants.slice(start, start + VARIANTS_A_TIME)
    const rows = some.map(({ digest, objectCount }) => {
      return { project, service, number, digest, object_count: objectCount, set_sha: sets.get(digest) ?? null }
    })
    await trx.insertInto('revision_variants').values(rows).execute()
  }
}

/** A cluster that comes, or is relabelled, brings no revision: what it alone gets is one more variant of the newest. */
async function addVariants({ sql: trx, changes }: Tx, id: ServiceId, variants: readonly Variant[]): Promise<number> {
  const newest = await newestOf(trx, id)
  if (newest === undefined) return 0
  const { number, digest, object_count: objectCount, set_sha } = newest
  const held = await variantsAmong(trx, id, number, variants)
  const counted = await ofVariants(trx, id)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('number', '=', number)
    .executeTakeFirst()
  const count = Number(counted?.count ?? 0)
  const first: Variant[] = count === 0 ? [{ digest, objectCount }] : []
  const added = variants.filter((variant) => !held.has(variant.digest) && (count > 0 || variant.digest !== digest))
  if (added.length === 0) return Math.max(1, count)
  await insertVariants(trx, id, number, [...first, ...added], set_sha === null ? NO_SETS : new Map([[digest, set_sha]]))
  changes.add({ topic: 'render', project: id.project, name: id.service })
  return count + first.length + added.length
}

/** Those of the digests that are variants of that revision. */
async function variantsAmong(
  db: Pick<Transaction<Tables>, 'selectFrom'>,
  id: ServiceId,
  number: number,
  variants: readonly Pick<Variant, 'digest'>[],
): Promise<Set<string>> {
  const found = new Set<string>()
  for (let start = 0; start < variants.length; start += VARIANTS_A_TIME) {
    const digests = variants.slice(start, start + VARIANTS_A_TIME).map(({ digest }) => digest)
    const rows = await ofVariants(db, id).select('digest').where('number', '=', number).where('digest', 'in', digests).execute()
    for (const { digest } of rows) found.add(digest)
  }
  return found
}

/** For an earlier digest: clusters that have it take no new set. */
async function knownSet(trx: Transaction<Tables>, id: ServiceId, digest: string): Promise<string | null> {
  const row = await ofService(trx, id)
    .select('set_sha')
    .where('digest', '=', digest)
    .where('set_sha', 'is not', null)
    .limit(1)
    .executeTakeFirst()
  return row?.set_sha ?? null
}

/** In the transaction that gives revisions to clusters: from now on their sets are kept for as long as the revisions
 *  are. */
export async function noteSet(trx: Transaction<Tables>, id: ServiceId, digest: string, setSha: string): Promise<void> {
  await trx
    .updateTable('revisions')
    .set({ set_sha: setSha })
    .where('project', '=', id.project)
    .where('service', '=', id.service)
    .where('digest', '=', digest)
    .where('set_sha', 'is', null)
    .execute()
  // Each revision by its number: a scan of all variants, for each of ten thousand digests, would be quadratic.
  await trx
    .updateTable('revision_variants')
    .set({ set_sha: setSha })
    .where('project', '=', id.project)
    .where('service', '=', id.service)
    .where('number', 'in', ofService(trx, id).select('number'))
    .where('digest', '=', digest)
    .where('set_sha', 'is', null)
    .execute()
}

/** In the transaction that gives the newest revision to clusters which had one of another commit, or none. */
export async function noteGiven(trx: Transaction<Tables>, id: ServiceId, clusters: number): Promise<void> {
  if (clusters === 0) return
  await trx
    .updateTable('revisions')
    .set((eb) => ({ given: eb('given', '+', clusters) }))
    .where('project', '=', id.project)
    .where('service', '=', id.service)
    .where(
      'number',
      '=',
      ofService(trx, id).select(({ fn }) => fn.max('number').as('number')),
    )
    .execute()
}

/** With the service. */
export async function forgetRevisions(trx: Transaction<Tables>, { project, service }: ServiceId): Promise<void> {
  for (const table of ['revisions', 'revision_variants'] as const)
    await trx.deleteFrom(table).where('project', '=', project).where('service', '=', service).execute()
}

const sourcesText = (revisions: Readonly<Record<string, string>>): string | null =>
  Object.keys(revisions).length > 1 ? canonicalJson(revisions) : null

const toRevision = (row: Tables['revisions'], counts: Pick<Revision, 'variants' | 'clusters'>): Revision => ({
  number: row.number,
  commit: row.commit_id,
  generation: row.generation,
  digest: row.digest,
  objectCount: row.object_count,
  setSha: row.set_sha,
  renderedMs: row.rendered_ms,
  ...counts,
  revisions: readSources(row.sources),
})
