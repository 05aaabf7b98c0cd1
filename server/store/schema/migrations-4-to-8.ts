// Schemas 4 to 8: steps that are too small for a file each, in the order in which they run.

import { sql } from 'kysely'
import { joinTokenId } from '../../../shared/protocol/join.ts'
import { groupKey, groupSubject } from '../store-confirmations.ts'
import { readNames } from '../tables.ts'
import { addNumbers, addTexts, createTable, type Ddl, withoutRowid } from './ddl.ts'

/** Schema 4: what a release was made of, the tag that a range chose, and the variants of those that are not the same
 *  in every cluster. */
export async function migrateTo4(ddl: Ddl): Promise<void> {
  await addTexts(ddl, 'render_states', ['release_note'])
  await addTexts(ddl, 'desired', ['facts_key', 'rendered_from'])
  await addTexts(ddl, 'repository_states', ['tag'])
  await addTexts(ddl, 'revisions', ['sources'])
  await withoutRowid(
    ddl,
    createTable(
      ddl,
      'revision_variants',
      ['project', 'service', 'number', 'digest'],
      [
        ['project', 'text'],
        ['service', 'text'],
        ['number', 'bigint'],
        ['digest', 'text'],
        ['object_count', 'bigint'],
        ['set_sha', 'text', 'null'],
      ],
    ),
  ).execute()
  await ddl.trx.schema.createIndex('revision_variants_by_set').on('revision_variants').column('set_sha').execute()
}

/** Schema 5: the removed clusters, so that their agents can be informed and a cluster that joins again finds its
 *  former registrations. */
export async function migrateTo5(ddl: Ddl): Promise<void> {
  await createTable(
    ddl,
    'removed_clusters',
    ['agent_id'],
    [
      ['agent_id', 'text'],
      ['cluster_id', 'text'],
      ['cluster_uid', 'text'],
      ['name', 'text'],
      ['no', 'bigint'],
    ],
  ).execute()
  await ddl.trx.schema.createIndex('removed_clusters_by_uid').on('removed_clusters').columns(['cluster_uid', 'no']).execute()
}

/** Schema 6: API tokens that expire, and tokens that replace another one. */
export async function migrateTo6(ddl: Ddl): Promise<void> {
  await addNumbers(ddl, 'api_tokens', ['expires_ms'])
  await addTexts(ddl, 'api_tokens', ['replaces'])
}

/** Schema 7: join tokens have an id that an agent may send in the clear (JN7). */
export async function migrateTo7(ddl: Ddl): Promise<void> {
  const { trx } = ddl
  await addTexts(ddl, 'join_tokens', ['token_id'])
  for (const { id, token_hash } of await trx.selectFrom('join_tokens').select(['id', 'token_hash']).execute())
    await trx
      .updateTable('join_tokens')
      .set({ token_id: joinTokenId(token_hash) })
      .where('id', '=', id)
      .execute()
  await trx.schema.createIndex('join_tokens_by_id').unique().on('join_tokens').column('token_id').execute()
}

/** Schema 8: the person who deleted a service; tombstones whose status rows are still to be removed; equal
 *  confirmations of many clusters as one. */
export async function migrateTo8(ddl: Ddl): Promise<void> {
  const { trx } = ddl
  await addTexts(ddl, 'resources', ['deleting_by'])
  await addNumbers(ddl, 'desired', ['cleanup'])
  // A server that was killed after it wrote a tombstone may have left status rows behind.
  await sql`update desired set cleanup = 1 where doc is null and set_sha is null`.execute(trx)
  await sql`create index desired_removed on desired (cluster_id, project, service) where doc is null and set_sha is null`.execute(trx)
  await addTexts(ddl, 'confirmations', ['group_key'])
  await addNumbers(ddl, 'confirmations', ['members', 'last_member'])
  await createTable(
    ddl,
    'confirmation_clusters',
    ['subject'],
    [
      ['subject', 'text'],
      ['confirmation_id', 'text'],
      ['no', 'bigint'],
      ['cluster', 'text'],
    ],
  ).execute()
  await trx.schema.createIndex('confirmation_clusters_by_question').on('confirmation_clusters').columns(['confirmation_id', 'no']).execute()
  await trx.schema.createIndex('confirmations_by_service').on('confirmations').columns(['project', 'service']).execute()
  await trx.schema.createIndex('confirmations_by_group').on('confirmations').column('group_key').execute()
  await groupQuestions(ddl)
}

const QUESTIONS_A_TIME = 100

/** Groups equal questions: the first cluster's question stays, and the others become its clusters. */
async function groupQuestions({ trx }: Ddl): Promise<void> {
  const open = new Map<string, { id: string; count: number }>()
  for (let after = ''; ; ) {
    const asked = trx.selectFrom('confirmations').selectAll().where('kind', '=', 'prune').where('cluster', 'is not', null)
    const rows = await asked.where('id', '>', after).orderBy('id').limit(QUESTIONS_A_TIME).execute()
    for (const { id, project, service, token, names, cluster, subject, confirmed_ms } of rows) {
      const key = groupKey({ project, service, token, names: readNames(names) })
      const known = confirmed_ms === null ? open.get(key) : undefined
      const group = known ?? { id, count: 0 }
      if (confirmed_ms === null) open.set(key, group)
      group.count += 1
      const row = { subject, confirmation_id: group.id, no: group.count, cluster: cluster ?? '' }
      await trx.insertInto('confirmation_clusters').values(row).execute()
      if (known !== undefined) await trx.deleteFrom('confirmations').where('id', '=', id).execute()
      const columns = { subject: groupSubject(group.id), cluster: null, group_key: key, members: group.count, last_member: group.count }
      await trx.updateTable('confirmations').set(columns).where('id', '=', group.id).execute()
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < QUESTIONS_A_TIME) return
    after = last.id
  }
}
