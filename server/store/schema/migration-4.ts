// Schema 4: what a release was made of, the tag that a range chose, and the variants of those that are not the same in
// every cluster.
import { addTexts, createTable, type Ddl, withoutRowid } from './ddl.ts'

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
