// Author and subject of a commit.
import { z } from 'zod'

export const COMMIT_TEXT_MAX = 200

export const commitNoteSchema = z.object({
  /** Name of the person who wrote it; null: the source does not say. */
  author: z.string().max(COMMIT_TEXT_MAX).nullable(),
  /** First line of its message. */
  subject: z.string().max(COMMIT_TEXT_MAX).nullable(),
  authoredMs: z.number().int().nonnegative().nullable(),
})
export type CommitNote = z.infer<typeof commitNoteSchema>

/** Members of a view beside a commit; absent: not known. */
export const writtenBy = { author: z.string().optional(), subject: z.string().optional() }
export interface WrittenBy {
  author?: string | undefined
  subject?: string | undefined
}

export function writtenByOf(note: CommitNote | undefined): WrittenBy {
  const { author = null, subject = null } = note ?? {}
  return { ...(author === null ? {} : { author }), ...(subject === null ? {} : { subject }) }
}

/** `fix the port (Ana Example)`; null: nothing is known. */
export function commitText({ author, subject }: WrittenBy): string | null {
  if (subject === undefined) return author === undefined ? null : `by ${author}`
  return author === undefined ? subject : `${subject} (${author})`
}
