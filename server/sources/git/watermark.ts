// SO55: what a signed commit says of its time and parents, and the refusal of one that was signed before the newest
// verified commit of its ref. Control keeps that commit in the fleet store.
import type { SignedCommit, Watermark } from '../../../shared/model/commits.ts'
import { Unverified } from './signature.ts'

/** Returns the newer commit that was verified before; null when this one is the newest now. */
export type RaiseWatermark = (signed: SignedCommit) => Promise<Watermark | null>

/** More parents are not remembered; the commit then counts by its time. */
const PARENTS_MAX = 100

export function olderThan({ commit, atMs }: SignedCommit, held: Watermark): Unverified {
  const [older, newer] = [atMs, held.atMs].map((ms) => new Date(ms).toISOString())
  return new Unverified(
    `commit ${commit} is not rendered: it was signed at ${older}, before the already verified commit ${held.commit} of ${newer}`,
    null,
    'Revert with a new signed commit. To use the older commit, set spec.git.ref to its full id.',
  )
}

/** When the object says that it was made: a commit by its committer, a tag by its tagger. Null means that it does not
 *  say. */
export function madeMs(text: Uint8Array): number | null {
  const seconds = /^(?:committer|tagger) .*> (\d{1,12}) [+-]\d{4}$/m.exec(headOf(text))?.[1]
  return seconds === undefined ? null : Number(seconds) * 1_000
}

export const parentsOf = (text: Uint8Array): string[] =>
  [...headOf(text).matchAll(/^parent ([0-9a-f]{40}|[0-9a-f]{64})$/gm)].slice(0, PARENTS_MAX).map(([, id = '']) => id)

function headOf(text: Uint8Array): string {
  const whole = Buffer.from(text.buffer, text.byteOffset, text.byteLength)
  const end = whole.indexOf('\n\n')
  return whole.toString('latin1', 0, end < 0 ? whole.length : end)
}
