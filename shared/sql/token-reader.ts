// Reads the tokens of a query one after the other.
import type { AppError } from '../runtime/error.ts'
import { queryError, type Token } from './tokens.ts'

/** Words that are no names of their own; in double quotes they are. */
const KEYWORDS = new Set(
  (
    'select from where group by having order limit offset union intersect except with recursive as on using join inner left right full outer ' +
    'cross natural and or not in is null like between exists case when then else end cast distinct all asc desc filter values escape true false'
  ).split(' '),
)

const DEPTH_MAX = 40

export interface TokenReader {
  peek(): Token
  next(): Token
  isEnd(): boolean
  isWord(word: string): boolean
  isSign(sign: string): boolean
  takeWord(word: string): boolean
  /** All of them or none. */
  takeWords(...words: string[]): boolean
  takeSign(sign: string): boolean
  /** The source that `name.*` refers to. */
  takeStarOf(): string | null
  /** A name that may be missing. */
  takeName(): string | null
  name(expected: string): string
  word(word: string): void
  sign(sign: string): void
  /** Refuses a query that is nested too deep. */
  deeper<T>(parse: () => T): T
  unexpected(expected: string): AppError
}

export function tokenReader(tokens: readonly Token[]): TokenReader {
  let place = 0
  let depth = 0
  const END: Token = { kind: 'end', text: '', at: 0 }
  const peek = (ahead = 0): Token => tokens[place + ahead] ?? END
  const isWordAt = (word: string, ahead: number): boolean => {
    const token = peek(ahead)
    return token.kind === 'word' && token.text === word
  }
  const isSignAt = (sign: string, ahead: number): boolean => {
    const token = peek(ahead)
    return token.kind === 'sign' && token.text === sign
  }
  const isName = ({ kind, text }: Token): boolean => kind === 'name' || (kind === 'word' && !KEYWORDS.has(text))
  const skip = (count: number, when: boolean): boolean => {
    if (when) place += count
    return when
  }
  const unexpected = (expected: string): AppError => {
    const { kind, text, at } = peek()
    return queryError(
      kind === 'end'
        ? `expected ${expected} at the end of the query`
        : `expected ${expected} at character ${at + 1}, not ${JSON.stringify(text)}`,
    )
  }
  const takeName = (): string | null => {
    const token = peek()
    return skip(1, isName(token)) ? token.text : null
  }
  return {
    peek: () => peek(),
    next: () => {
      const token = peek()
      place += 1
      return token
    },
    isEnd: () => peek().kind === 'end',
    isWord: (word) => isWordAt(word, 0),
    isSign: (sign) => isSignAt(sign, 0),
    takeWord: (word) => skip(1, isWordAt(word, 0)),
    takeWords: (...words) =>
      skip(
        words.length,
        words.every((word, ahead) => isWordAt(word, ahead)),
      ),
    takeSign: (sign) => skip(1, isSignAt(sign, 0)),
    takeStarOf: () => {
      const { text } = peek()
      return skip(3, isName(peek()) && isSignAt('.', 1) && isSignAt('*', 2)) ? text : null
    },
    takeName,
    name: (expected) => {
      const found = takeName()
      if (found === null) throw unexpected(expected)
      return found
    },
    word: (word) => {
      if (!skip(1, isWordAt(word, 0))) throw unexpected(word.toUpperCase())
    },
    sign: (sign) => {
      if (!skip(1, isSignAt(sign, 0))) throw unexpected(`"${sign}"`)
    },
    deeper: (parse) => {
      depth += 1
      if (depth > DEPTH_MAX) throw queryError(`the query is nested deeper than ${DEPTH_MAX}`)
      const parsed = parse()
      depth -= 1
      return parsed
    },
    unexpected,
  }
}
