// Authors of the commits of repositories; the newest of each repository are kept.
import type { CommitNote } from '../../shared/model/commits.ts'
import { storable } from './status/storable-text.ts'
import type { Store } from './store.ts'
import type { StoreDb } from './store-db.ts'

/** The limit of each repository. */
export const COMMITS_KEPT = 2_000
const IDS_A_TIME = 500

export interface SeenCommit extends CommitNote {
  project: string
  repository: string
  commit: string
  seenMs: number
}

export function createCommitStore(db: StoreDb): Pick<Store, 'noteCommit' | 'commitsOf'> {
  return {
    noteCommit: ({ project, repository, commit, author, subject, authoredMs, seenMs }) =>
      db.write(async ({ sql: trx }) => {
        const told = { author: author && storable(author), subject: subject && storable(subject), authored_ms: authoredMs, seen_ms: seenMs }
        await trx
          .insertInto('commits')
          .values({ project, repository, commit_id: commit, ...told })
          .onConflict((on) => on.columns(['project', 'repository', 'commit_id']).doUpdateSet(told))
          .execute()
        const ofIt = trx.selectFrom('commits').where('project', '=', project).where('repository', '=', repository)
        const old = await ofIt.select('seen_ms').orderBy('seen_ms', 'desc').offset(COMMITS_KEPT).limit(1).executeTakeFirst()
        if (old === undefined) return
        await trx
          .deleteFrom('commits')
          .where('project', '=', project)
          .where('repository', '=', repository)
          .where('seen_ms', '<=', old.seen_ms)
          .execute()
      }),

    commitsOf: async (project, ids) => {
      const found = new Map<string, CommitNote>()
      const wanted = [...new Set(ids)]
      for (let start = 0; start < wanted.length; start += IDS_A_TIME) {
        const rows = await db.read
          .selectFrom('commits')
          .select(['commit_id', 'author', 'subject', 'authored_ms'])
          .where('project', '=', project)
          .where('commit_id', 'in', wanted.slice(start, start + IDS_A_TIME))
          .execute()
        for (const { commit_id, author, subject, authored_ms } of rows) found.set(commit_id, { author, subject, authoredMs: authored_ms })
      }
      return found
    },
  }
}
