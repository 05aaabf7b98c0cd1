// Schema 3: statuses by number instead of by text (a fleet of two million objects has few different names and states),
// counts, the feed of changes, histories.
import { sql } from 'kysely'
import { AppError } from '../../../shared/runtime/error.ts'
import { mebibytes, sqliteSpace } from '../engines/sqlite-space.ts'
import { addNumbers, addTexts, createTable, type Ddl, withoutRowid } from './ddl.ts'
import { deriveDesired, seedRevisions } from './migration-3-desired.ts'
import { countReferences, moveStatuses } from './migration-3-statuses.ts'

export async function migrateTo3(ddl: Ddl): Promise<void> {
  await checkSpace(ddl)
  await numberClusters(ddl)
  await createStatusTables(ddl)
  await moveStatuses(ddl)
  await indexStatuses(ddl)
  await countReferences(ddl)
  await createFollowing(ddl)
  await createHistories(ddl)
  await addTexts(ddl, 'desired', ['digest', 'sync', 'health'])
  await deriveDesired(ddl)
  await indexWords(ddl)
  await indexDesired(ddl)
  await seedRevisions(ddl)
  await ddl.trx.schema.dropTable('statuses').execute()
  await tuneTables(ddl)
}

/** For lists of services in clusters: the bad ones, and those of a revision. */
async function indexDesired({ trx }: Ddl): Promise<void> {
  await trx.schema.createIndex('desired_by_words').on('desired').columns(['health', 'sync', 'cluster_id', 'project', 'service']).execute()
  await trx.schema.createIndex('desired_by_digest').on('desired').column('digest').execute()
}

/** New rows are in the log and in the file before the old ones are removed: measured, half of the size. */
async function checkSpace({ engine, trx }: Ddl): Promise<void> {
  const space = engine === 'sqlite' ? await sqliteSpace(trx) : null
  if (space === null || space.freeOutside >= space.bytes) return
  throw new AppError('disk_full', {
    doing: 'migrate the fleet store',
    detail: `${space.path} has ${mebibytes(space.bytes)}; its migration needs the same amount of free space; available: ${mebibytes(space.freeOutside)}. Nothing was changed`,
    remedy: 'Free some space and start again. Applied objects stay in the clusters.',
  })
}

async function numberClusters(ddl: Ddl): Promise<void> {
  const { trx } = ddl
  await addNumbers(ddl, 'clusters', ['no', 'row_count'])
  const clusters = await trx.selectFrom('clusters').select('cluster_id').orderBy('joined_ms').orderBy('cluster_id').execute()
  for (const [index, { cluster_id }] of clusters.entries())
    await trx
      .updateTable('clusters')
      .set({ no: index + 1 })
      .where('cluster_id', '=', cluster_id)
      .execute()
  await trx.schema.createIndex('clusters_by_no').on('clusters').column('no').unique().execute()
  await trx
    .insertInto('counters')
    .values([
      { name: 'cluster_no', value: clusters.length },
      { name: 'change', value: 0 },
      { name: 'dictionary', value: 0 },
    ])
    .execute()
}

async function createStatusTables(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'names',
    [],
    [
      ['id', 'id'],
      ['kind', 'text'],
      ['key', 'text'],
      ['project', 'text'],
      ['service', 'text'],
      ['api_group', 'text'],
      ['object_kind', 'text'],
      ['namespace', 'text'],
      ['name', 'text'],
      ['refs', 'bigint'],
    ],
  )
    .addUniqueConstraint('names_key', ['kind', 'key'])
    .execute()
  await createTable(
    ddl,
    'states',
    [],
    [
      ['id', 'id'],
      ['digest', 'text'],
      ['sync', 'text'],
      ['health', 'text'],
      ['reason', 'text'],
      ['message', 'text'],
      ['images', 'text', 'null'],
      ['refs', 'bigint'],
    ],
  )
    .addUniqueConstraint('states_digest', ['digest'])
    .execute()
  await withoutRowid(
    ddl,
    createTable(
      ddl,
      'status_rows',
      ['cluster_no', 'name_id'],
      [
        ['cluster_no', 'bigint'],
        ['name_id', 'bigint'],
        ['rev', 'bigint'],
        ['state_id', 'bigint', 'null'],
        ['doc', 'text', 'null'],
        ['since_ms', 'bigint', 'null'],
        ['received_ms', 'bigint'],
      ],
    ),
  ).execute()
}

/** When the rows are there: in order, which takes a tenth of the time. */
async function indexStatuses({ trx, progress }: Ddl): Promise<void> {
  progress?.({ what: 'indices', done: 0, total: 2 })
  await trx.schema.createIndex('status_rows_by_name').on('status_rows').columns(['name_id', 'cluster_no']).execute()
  progress?.({ what: 'indices', done: 1, total: 2 })
  await trx.schema
    .createIndex('status_rows_by_state')
    .on('status_rows')
    .columns(['state_id', 'since_ms', 'cluster_no', 'name_id'])
    .execute()
}

async function createFollowing(ddl: Ddl): Promise<void> {
  await withoutRowid(
    ddl,
    createTable(
      ddl,
      'rollups',
      ['dimension', 'key', 'value'],
      [
        ['dimension', 'text'],
        ['key', 'text'],
        ['value', 'text'],
        ['n', 'bigint'],
      ],
    ),
  ).execute()
  await createTable(
    ddl,
    'changes',
    ['id'],
    [
      ['id', 'bigint'],
      ['at_ms', 'bigint'],
      ['topic', 'text'],
      ['cluster', 'text', 'null'],
      ['project', 'text', 'null'],
      ['name', 'text', 'null'],
      ['keys', 'text', 'null'],
    ],
  ).execute()
}

async function createHistories(ddl: Ddl): Promise<void> {
  const { trx } = ddl
  await createTable(
    ddl,
    'revisions',
    ['project', 'service', 'number'],
    [
      ['project', 'text'],
      ['service', 'text'],
      ['number', 'bigint'],
      ['commit_id', 'text', 'null'],
      ['generation', 'bigint'],
      ['digest', 'text'],
      ['object_count', 'bigint'],
      ['set_sha', 'text', 'null'],
      ['rendered_ms', 'bigint'],
    ],
  ).execute()
  await withoutRowid(
    ddl,
    createTable(
      ddl,
      'status_history',
      ['cluster_no', 'project', 'service', 'at_ms'],
      [
        ['cluster_no', 'bigint'],
        ['project', 'text'],
        ['service', 'text'],
        ['at_ms', 'bigint'],
        ['sync', 'text'],
        ['health', 'text'],
        ['reason', 'text'],
        ['commit_id', 'text', 'null'],
      ],
    ),
  ).execute()
  // ST12 asks for each file of the content store whether anything refers to it.
  await trx.schema.createIndex('desired_by_set').on('desired').column('set_sha').execute()
  await trx.schema.createIndex('revisions_by_set').on('revisions').column('set_sha').execute()
}

/** Lists of services look for the first placement that is as bad as any. */
const indexWords = ({ trx }: Ddl): Promise<void> =>
  trx.schema
    .createIndex('desired_of_service_by_words')
    .on('desired')
    .columns(['project', 'service', 'sync', 'health', 'cluster_id'])
    .execute()

/** How full pages are made, so that an updated row stays where it is, and when the database looks after a table by
 *  itself: what is written all the time is not looked after only when a fifth of it is dead. */
const TUNED: Readonly<Record<string, string>> = {
  counters: 'fillfactor = 10',
  rollups: 'fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000',
  clusters: 'fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05',
  desired: 'fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05',
  names: 'fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05',
  states: 'fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05',
  status_rows:
    'fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02',
  changes: 'autovacuum_vacuum_scale_factor = 0.05',
  events: 'autovacuum_vacuum_scale_factor = 0.05',
}

/** Means nothing on SQLite. */
async function tuneTables({ engine, trx }: Ddl): Promise<void> {
  if (engine !== 'postgres') return
  for (const [table, settings] of Object.entries(TUNED)) await sql`alter table ${sql.table(table)} set (${sql.raw(settings)})`.execute(trx)
}
