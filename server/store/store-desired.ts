// The desired services of each cluster. The ordinal is taken from the cluster's row in the transaction that writes the
// desired row (CU7), so a shard that lags knows exactly which rows it lacks.
import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { isFleetRows, type ServiceRow, serviceRowSchema } from '../../shared/model/desired.ts'
import { type PlacementWords, placementWords } from '../../shared/model/placement-words.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { DesiredService, ProofOf, Tombstone } from '../fleet/records.ts'
import { type Bulk, runBulk, runIn } from './bulk.ts'
import { countMoves, readReport, type WordMove, wordsOf } from './counts/placement-counts.ts'
import { readSlices, SLICE_ROWS } from './read-slices.ts'
import type { Store } from './store.ts'
import type { ReadDb, StoreDb, Tx } from './store-db.ts'
import type { Tables } from './tables.ts'
import { noteGiven, noteSet } from './upkeep/revision-log.ts'

type DesiredStore = Pick<
  Store,
  | 'desiredInCluster'
  | 'desiredOfService'
  | 'desiredOf'
  | 'desiredWith'
  | 'placementTotals'
  | 'publish'
  | 'clusterOrdinals'
  | 'clustersOfProject'
  | 'tombstones'
  | 'dropTombstones'
>

export function createDesiredStore(db: StoreDb): DesiredStore {
  return {
    desiredInCluster: async (clusterId) => {
      const rows = await db.read.selectFrom('desired').selectAll().where('cluster_id', '=', clusterId).orderBy('ordinal').execute()
      const parse = docParser()
      return rows.map((row) => toDesired(row, parse))
    },
    desiredOfService: async ({ project, service }) => {
      const parse = docParser()
      const ofService = rowsOf(db.read, { project, service })
      return readSlices(
        (after: Tables['desired'] | null) => {
          const rest = after === null ? ofService : ofService.where('cluster_id', '>', after.cluster_id)
          return rest.orderBy('cluster_id').limit(SLICE_ROWS).execute()
        },
        (row) => toDesired(row, parse),
      )
    },
    desiredOf: async (id, clusterIds) => {
      const parse = docParser()
      const found: DesiredService[] = []
      for (let start = 0; start < clusterIds.length; start += SLICE_ROWS) {
        if (start > 0) await setImmediate()
        const rows = await rowsOf(db.read, id)
          .where('cluster_id', 'in', clusterIds.slice(start, start + SLICE_ROWS))
          .execute()
        for (const row of rows) found.push(toDesired(row, parse))
      }
      return found
    },
    desiredWith: async (id, digest) => {
      const row = await rowsOf(db.read, id).where('digest', '=', digest).limit(1).executeTakeFirst()
      return row === undefined ? null : toDesired(row, docParser())
    },
    placementTotals: async (id) => {
      const counted = await db.read
        .selectFrom('rollups')
        .select(['value', 'n'])
        .where('dimension', '=', 'service')
        .where('key', '=', serviceKey(id))
        .execute()
      const sum = (counts: typeof counted) => counts.reduce((total, { n }) => total + Number(n), 0)
      const parse = docParser()
      // A removal order is out of sync until it is carried out.
      const rows =
        sum(counted.filter(({ value }) => value.startsWith('OutOfSync/'))) === 0
          ? []
          : await rowsOf(db.read, id).where('doc', 'is not', null).where('digest', 'is', null).execute()
      return { holders: sum(counted) - rows.length, orders: rows.map((row) => toDesired(row, parse)) }
    },
    clustersOfProject: async (project, among) => {
      const placed = db.read
        .selectFrom('desired')
        .select('cluster_id')
        .distinct()
        .where('project', '=', project)
        .where('doc', 'is not', null)
      const found = new Set<ClusterId>()
      for (let start = 0; start < among.length; start += SLICE_ROWS) {
        if (start > 0) await setImmediate()
        const ids = among.slice(start, start + SLICE_ROWS)
        for (const { cluster_id } of await placed.where('cluster_id', 'in', ids).execute()) found.add(cluster_id)
      }
      return found
    },
    publish: (rows, proofOf) =>
      db.write(async (tx) => {
        const published: Published[] = []
        for (const run of runsOf(rows)) published.push(...(await publishRun(tx, run, proofOf)))
        return published
      }),
    clusterOrdinals: async () => {
      const rows = await db.read.selectFrom('clusters').select(['cluster_id', 'ordinal']).execute()
      return new Map(rows.map((row) => [row.cluster_id, row.ordinal]))
    },
    tombstones: async ({ after, limit }) => {
      let removed = db.read
        .selectFrom('desired')
        .select(['cluster_id', 'project', 'service', 'ordinal', 'cleanup'])
        .where('doc', 'is', null)
        .where('set_sha', 'is', null)
      if (after !== undefined) {
        const { clusterId, project, service } = after
        removed = removed.where(sql<boolean>`(cluster_id, project, service) > (${clusterId}, ${project}, ${service})`)
      }
      const rows = await removed.orderBy('cluster_id').orderBy('project').orderBy('service').limit(limit).execute()
      return rows.map(
        ({ cluster_id: clusterId, project, service, ordinal, cleanup }): Tombstone => ({
          ...{ clusterId, project, service, ordinal },
          hasStatus: cleanup !== 0,
        }),
      )
    },
    dropTombstones: (tombstones) =>
      db.write(async ({ sql: trx, engine }) => {
        const keys = tombstones.map(({ clusterId, project, service, ordinal }) => [clusterId, project, service, ordinal])
        return (await runBulk(trx, engine, DROP_TOMBSTONES, keys)).length
      }),
  }
}

const rowsOf = (db: ReadDb, { project, service }: ServiceId) =>
  db.selectFrom('desired').selectAll().where('project', '=', project).where('service', '=', service)

type NewRow = Omit<DesiredService, 'ordinal'>
type Published = Awaited<ReturnType<Store['publish']>>[number]
type Written = Pick<NewRow, 'project' | 'service'> & { rows: NewRow[] }

/** Rows in one statement: 14 parameters each, databases take at least 32,766. */
const RUN_ROWS = 500

/** Rows of one service in different clusters, which a few statements can write. */
function runsOf(rows: readonly NewRow[]): Written[] {
  const runs: Written[] = []
  let clusters = new Set<ClusterId>()
  for (const row of rows) {
    const run = runs.at(-1)
    if (run?.project === row.project && run.service === row.service && run.rows.length < RUN_ROWS && !clusters.has(row.clusterId))
      run.rows.push(row)
    else {
      clusters = new Set()
      runs.push({ project: row.project, service: row.service, rows: [row] })
    }
    clusters.add(row.clusterId)
  }
  return runs
}

async function publishRun(tx: Tx, { project, service, rows }: Written, proofOf: ProofOf | undefined): Promise<Published[]> {
  const { sql: trx, engine, changes } = tx
  const ids = rows.map(({ clusterId }) => clusterId)
  const found = await runIn<Tables['desired']>(trx, engine, HELD, ids, [project, service])
  const held = new Map(found.map((row) => [row.cluster_id, row]))
  const text = docText()
  const changed: ChangedRow[] = []
  const moved = new Map<string, { notes: Notes; clusters: ClusterId[] }>()
  const proofs: Array<[ClusterId, string, string, string | null]> = []
  for (const row of rows) {
    const before = held.get(row.clusterId)
    const doc = text(row.doc)
    // Rows of health rules are content without a service; a service that was never there needs no tombstone.
    const isSomething = doc !== null || (row.setSha !== null && isFleetRows({ project, service }))
    if (before === undefined ? isSomething : before.doc !== doc || before.set_sha !== row.setSha)
      changed.push({ row, doc, before: wordsOf(before), isGiven: isGiven(row, before) })
    else if (before !== undefined && !sameNotes(before, notesOf(row))) {
      const notes = notesOf(row)
      const key = `${notes.facts_key} ${notes.rendered_from} ${notes.placed_by}`
      const same = moved.get(key) ?? { notes, clusters: [] }
      same.clusters.push(row.clusterId)
      moved.set(key, same)
    }
    if (proofOf === undefined || before === undefined || changed.at(-1)?.row === row) continue
    const proof = proofOf(row, before.ordinal)
    if (proof !== before.proof) proofs.push([row.clusterId, project, service, proof])
  }
  // The origin of its placement and of its content is a note of the server: the shard does not contain it, so it uses
  // no ordinal.
  for (const { notes, clusters } of moved.values()) {
    const of = trx.updateTable('desired').set(notes).where('project', '=', project).where('service', '=', service)
    await of.where('cluster_id', 'in', clusters).execute()
  }
  await runBulk(trx, engine, WRITE_PROOFS, proofs)
  const ordinals = await writeChanged(tx, { project, service }, changed, proofOf)
  for (const [digest, setSha] of setsOf(changed)) await noteSet(trx, { project, service }, digest, setSha)
  if (!isFleetRows({ project, service }))
    await noteGiven(trx, { project, service }, changed.filter((one) => one.isGiven && ordinals.has(one.row.clusterId)).length)
  // No view shows which clusters have health rules.
  if (ordinals.size > 0 && !isFleetRows({ project, service }))
    changes.add({ topic: 'desired', project, name: service, keys: [...ordinals.keys()] })
  return rows.map(({ clusterId }) => {
    const before = held.get(clusterId)
    const ordinal = ordinals.get(clusterId)
    if (ordinal === undefined) return { changed: false, ordinal: before?.ordinal ?? 0, before: null }
    return { changed: true, ordinal, before: { doc: before?.doc ?? null, setSha: before?.set_sha ?? null } }
  })
}

type Notes = Pick<Tables['desired'], 'placed_by' | 'facts_key' | 'rendered_from'>
const notesOf = ({ placedBy, factsKey, renderedFrom }: NewRow): Notes => ({
  placed_by: placedBy,
  facts_key: factsKey ?? null,
  rendered_from: renderedFrom ?? null,
})
const sameNotes = (a: Notes, b: Notes): boolean =>
  a.placed_by === b.placed_by && a.facts_key === b.facts_key && a.rendered_from === b.rendered_from

/** By digest. Most clusters get the same. */
function setsOf(changed: readonly ChangedRow[]): Map<string, string> {
  const sets = new Map<string, string>()
  for (const { row } of changed)
    if (row.doc != null && row.doc.removal === undefined && row.setSha !== null) sets.set(row.doc.digest, row.setSha)
  return sets
}

const DROP_TOMBSTONES: Bulk = {
  before: `delete from desired where doc is null and set_sha is null and cleanup = 0
    and ordinal < (select newest.ordinal from clusters as newest where newest.cluster_id = desired.cluster_id)
    and (cluster_id, project, service, ordinal) in (values`,
  row: '(?, ?, ?, ?)',
  after: ') returning service',
  types: ['text', 'text', 'text', 'bigint'],
}

interface ChangedRow {
  row: NewRow
  doc: string | null
  /** The words that it had. */
  before: PlacementWords | null
  /** It had a revision of another commit, or none. */
  isGiven: boolean
}

/** A cluster that goes from one variant of a commit to another is given nothing new. */
function isGiven({ doc }: NewRow, before: Tables['desired'] | undefined): boolean {
  if (doc === null || doc.removal !== undefined) return false
  const isSame = before?.doc?.includes(`"commit":${JSON.stringify(doc.commit)}`) === true
  return !isSame || before.digest === null
}

const HELD: Bulk = {
  before: 'select * from desired where project = ? and service = ? and cluster_id in (',
  row: '?',
  after: ')',
  types: ['text'],
}

/** With what the agent says of the service. */
const RAISE_ORDINALS: Bulk = {
  before: 'update clusters set ordinal = ordinal + 1 where cluster_id in (',
  row: '?',
  after: `) returning cluster_id, ordinal, (select s.doc from status_rows s where s.cluster_no = clusters.no
    and s.name_id = (select n.id from names n where n.kind = 'service' and n.key = ?)) as report`,
  types: ['text'],
}
type RaisedCluster = Pick<Tables['clusters'], 'cluster_id' | 'ordinal'> & { report: string | null }

const WRITE_ROWS: Bulk = {
  before:
    'insert into desired (cluster_id, project, service, ordinal, doc, set_sha, placed_by, facts_key, rendered_from, digest, sync, health, cleanup, proof) values',
  row: '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  after: `on conflict (cluster_id, project, service) do update set ordinal = excluded.ordinal, doc = excluded.doc, set_sha = excluded.set_sha,
    placed_by = excluded.placed_by, facts_key = excluded.facts_key, rendered_from = excluded.rendered_from, digest = excluded.digest, sync = excluded.sync, health = excluded.health,
    cleanup = excluded.cleanup, proof = excluded.proof`,
  types: ['text', 'text', 'text', 'bigint', 'text', 'text', 'text', 'text', 'text', 'text', 'text', 'text', 'bigint', 'text'],
}

const WRITE_PROOFS: Bulk = {
  before: 'with found (cluster_id, project, service, proof) as (values',
  row: '(?, ?, ?, ?)',
  after: `) update desired set proof = found.proof from found
    where desired.cluster_id = found.cluster_id and desired.project = found.project and desired.service = found.service`,
  types: ['text', 'text', 'text', 'text'],
}

/** The new ordinals; none for a cluster that was deleted meanwhile. */
async function writeChanged(tx: Tx, id: ServiceId, changed: readonly ChangedRow[], proofOf?: ProofOf): Promise<Map<ClusterId, number>> {
  if (changed.length === 0) return new Map()
  const ids = changed.map(({ row }) => row.clusterId)
  const clusters = await runIn<RaisedCluster>(tx.sql, tx.engine, RAISE_ORDINALS, ids, [], [serviceKey(id)])
  const found = new Map(clusters.map((cluster) => [cluster.cluster_id, cluster]))
  const moves: WordMove[] = []
  const values: unknown[][] = []
  for (const { row, doc, before } of changed) {
    const { clusterId, setSha, placedBy, factsKey = null, renderedFrom = null } = row
    const cluster = found.get(clusterId)
    if (cluster === undefined) continue
    const digest = row.doc === null || row.doc.removal !== undefined ? null : row.doc.digest
    const after = placementWords(row.doc === null ? null : { digest }, readReport(cluster.report))
    moves.push({ clusterId, before, after })
    const words = [after?.sync ?? null, after?.health ?? null]
    const cleanup = row.doc === null && !isFleetRows(id) ? 1 : 0
    values.push([
      clusterId,
      id.project,
      id.service,
      cluster.ordinal,
      doc,
      setSha,
      placedBy,
      factsKey,
      renderedFrom,
      digest,
      ...words,
      cleanup,
      proofOf?.(row, cluster.ordinal) ?? null,
    ])
  }
  await runBulk(tx.sql, tx.engine, WRITE_ROWS, values)
  await countMoves(tx, id, moves)
  return new Map(clusters.map(({ cluster_id, ordinal }) => [cluster_id, ordinal]))
}

/** Most clusters of a service share one document: it is written out once for all of them. */
function docText(): (doc: ServiceRow | null) => string | null {
  const texts = new Map<ServiceRow, string>()
  return (doc) => {
    if (doc === null) return null
    const text = texts.get(doc) ?? canonicalJson(doc)
    texts.set(doc, text)
    return text
  }
}

/** …and parsed once. */
function docParser(): (text: string) => ServiceRow {
  const docs = new Map<string, ServiceRow>()
  return (text) => {
    const doc = docs.get(text) ?? serviceRowSchema.parse(JSON.parse(text))
    docs.set(text, doc)
    return doc
  }
}

const toDesired = (row: Tables['desired'], parse: (text: string) => ServiceRow): DesiredService => ({
  clusterId: row.cluster_id,
  project: row.project,
  service: row.service,
  ordinal: row.ordinal,
  doc: row.doc === null ? null : parse(row.doc),
  setSha: row.set_sha,
  placedBy: row.placed_by,
  ...(row.facts_key === null ? {} : { factsKey: row.facts_key }),
  ...(row.rendered_from === null ? {} : { renderedFrom: row.rendered_from }),
  ...(row.proof === null ? {} : { proof: row.proof }),
})
