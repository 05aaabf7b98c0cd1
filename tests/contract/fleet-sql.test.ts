// Fleet queries on both databases: the same rows, only those that the caller may read, and an end for what takes too
// long.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { fillPostgres, fillSqlite } from '../../scripts/benchmarks/store-fleet.ts'
import type { Place, Scope } from '../../server/fleet/rights.ts'
import { createFleetSql } from '../../server/store/sql/fleet-sql.ts'
import type { SqlScopes } from '../../server/store/sql/sight.ts'
import { createSqliteRunner } from '../../server/store/sql/sqlite-runner.ts'
import { FLEET_VIEWS, VIEW_NAMES } from '../../server/store/sql/views.ts'
import type { Store } from '../../server/store/store.ts'
import { SAVED_QUERIES_MAX } from '../../shared/model/saved-queries.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { STORES, type StorePlace } from '../support/stores.ts'

setDefaultTimeout(60_000)

const ALL: Scope = [{ projects: null, services: null, clusters: null }]
const everything: SqlScopes = { services: ALL, clusters: ALL, repositories: ALL }
const only = (place: Partial<Place>): SqlScopes => {
  const scope = [{ projects: null, services: null, clusters: null, ...place }]
  return { services: scope, clusters: scope, repositories: scope }
}
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'answered',
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  )

describe.each(STORES)('$name', (kind) => {
  let place: StorePlace
  let store: Store
  beforeAll(async () => {
    place = await kind.place()
    const shape = { clusters: 12, objects: 600, nowMs: systemClock.nowMs() }
    await (kind.name === 'SQLite' ? fillSqlite(place.at, shape) : fillPostgres(place.at, shape))
    store = await place.open()
  })
  afterAll(() => store.close())
  const ask = (sql: string, scopes = everything, limit = 1_000) => store.fleetSql.answer({ sql, limit }, scopes)

  test('SQ1 each view answers with the columns that its documentation names', async () => {
    for (const name of VIEW_NAMES) {
      const { columns } = await ask(`select * from ${name} limit 3`)
      expect(columns).toEqual(Object.keys(FLEET_VIEWS[name]?.columns ?? {}))
      await ask(`select * from ${name}`, only({ projects: ['default'], clusters: { matchLabels: { env: 'prod' } } }))
    }
    const counted = await ask('select count(*) as n from objects')
    expect(counted.rows[0]?.[0]).toBeGreaterThan(100)
  })

  test('SQ1 joins, subqueries, aggregates and functions', async () => {
    const { columns, rows } = await ask(`
      with bad as (select cluster, count(*) as n from objects where health <> 'Healthy' group by cluster)
      select c.name, label(c.labels, 'env') as env, coalesce(bad.n, 0) as bad, time(c.joined_ms) as joined
      from clusters c left join bad on bad.cluster = c.name
      where c.name like 'C%' or c.name in (select cluster from placements where health = 'Healthy')
      order by bad desc, c.name limit 5`)
    expect(columns).toEqual(['name', 'env', 'bad', 'joined'])
    expect(rows).toHaveLength(5)
    const grouped = await ask(
      "select kind, count(*) filter (where health = 'Healthy') as well, count(distinct cluster) from objects group by kind having count(*) > 1 order by 2 desc, kind",
    )
    expect(grouped.columns).toEqual(['kind', 'well', 'count'])
    const odd = await ask(
      "select 7 / 0 as a, 7 / 2 as b, null as c, 'it''s' || '!' as d, case when 1 < 2 then 'x' end, instr('abc', 'c') union select 1, 2, 3, 'x', 'y', 9 order by b",
    )
    expect(odd.rows).toEqual([
      [1, 2, 3, 'x', 'y', 9],
      [null, 3, null, "it's!", 'x', 3],
    ])
    expect((await ask("select ago('1h') < now() and now() > 0 as yes")).rows).toEqual([[1]])
  })

  test('SQ2 rows are cut at the limit', async () => {
    const { rows, truncated } = await ask('select cluster, name from objects', everything, 7)
    expect([rows.length, truncated]).toEqual([7, true])
    expect((await ask('select 1', everything, 1)).truncated).toBe(false)
  })

  test('SQ3 each view shows a caller what it may read', async () => {
    const [[project = ''] = []] = (await ask('select project, count(*) from services group by project order by 2 desc')).rows as [[string]]
    const mine = only({ projects: [project] })
    for (const view of ['services', 'placements', 'objects', 'images', 'drifts', 'revisions', 'history'])
      expect([view, (await ask(`select distinct project from ${view} where project <> '${project}'`, mine)).rows]).toEqual([view, []])
    expect((await ask('select * from clusters', mine)).rows).toEqual([])
    expect((await ask('select count(*) from objects', only({ projects: [] }))).rows).toEqual([[0]])
    const inProd = only({ clusters: { matchLabels: { env: 'prod' } } })
    const prod = await ask("select name from clusters where label(labels, 'env') = 'prod' order by name")
    expect((await ask('select name from clusters order by name', inProd)).rows).toEqual(prod.rows)
    expect((await ask('select distinct cluster from objects order by cluster', inProd)).rows).toEqual(prod.rows)
    // AZ11: a service that is placed elsewhere does not exist for this caller.
    const placed = await ask(
      "select distinct project, service from placements where cluster in (select name from clusters where label(labels, 'env') = 'prod') order by 1, 2",
    )
    expect((await ask('select project, name from services order by 1, 2', inProd)).rows).toEqual(placed.rows)
    expect((await ask('select count(*) from services where error is not null', inProd)).rows).toEqual([[0]])
    expect((await ask('select * from revisions', only({ clusters: { matchLabels: { env: 'none' } } }))).rows).toEqual([])
  })

  test('SQ4 an error tells nothing of rows that the caller may not read', async () => {
    const huge = "sum(case when project = 'default' then 9223372036854775807 else 9223372036854775807 end)"
    const none = only({ projects: ['no-such'] })
    expect(await codeOf(ask(`select ${huge} from objects`, none))).toBe('answered')
    expect(
      await codeOf(ask('select cast(name as integer) + 1 from objects where abs(-9223372036854775807 - length(name)) > 0', none)),
    ).toBe('answered')
  })

  test.each([
    "select o.cluster, o.name from objects o where {o.cluster} = 'C' and o.health = 'Healthy'",
    "select o.name, p.health from objects o join placements p on p.cluster = o.cluster and p.service = o.service where {o.cluster} = 'C'",
    "select o.name, p.health from objects o left join placements p on p.cluster = o.cluster and p.service = o.service and {p.service} = 'S' where {o.cluster} = 'C'",
    "select c.name, p.service from clusters c left join placements p on p.cluster = c.name and {p.cluster} = 'C'",
    "select p.cluster, o.name from placements p left join objects o on o.cluster = p.cluster and o.service = p.service where {p.service} in ('S', 'none')",
    'select e.id, e.reason from events e where {e.at_ms} between 0 and 9000000000000000',
    "select h.at_ms, h.service from history h where {h.cluster} >= 'C' and {h.service} <> 'S'",
  ])('SQ4 conditions behind the fence change no answer of a limited caller: %s', async (template) => {
    const [[cluster = '', project = '', service = ''] = []] = (
      await ask("select cluster, project, service from objects where cluster <> '' order by cluster, service limit 1")
    ).rows as [[string, string, string]]
    const written = template.replaceAll("'C'", `'${cluster}'`).replaceAll("'S'", `'${service}'`)
    const clear = written.replaceAll(/[{}]/g, '')
    const disguised = written.replaceAll(/\{(\S+)\}/g, (_, column: string) =>
      column.endsWith('_ms') ? `(${column} + 0)` : `(${column} || '')`,
    )
    const sorted = ({ rows }: { rows: unknown[][] }) => rows.map((row) => JSON.stringify(row)).sort()
    const mine = { ...everything, services: only({ projects: [project] }).services }
    const [narrowed, whole] = [await ask(clear, mine, 5_000), await ask(disguised, mine, 5_000)]
    expect(sorted(narrowed)).toEqual(sorted(whole))
  })

  test('SQ9 saved queries: by name, replaced as a whole, up to their limit', async () => {
    const { savedQueries } = store
    const query = (name: string, sql = 'select 1') => ({ name, sql, about: 'one', savedBy: 'ann', updatedMs: 5 })
    expect(await savedQueries.save(query('web'))).toBe(true)
    expect(await savedQueries.save(query('apps'))).toBe(true)
    expect(await savedQueries.save({ ...query('web', 'select 2'), savedBy: 'ben', about: '' })).toBe(false)
    expect(await savedQueries.list()).toEqual([query('apps'), { ...query('web', 'select 2'), savedBy: 'ben', about: '' }])
    expect(await savedQueries.get('none')).toBeNull()
    expect([await savedQueries.delete('apps'), await savedQueries.delete('apps')]).toEqual([true, false])
    const entries = (await store.audit.list({ kind: 'SavedQuery', limit: 10 })).items.map(({ verb, name }) => `${verb} ${name}`)
    expect(entries).toEqual(['delete apps', 'update web', 'create apps', 'create web'])
    for (let n = 2; n <= SAVED_QUERIES_MAX; n++) await savedQueries.save(query(`q${n}`))
    expect(await codeOf(savedQueries.save(query('one-more')))).toBe('conflict')
    expect(await savedQueries.save(query('q2', 'select 3'))).toBe(false)
  })

  test('SQ6 what takes too long is ended, and the next query is answered', async () => {
    const connections = await place.connect()
    const endless = 'select count(*) from objects a, objects b, objects c, objects d where a.name <> d.name'
    const sql =
      kind.name === 'SQLite'
        ? createFleetSql({
            db: () => connections.reader,
            engine: 'sqlite',
            runner: createSqliteRunner({ path: place.at, clock: systemClock }),
            clock: systemClock,
            msMax: 300,
          })
        : createFleetSql({
            db: () => connections.reader,
            engine: 'postgres',
            runner: (await import('../../server/store/sql/connection-runner.ts')).createConnectionRunner(connections, systemClock),
            clock: systemClock,
            msMax: 300,
          })
    expect(await codeOf(sql.answer({ sql: endless, limit: 10 }, everything))).toBe('query_limit')
    expect((await sql.answer({ sql: 'select 1 as one', limit: 10 }, everything)).rows).toEqual([[1]])
    await sql.close()
    await connections.close()
  })
})

test('SQ6 what takes too much memory is ended', async () => {
  const place = await (STORES[0] as (typeof STORES)[0]).place()
  await fillSqlite(place.at, { clusters: 12, objects: 600, nowMs: systemClock.nowMs() })
  const connections = await place.connect()
  const runner = createSqliteRunner({ path: place.at, clock: systemClock, memoryMib: 200 })
  const sql = createFleetSql({ db: () => connections.reader, engine: 'sqlite', runner, clock: systemClock })
  const large = 'select length(group_concat(a.name || b.name || c.name)) from objects a, objects b, objects c'
  expect(await codeOf(sql.answer({ sql: large, limit: 10 }, everything))).toBe('query_limit')
  await sql.close()
  await connections.close()
})
