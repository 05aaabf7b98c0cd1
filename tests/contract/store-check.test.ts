// What the doctor asks of a fleet store, and the content store's collection: the same of both databases.
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { examine } from '../../server/doctor/examine.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { findBrokenRules, inspectStore } from '../../server/store/upkeep/store-check.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { fillDataFolder } from '../support/data-folder-kit.ts'
import { POSTGRES, SQLITE, STORES } from '../support/stores.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(30_000)

const password = async () => null
const ORPHAN = "insert into confirmation_clusters (subject, confirmation_id, no, cluster) values ('prune/c-9/p/s', 'none', 1, 'c')"
const ASKED = `insert into confirmations (id, kind, subject, project, service, token, names, why, created_ms, group_key, members, last_member)
  values ('q', 'prune', 'clusters/q', 'p', 's', 't', '[]', 'w', 1, 'k', 2, 2)`
const BREAKS: Array<[what: string, code: string, statement: string]> = [
  [
    'a row without its owner',
    'row_without_owner',
    "update desired set cluster_id = 'c-9' where service = 'db' and cluster_id = 'c-2222222222222222'",
  ],
  ['reports without their name', 'row_without_owner', 'update status_rows set name_id = 99 where cluster_no = 1'],
  ['a cluster without its question', 'row_without_owner', ORPHAN],
  ['the clusters of a question', 'count_wrong', ASKED],
  ['a missing row', 'row_missing', "delete from agents where agent_id = 'a-1111111111111111'"],
  ['references', 'count_wrong', 'update states set refs = refs + 1'],
  ['a count', 'count_wrong', "update rollups set n = n + 1 where dimension = 'cluster'"],
  ['words', 'count_wrong', "update desired set sync = 'Synced', health = 'Degraded' where service = 'web'"],
  ['a number', 'number_wrong', "update counters set value = 0 where name = 'change'"],
  ['a range', 'integer_range', 'update clusters set epoch = 9007199254740992'],
]

describe.each(STORES)('on $name', (kind) => {
  test('DO2 a whole store breaks no rule, and what is broken is named', async () => {
    const place = await kind.place()
    await fillDataFolder(join(tempDir()), await place.open())
    const look = await inspectStore(kind === SQLITE ? { file: place.at } : { target: parsePostgresUrl(place.at), password })
    const broken = () => look.inOneState((db) => findBrokenRules(look, db, () => {}))
    expect(await broken()).toEqual([])
    const { writer, close } = await place.connect()
    for (const [what, code, statement] of BREAKS) {
      await writer
        .transaction()
        .execute(async (trx) => {
          await sql.raw(statement).execute(trx)
          const told = await findBrokenRules({ ...look, engine: kind === SQLITE ? 'sqlite' : 'postgres' }, trx, () => {})
          expect([what, told.map((found) => String(found.code))]).toEqual([what, expect.arrayContaining([code])])
          throw new Error('undo')
        })
        .catch((error: unknown) => {
          if (!(error instanceof Error && error.message === 'undo')) throw error
        })
    }
    expect(await broken()).toEqual([])
    await close()
    await look.close()
  })

  test('ST12 what desired rows and revisions refer to is known by name, and nothing else', async () => {
    const place = await kind.place()
    const dir = tempDir()
    const store = await place.open()
    await fillDataFolder(dir, store)
    const again = await place.open()
    const [cluster] = await again.listClusters()
    if (cluster === undefined) throw new Error('no cluster')
    const used = (await again.desiredInCluster(cluster.clusterId)).flatMap(({ setSha }) => setSha ?? [])
    const past = 'ab'.repeat(32)
    const { writer, close } = await place.connect()
    await sql`insert into revisions (project, service, number, commit_id, generation, digest, object_count, set_sha, rendered_ms)
      values ('shop', 'old', 1000, 'c', 1, 'd', 1, ${past}, 1)`.execute(writer)
    await close()
    expect(used.length).toBeGreaterThan(0)
    expect(await again.referencedContent([...used, past, 'cd'.repeat(32)])).toEqual(new Set([...used, past]))
    expect(await again.referencedContent([])).toEqual(new Set())
    await again.close()
  })
})

test('DO1 a data folder whose fleet store is a PostgreSQL database is looked through as well', async () => {
  const place = await POSTGRES.place()
  const dir = join(tempDir(), 'data')
  mkdirSync(dir, { mode: 0o700 })
  await fillDataFolder(dir, await place.open())
  const store = { target: parsePostgresUrl(place.at), password }
  const look = () => examine({ dataDir: dir, store }, { clock: systemClock, progress: () => {} })
  expect(await look()).toMatchObject({ store: 'postgres', fine: true, findings: [], facts: { clusters: 3, shardRows: 13 } })
  const { writer, close } = await place.connect()
  await sql`update desired set doc = replace(doc, 'c0ffee', 'decade') where service = 'db'`.execute(writer)
  await close()
  chmodSync(join(dir, 'keys', 'mac.key'), 0o644)
  expect((await look()).findings.map(({ code, count }) => [code, count])).toEqual([
    ['key_open', 1],
    ['shard_rows', 2],
  ])
})
