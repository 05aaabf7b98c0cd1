// The part of SQL that fleet queries have: one SELECT with joins, subqueries, WITH, set operations and aggregates.

export interface Query {
  with: ReadonlyArray<{ name: string; query: Query }>
  first: Select
  rest: ReadonlyArray<{ operator: 'union' | 'union all' | 'intersect' | 'except'; select: Select }>
  order: ReadonlyArray<{ by: Expression; descending: boolean }>
  limit: number | null
  offset: number
}

export interface Select {
  distinct: boolean
  items: readonly Item[]
  from: readonly Source[]
  where: Expression | null
  group: readonly Expression[]
  having: Expression | null
}

export type Item = { kind: 'all'; of: string | null } | { kind: 'value'; value: Expression; name: string | null }

export interface Source {
  /** `first`: of the list, or after a comma. */
  join: 'first' | 'inner' | 'left' | 'cross'
  from: { kind: 'name'; name: string; at: number } | { kind: 'query'; query: Query }
  alias: string | null
  on: Expression | null
}

export type Expression =
  | { kind: 'string' | 'number'; text: string }
  | { kind: 'word'; text: 'null' | 'true' | 'false' }
  | { kind: 'column'; of: string | null; name: string }
  | { kind: 'binary'; operator: string; left: Expression; right: Expression }
  | { kind: 'not' | 'minus'; value: Expression }
  | { kind: 'is'; value: Expression; not: boolean }
  | { kind: 'like'; value: Expression; pattern: Expression; not: boolean }
  | { kind: 'between'; value: Expression; low: Expression; high: Expression; not: boolean }
  | { kind: 'in'; value: Expression; not: boolean; list: readonly Expression[] | Query }
  | { kind: 'exists' | 'subquery'; query: Query }
  | { kind: 'case'; of: Expression | null; when: ReadonlyArray<{ when: Expression; result: Expression }>; other: Expression | null }
  | { kind: 'cast'; value: Expression; type: 'text' | 'integer' | 'real' }
  | { kind: 'call'; name: string; star: boolean; distinct: boolean; values: readonly Expression[]; filter: Expression | null }
