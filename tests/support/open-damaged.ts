// A process that opens damaged files of cr-sqlite, as native code may end it: `bun open-damaged.ts FOLDER`. It prints
// one JSON line for each case.
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openShardFile } from '../../server/desired/shard-file.ts'
import { openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import { type Database, isDamage, openSqlite } from '../../shared/adapters/sqlite.ts'
import { newId } from './sync-kit.ts'

/** What a plain connection does to a whole file, by name. */
export const DAMAGES: Record<string, (db: Database) => unknown> = {
  'a power loss inside the first transaction of cr-sqlite': (db) => {
    for (const table of ['desired', 'desired__crsql_clock', 'desired__crsql_pks', 'crsql_site_id', 'tx_log', 'cluster_ordinal', 'meta'])
      db.run(`DROP TABLE ${table}`)
    db.run('DELETE FROM crsql_master')
  },
  'no site id': (db) => db.run('DELETE FROM crsql_site_id'),
  'a short site id': (db) => db.run("UPDATE crsql_site_id SET site_id = x'01'"),
  'no version of cr-sqlite': (db) => db.run('DELETE FROM crsql_master'),
  'a newer version of cr-sqlite': (db) => db.run('UPDATE crsql_master SET value = 170000'),
  'a setting of cr-sqlite': (db) => db.run("INSERT INTO crsql_master VALUES ('config.merge-equal-values', 'x')"),
  'no clock table': (db) => db.run('DROP TABLE desired__crsql_clock'),
  'no key table': (db) => db.run('DROP TABLE desired__crsql_pks'),
  'no trigger': (db) => db.run('DROP TRIGGER desired__crsql_itrig'),
  'another table of that name': (db) => {
    db.run('DROP TABLE crsql_site_id')
    db.run('CREATE TABLE crsql_site_id (site_id TEXT, ordinal INTEGER PRIMARY KEY)')
    db.run('CREATE UNIQUE INDEX crsql_site_id_site_id ON "crsql_site_id" (site_id)')
    db.run("INSERT INTO crsql_site_id VALUES ('0123456789abcdef', 0)")
  },
  'the greatest version': (db) => db.run("INSERT INTO desired__crsql_clock VALUES (1, 'doc', 1, 9223372036854775807, 0, 0)"),
}

const LOG_HEADER_BYTES = 32
const LOG_FRAME_BYTES = 4_096 + 24

/** As a power loss leaves a file while cr-sqlite creates its tables: the log ends after each of its frames in turn. One
 *  of each kind. */
function cutCreations(dir: string): Array<{ tables: string[]; make: (path: string) => void }> {
  const created = join(dir, 'created.db')
  const { db, close } = openCrdtDb(created)
  db.run('PRAGMA wal_autocheckpoint = 0')
  const [main, log] = [readFileSync(created), readFileSync(`${created}-wal`)]
  close()
  const found = new Map<string, (path: string) => void>()
  for (let end = LOG_HEADER_BYTES + LOG_FRAME_BYTES; end < log.byteLength; end += LOG_FRAME_BYTES) {
    const make = (path: string) => {
      writeFileSync(path, main)
      writeFileSync(`${path}-wal`, log.subarray(0, end))
      openSqlite(path).close()
    }
    const sample = join(dir, 'sample.db')
    make(sample)
    const cut = openSqlite(sample)
    const tables = cut.query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all()
    cut.close()
    const key = tables.map(({ name }) => name).join(' ')
    if (key !== '') found.set(key, make)
  }
  return [...found].map(([key, make]) => ({ tables: key.split(' '), make }))
}

const [folder] = import.meta.main ? process.argv.slice(2) : []
if (folder !== undefined) {
  const whole = join(folder, 'whole.db')
  openShardFile({ path: whole, suspect: false, newDbId: newId }).file.close()
  const cases: Array<[string, (path: string) => void]> = [
    ['nothing', () => {}],
    ['an empty file', (path) => writeFileSync(path, '')],
    ...Object.entries(DAMAGES).map(([name, damage]): [string, (path: string) => void] => [
      name,
      (path) => {
        const db = openSqlite(path)
        damage(db)
        db.close()
      },
    ]),
  ]
  for (const { tables, make } of cutCreations(folder)) cases.push([`a log cut when it had ${tables.join(', ')}`, make])
  for (const [index, [name, damage]] of cases.entries()) {
    const path = join(folder, `${index}.db`)
    cpSync(whole, path)
    damage(path)
    const answer = { name, replica: asReplica(path), shard: asShard(path) }
    process.stdout.write(`${JSON.stringify(answer)}\n`)
  }
  Bun.gc(true)
}

/** Whether it is refused before native code is loaded on it. */
function asReplica(path: string): 'opened' | 'refused' {
  const copy = `${path}.replica`
  cpSync(path, copy)
  try {
    openCrdtDb(copy).close()
    return 'opened'
  } catch (error) {
    if (!isDamage(error)) throw error
    return 'refused'
  }
}

/** After a clean stop, which is when least of it is checked; then once more. */
function asShard(path: string): Array<'kept' | 'rebuilt'> {
  return [0, 1].map(() => {
    const { file, rebuilt } = openShardFile({ path, suspect: false, newDbId: newId })
    file.close()
    return rebuilt === null ? 'kept' : 'rebuilt'
  })
}
