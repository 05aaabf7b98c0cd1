// Parses a fleet query by recursive descent. The grammar is the list of what is allowed: there is no statement but
// SELECT, no schema before a name, and no recursion.
import { parsePredicate } from './parse-expression.ts'
import { type TokenReader, tokenReader } from './token-reader.ts'
import { queryError, tokensOf } from './tokens.ts'
import type { Expression, Item, Query, Select, Source } from './tree.ts'

const LIMIT_MAX = 1_000_000_000
const SELECTS_MAX = 50

/** Throws `bad_query` with the place. */
export function parseQuery(sql: string): Query {
  const reader = tokenReader(tokensOf(sql))
  let selects = 0
  const query = parseWhole()
  reader.takeSign(';')
  if (!reader.isEnd()) throw reader.unexpected('the end of the query')
  return query

  function parseWhole(): Query {
    return reader.deeper(() => {
      const named = parseWith()
      const first = parseSelect()
      const rest: Array<Query['rest'][number]> = []
      for (;;) {
        const operator = reader.takeWord('union')
          ? reader.takeWord('all')
            ? 'union all'
            : 'union'
          : reader.takeWord('intersect')
            ? 'intersect'
            : reader.takeWord('except')
              ? 'except'
              : null
        if (operator === null) break
        rest.push({ operator, select: parseSelect() })
      }
      const order = parseOrder()
      const limit = reader.takeWord('limit') ? wholeNumber(reader) : null
      const offset = limit !== null && reader.takeWord('offset') ? wholeNumber(reader) : 0
      return { with: named, first, rest, order, limit, offset }
    })
  }

  function parseWith(): Query['with'] {
    if (!reader.takeWord('with')) return []
    if (reader.isWord('recursive')) throw queryError('WITH RECURSIVE is not supported')
    return list(() => {
      const name = reader.name('the name of a subquery')
      reader.word('as')
      return { name, query: inParentheses(parseWhole) }
    })
  }

  function parseSelect(): Select {
    selects += 1
    if (selects > SELECTS_MAX) throw queryError(`the query has more than ${SELECTS_MAX} SELECTs`)
    if (!reader.takeWord('select')) throw reader.unexpected('SELECT')
    const distinct = reader.takeWord('distinct')
    if (!distinct) reader.takeWord('all')
    const items = list(parseItem)
    const from = reader.takeWord('from') ? parseSources() : []
    const where = reader.takeWord('where') ? parseExpression() : null
    const group = reader.takeWords('group', 'by') ? list(parseExpression) : []
    const having = reader.takeWord('having') ? parseExpression() : null
    return { distinct, items, from, where, group, having }
  }

  function parseItem(): Item {
    if (reader.takeSign('*')) return { kind: 'all', of: null }
    const of = reader.takeStarOf()
    if (of !== null) return { kind: 'all', of }
    const value = parseExpression()
    const name = reader.takeWord('as') ? reader.name('a name after AS') : reader.takeName()
    return { kind: 'value', value, name }
  }

  function parseSources(): Source[] {
    const sources = [parseSource('first')]
    for (;;) {
      if (reader.takeSign(',')) sources.push(parseSource('first'))
      else if (reader.takeWords('cross', 'join')) sources.push(parseSource('cross'))
      else if (reader.takeWord('left')) {
        reader.takeWord('outer')
        reader.word('join')
        sources.push(parseSource('left'))
      } else if (reader.takeWords('inner', 'join') || reader.takeWord('join')) sources.push(parseSource('inner'))
      else return sources
    }
  }

  function parseSource(join: Source['join']): Source {
    const { at } = reader.peek()
    const from: Source['from'] = reader.isSign('(')
      ? { kind: 'query', query: inParentheses(parseWhole) }
      : { kind: 'name', name: reader.name('the name of a view'), at }
    if (reader.isSign('.')) throw queryError(`${from.kind === 'name' ? from.name : ''}. is not supported: views have no schema`)
    if (reader.isSign('(')) throw queryError('functions that return tables are not supported')
    const alias = reader.takeWord('as') ? reader.name('a name after AS') : reader.takeName()
    if (from.kind === 'query' && alias === null) throw reader.unexpected('a name for the subquery')
    if (join !== 'inner' && join !== 'left') return { join, from, alias, on: null }
    reader.word('on')
    return { join, from, alias, on: parseExpression() }
  }

  function parseOrder(): Query['order'] {
    if (!reader.takeWords('order', 'by')) return []
    return list(() => {
      const by = parseExpression()
      const descending = reader.takeWord('desc')
      if (!descending) reader.takeWord('asc')
      return { by, descending }
    })
  }

  function parseExpression(): Expression {
    return parsePredicate(reader, parseWhole)
  }

  function list<T>(parse: () => T): T[] {
    const found = [parse()]
    while (reader.takeSign(',')) found.push(parse())
    return found
  }

  function inParentheses<T>(parse: () => T): T {
    reader.sign('(')
    const inner = parse()
    reader.sign(')')
    return inner
  }
}

function wholeNumber(reader: TokenReader): number {
  const { kind, text } = reader.next()
  if (kind !== 'number' || !/^\d{1,10}$/.test(text)) throw queryError('LIMIT and OFFSET need a whole number')
  return Math.min(Number(text), LIMIT_MAX)
}
