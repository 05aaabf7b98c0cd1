// SO55: the newest verified commit of a ref, kept beside the folder of its source. An attacker who controls the server
// of a repository can move a ref back to an older commit, which is signed as well as the newer ones.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { Unverified } from './signature.ts'

export interface Watermark {
  commit: string
  /** When it was signed, by the signer's clock; never in the future of ours. */
  atMs: number
}

const fileSchema = z.object({ commit: z.string(), atMs: z.number() })

export interface SignedCommit extends Watermark {
  parents: readonly string[]
}

const pathOf = (dir: string) => `${dir}.watermark`

/** Null if nothing was verified yet, or that cannot be read. */
export function readWatermark(dir: string): Watermark | null {
  try {
    const parsed = fileSchema.safeParse(JSON.parse(readFileSync(pathOf(dir), 'utf8')))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}

export function writeWatermark(dir: string, watermark: Watermark): void {
  const staged = `${pathOf(dir)}.new`
  writeFileSync(staged, JSON.stringify(watermark))
  renameSync(staged, pathOf(dir))
}

/** The watermark with that commit. A child of the newest commit counts whatever its clock said. Throws `Unverified` for one that was signed before. */
export function raised(held: Watermark | null, { commit, atMs, parents }: SignedCommit, nowMs: number): Watermark {
  const signedMs = Math.min(atMs, nowMs)
  if (held === null) return { commit, atMs: signedMs }
  if (held.commit === commit) return held
  if (parents.includes(held.commit)) return { commit, atMs: Math.max(signedMs, held.atMs + 1_000) }
  if (signedMs >= held.atMs) return { commit, atMs: signedMs }
  const [older, newer] = [atMs, held.atMs].map((ms) => new Date(ms).toISOString())
  throw new Unverified(
    `commit ${commit} is not rendered: it was signed at ${older}, before the already verified commit ${held.commit} of ${newer}`,
    null,
    'Revert with a new signed commit. To use the older commit, set spec.git.ref to its full id.',
  )
}

/** When the object says that it was made: a commit by its committer, a tag by its tagger. Null: it does not say. */
export function madeMs(text: Uint8Array): number | null {
  const seconds = /^(?:committer|tagger) .*> (\d{1,12}) [+-]\d{4}$/m.exec(headOf(text))?.[1]
  return seconds === undefined ? null : Number(seconds) * 1_000
}

export const parentsOf = (text: Uint8Array): string[] => [...headOf(text).matchAll(/^parent ([0-9a-f]{40,64})$/gm)].map(([, id = '']) => id)

function headOf(text: Uint8Array): string {
  const whole = Buffer.from(text.buffer, text.byteOffset, text.byteLength)
  const end = whole.indexOf('\n\n')
  return whole.toString('latin1', 0, end < 0 ? whole.length : end)
}
