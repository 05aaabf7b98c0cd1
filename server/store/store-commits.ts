// Authors of the commits of repositories, of which the newest are kept, and the newest verified commit of each ref.
import { type CommitNote, raisedWatermark, type SignedCommit, type Watermark } from '../../shared/model/commits.ts'
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

/** A ref of a Repository resource: the UID, and the URL with the branch, tag or range. */
export interface VerifiedRef {
  uid: string
  ref: string
}

/** `isFirst`: no commit of that ref was verified before. */
export type RaisedWatermark = { kind: 'raised'; isFirst: boolean } | { kind: 'older'; newest: Watermark }

export function createCommitStore(db: StoreDb): Pick<Store, 'noteCommit' | 'commitsOf' | 'commitsOfRepository' | 'raiseWatermark'> {
  return {
    raiseWatermark: ({ uid, ref }: VerifiedRef, signed: SignedCommit, nowMs: number) =>
      db.write(async ({ sql: trx }): Promise<RaisedWatermark> => {
        const ofRef = trx.selectFrom('watermarks').selectAll().where('uid', '=', uid).where('ref', '=', ref)
        const row = await ofRef.executeTakeFirst()
        const held = row === undefined ? null : { commit: row.commit_id, atMs: row.signed_ms }
        const next = raisedWatermark(held, signed, nowMs)
        if (next === null) return { kind: 'older', newest: held ?? signed }
        if (next === held) return { kind: 'raised', isFirst: false }
        const columns = { commit_id: next.commit, signed_ms: next.atMs }
        await trx
          .insertInto('watermarks')
          .values({ uid, ref, ...columns })
          .onConflict((on) => on.columns(['uid', 'ref']).doUpdateSet(columns))
          .execute()
        return { kind: 'raised', isFirst: held === null }
      }),

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

    commitsOfRepository: async (project, repository, { before, limit }) => {
      let query = db.read.selectFrom('commits').selectAll().where('project', '=', project).where('repository', '=', repository)
      if (before !== undefined) {
        const { seenMs, commit } = before
        query = query.where((eb) => eb.or([eb('seen_ms', '<', seenMs), eb.and([eb('seen_ms', '=', seenMs), eb('commit_id', '<', commit)])]))
      }
      const rows = await query.orderBy('seen_ms', 'desc').orderBy('commit_id', 'desc').limit(limit).execute()
      return rows.map(({ commit_id: commit, author, subject, authored_ms: authoredMs, seen_ms: seenMs }) => {
        return { project, repository, commit, author, subject, authoredMs, seenMs }
      })
    },

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
