// Schema 6: API tokens that expire, and tokens that replace another one; join tokens by an id that gives nothing of them away.
import { joinTokenId } from '../../../shared/protocol/join.ts'
import { addNumbers, addTexts, type Ddl } from './ddl.ts'

export async function migrateTo6(ddl: Ddl): Promise<void> {
  const { trx } = ddl
  await addNumbers(ddl, 'api_tokens', ['expires_ms'])
  await addTexts(ddl, 'api_tokens', ['replaces'])
  await addTexts(ddl, 'join_tokens', ['token_id'])
  for (const { id, token_hash } of await trx.selectFrom('join_tokens').select(['id', 'token_hash']).execute())
    await trx
      .updateTable('join_tokens')
      .set({ token_id: joinTokenId(token_hash) })
      .where('id', '=', id)
      .execute()
  await trx.schema.createIndex('join_tokens_by_id').unique().on('join_tokens').column('token_id').execute()
}
