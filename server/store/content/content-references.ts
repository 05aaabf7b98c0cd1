// Which content is in use: by what a cluster shall have, or by a revision of the past.
import { sql } from 'kysely'
import type { Store } from '../store.ts'
import type { StoreDb } from '../store-db.ts'

export function createReferenceStore(db: StoreDb): Pick<Store, 'referencedContent'> {
  return {
    referencedContent: async (sha256s) => {
      if (sha256s.length === 0) return new Set()
      const names = sql.join(sha256s.map((sha256) => sql`(cast(${sha256} as text))`))
      const { rows } = await sql<{ sha: string }>`with named (sha) as (values ${names}) select sha from named
        where exists (select 1 from desired where desired.set_sha = named.sha)
          or exists (select 1 from revisions where revisions.set_sha = named.sha)
          or exists (select 1 from revision_variants where revision_variants.set_sha = named.sha)`.execute(db.read)
      return new Set(rows.map(({ sha }) => sha))
    },
  }
}
