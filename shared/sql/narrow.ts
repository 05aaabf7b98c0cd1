// Conditions of a query that a view may compute itself, before it decides which rows its caller may read. They compare
// a column with a literal, so they never fail and tell nothing about hidden rows, and they lead to an index. The query
// keeps them as well: what is handed on here leaves out rows that the query would drop.
import type { Expression, Source } from './tree.ts'

export type ColumnType = 'text' | 'integer'

export interface Narrowing {
  column: string
  /** The comparison that follows the column, such as `= 'shop'`. */
  test: string
}

export interface NarrowSource {
  name: string
  columns: readonly string[]
  /** Columns that may be narrowed. Null means none: no view, or one that hides nothing. */
  types: Readonly<Record<string, ColumnType>> | null
  join: Source['join']
  on: Expression | null
}

interface Place {
  source: number
  column: string
}
interface Found extends Place {
  test: string
  /** Holds for an equal column of text, too: it compares with strings for equality. */
  isText: boolean
}
/** Two equal columns. `into`: the only source that the other narrows; null means that each narrows the other. */
interface Equal {
  one: Place
  other: Place
  into: number | null
}

/** `literal` writes a literal; null means that an expression is none. The result has a list for each source. */
export function narrowings(
  sources: readonly NarrowSource[],
  where: Expression | null,
  literal: (value: Expression) => string | null,
): Narrowing[][] {
  const found: Found[] = []
  const equals: Equal[] = []
  const take = (condition: Expression, into: number | null) => {
    const pair = equalColumns(condition)
    if (pair !== null) equals.push({ ...pair, into })
    const one = pair === null ? comparison(condition) : null
    // ON of a LEFT JOIN leaves out no row of the sources before it.
    if (one !== null && (into === null || one.source === into)) found.push(one)
  }
  for (const condition of conjuncts(where)) take(condition, null)
  for (const [index, { join, on }] of sources.entries())
    for (const condition of conjuncts(on)) take(condition, join === 'left' ? index : null)

  for (let at = 0; at < found.length; at++) {
    const one = found[at]
    if (one === undefined || !one.isText || typeOf(one) !== 'text') continue
    for (const { one: a, other: b, into } of equals)
      for (const [from, to] of [
        [a, b],
        [b, a],
      ] as const)
        if (isSame(from, one) && typeOf(to) === 'text' && (into === null || into === to.source)) add({ ...one, ...to })
  }
  return sources.map((_, index) => found.filter(({ source }) => source === index).map(narrowingOf))

  function add(one: Found): void {
    if (!found.some((other) => isSame(other, one) && other.test === one.test)) found.push(one)
  }

  function typeOf({ source, column }: Place): ColumnType | null {
    return sources[source]?.types?.[column] ?? null
  }

  function placeOf(value: Expression): Place | null {
    if (value.kind !== 'column') return null
    const holding = sources.flatMap(({ name, columns }, source) =>
      (value.of === null || value.of === name) && columns.includes(value.name) ? [source] : [],
    )
    const [source, second] = holding
    return source === undefined || second !== undefined ? null : { source, column: value.name }
  }

  function equalColumns(condition: Expression): { one: Place; other: Place } | null {
    if (condition.kind !== 'binary' || condition.operator !== '=') return null
    const [one, other] = [placeOf(condition.left), placeOf(condition.right)]
    return one === null || other === null ? null : { one, other }
  }

  function comparison(condition: Expression): Found | null {
    if (condition.kind === 'binary') {
      const { left, right, operator } = condition
      return compared(left, operator, right) ?? compared(right, MIRRORED[operator] ?? '', left)
    }
    if (condition.kind === 'between' && !condition.not) {
      const [low, high] = [literal(condition.low), literal(condition.high)]
      return low === null || high === null ? null : tested(condition.value, `between ${low} and ${high}`, false)
    }
    if (condition.kind !== 'in' || condition.not || 'first' in condition.list) return null
    const members = condition.list.map(literal)
    if (members.includes(null)) return null
    return tested(
      condition.value,
      `in (${members.join(', ')})`,
      condition.list.every(({ kind }) => kind === 'string'),
    )
  }

  function compared(column: Expression, operator: string, value: Expression): Found | null {
    const text = Object.hasOwn(MIRRORED, operator) ? literal(value) : null
    return text === null ? null : tested(column, `${operator} ${text}`, operator === '=' && value.kind === 'string')
  }

  function tested(column: Expression, test: string, isText: boolean): Found | null {
    const place = placeOf(column)
    return place === null || typeOf(place) === null ? null : { ...place, test, isText }
  }
}

/** Comparisons, and what each is with its sides exchanged. */
const MIRRORED: Readonly<Record<string, string>> = { '=': '=', '<>': '<>', '<': '>', '>': '<', '<=': '>=', '>=': '<=' }

const isSame = (a: Place, b: Place): boolean => a.source === b.source && a.column === b.column
const narrowingOf = ({ column, test }: Found): Narrowing => ({ column, test })

function conjuncts(value: Expression | null): Expression[] {
  if (value === null) return []
  return value.kind === 'binary' && value.operator === 'and' ? [...conjuncts(value.left), ...conjuncts(value.right)] : [value]
}
