// Schema 3: statuses by number instead of by text (a fleet of two million objects has few different names and states), counts, the feed of changes, histories.
import { addNumbers, addTexts, createTable, type Ddl, withoutRowid } from './ddl.ts'

export async function migrateTo3(ddl: Ddl): Promise<void> {
  await numberClusters(ddl)
  await createStatusTables(ddl)
  await createFollowing(ddl)
  await createHistories(ddl)
  await addTexts(ddl, 'desired', ['digest', 'sync', 'health'])
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
  const { trx } = ddl
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
  await trx.schema.createIndex('status_rows_by_name').on('status_rows').columns(['name_id', 'cluster_no']).execute()
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
  await createTable(
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
  ).execute()
  // ST12 asks for each file of the content store whether anything refers to it.
  await trx.schema.createIndex('desired_by_set').on('desired').column('set_sha').execute()
  await trx.schema.createIndex('revisions_by_set').on('revisions').column('set_sha').execute()
}
