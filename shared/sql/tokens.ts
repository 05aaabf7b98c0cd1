// Text of a fleet query to tokens. Whatever the grammar does not need is refused here: a token that is not known cannot
// reach a database.
import { AppError } from '../runtime/error.ts'

export type Token =
  | { kind: 'word'; text: string; at: number }
  /** A name in double quotes: never a keyword. */
  | { kind: 'name'; text: string; at: number }
  | { kind: 'string'; text: string; at: number }
  | { kind: 'number'; text: string; at: number }
  | { kind: 'sign'; text: string; at: number }
  | { kind: 'end'; text: ''; at: number }

export const SQL_CHARS_MAX = 10_000
const TOKENS_MAX = 2_000
const NAME_CHARS_MAX = 63

const SPACE = /(?:\s|--[^\n]*(?:\n|$))+/y
const WORD = /[A-Za-z_][A-Za-z0-9_]*/y
const NUMBER = /\d+(?:\.\d+)?/y
const STRING = /'((?:[^']|'')*)'/y
const NAME = /"([^"]+)"/y
const SIGN = /<>|<=|>=|!=|==|\|\||[-+*/%(),.=<>;]/y

export const queryError = (detail: string, remedy?: string): AppError =>
  new AppError('bad_query', { detail, ...(remedy === undefined ? {} : { remedy }) })

export function tokensOf(sql: string): Token[] {
  if (sql.length > SQL_CHARS_MAX) throw queryError(`the query has ${sql.length} characters; ${SQL_CHARS_MAX} are allowed`)
  if (sql.includes('\u0000')) throw queryError('the query has a NUL character')
  const tokens: Token[] = []
  let at = 0
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const found = pattern.exec(sql)
    if (found !== null) at += found[0].length
    return found
  }
  while (tokens.length < TOKENS_MAX) {
    take(SPACE)
    const start = at
    if (at >= sql.length) {
      tokens.push({ kind: 'end', text: '', at })
      return tokens
    }
    const string = take(STRING)
    const name = string === null ? take(NAME) : null
    if (string !== null) tokens.push({ kind: 'string', text: (string[1] ?? '').replaceAll("''", "'"), at: start })
    else if (name !== null) tokens.push({ kind: 'name', text: checkedName(name[1] ?? ''), at: start })
    else {
      const number = take(NUMBER)
      const word = number === null ? take(WORD) : null
      const sign = number === null && word === null ? take(SIGN) : null
      if (number !== null) tokens.push({ kind: 'number', text: number[0], at: start })
      else if (word !== null) tokens.push({ kind: 'word', text: checkedName(word[0].toLowerCase()), at: start })
      else if (sign !== null) tokens.push({ kind: 'sign', text: sign[0], at: start })
      else throw queryError(`unexpected ${JSON.stringify(sql[at])} at character ${at + 1}`)
    }
  }
  throw queryError(`the query has more than ${TOKENS_MAX} words and signs`)
}

function checkedName(name: string): string {
  if (name.length > NAME_CHARS_MAX) throw queryError(`a name has more than ${NAME_CHARS_MAX} characters: ${name.slice(0, 20)}…`)
  return name
}
