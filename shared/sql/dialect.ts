// Differences between the two databases, so that a query has the same answer on both.

export type SqlEngine = 'sqlite' | 'postgres'

export const quoteText = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** On SQLite a name in double quotes that no table has is taken for a text. */
export const quoteName = (engine: SqlEngine, name: string): string =>
  engine === 'sqlite' ? `\`${name.replaceAll('`', '``')}\`` : `"${name.replaceAll('"', '""')}"`

const PER_UNIT: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** `90m` in milliseconds. Null means that it is no duration. */
export function durationMs(text: string): number | null {
  const found = /^(\d{1,6})([smhdw])$/.exec(text)
  return found === null ? null : Number(found[1]) * (PER_UNIT[found[2] ?? ''] ?? 0)
}

const timeOf = (engine: SqlEngine, format: string, form: string, value: string): string =>
  engine === 'sqlite'
    ? `strftime('${format}', (${value}) / 1000, 'unixepoch')`
    : `to_char(to_timestamp((${value}) / 1000.0) at time zone 'UTC', '${form}')`

interface SqlFunction {
  about: string
  example: string
  aggregate?: true
  /** How many values it takes. */
  values: readonly [least: number, most: number]
  /** `values` are SQL. Null means not in this form. */
  write(engine: SqlEngine, values: readonly string[], distinct: string): string
}

const simple =
  (name: string): SqlFunction['write'] =>
  (_, values, distinct) =>
    `${name}(${distinct}${values.join(', ')})`

/** The functions that a query may call. `ago`, `now` and `label` take literals and are written by `write.ts`. */
export const SQL_FUNCTIONS: Readonly<Record<string, SqlFunction>> = {
  count: { about: 'number of rows or values', example: 'count(*)', aggregate: true, values: [1, 1], write: simple('count') },
  sum: { about: 'sum', example: 'sum(object_count)', aggregate: true, values: [1, 1], write: simple('sum') },
  avg: { about: 'mean', example: 'avg(object_count)', aggregate: true, values: [1, 1], write: simple('avg') },
  min: { about: 'smallest value', example: 'min(since_ms)', aggregate: true, values: [1, 1], write: simple('min') },
  max: { about: 'largest value', example: 'max(since_ms)', aggregate: true, values: [1, 1], write: simple('max') },
  group_concat: {
    about: 'texts of a group, joined by a comma or by the second value',
    example: "group_concat(cluster, ' ')",
    aggregate: true,
    values: [1, 2],
    write: (engine, [value = '', by = "','"], distinct) =>
      engine === 'sqlite'
        ? distinct === ''
          ? `group_concat(${value}, ${by})`
          : `group_concat(distinct ${value})`
        : `left(string_agg(${distinct}cast(${value} as text), ${by}), 65536)`,
  },
  coalesce: { about: 'first value that is not null', example: "coalesce(reason, '')", values: [2, 10], write: simple('coalesce') },
  nullif: { about: 'null if both values are equal', example: "nullif(reason, '')", values: [2, 2], write: simple('nullif') },
  lower: { about: 'lower case', example: 'lower(kind)', values: [1, 1], write: simple('lower') },
  upper: { about: 'upper case', example: 'upper(kind)', values: [1, 1], write: simple('upper') },
  trim: { about: 'without spaces at both ends', example: 'trim(message)', values: [1, 1], write: simple('trim') },
  length: { about: 'number of characters', example: 'length(message)', values: [1, 1], write: simple('length') },
  abs: { about: 'absolute value', example: 'abs(n)', values: [1, 1], write: simple('abs') },
  substr: {
    about: 'part of a text: start and number of characters',
    example: 'substr(commit, 1, 8)',
    values: [2, 3],
    write: simple('substr'),
  },
  instr: {
    about: 'position of a text in another; 0: not found',
    example: "instr(image, ':')",
    values: [2, 2],
    write: (engine, values) => `${engine === 'sqlite' ? 'instr' : 'strpos'}(${values.join(', ')})`,
  },
  round: {
    about: 'rounded to a number of decimals',
    example: 'round(avg(object_count), 1)',
    values: [1, 2],
    write: (engine, [value = '', digits = '0']) => `round(${engine === 'sqlite' ? value : `cast(${value} as numeric)`}, ${digits})`,
  },
  time: {
    about: 'time in UTC as text, of milliseconds since 1970',
    example: 'time(at_ms)',
    values: [1, 1],
    write: (engine, [value = '']) => timeOf(engine, '%Y-%m-%dT%H:%M:%SZ', 'YYYY-MM-DD"T"HH24:MI:SS"Z"', value),
  },
  day: {
    about: 'day in UTC as text, of milliseconds since 1970',
    example: 'day(at_ms)',
    values: [1, 1],
    write: (engine, [value = '']) => timeOf(engine, '%Y-%m-%d', 'YYYY-MM-DD', value),
  },
}

/** They take literals. */
export const LITERAL_FUNCTIONS: ReadonlyArray<{ name: string; about: string; example: string }> = [
  { name: 'now', about: 'the time of the query, in milliseconds since 1970', example: 'now()' },
  { name: 'ago', about: 'time before the query: 90s, 15m, 24h, 7d, 2w', example: "ago('24h')" },
  { name: 'label', about: 'one label of a column with labels', example: "label(labels, 'env')" },
]

export const castType = (engine: SqlEngine, type: 'text' | 'integer' | 'real'): string =>
  type === 'text' ? 'text' : engine === 'sqlite' ? type : type === 'integer' ? 'bigint' : 'double precision'

export const labelOf = (engine: SqlEngine, value: string, key: string): string =>
  engine === 'sqlite' ? `json_extract(${value}, ${quoteText(`$."${key}"`)})` : `(cast(${value} as jsonb) ->> ${quoteText(key)})`
