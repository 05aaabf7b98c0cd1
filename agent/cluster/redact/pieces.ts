// A message as pieces. The grammar tells what each piece is, and the kind of a piece tells what may be shown. This is
// the only place where a text of others becomes a text for people. Pure.
import { pathAt } from './field-path.ts'
import { withoutValues } from './free-text.ts'
import type { KnownValues } from './known-values.ts'
import { finished, HOLE } from './marks.ts'

export type Piece =
  /** Words of this program or of the grammar. */
  | { kind: 'fixed'; text: string }
  /** The name of an object, user, policy or field manager. */
  | { kind: 'name'; text: string }
  /** A value whose field may be shown. */
  | { kind: 'value'; text: string }
  | { kind: 'path'; text: string }
  /** Text that others wrote, about anything. */
  | { kind: 'free'; text: string }
  | { kind: 'hole' }

export interface Draft {
  pieces: readonly Piece[]
  /** Values that the message itself gives away as secret, because it names their field. */
  hidden: readonly string[]
}

export const fixed = (text: string): Piece => ({ kind: 'fixed', text })
export const HOLE_PIECE: Piece = { kind: 'hole' }
export const draft = (...pieces: Piece[]): Draft => ({ pieces, hidden: [] })
export const together = (drafts: readonly Draft[], between = ''): Draft => ({
  pieces: drafts.flatMap(({ pieces }, i) => (i === 0 || between === '' ? pieces : [fixed(between), ...pieces])),
  hidden: drafts.flatMap(({ hidden }) => hidden),
})

const NAME = /^[A-Za-z0-9/][-\w.:/@+]{0,252}$/

export function render({ pieces, hidden }: Draft, known: KnownValues): string {
  const texts = pieces.map((piece) => (piece.kind === 'fixed' || piece.kind === 'hole' ? '' : piece.text))
  const shown = known.hide(texts, hidden)
  return finished(pieces.map((piece, i) => pieceText(piece, shown[i] ?? HOLE, known)).join(''))
}

function pieceText(piece: Piece, text: string, known: KnownValues): string {
  switch (piece.kind) {
    case 'fixed':
      return piece.text
    case 'hole':
      return HOLE
    case 'name':
      return text === '' || NAME.test(text) ? text : HOLE
    case 'value':
      return text.includes(HOLE) ? HOLE : text
    case 'path': {
      const path = pathAt(text)
      return path === null ? HOLE : path.text + (path.end === text.length ? '' : HOLE)
    }
    case 'free':
      return withoutValues(text, known)
  }
}
