// Writes a parsed query in the SQL of a database. Each name is looked up: a source is a view or a subquery of the query
// itself, and a column is one of its sources. Names of the query get a prefix, so that none can stand for a table of
// the database.
import { nearest } from '../runtime/edit-distance.ts'
import { castType, durationMs, LITERAL_FUNCTIONS, labelOf, quoteName, quoteText, SQL_FUNCTIONS, type SqlEngine } from './dialect.ts'
import { type ColumnType, type Narrowing, type NarrowSource, narrowings } from './narrow.ts'
import { queryError } from './tokens.ts'
import type { Expression, Item, Query, Select, Source } from './tree.ts'

export interface WrittenView {
  columns: readonly string[]
  /** SELECT of exactly these columns, with the rows that the caller may read. */
  sql: string
  /** A view that hides rows has it: columns of its tables, and its SELECT of the rows that meet all conditions. */
  narrow?: { types: Readonly<Record<string, ColumnType>>; sql(conditions: readonly Narrowing[]): string }
}

export interface WriteOptions {
  engine: SqlEngine
  nowMs: number
  /** More rows are not asked for. */
  rowsMax: number
  viewNames: readonly string[]
  /** Null means that no view has the name. */
  view(name: string): WrittenView | null
}

export interface WrittenQuery {
  sql: string
  columns: readonly string[]
}

interface WrittenSource extends NarrowSource {
  before: string
  sql(conditions: readonly Narrowing[]): string
  after: string
}

interface Named {
  name: string
  columns: readonly string[]
}
/** Sources of a SELECT and of those around it; subqueries that WITH names. */
interface Scope {
  sources: readonly Named[]
  outer: Scope | null
}
type With = ReadonlyMap<string, readonly string[]>

const COLUMNS_MAX = 200

export function writeQuery(query: Query, options: WriteOptions): WrittenQuery {
  const { engine } = options
  const quoted = (name: string) => quoteName(engine, name)
  /** A quoted name of the query's own sources. */
  const own = (name: string) => quoted(`q_${name}`)

  return whole(query, new Map(), null, options.rowsMax)

  function whole(
    { with: named, first, rest, order, limit, offset }: Query,
    around: With,
    outer: Scope | null,
    rowsMax?: number,
  ): WrittenQuery {
    const known = new Map(around)
    const subqueries = named.map(({ name, query: inner }) => {
      const { sql, columns } = whole(inner, known, null)
      known.set(name, columns)
      return `${own(name)} as (${sql})`
    })
    const head = select(first, known, outer)
    const others = rest.map(({ operator, select: other }) => {
      const written = select(other, known, outer)
      if (written.columns.length !== head.columns.length)
        throw queryError(`both sides of ${operator.toUpperCase()} need the same number of columns`)
      return ` ${operator} ${written.sql}`
    })
    const ordered = order.length === 0 ? '' : ` order by ${order.map((one) => orderBy(one, head, rest.length > 0, known)).join(', ')}`
    const most = rowsMax === undefined ? limit : Math.min(limit ?? rowsMax, rowsMax)
    const cut = most === null ? '' : ` limit ${most}${offset === 0 ? '' : ` offset ${offset}`}`
    const before = subqueries.length === 0 ? '' : `with ${subqueries.join(', ')} `
    return { sql: `${before}${head.sql}${others.join('')}${ordered}${cut}`, columns: head.columns }
  }

  function orderBy(
    { by, descending }: Query['order'][number],
    { columns, scope }: { columns: readonly string[]; scope: Scope },
    isCompound: boolean,
    known: With,
  ): string {
    const isOutput = by.kind === 'column' && by.of === null && columns.includes(by.name)
    const isPlace = by.kind === 'number' && /^\d+$/.test(by.text) && Number(by.text) >= 1 && Number(by.text) <= columns.length
    if (isCompound && !isOutput && !isPlace) throw queryError('ORDER BY after UNION, INTERSECT or EXCEPT expects names of columns')
    const text = isOutput ? quoted(by.name) : isPlace ? by.text : expression(by, scope, known)
    // Null is the smallest value on SQLite and the greatest on PostgreSQL.
    return `${text} ${descending ? 'desc' : 'asc'}${engine === 'postgres' ? ` nulls ${descending ? 'last' : 'first'}` : ''}`
  }

  function select({ distinct, items, from, where, group, having }: Select, known: With, outer: Scope | null) {
    const sources: Named[] = []
    const scope: Scope = { sources, outer }
    const read = from.map((one, index) => source(one, index, sources, scope, known))
    const narrowed = narrowings(read, where, literalOf)
    const joined = read.map(({ before, sql, after }, index) => `${before}${sql(narrowed[index] ?? [])}${after}`).join('')
    const columns: string[] = []
    const shown = items.flatMap((item, index) => itemOf(item, index, scope, known, columns))
    if (columns.length > COLUMNS_MAX) throw queryError(`the query has more than ${COLUMNS_MAX} columns`)
    const grouped = group.map((one) => {
      // SQLite and PostgreSQL agree: a column of a source comes before a name of the result.
      const named = one.kind === 'column' && one.of === null && !isKnown(one.name, scope) && columns.includes(one.name)
      return named ? quoted(one.name) : expression(one, scope, known)
    })
    const parts = [
      `select ${distinct ? 'distinct ' : ''}${shown.join(', ')}`,
      joined === '' ? '' : ` from ${joined}`,
      where === null ? '' : ` where ${expression(where, scope, known)}`,
      grouped.length === 0 ? '' : ` group by ${grouped.join(', ')}`,
      having === null ? '' : ` having ${expression(having, scope, known)}`,
    ]
    return { sql: parts.join(''), columns, scope }
  }

  function itemOf(item: Item, index: number, scope: Scope, known: With, columns: string[]): string[] {
    if (item.kind === 'value') {
      const name = fresh(item.name ?? nameOf(item.value, index), columns)
      columns.push(name)
      return [`${expression(item.value, scope, known)} as ${quoted(name)}`]
    }
    const { of } = item
    const asked = of === null ? scope.sources : scope.sources.filter(({ name }) => name === of)
    if (asked.length === 0) throw queryError(of === null ? '* needs FROM' : `the query has no source named ${of}`)
    return asked.flatMap((one) =>
      one.columns.map((column) => {
        const name = fresh(column, columns)
        columns.push(name)
        return `${own(one.name)}.${quoted(column)} as ${quoted(name)}`
      }),
    )
  }

  function source({ join, from, alias, on }: Source, index: number, sources: Named[], scope: Scope, known: With): WrittenSource {
    const { columns, sql, narrow } = from.kind === 'query' ? bracketed(whole(from.query, known, null)) : named(from.name, known)
    const name = alias ?? (from.kind === 'name' ? from.name : '')
    if (sources.some((one) => one.name === name))
      throw queryError(`two sources of the query are named ${name}; give one another name with AS`)
    sources.push({ name, columns })
    return {
      ...{ name, columns, join, on, types: narrow?.types ?? null },
      before: index === 0 ? '' : join === 'first' ? ' cross join ' : join === 'inner' ? ' join ' : ` ${join} join `,
      sql: (conditions) => narrow?.sql(conditions) ?? sql,
      after: ` as ${own(name)}${on === null ? '' : ` on ${expression(on, scope, known)}`}`,
    }
  }

  function named(name: string, known: With): WrittenView {
    const columns = known.get(name)
    if (columns !== undefined) return { sql: own(name), columns }
    const view = options.view(name)
    if (view !== null) return bracketed(view)
    const near = nearest(name, [...known.keys(), ...options.viewNames])
    throw queryError(`there is no view ${name}${near === null ? `; views: ${options.viewNames.join(', ')}` : `; did you mean ${near}?`}`)
  }

  function literalOf(value: Expression): string | null {
    if (value.kind === 'string') return quoteText(value.text)
    if (value.kind === 'number') return value.text
    if (value.kind === 'minus') return value.value.kind === 'number' ? `-${value.value.text}` : null
    if (value.kind !== 'call' || (value.name !== 'now' && value.name !== 'ago')) return null
    return literalCall(value.name, value.values, () => '')
  }

  function column(of: string | null, name: string, scope: Scope): string {
    for (let at: Scope | null = scope; at !== null; at = at.outer) {
      const holding = at.sources.filter((one) => (of === null || one.name === of) && one.columns.includes(name))
      const [found, second] = holding
      if (second !== undefined) throw queryError(`column ${name} is in ${found?.name} and in ${second.name}: write ${found?.name}.${name}`)
      if (found !== undefined) return `${own(found.name)}.${quoted(name)}`
      const asked: Named | undefined = at.sources.find((one) => one.name === of)
      if (asked !== undefined) throw noColumn(name, [asked])
    }
    if (of !== null) throw queryError(`the query has no source named ${of}`)
    throw noColumn(name, scope.sources)
  }

  function noColumn(name: string, sources: readonly Named[]) {
    const columns = sources.flatMap((one) => one.columns)
    const near = nearest(name, columns)
    const hint =
      near !== null ? `did you mean ${near}?` : columns.length === 0 ? 'put text in single quotes' : `columns: ${columns.join(', ')}`
    return queryError(`unknown column ${name}; ${hint}`)
  }

  function expression(value: Expression, scope: Scope, known: With): string {
    const inner = (one: Expression) => expression(one, scope, known)
    const not = (is: boolean) => (is ? 'not ' : '')
    switch (value.kind) {
      case 'string':
        return quoteText(value.text)
      case 'number':
      case 'word':
        return value.text
      case 'column':
        return column(value.of, value.name, scope)
      case 'binary':
        return binary(value.operator, inner(value.left), inner(value.right))
      case 'not':
        return `(not ${inner(value.value)})`
      case 'minus':
        return `(- ${inner(value.value)})`
      case 'is':
        return `(${inner(value.value)} is ${not(value.not)}null)`
      case 'like':
        // Without regard to case on both, and a backslash means itself.
        return engine === 'sqlite'
          ? `(${inner(value.value)} ${not(value.not)}like ${inner(value.pattern)})`
          : `(${inner(value.value)} ${not(value.not)}ilike ${inner(value.pattern)} escape '')`
      case 'between':
        return `(${inner(value.value)} ${not(value.not)}between ${inner(value.low)} and ${inner(value.high)})`
      case 'in': {
        const members = 'first' in value.list ? whole(value.list, known, scope).sql : value.list.map(inner).join(', ')
        return `(${inner(value.value)} ${not(value.not)}in (${members}))`
      }
      case 'exists':
        return `exists (${whole(value.query, known, scope).sql})`
      case 'subquery':
        return `(${whole(value.query, known, scope, 1).sql})`
      case 'case': {
        const of = value.of === null ? '' : ` ${inner(value.of)}`
        const when = value.when.map((one) => ` when ${inner(one.when)} then ${inner(one.result)}`).join('')
        return `case${of}${when}${value.other === null ? '' : ` else ${inner(value.other)}`} end`
      }
      case 'cast':
        return `cast(${inner(value.value)} as ${castType(engine, value.type)})`
      case 'call':
        return call(value, inner)
    }
  }

  function binary(operator: string, left: string, right: string): string {
    // A division by zero is null on SQLite and an error on PostgreSQL.
    if ((operator === '/' || operator === '%') && engine === 'postgres') return `(${left} ${operator} nullif(${right}, 0))`
    if (operator === '||' && engine === 'postgres') return `left(${left} || ${right}, 65536)`
    return `(${left} ${operator} ${right})`
  }

  function call(
    { name, star, distinct, values, filter }: Extract<Expression, { kind: 'call' }>,
    inner: (one: Expression) => string,
  ): string {
    const literal = literalCall(name, values, inner)
    if (literal !== null) return literal
    const known = Object.hasOwn(SQL_FUNCTIONS, name) ? SQL_FUNCTIONS[name] : undefined
    if (known === undefined) {
      const names = [...Object.keys(SQL_FUNCTIONS), ...LITERAL_FUNCTIONS.map((one) => one.name)]
      const near = nearest(name, names)
      throw queryError(`there is no function ${name}${near === null ? `; functions: ${names.join(', ')}` : `; did you mean ${near}?`}`)
    }
    const {
      values: [least, most],
      aggregate = false,
      write,
    } = known
    if (star && name !== 'count') throw queryError(`${name}(*) is not supported`)
    if (!star && (values.length < least || values.length > most))
      throw queryError(`${name} expects ${least === most ? least : `${least} to ${most}`} values`)
    if ((distinct || filter !== null) && !aggregate) throw queryError(`${name} is not an aggregate: DISTINCT and FILTER do not apply`)
    if (distinct && values.length > 1) throw queryError(`${name} with DISTINCT expects one value`)
    const text = star ? 'count(*)' : write(engine, values.map(inner), distinct ? 'distinct ' : '')
    if (filter === null) return text
    const where = ` filter (where ${inner(filter)})`
    return text.startsWith('left(string_agg(') ? text.replace(/, 65536\)$/, `${where}, 65536)`) : `${text}${where}`
  }

  function literalCall(name: string, values: readonly Expression[], inner: (one: Expression) => string): string | null {
    const [first, second] = values
    if (name === 'now' && values.length === 0) return String(options.nowMs)
    if (name === 'ago') {
      const ms = first?.kind === 'string' && values.length === 1 ? durationMs(first.text) : null
      if (ms === null) throw queryError("ago expects one duration, such as ago('24h')")
      return String(Math.max(0, options.nowMs - ms))
    }
    if (name === 'label') {
      if (first?.kind !== 'column' || second?.kind !== 'string' || values.length !== 2 || !/^[A-Za-z0-9._/-]{1,317}$/.test(second.text))
        throw queryError("label expects a column and the key of a label, such as label(labels, 'env')")
      return labelOf(engine, inner(first), second.text)
    }
    return null
  }
}

function isKnown(name: string, scope: Scope): boolean {
  for (let at: Scope | null = scope; at !== null; at = at.outer) if (at.sources.some(({ columns }) => columns.includes(name))) return true
  return false
}

const bracketed = ({ sql, columns, narrow }: WrittenView): WrittenView => ({
  ...{ sql: `(${sql})`, columns },
  ...(narrow === undefined ? {} : { narrow: { types: narrow.types, sql: (conditions) => `(${narrow.sql(conditions)})` } }),
})

const nameOf = (value: Expression, index: number): string =>
  value.kind === 'column' ? value.name : value.kind === 'call' ? value.name : `column_${index + 1}`

function fresh(name: string, taken: readonly string[]): string {
  if (!taken.includes(name)) return name
  for (let n = 2; ; n++) if (!taken.includes(`${name}_${n}`)) return `${name}_${n}`
}
