// Schema 7: join tokens have an id that an agent may send in the clear (JN7).
import { joinTokenId } from '../../../shared/protocol/join.ts'
import { addTexts, type Ddl } from './ddl.ts'

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
