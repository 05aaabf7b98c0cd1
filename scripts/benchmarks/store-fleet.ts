// Fills a new fleet store of either engine with a fleet (fleet-rows.ts), past the server's own code, which would take
// hours for two million rows. Indices come last.
//   bun scripts/benchmarks/store-fleet.ts FILE [CLUSTERS] [OBJECTS]     makes a SQLite store
import { type Kysely, sql } from 'kysely'
import { rebuildCounts } from '../../server/store/counts/rollup-recount.ts'
import { connectPostgres, connectSqlite } from '../../server/store/engines/connections.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import type { Connections } from '../../server/store/store-db.ts'
import type { Tables } from '../../server/store/tables.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { repositorySpecSchema, serviceSpecSchema } from '../../shared/model/resources.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { FleetRows, type FleetShape } from './fleet-rows.ts'

interface Sink {
  exec(statement: string): Promise<void>
  /** Rows have the same columns each. */
  insert(table: string, rows: ReadonlyArray<Record<string, unknown>>): Promise<void>
}

/** A store file with the newest schema and a fleet in it. Returns the number of rows of status. */
export async function fillSqlite(path: string, shape: FleetShape): Promise<number> {
  await (await connectSqlite(path)).close()
  const db = openSqlite(path, { synchronous: 'OFF', cacheKiB: 256_000 })
  const indices = db
    .query(`select name, sql from sqlite_master where type = 'index' and tbl_name = 'status_rows' and sql is not null`)
    .all() as Index[]
  const exec = async (statement: string) => void db.run(statement)
  const insert: Sink['insert'] = async (table, rows) => {
    const columns = Object.keys(rows[0] ?? {})
    const size = Math.floor(4_000 / Math.max(1, columns.length))
    for (let start = 0; start < rows.length; start += size) {
      const some = rows.slice(start, start + size)
      const row = `(${columns.map(() => '?').join()})`
      const values = some.flatMap((each) => columns.map((column) => each[column] as string | number | null))
      db.query(`insert into ${table} (${columns.join()}) values ${some.map(() => row).join()}`).run(...values)
    }
  }
  try {
    await exec('begin')
    const rows = await fill({ exec, insert }, shape, indices)
    await exec('commit')
    await count(await connectSqlite(path))
    await exec('analyze')
    await exec('pragma wal_checkpoint(truncate)')
    return rows
  } finally {
    db.close(true)
  }
}

/** Computes from the rows, at once, the counts that the server updates with every change. */
async function count({ writer, engine, close }: Connections): Promise<void> {
  await writer.transaction().execute((trx) => rebuildCounts(trx, engine))
  await close()
}

interface Index {
  name: string
  sql: string
}

/** The same in an empty database. */
export async function fillPostgres(url: string, shape: FleetShape): Promise<number> {
  const { writer, close } = await connectPostgres({ target: parsePostgresUrl(url) }, systemClock)
  try {
    const { rows: indices } = await sql<Index>`select indexname as name, indexdef as sql from pg_indexes
      where tablename = 'status_rows' and indexname not like '%_pkey'`.execute(writer)
    const exec = async (statement: string) => void (await sql.raw(statement).execute(writer))
    const statusRows = await fill({ exec, insert: (table, rows) => insertPostgres(writer, table, rows) }, shape, indices)
    for (const table of ['names', 'states'])
      await exec(`select setval(pg_get_serial_sequence('${table}', 'id'), (select max(id) from ${table}))`)
    await exec('vacuum analyze')
    await writer.transaction().execute((trx) => rebuildCounts(trx, 'postgres'))
    return statusRows
  } finally {
    await close()
  }
}

/** A column at a time: a parameter for each value would be the slowest part. */
async function insertPostgres(db: Kysely<Tables>, table: string, rows: ReadonlyArray<Record<string, unknown>>): Promise<void> {
  const columns = Object.keys(rows[0] ?? {})
  for (let start = 0; start < rows.length; start += 20_000) {
    const some = rows.slice(start, start + 20_000)
    const lists = columns.map((column) => {
      const values = some.map((row) => row[column])
      const type = values.some((value) => typeof value === 'string') ? 'text[]' : 'bigint[]'
      return sql`${values}::${sql.raw(values.every((value) => value === null) && TEXTS.has(column) ? 'text[]' : type)}`
    })
    await sql`insert into ${sql.table(table)} (${sql.raw(columns.join())}) select * from unnest(${sql.join(lists)})`.execute(db)
  }
}
const TEXTS = new Set(['deleting_by', 'facts_key', 'rendered_from', 'doc', 'set_sha', 'digest', 'images', 'error', 'sweep_from'])

async function fill({ exec, insert }: Sink, shape: FleetShape, indices: readonly Index[]): Promise<number> {
  const fleet = new FleetRows(shape)
  for (const { name } of indices) await exec(`drop index ${name}`)
  let count = 0
  const waiting = {
    clusters: [] as object[],
    agents: [] as object[],
    resources: [] as object[],
    desired: [] as object[],
    status_rows: [] as object[],
  }
  const flush = async () => {
    for (const [table, rows] of Object.entries(waiting)) await insert(table, rows.splice(0) as Record<string, unknown>[])
  }
  for (let number = 0; number < shape.clusters; number++) {
    const { cluster, agent, resource, desired, statuses } = fleet.cluster(number)
    waiting.clusters.push(cluster)
    waiting.agents.push(agent)
    waiting.resources.push(resource)
    for (const row of desired) waiting.desired.push(row)
    for (const row of statuses) waiting.status_rows.push(row)
    count += statuses.length
    if (waiting.status_rows.length >= 20_000) await flush()
  }
  await flush()
  await insert('names', fleet.names)
  await insert('states', fleet.states)
  await insertServices(insert, fleet)
  for (const { sql } of indices) await exec(sql)
  const counters = { resource_version: shape.clusters + fleet.services.length + 1, cluster_no: shape.clusters }
  for (const [name, value] of Object.entries(counters)) await exec(`update counters set value = ${value} where name = '${name}'`)
  return count
}

async function insertServices(insert: Sink['insert'], { services, shape: { nowMs, clusters } }: FleetRows): Promise<void> {
  const common = { generation: 1, labels: '{}', created_ms: nowMs, updated_ms: nowMs, deleting_ms: null, deleting_by: null }
  const source = { repository: 'apps', path: '.' }
  const spec = canonicalJson(
    serviceSpecSchema.parse({ source, targets: { selector: { matchExpressions: [{ key: 'env', operator: 'Exists' }] } } }),
  )
  const rows = services.map(({ project, service, number }) => ({
    kind: 'Service',
    project,
    name: service,
    uid: `service-${number}`,
    version: clusters + 1 + number,
    spec,
    ...common,
  }))
  const repository = canonicalJson(repositorySpecSchema.parse({ git: { url: 'http://127.0.0.1:9/apps.git' } }))
  const projects = [...new Set(services.map(({ project }) => project))]
  const version = clusters + 1 + services.length
  await insert('resources', [
    ...rows,
    ...projects.map((project, n) => ({
      kind: 'Repository',
      project,
      name: 'apps',
      uid: `apps-${project}`,
      version: version + n,
      spec: repository,
      ...common,
    })),
  ])
}

if (import.meta.main) {
  const [path = '', clusters = '10000', objects = '200'] = process.argv.slice(2)
  const startMs = performance.now()
  const rows = await fillSqlite(path, { clusters: Number(clusters), objects: Number(objects), nowMs: systemClock.nowMs() })
  process.stdout.write(
    `${rows} rows of status in ${Math.round((performance.now() - startMs) / 100) / 10} s, ${Math.round(Bun.file(path).size / 1e6)} MB\n`,
  )
}
