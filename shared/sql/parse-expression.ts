// Expressions of a fleet query, from the weakest operator to the strongest.
import type { TokenReader } from './token-reader.ts'
import type { Expression, Query } from './tree.ts'

export function parsePredicate(reader: TokenReader, parseQuery: () => Query): Expression {
  return either()

  function either(): Expression {
    return reader.deeper(() => {
      let left = both()
      while (reader.takeWord('or')) left = { kind: 'binary', operator: 'or', left, right: both() }
      return left
    })
  }

  function both(): Expression {
    let left = negated()
    while (reader.takeWord('and')) left = { kind: 'binary', operator: 'and', left, right: negated() }
    return left
  }

  function negated(): Expression {
    if (!reader.isWord('not')) return compared()
    reader.word('not')
    return reader.deeper(() => ({ kind: 'not', value: negated() }))
  }

  function compared(): Expression {
    let left = sum()
    for (;;) {
      if (reader.takeWord('is')) {
        const not = reader.takeWord('not')
        reader.word('null')
        left = { kind: 'is', value: left, not }
        continue
      }
      const not = reader.takeWord('not')
      if (reader.takeWord('like')) left = { kind: 'like', value: left, pattern: sum(), not }
      else if (reader.takeWord('between')) {
        const low = sum()
        reader.word('and')
        left = { kind: 'between', value: left, low, high: sum(), not }
      } else if (reader.takeWord('in')) left = { kind: 'in', value: left, not, list: members() }
      else if (not) throw reader.unexpected('LIKE, BETWEEN or IN after NOT')
      else {
        const operator = takeOneOf(['=', '==', '<>', '!=', '<=', '>=', '<', '>'])
        if (operator === null) return left
        const written = operator === '==' ? '=' : operator === '!=' ? '<>' : operator
        left = { kind: 'binary', operator: written, left, right: sum() }
      }
    }
  }

  function members(): readonly Expression[] | Query {
    reader.sign('(')
    const found = reader.isWord('select') || reader.isWord('with') ? parseQuery() : values()
    reader.sign(')')
    return found
  }

  function values(): Expression[] {
    const found = [either()]
    while (reader.takeSign(',')) found.push(either())
    return found
  }

  function sum(): Expression {
    let left = product()
    for (let operator = takeOneOf(['+', '-']); operator !== null; operator = takeOneOf(['+', '-']))
      left = { kind: 'binary', operator, left, right: product() }
    return left
  }

  function product(): Expression {
    let left = joined()
    for (let operator = takeOneOf(['*', '/', '%']); operator !== null; operator = takeOneOf(['*', '/', '%']))
      left = { kind: 'binary', operator, left, right: joined() }
    return left
  }

  function joined(): Expression {
    let left = signed()
    while (reader.takeSign('||')) left = { kind: 'binary', operator: '||', left, right: signed() }
    return left
  }

  function signed(): Expression {
    if (!reader.takeSign('-')) return primary()
    return reader.deeper(() => ({ kind: 'minus', value: signed() }))
  }

  function primary(): Expression {
    const token = reader.peek()
    if (token.kind === 'string' || token.kind === 'number') {
      reader.next()
      return { kind: token.kind, text: token.text }
    }
    for (const word of ['null', 'true', 'false'] as const) if (reader.takeWord(word)) return { kind: 'word', text: word }
    if (reader.takeWord('case')) return cases()
    if (reader.takeWord('cast')) return cast()
    if (reader.takeWord('exists')) return { kind: 'exists', query: inParentheses(parseQuery) }
    if (reader.takeSign('(')) {
      const inner: Expression = reader.isWord('select') || reader.isWord('with') ? { kind: 'subquery', query: parseQuery() } : either()
      reader.sign(')')
      return inner
    }
    const name = reader.name('a value')
    if (reader.takeSign('.')) return { kind: 'column', of: name, name: reader.name('the name of a column') }
    return token.kind === 'word' && reader.isSign('(') ? call(name) : { kind: 'column', of: null, name }
  }

  function call(name: string): Expression {
    reader.sign('(')
    const star = reader.takeSign('*')
    const distinct = !star && reader.takeWord('distinct')
    const given = star || reader.isSign(')') ? [] : values()
    reader.sign(')')
    let filter: Expression | null = null
    if (reader.takeWord('filter')) {
      filter = inParentheses(() => {
        reader.word('where')
        return either()
      })
    }
    return { kind: 'call', name, star, distinct, values: given, filter }
  }

  function cases(): Expression {
    const of = reader.isWord('when') ? null : either()
    const when: Array<{ when: Expression; result: Expression }> = []
    while (reader.takeWord('when')) {
      const condition = either()
      reader.word('then')
      when.push({ when: condition, result: either() })
    }
    if (when.length === 0) throw reader.unexpected('WHEN')
    const other = reader.takeWord('else') ? either() : null
    reader.word('end')
    return { kind: 'case', of, when, other }
  }

  function cast(): Expression {
    reader.sign('(')
    const value = either()
    reader.word('as')
    const type = (['text', 'integer', 'real'] as const).find((one) => reader.takeWord(one))
    if (type === undefined) throw reader.unexpected('TEXT, INTEGER or REAL')
    reader.sign(')')
    return { kind: 'cast', value, type }
  }

  function inParentheses<T>(parse: () => T): T {
    reader.sign('(')
    const inner = parse()
    reader.sign(')')
    return inner
  }

  function takeOneOf(signs: readonly string[]): string | null {
    return signs.find((sign) => reader.takeSign(sign)) ?? null
  }
}
