// Shard files against themselves (hashes, clocks, log) and against the fleet store: which clusters are behind or ahead,
// and whether the rows of the others are correct. While the server runs, differences are checked again: a revision is
// in the store a moment before it is in its file.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ALL_DESIRED } from '../../shared/adapters/crdt-db.ts'
import { openSqlite, readTransaction } from '../../shared/adapters/sqlite.ts'
import { canonicalJson, setDigest } from '../../shared/kube/canonical.ts'
import { parseRowId, serviceRowId, serviceRowSchema } from '../../shared/model/desired.ts'
import { SUSPENSION_PREFIX } from '../../shared/model/suspension.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import { SHARD_COUNT, shardOf } from '../desired/shard-files.ts'
import { examineShard } from '../desired/shard-report.ts'
import { createFileContentStore } from '../store/content/file-content-store.ts'
import { readKnownShards, readWanted, type StoreReport, type WantedCluster } from '../store/upkeep/store-check.ts'
import type { FindingCode, Findings } from './findings.ts'

export interface CheckShardsDeps {
  look: StoreReport
  dataDir: string
  running: boolean
  findings: Findings
  clock: Clock
  progress(what: string, done: number, of: number): void
}

/** Looks at what does not fit while the server runs, a second apart. */
const LOOKS = 5
const AGAIN_MS = 1_000

/** How many clusters the store knows. */
export async function checkShards(deps: CheckShardsDeps): Promise<number> {
  const { look, dataDir, findings } = deps
  const known = await look.inOneState(readKnownShards)
  const clusters: string[][] = Array.from({ length: SHARD_COUNT }, () => [])
  for (const clusterId of known.clusterIds) clusters[shardOf(clusterId, SHARD_COUNT)]?.push(clusterId)
  let rows = 0
  for (const [index, clusterIds] of clusters.entries()) {
    deps.progress('checking shard files', index, SHARD_COUNT)
    const name = `shard-${String(index).padStart(2, '0')}.db`
    const path = join(dataDir, 'shards', name)
    if (!existsSync(path)) {
      if (clusterIds.length > 0) findings.tell('shard_missing', name)
      continue
    }
    const trouble = troubleWith(path)
    if (trouble !== null) {
      findings.tell(trouble.code, `${name}: ${trouble.why}`)
      continue
    }
    const adopted = known.adopted.get(index)
    if (adopted !== undefined && dbIdOf(path) !== adopted) {
      findings.tell('shard_stranger', name)
      continue
    }
    rows += await compareShard(deps, { name, path, clusterIds })
  }
  findings.fact('clusters', known.clusterIds.length)
  findings.fact('shardRows', rows)
  return known.clusterIds.length
}

function troubleWith(path: string): Verdict | null {
  try {
    const { damage } = examineShard(path)
    return damage === null ? null : { code: 'shard_damaged', why: damage }
  } catch (error) {
    return { code: 'shard_unreadable', why: describeError(error) }
  }
}

function dbIdOf(path: string): string | null {
  const db = openSqlite(path, { readonly: true })
  try {
    return db.query<{ id: string }, []>('SELECT db_id AS id FROM meta').get()?.id ?? null
  } finally {
    db.close()
  }
}

interface ShardToCompare {
  name: string
  path: string
  clusterIds: string[]
}

/** The rows it holds. */
async function compareShard(deps: CheckShardsDeps, { name, path, clusterIds }: ShardToCompare): Promise<number> {
  const { look, findings, running, clock, dataDir } = deps
  const judgeNow = async (ids?: readonly string[]) => judgeFile(path, wanted, await readFleetSets(dataDir, clock, wanted.values()), ids)
  const wantedOf = (ids: readonly string[]) => look.inOneState((db) => readWanted(db, ids))
  let wanted = await wantedOf(clusterIds)
  const judged = await judgeNow()
  let { verdicts } = judged
  for (let again = 1; running && verdicts.size > 0 && again < LOOKS; again++) {
    await clock.sleep(AGAIN_MS)
    const ids = [...verdicts.keys()]
    wanted = await wantedOf(ids)
    const next = (await judgeNow(ids)).verdicts
    const after = await wantedOf(ids)
    // A cluster that was published meanwhile was read in two states.
    verdicts = new Map([...next].filter(([id]) => again < LOOKS - 1 || after.get(id)?.ordinal === wanted.get(id)?.ordinal))
  }
  for (const [clusterId, { code, why }] of verdicts) {
    const told = code === 'shard_behind' && running ? 'shard_behind_running' : code
    findings.tell(told, `${name}: ${clusterId}${why}`)
  }
  return judged.rows
}

interface Verdict {
  code: FindingCode
  why: string
}

interface HeldCluster {
  ordinal: number
  /** Documents of service rows, by their row id. */
  services: Map<string, string>
  /** By `project/service`. */
  objects: Map<string, Array<[id: string, doc: string]>>
  /** Documents of rows that are of no service, by their row id. */
  ofFleet: Map<string, string>
}

/** Judges the clusters whose rows do not match; `only` limits them. One cluster's rows are in memory at a time. */
function judgeFile(
  path: string,
  wanted: ReadonlyMap<string, WantedCluster>,
  setOf: Sets,
  only?: readonly string[],
): { verdicts: Map<string, Verdict>; rows: number } {
  const db = openSqlite(path, { readonly: true })
  const verdicts = new Map<string, Verdict>()
  let rows = 0
  try {
    return readTransaction(db, () => {
      const ordinals = new Map(
        db
          .query<{ cluster: string; ordinal: number }, []>('SELECT cluster, ordinal FROM cluster_ordinal')
          .all()
          .map(({ cluster, ordinal }) => [cluster, ordinal]),
      )
      const seen = new Set<string>()
      const finish = (cluster: string, held: HeldCluster) => {
        seen.add(cluster)
        const verdict = judge(wanted.get(cluster), held, setOf)
        if (verdict !== null) verdicts.set(cluster, verdict)
      }
      const empty = (cluster: string): HeldCluster => ({
        ordinal: ordinals.get(cluster) ?? 0,
        services: new Map(),
        objects: new Map(),
        ofFleet: new Map(),
      })
      const statement = only === undefined ? db.query<Row, []>(ALL_DESIRED) : null
      const rowsOf = only === undefined ? null : db.query<Row, [string]>('SELECT cluster, id, doc FROM desired WHERE cluster = ?')
      const all = statement !== null ? statement.iterate() : (only ?? []).flatMap((cluster) => rowsOf?.all(cluster) ?? [])
      const held = new Map<string, HeldCluster>() // of the cluster whose rows come just now
      const finishHeld = () => {
        for (const [cluster, rowsOfIt] of held) finish(cluster, rowsOfIt)
        held.clear()
      }
      for (const { cluster, id, doc } of all) {
        rows++
        let own = held.get(cluster)
        if (own === undefined) {
          finishHeld()
          own = empty(cluster)
          held.set(cluster, own)
        }
        hold(own, id, doc)
      }
      finishHeld()
      const rest = only ?? [...new Set([...ordinals.keys(), ...wanted.keys()])]
      for (const cluster of rest) if (!seen.has(cluster)) finish(cluster, empty(cluster))
      return { verdicts, rows }
    })
  } finally {
    db.close()
  }
}

interface Row {
  cluster: string
  id: string
  doc: string
}

function hold({ services, objects, ofFleet }: HeldCluster, id: string, doc: string): void {
  const row = parseRowId(id)
  if (row.kind === 'service') services.set(id, doc)
  else if (row.kind === 'healthrule' || id.startsWith(SUSPENSION_PREFIX)) ofFleet.set(id, doc)
  else if (row.kind === 'object') {
    const of = objects.get(serviceKey(row.id))
    if (of === undefined) objects.set(serviceKey(row.id), [[id, doc]])
    else of.push([id, doc])
  }
}

/**
 * Null means that the file holds what the store wants. `setOf`: sets of the content store by their names; undefined for
 * one that cannot be read, which is reported elsewhere.
 */
function judge(wanted: WantedCluster | undefined, held: HeldCluster, setOf: Sets): Verdict | null {
  const holds = held.ordinal > 0 || held.services.size > 0 || held.objects.size > 0 || held.ofFleet.size > 0
  if (wanted === undefined) return holds ? { code: 'shard_unknown_cluster', why: '' } : null
  if (held.ordinal !== wanted.ordinal) {
    const why = ` at ${held.ordinal}, the store at ${wanted.ordinal}`
    return { code: held.ordinal < wanted.ordinal ? 'shard_behind' : 'shard_ahead', why }
  }
  const expected = new Set<string>()
  for (const { project, service, doc } of wanted.services) {
    const id: ServiceId = { project, service }
    expected.add(serviceKey(id))
    const why = differs(doc, held.services.get(serviceRowId(id)), held.objects.get(serviceKey(id)) ?? [])
    if (why !== null) return { code: 'shard_rows', why: `, ${serviceKey(id)}: ${why}` }
  }
  const extra = [...held.objects.keys(), ...[...held.services.keys()].map((id) => id.slice('service/'.length))].find(
    (key) => !expected.has(key),
  )
  if (extra !== undefined) return { code: 'shard_rows', why: `, ${extra}: unexpected` }
  const sets = wanted.fleetShas.map((sha) => setOf.get(sha))
  const rows = sets.every((set) => set !== undefined) ? new Map(sets.flatMap((set) => [...set])) : null
  return rows === null || sameRows(rows, held.ofFleet) ? null : { code: 'shard_rows', why: ', its health rules or suspensions differ' }
}

type Rows = ReadonlyMap<string, string>
type Sets = ReadonlyMap<string, Rows>
const sameRows = (a: Rows, b: Rows): boolean => a.size === b.size && [...a].every(([id, doc]) => b.get(id) === doc)

/** The rows of these clusters that belong to no service: most clusters have the same. */
async function readFleetSets(dataDir: string, clock: Clock, wanted: Iterable<WantedCluster>): Promise<Sets> {
  const content = createFileContentStore(join(dataDir, 'content'), clock)
  const sets = new Map<string, Rows>()
  for (const sha of new Set([...wanted].flatMap(({ fleetShas }) => fleetShas))) {
    const bytes = await content.get(sha)
    if (bytes !== null) sets.set(sha, decodeRenderedSet(bytes))
  }
  return sets
}

/** RV1: compares the stored row with the digest and count that it names. */
function differs(wanted: string, held: string | undefined, objects: ReadonlyArray<[string, string]>): string | null {
  if (held === undefined) return 'its row is missing'
  if (wanted !== held && canonicalJson(serviceRowSchema.parse(JSON.parse(wanted))) !== held) return 'its row differs'
  const { count, digest, removal } = serviceRowSchema.parse(JSON.parse(held))
  if (removal !== undefined) return objects.length === 0 ? null : 'it has objects in addition to its removal order'
  if (objects.length !== count) return `${objects.length} objects, not ${count}`
  return setDigest(objects) === digest ? null : 'the hash of its objects differs from its digest'
}
