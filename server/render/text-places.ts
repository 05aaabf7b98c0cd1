// Lines and columns of a text that others wrote, for many places at once: what a place costs does not grow with the
// length of the text.

export interface TextPosition {
  /** Both from 1. */
  line: number
  column: number
}

/** Characters that all searches in one text may read together; anything not found until then counts as not found. */
export const SEARCHED_MAX = 16 * 1024 * 1024
/** No real text is longer, and a search for one costs its length at each place. */
const NEEDLE_MAX = 1_024

export class TextPlaces {
  readonly text: string
  private starts: number[] | null = null
  private searched = 0

  constructor(text: string) {
    this.text = text
  }

  positionAt(at: number): TextPosition {
    const starts = this.lineStarts()
    let [line, after] = [0, starts.length]
    while (after - line > 1) {
      const middle = (line + after) >> 1
      if ((starts[middle] ?? 0) <= at) line = middle
      else after = middle
    }
    return { line: line + 1, column: at - (starts[line] ?? 0) + 1 }
  }

  startOfLine(line: number): number {
    return this.lineStarts()[line - 1] ?? this.text.length
  }

  lineText(line: number): string {
    const start = this.startOfLine(line)
    return this.text.slice(start, Math.max(start, this.startOfLine(line + 1) - (line < this.lineStarts().length ? 1 : 0)))
  }

  /** -1: it is not there, or too much was passed over already. */
  find(needle: string, from: number): number {
    if (this.searched >= SEARCHED_MAX || needle.length > NEEDLE_MAX) return -1
    const at = this.text.indexOf(needle, from)
    this.searched += Math.max(0, (at < 0 ? this.text.length : at) - from) + 1
    return at
  }

  private lineStarts(): number[] {
    if (this.starts === null) {
      this.starts = [0]
      for (let at = this.text.indexOf('\n'); at >= 0; at = this.text.indexOf('\n', at + 1)) this.starts.push(at + 1)
    }
    return this.starts
  }
}
