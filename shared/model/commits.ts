// Author and subject of a commit, and the newest verified commit of a ref.
import { z } from 'zod'
import { problemSchema } from '../runtime/error.ts'

export const COMMIT_TEXT_MAX = 200

export const commitNoteSchema = z.object({
  /** Name of the person who wrote it. Null means that the source does not say. */
  author: z.string().max(COMMIT_TEXT_MAX).nullable(),
  /** First line of its message. */
  subject: z.string().max(COMMIT_TEXT_MAX).nullable(),
  authoredMs: z.number().int().nonnegative().nullable(),
})
export type CommitNote = z.infer<typeof commitNoteSchema>

/** Members of a view beside a commit. Absent means not known. */
export const writtenBy = { author: z.string().optional(), subject: z.string().optional() }
export interface WrittenBy {
  author?: string | undefined
  subject?: string | undefined
}

export function writtenByOf(note: CommitNote | undefined): WrittenBy {
  const { author = null, subject = null } = note ?? {}
  return { ...(author === null ? {} : { author }), ...(subject === null ? {} : { subject }) }
}

/** `fix the port (Ana Example)`. Null means that nothing is known. */
export function commitText({ author, subject }: WrittenBy): string | null {
  if (subject === undefined) return author === undefined ? null : `by ${author}`
  return author === undefined ? subject : `${subject} (${author})`
}

/** SO55: the newest verified commit of a ref. */
export interface Watermark {
  commit: string
  /** When it was signed, by the signer's clock; never in the future of ours. */
  atMs: number
}

export interface SignedCommit extends Watermark {
  parents: readonly string[]
}

/** The watermark with that commit. A child of the newest commit counts whatever its clock said. Null for a commit that
 *  was signed before the newest one: an attacker who controls the server of a repository can move a ref back to it. */
export function raisedWatermark(held: Watermark | null, { commit, atMs, parents }: SignedCommit, nowMs: number): Watermark | null {
  const signedMs = Math.min(atMs, nowMs)
  if (held === null) return { commit, atMs: signedMs }
  if (held.commit === commit) return held
  if (parents.includes(held.commit)) return { commit, atMs: Math.max(signedMs, held.atMs + 1_000) }
  return signedMs >= held.atMs ? { commit, atMs: signedMs } : null
}
const count = z.number().int().nonnegative()

/** A commit of a repository, and what came of it. */
export const commitViewSchema = z.object({
  commit: z.string(),
  ...writtenBy,
  authoredMs: z.number().int().nullable(),
  /** When the server read it first. */
  seenMs: z.number().int(),
  /** It is what the repository has now. */
  current: z.boolean(),
  /**
   * Services that it gave a revision. `clusters`: how many were given it. Null means not recorded. None: no service
   * renders to anything else than before.
   */
  changed: z.array(z.object({ service: z.string(), revision: count, objects: count, clusters: count.nullable() })),
  /** Services that cannot be rendered since this commit. */
  failed: z.array(z.object({ service: z.string(), message: z.string(), problems: z.array(problemSchema) })),
})
export type CommitView = z.infer<typeof commitViewSchema>
