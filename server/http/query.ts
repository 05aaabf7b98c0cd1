// Query parameters that several routes share.
import { z } from 'zod'
import { type LabelSelector, parseSelectorText } from '../../shared/model/labels.ts'
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import { isStorable } from '../store/status/storable-text.ts'

export const limitQuery = z.coerce.number().int().min(1).max(LIST_LIMIT_MAX).default(LIST_LIMIT_DEFAULT)
export const continueQuery = z.string().max(4_096).optional()
export const pageQuery = z.object({ limit: limitQuery, continue: continueQuery })
export const listQuery = z.object({
  ...pageQuery.shape,
  // A comma that was not percent-encoded reaches us as a list.
  labelSelector: z.preprocess((value) => (Array.isArray(value) ? value.join(',') : value), z.string().max(4_096).optional()),
  project: nameSchema.optional(),
})

export function selectorOf(text: string | undefined): LabelSelector | undefined {
  if (text === undefined || text === '') return undefined
  const selector = parseSelectorText(text)
  if (selector !== null) return selector
  throw new AppError('bad_request', {
    detail: 'invalid labelSelector',
    remedy: 'Write it as in env=prod,tier!=db,team,!legacy.',
    problems: [{ path: 'labelSelector', message: 'expected key=value, key!=value, key or !key, joined by commas' }],
  })
}

/** Answers a page of a list that is read whole, because it is short. `placeOf`: a text by which the items are sorted.
 */
export function pageOf<T>(
  items: readonly T[],
  { limit, continue: token }: { limit: number; continue?: string | undefined },
  placeOf: (item: T) => string,
): { items: T[]; continue: string | null } {
  const after = decodeContinue(token)
  const placed = items.map((item) => ({ item, place: placeOf(item) })).sort((a, b) => (a.place < b.place ? -1 : 1))
  const left = after === undefined ? placed : placed.filter(({ place }) => place > after)
  const next = left.length > limit ? (left[limit - 1]?.place ?? null) : null
  return { items: left.slice(0, limit).map(({ item }) => item), continue: encodeContinue(next) }
}

/** Oldest first. */
export const byAge = ({ createdMs, id }: { createdMs: number; id: string }): string => `${String(createdMs).padStart(16, '0')}/${id}`

/** Cursors are opaque outside: what is in them may change. */
export const encodeContinue = (after: string | null): string | null => (after === null ? null : Buffer.from(after).toString('base64url'))
export function decodeContinue(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined
  const after = Buffer.from(text, 'base64url').toString()
  if (isStorable(after)) return after
  throw new AppError('bad_request', {
    detail: 'continue is not from this list',
    problems: [{ path: 'continue', message: 'expected the value from the previous page' }],
  })
}
