// The grammar of SQL queries: what gets through, and that nothing else does.
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { sightOf } from '../../server/store/sql/sight.ts'
import { FLEET_VIEWS, VIEW_NAMES, viewSql } from '../../server/store/sql/views.ts'
import { csvText } from '../../shared/runtime/csv.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { LITERAL_FUNCTIONS, SQL_FUNCTIONS, type SqlEngine } from '../../shared/sql/dialect.ts'
import { parseQuery } from '../../shared/sql/parse.ts'
import { writeQuery } from '../../shared/sql/write.ts'

const ALL = [{ projects: null, services: null, clusters: null }]
const sight = sightOf({ services: ALL, clusters: ALL, repositories: ALL }, [])

function written(sql: string, engine: SqlEngine = 'sqlite'): string {
  const view = (name: string) => viewSql(name, { engine, sight, nowMs: 1_000_000 })
  return writeQuery(parseQuery(sql), { engine, nowMs: 1_000_000, rowsMax: 11, viewNames: VIEW_NAMES, view }).sql
}
function refusal(sql: string): string {
  try {
    return `accepted: ${written(sql)}`
  } catch (error) {
    return error instanceof AppError && error.code === 'bad_query' ? (error.data.detail ?? '') : `failed: ${String(error)}`
  }
}

test.each([
  ['PRAGMA table_info(clusters)', 'SELECT'],
  ["ATTACH 'x' AS y", 'SELECT'],
  ['DELETE FROM clusters', 'SELECT'],
  ['select 1; select 2', 'the end'],
  ['select 1; drop table clusters', 'the end'],
  ['select * from sqlite_master', 'no view sqlite_master'],
  ['select * from status_rows', 'no view status_rows'],
  ['select * from api_tokens', 'no view api_tokens'],
  ['select * from main.clusters', 'no schema'],
  ['select * from "main"."api_tokens"', 'no schema'],
  ['select * from pg_catalog.pg_authid', 'no schema'],
  ["select * from pragma_table_info('clusters')", 'return tables'],
  ["select * from json_each('[1]')", 'return tables'],
  ["select load_extension('x')", 'no function load_extension'],
  ["select readfile('x')", 'no function readfile'],
  ["select pg_read_file('x')", 'no function pg_read_file'],
  ['select pg_sleep(10)', 'no function pg_sleep'],
  ['select randomblob(1000000000)', 'no function randomblob'],
  ['with recursive n as (select 1) select * from n', 'WITH RECURSIVE'],
  ['select token_hash from clusters', 'unknown column token_hash'],
  ['select rowid from clusters', 'unknown column rowid'],
  ['select "no such" from clusters', 'unknown column no such'],
  ['select name from clusters where label(labels, name) = 1', 'key of a label'],
  ["select label(labels, 'a\"b') from clusters", 'key of a label'],
  ['select x.name from clusters c', 'source named x'],
  ['select name from clusters, services', 'in clusters and in services'],
  ['select nme from clusters', 'did you mean name'],
  ['select * from cluster', 'did you mean clusters'],
  ['select lenght(name) from clusters', 'did you mean length'],
  ['select * from clusters limit 1e9', 'the query'],
  ['select * from clusters limit -1', 'whole number'],
  ['select 1 /* x */', 'expected'],
  ['select $1', 'unexpected'],
  ['select ?', 'unexpected'],
  ["select E'\\'", 'the end'],
  ['select 1\u0000', 'NUL'],
  ["select 'a", 'unexpected'],
  ['select [name] from clusters', 'unexpected'],
  ['select `name` from clusters', 'unexpected'],
  ['select count(*) over () from clusters', 'the query'],
  [`select ${'('.repeat(200)}1${')'.repeat(200)}`, 'nested deeper'],
  [`select ${'- '.repeat(500)}1`, 'nested deeper'],
  [`select ${'not '.repeat(500)}1`, 'nested deeper'],
  [`select ${'1 + '.repeat(2_000)}1`, 'more than'],
  ['select 1 from (select 1)', 'name for the subquery'],
  ['select 1 union select 1, 2', 'number of columns'],
])('SQ5 refuses %s', (sql, words) => {
  expect(refusal(sql)).toContain(words)
})

test('SQ5 a name of the query never stands for a table of the store', () => {
  const sql = written('with status_rows as (select 1 as no), names as (select 2 as id) select o.name from objects o, status_rows, names n')
  expect(sql).toStartWith(
    'with `q_status_rows` as (select 1 as `no`), `q_names` as (select 2 as `id`) select `q_o`.`name` as `name` from (select c.name',
  )
  expect(sql).toContain('cross join `q_status_rows` as `q_status_rows` cross join `q_names` as `q_n`')
})

test('SQ5 texts and names cannot leave their quotes', () => {
  expect(written(`select 'it''s' as "a\`b""c"`.replace('""', ''))).toContain("'it''s'")
  expect(written('select 1 as "a`b"')).toContain('`a``b`')
  expect(written('select 1 as "a`b"', 'postgres')).toContain('"a`b"')
})

test('SQ5 random texts are refused or parsed, and never fail otherwise', () => {
  const random = seededRandom(7)
  const words = [
    'select',
    '*',
    'from',
    'clusters',
    'c',
    '(',
    ')',
    ',',
    "'x'",
    '1',
    '=',
    'and',
    'not',
    'in',
    'group',
    'by',
    'count',
    '.',
    'name',
    'union',
    'with',
    'as',
    'case',
    'end',
    'order',
    'limit',
    '-',
    '"q"',
  ]
  for (let round = 0; round < 3_000; round++) {
    const text = Array.from({ length: 1 + Math.floor(random() * 14) }, () => words[Math.floor(random() * words.length)]).join(' ')
    expect(refusal(round % 2 === 0 ? text : `select ${text}`)).not.toStartWith('failed')
  }
})

test('SQ2 a query without a limit gets one, and a greater one is cut', () => {
  expect(written('select name from clusters')).toEndWith(' limit 11')
  expect(written('select name from clusters limit 3')).toEndWith(' limit 3')
  expect(written('select name from clusters limit 300 offset 2')).toEndWith(' limit 11 offset 2')
})

test('SQ4 views of a caller with a limited scope are behind a fence', () => {
  const some = sightOf({ services: [{ projects: ['a'], services: ['web-*'], clusters: null }], clusters: [], repositories: [] }, [])
  expect(viewSql('objects', { engine: 'sqlite', sight: some, nowMs: 0 })?.sql).toEndWith(
    "where (n.project in ('a') and substr(n.service, 1, 4) = 'web-') limit -1",
  )
  expect(viewSql('clusters', { engine: 'postgres', sight: some, nowMs: 0 })?.sql).toEndWith('where 1 = 0 offset 0')
  expect(viewSql('objects', { engine: 'sqlite', sight, nowMs: 0 })?.sql).not.toContain('limit')
})

describe('SQ4 comparisons with literals move behind the fence', () => {
  const some = sightOf({ services: [{ projects: ['a'], services: null, clusters: null }], clusters: ALL, repositories: ALL }, [])
  const view = (name: string) => viewSql(name, { engine: 'sqlite', sight: some, nowMs: 0 })
  const narrowed = (sql: string): string[] =>
    [
      ...writeQuery(parseQuery(sql), { engine: 'sqlite', nowMs: 90_000_000, rowsMax: 11, viewNames: VIEW_NAMES, view }).sql.matchAll(
        FENCED,
      ),
    ].map(([, conditions = '']) => conditions)
  const FENCED = /\('a'\)(?: and )?(.*?) limit -1/g
  const joined = (join: string, on: string, where: string) => `select 1 from objects o ${join} placements p on ${on} where ${where}`
  test.each([
    ["select * from objects where cluster = 'x'", ["c.name = 'x'"]],
    [
      "select * from objects where 'x' = cluster and health <> 'Healthy' and since_ms > 5",
      ["c.name = 'x' and s.health <> 'Healthy' and r.since_ms > 5"],
    ],
    [
      "select * from objects where kind in ('A', 'B') and since_ms between -1 and ago('1d')",
      ["n.object_kind in ('A', 'B') and r.since_ms between -1 and 3600000"],
    ],
    ['select * from history where 5 < at_ms', ['h.at_ms > 5']],
    // A message is shown in another form, JSON and CAST can fail, and a disjunction is not one condition.
    ["select * from objects where message = 'x' or cluster = 'y'", ['']],
    ["select * from objects where message = 'x'", ['']],
    ["select * from placements where applied_commit = 'x' and object_count = 1", ['']],
    ["select * from objects where cast(name as integer) = 5 and lower(name) = 'x' and not cluster = 'y'", ['']],
    ["select * from objects where cluster like 'x%' and cluster not in ('x') and cluster in (select name from clusters)", ['']],
    // Equal columns, in the direction that leaves out no row of the result.
    [joined('join', 'p.cluster = o.cluster', "o.cluster = 'x'"), ["c.name = 'x'", "c.name = 'x'"]],
    [joined('join', "p.cluster = o.cluster and p.service = 's'", 'o.service = p.service'), ["n.service = 's'", "d.service = 's'"]],
    [joined('left join', 'p.cluster = o.cluster', "o.cluster = 'x'"), ["c.name = 'x'", "c.name = 'x'"]],
    [joined('left join', 'p.cluster = o.cluster', "p.cluster = 'x'"), ['', "c.name = 'x'"]],
    [joined('left join', "o.cluster = 'x' and p.cluster = 'y'", '1 = 1'), ['', "c.name = 'y'"]],
    [joined('join', 'p.cluster = o.cluster', "o.cluster > 'x'"), ["c.name > 'x'", '']],
    [joined('join', 'p.since_ms = o.since_ms', 'o.since_ms = 5'), ['r.since_ms = 5', '']],
    // A name of two sources, and one of the query around it.
    ["select (select count(*) from placements where cluster = o.cluster) from objects o where o.name = 'x'", ['', "n.name = 'x'"]],
  ])('%s', (sql, expected) => expect(narrowed(sql)).toEqual(expected))
  test('a caller who may read all rows has no fence and needs none', () =>
    expect(written("select * from objects where cluster = 'x'")).not.toContain("c.name = 'x'"))
})

test('SQ1 the examples of the documentation are queries', () => {
  const examples = [...Object.values(SQL_FUNCTIONS), ...LITERAL_FUNCTIONS]
  for (const { example } of examples) expect(refusal(`select ${example} from ${viewWith(example)}`)).toStartWith('accepted')
  const pages = readdirSync('docs/how-to')
    .filter((name) => name.endsWith('.md'))
    .map((name) => readFileSync(`docs/how-to/${name}`, 'utf8'))
  const queries = pages.flatMap((text) => [...text.matchAll(/skerry query "([^"]+)"/g)].map(([, sql = '']) => sql))
  expect(queries.length).toBeGreaterThan(3)
  for (const sql of queries) expect(refusal(sql)).toStartWith('accepted')
})

/** A view that has the columns of an example, or a subquery with all names. */
function viewWith(example: string): string {
  const names = example.replaceAll(/'[^']*'/g, '').match(/[a-z_]+/g) ?? []
  const columns = names.filter((name) => !(name in SQL_FUNCTIONS) && !LITERAL_FUNCTIONS.some((one) => one.name === name))
  const known = Object.entries(FLEET_VIEWS).find(([, view]) => columns.every((name) => name in view.columns))
  return known?.[0] ?? `(select ${columns.map((name) => `1 as ${name}`).join(', ')}) x`
}

test('CSV quotes what needs it, and starts no formula', () => {
  expect(
    csvText([
      ['a,b', 'say "x"', null, -3],
      ['=1+1', '-x', '-1.5', 'two\nlines'],
    ]),
  ).toBe(`"a,b","say ""x""",,-3\r\n'=1+1,'-x,-1.5,"two\nlines"\r\n`)
})
