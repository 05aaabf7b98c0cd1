// The newest lines of an answer within the limits of a page. Logs come in pieces of any number of lines, and a
// container that writes without end sends them for as long as the page is open. Pure.
import type { AnswerLine } from '../../../../shared/protocol/ask.ts'

export interface Limits {
  lines: number
  chars: number
}
/** About 20 MB of elements and text in the browser. */
export const ANSWER_LIMITS: Limits = { lines: 5_000, chars: 2_000_000 }

/** The oldest piece that stays may be cut; the others are the same objects, so that their elements stay. */
export function newestLines(all: readonly AnswerLine[], { lines, chars }: Limits = ANSWER_LIMITS): AnswerLine[] {
  const kept: AnswerLine[] = []
  let [linesLeft, charsLeft] = [lines, chars]
  for (const one of all.toReversed()) {
    if (linesLeft <= 0 || charsLeft <= 0) break
    const size = sizeOf(one)
    const fits = size.lines <= linesLeft && size.chars <= charsLeft
    kept.push(fits || one.t !== 'log' ? one : { ...one, text: endOf(one.text, linesLeft, charsLeft) })
    linesLeft -= size.lines
    charsLeft -= size.chars
  }
  return kept.reverse()
}

/** Lines never change, and each is counted again with every one that follows. */
const sizes = new WeakMap<AnswerLine, Limits>()
function sizeOf(line: AnswerLine): Limits {
  const known = sizes.get(line)
  if (known !== undefined) return known
  const size = line.t === 'log' ? { lines: linesIn(line.text).length, chars: line.text.length } : { lines: 1, chars: 0 }
  sizes.set(line, size)
  return size
}

const linesIn = (text: string): string[] => (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')

const endOf = (text: string, lines: number, chars: number): string => `${linesIn(text).slice(-lines).join('\n')}\n`.slice(-chars)
