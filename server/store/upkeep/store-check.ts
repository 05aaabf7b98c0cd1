// The invariants of a fleet store, as queries to either database. They only read: on a SQLite file with a connection of
// its own, in one state of it.
import { Kysely, sql } from 'kysely'
import { isDamage } from '../../../shared/adapters/sqlite.ts'
import { HEALTH_RULES } from '../../../shared/model/desired.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { countDifferences, wordDifferences } from '../counts/rollup-recount.ts'
import type { Engine } from '../engines/engine.ts'
import { readerDialect } from '../engines/postgres-dialect.ts'
import type { PostgresTarget } from '../engines/postgres-url.ts'
import { sqliteDialect } from '../engines/sqlite-dialect.ts'
import type { ReadDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'

export interface StoreReport {
  engine: Engine
  /** Null if it has none. */
  schema: number | null
  /** One state of the store while `work` runs. */
  inOneState<T>(work: (db: ReadDb) => Promise<T>): Promise<T>
  /** Each statement for itself, as of now. */
  db: ReadDb
  close(): Promise<void>
}

export type StorePlaceToInspect = { file: string } | { target: PostgresTarget; password(): Promise<string | null> }

export async function inspectStore(place: StorePlaceToInspect): Promise<StoreReport> {
  const engine: Engine = 'file' in place ? 'sqlite' : 'postgres'
  const db = new Kysely<Tables>({
    dialect:
      'file' in place ? sqliteDialect(place.file, { readonly: true }) : readerDialect({ ...place, applicationName: 'skerry doctor' }, null), // what it asks goes through whole tables
  })
  try {
    const row = await db.selectFrom('meta').select('value').where('key', '=', 'schema').executeTakeFirst()
    return {
      engine,
      schema: row === undefined ? null : Number(row.value),
      db,
      inOneState: (work) =>
        db.connection().execute(async (connection) => {
          await sql.raw(engine === 'sqlite' ? 'begin deferred' : 'begin isolation level repeatable read read only').execute(connection)
          try {
            if (engine === 'postgres') await sql`set local statement_timeout = 0`.execute(connection)
            return await work(connection)
          } finally {
            await sql`rollback`.execute(connection)
          }
        }),
      close: () => db.destroy(),
    }
  } catch (error) {
    await db.destroy()
    throw error
  }
}

/** Null if the SQLite file is whole. */
export async function findStoreDamage(db: ReadDb): Promise<string | null> {
  try {
    const { rows } = await sql<{ integrity_check: string }>`pragma integrity_check(3)`.execute(db)
    const told = rows.map((row) => row.integrity_check)
    return told.length === 1 && told[0] === 'ok' ? null : told.join('; ')
  } catch (error) {
    if (isDamage(error)) return describeError(error)
    throw error
  }
}

type Rule = { code: 'row_without_owner' | 'row_missing' | 'count_wrong' | 'number_wrong'; schema: number; sql: string }

const named = (first: string, ...columns: string[]) => columns.reduce((text, column) => `${text} || '/' || ${column}`, first)
const inCluster = (table: string, ...columns: string[]) => `'${table} ' || ${named(`${table}.cluster_id`, ...columns)}`
const orphans = (table: string, where: string, owner: string, join: string): string =>
  `select ${where} as at from ${table} where not exists (select 1 from ${owner} where ${join})`
const recount = (table: 'names' | 'states', column: 'name_id' | 'state_id') =>
  `select '${table} ' || cast(t.id as text) || ': ' || cast(t.refs as text) || ', not ' || cast(coalesce(c.n, 0) as text) as at
   from ${table} t left join (select ${column} as id, count(*) as n from status_rows where ${column} is not null group by ${column}) c on c.id = t.id
   where t.refs <> coalesce(c.n, 0)`
const overtaken = (counter: string, table: string, column: string) =>
  `select '${counter} ' || cast(value as text) || ' < ' || cast(m as text) as at
   from counters, (select coalesce(max(${column}), 0) as m from ${table}) g where name = '${counter}' and value < m`

/** Each answers one row, `at`, for each place where it is broken. */
const RULES: readonly Rule[] = [
  {
    code: 'row_without_owner',
    schema: 1,
    sql: orphans('agents', inCluster('agents'), 'clusters', 'clusters.cluster_id = agents.cluster_id'),
  },
  {
    code: 'row_without_owner',
    schema: 1,
    sql: orphans('desired', inCluster('desired', 'project', 'service'), 'clusters', 'clusters.cluster_id = desired.cluster_id'),
  },
  {
    code: 'row_without_owner',
    schema: 2,
    sql: orphans('restore_proofs', inCluster('restore_proofs'), 'clusters', 'clusters.cluster_id = restore_proofs.cluster_id'),
  },
  {
    code: 'row_without_owner',
    schema: 3,
    sql: `select 'status_rows of cluster ' || cast(cluster_no as text) as at from (select distinct cluster_no from status_rows) r
      where not exists (select 1 from clusters where clusters.no = r.cluster_no)`,
  },
  {
    code: 'row_without_owner',
    schema: 3,
    sql: `select 'status_rows of name ' || cast(name_id as text) as at from (select distinct name_id from status_rows) r
      where not exists (select 1 from names where names.id = r.name_id)`,
  },
  {
    code: 'row_without_owner',
    schema: 3,
    sql: `select 'status_rows in state ' || cast(state_id as text) as at from (select distinct state_id from status_rows where state_id is not null) r
      where not exists (select 1 from states where states.id = r.state_id)`,
  },
  {
    code: 'row_without_owner',
    schema: 3,
    sql: `select 'status_history of cluster ' || cast(cluster_no as text) as at from (select distinct cluster_no from status_history) r
      where not exists (select 1 from clusters where clusters.no = r.cluster_no)`,
  },
  {
    code: 'row_without_owner',
    schema: 8,
    sql: orphans(
      'confirmation_clusters',
      "'confirmation_clusters ' || confirmation_clusters.subject",
      'confirmations',
      'confirmations.id = confirmation_clusters.confirmation_id',
    ),
  },
  {
    code: 'row_missing',
    schema: 1,
    sql: `select 'the Cluster resource of ' || clusters.name as at from clusters
      where not exists (select 1 from resources where kind = 'Cluster' and project = '' and resources.name = clusters.name)`,
  },
  {
    code: 'row_missing',
    schema: 1,
    sql: orphans('clusters', "'the agent of ' || clusters.name", 'agents', 'agents.cluster_id = clusters.cluster_id'),
  },
  {
    code: 'row_without_owner',
    schema: 1,
    sql: `select 'Cluster ' || name as at from resources where kind = 'Cluster' and not exists (select 1 from clusters where clusters.name = resources.name)`,
  },
  { code: 'count_wrong', schema: 3, sql: recount('names', 'name_id') },
  { code: 'count_wrong', schema: 3, sql: recount('states', 'state_id') },
  {
    code: 'count_wrong',
    schema: 3,
    sql: `select 'rows of ' || c.name || ': ' || cast(c.row_count as text) || ', not ' || cast(coalesce(r.n, 0) as text) as at
      from clusters c left join (select cluster_no, count(*) as n from status_rows group by cluster_no) r on r.cluster_no = c.no
      where c.row_count <> coalesce(r.n, 0)`,
  },
  {
    code: 'count_wrong',
    schema: 8,
    sql: `select 'clusters of confirmation ' || c.id || ': ' || cast(c.members as text) || ', not ' || cast(coalesce(m.n, 0) as text) as at
      from confirmations c left join (select confirmation_id, count(*) as n from confirmation_clusters group by confirmation_id) m
        on m.confirmation_id = c.id where c.members <> coalesce(m.n, 0)`,
  },
  { code: 'number_wrong', schema: 1, sql: overtaken('resource_version', 'resources', 'version') },
  { code: 'number_wrong', schema: 1, sql: overtaken('event_id', 'events', 'id') },
  { code: 'number_wrong', schema: 3, sql: overtaken('change', 'changes', 'id') },
  { code: 'number_wrong', schema: 3, sql: overtaken('cluster_no', 'clusters', 'no') },
  {
    code: 'number_wrong',
    schema: 1,
    sql: `select 'ordinal of ' || c.name || ': ' || cast(c.ordinal as text) || ' < ' || cast(d.m as text) as at
      from clusters c join (select cluster_id, max(ordinal) as m from desired group by cluster_id) d on d.cluster_id = c.cluster_id where c.ordinal < d.m`,
  },
  {
    code: 'number_wrong',
    schema: 1,
    sql: `select 'ordinal ' || cast(ordinal as text) || ' twice in ' || cluster_id as at from desired group by cluster_id, ordinal having count(*) > 1`,
  },
]

/** Whole numbers that are not negative and below 2^53, by their table. */
const NUMBERS: ReadonlyArray<[schema: number, table: string, columns: string[]]> = [
  [1, 'counters', ['value']],
  [1, 'resources', ['generation', 'version', 'created_ms', 'updated_ms', 'deleting_ms']],
  [1, 'desired', ['ordinal']],
  [
    2,
    'clusters',
    ['epoch', 'ordinal', 'status_rev', 'status_floor', 'sweep_floor', 'event_rev', 'adopted_ordinal', 'settled_epoch', 'joined_ms'],
  ],
  [1, 'agents', ['incarnation', 'joined_ms']],
  [1, 'events', ['id', 'at_ms']],
  [3, 'clusters', ['no', 'row_count']],
  [3, 'status_rows', ['rev', 'since_ms', 'received_ms']],
  [3, 'changes', ['id', 'at_ms']],
  [3, 'revisions', ['number', 'generation', 'object_count', 'rendered_ms']],
  [4, 'revision_variants', ['number', 'object_count']],
  [8, 'confirmations', ['members', 'last_member']],
]

export interface BrokenRule {
  code: Rule['code'] | 'integer_range'
  /** The first places. */
  at: string[]
  /** How many more; at most some hundred are counted. */
  more: number
}

/** Counts are kept from this one on. */
const COUNTS_SCHEMA = 3
const LOOKED_MAX = 500
const NAMED_MAX = 5

/** All rules that the schema knows. `onRule`: before each, for progress. */
export async function findBrokenRules(
  look: Pick<StoreReport, 'engine' | 'schema'>,
  db: ReadDb,
  onRule: (done: number, of: number) => void,
): Promise<BrokenRule[]> {
  const questions = [
    ...RULES.map(({ code, schema, sql }) => ({ code, schema, sql })),
    ...NUMBERS.map(([schema, table, columns]) => ({
      code: 'integer_range' as const,
      schema,
      sql: outOfRange(look.engine, table, columns),
    })),
  ].filter(({ schema }) => schema <= (look.schema ?? 0))
  const broken: BrokenRule[] = []
  for (const [done, question] of questions.entries()) {
    onRule(done, questions.length)
    const { rows } = await sql<{ at: string }>`${sql.raw(question.sql)} limit ${sql.lit(LOOKED_MAX)}`.execute(db)
    const at = rows.map((row) => row.at)
    if (at.length > 0) broken.push(brokenAt(question.code, at))
  }
  if ((look.schema ?? 0) < COUNTS_SCHEMA) return broken
  onRule(questions.length, questions.length)
  const [words, counts]: [string[], string[]] = [[], []]
  for await (const { cluster_id, project, service, kept, counted } of wordDifferences(db))
    if (words.length < LOOKED_MAX) words.push(`words of ${project}/${service} in ${cluster_id}: ${kept}, not ${counted}`)
  for await (const { dimension, key, value, kept, counted } of countDifferences(db))
    if (counts.length < LOOKED_MAX) counts.push(`${dimension} ${key} ${value}: ${kept}, not ${counted}`)
  for (const at of [words, counts]) if (at.length > 0) broken.push(brokenAt('count_wrong', at))
  return broken
}

const brokenAt = (code: BrokenRule['code'], at: string[]): BrokenRule => ({
  code,
  at: at.slice(0, NAMED_MAX),
  more: Math.max(0, at.length - NAMED_MAX),
})

function outOfRange(engine: Engine, table: string, columns: readonly string[]): string {
  const odd = (column: string) =>
    engine === 'sqlite'
      ? `${column} < 0 or ${column} > 9007199254740991 or typeof(${column}) not in ('integer', 'null')`
      : `${column} < 0 or ${column} > 9007199254740991`
  const shown = columns.map((column) => `'${column} ' || coalesce(cast(${column} as text), '')`).join(" || ', ' || ")
  return `select '${table}: ' || ${shown} as at from ${table} where ${columns.map(odd).join(' or ')}`
}

/** The content that is in use, each name once, with one `project/service` that uses it. */
export async function readContentReferences(db: ReadDb, schema: number): Promise<Array<{ sha256: string; of: string; desired: boolean }>> {
  const read = async (table: 'desired' | 'revisions' | 'revision_variants') => {
    const { rows } = await sql<{
      sha: string
      of: string
    }>`select set_sha as sha, min(project || '/' || service) as of from ${sql.table(table)}
      where set_sha is not null group by set_sha`.execute(db)
    return rows
  }
  const found = new Map<string, { sha256: string; of: string; desired: boolean }>()
  for (const { sha, of } of await read('desired')) found.set(sha, { sha256: sha, of, desired: true })
  for (const [since, table] of [
    [3, 'revisions'],
    [4, 'revision_variants'],
  ] as const) {
    if (schema < since) continue
    for (const { sha, of } of await read(table)) if (!found.has(sha)) found.set(sha, { sha256: sha, of, desired: false })
  }
  return [...found.values()]
}

/** Names of clusters whose agents showed that the store was set back (RP2). */
export async function readRestoreProofs(db: ReadDb): Promise<string[]> {
  const { rows } = await sql<{
    name: string
  }>`select clusters.name from restore_proofs join clusters on clusters.cluster_id = restore_proofs.cluster_id
    order by clusters.name`.execute(db)
  return rows.map(({ name }) => name)
}

/** Names of Projects without a rule for ServiceAccounts. */
export async function readProjectsAsAgent(db: ReadDb): Promise<string[]> {
  const rows = await db.selectFrom('resources').select(['name', 'spec']).where('kind', '=', 'Project').orderBy('name').execute()
  return rows.flatMap(({ name, spec }) => ('serviceAccounts' in Object(JSON.parse(spec)) ? [] : [name]))
}

export interface WantedCluster {
  clusterId: string
  ordinal: number
  /** Documents of service rows as text; tombstones are left out. */
  services: Array<{ project: string; service: string; doc: string }>
  /** Contents of its rows that are of no service: health rules, suspensions. */
  fleetShas: string[]
}

/** The present desired state of clusters. */
export async function readWanted(db: ReadDb, clusterIds: readonly string[]): Promise<Map<string, WantedCluster>> {
  const ids = sql.join(clusterIds.map((id) => sql`${id}`))
  const wanted = new Map<string, WantedCluster>()
  if (clusterIds.length === 0) return wanted
  const clusters = await sql<{
    cluster_id: string
    ordinal: number
  }>`select cluster_id, ordinal from clusters where cluster_id in (${ids})`.execute(db)
  for (const { cluster_id, ordinal } of clusters.rows)
    wanted.set(cluster_id, { clusterId: cluster_id, ordinal, services: [], fleetShas: [] })
  const rows = await sql<{
    cluster_id: string
    project: string
    service: string
    doc: string
  }>`select cluster_id, project, service, doc from desired
    where doc is not null and cluster_id in (${ids})`.execute(db)
  for (const { cluster_id, ...service } of rows.rows) wanted.get(cluster_id)?.services.push(service)
  const { service } = HEALTH_RULES
  const ofFleet = await sql<{ cluster_id: string; set_sha: string }>`select cluster_id, set_sha from desired
    where service = ${service} and set_sha is not null and cluster_id in (${ids})`.execute(db)
  for (const { cluster_id, set_sha } of ofFleet.rows) wanted.get(cluster_id)?.fleetShas.push(set_sha)
  return wanted
}

export interface KnownShards {
  clusterIds: string[]
  /** dbId of each shard file as it was adopted, by its index. */
  adopted: Map<number, string>
}

export async function readKnownShards(db: ReadDb): Promise<KnownShards> {
  const clusters = await sql<{ cluster_id: string }>`select cluster_id from clusters order by cluster_id`.execute(db)
  const rows = await sql<{ key: string; value: string }>`select key, value from meta where key like 'shard %'`.execute(db)
  return {
    clusterIds: clusters.rows.map(({ cluster_id }) => cluster_id),
    adopted: new Map(rows.rows.map(({ key, value }) => [Number(key.slice('shard '.length)), value])),
  }
}
