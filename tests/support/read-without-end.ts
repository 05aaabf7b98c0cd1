// A process of its own for wal-keeper.test.ts: reads the file given for so long at a time, one read after the other,
// until it is killed.
import { openSqlite } from '../../shared/adapters/sqlite.ts'

const [path = '', ms = '100'] = process.argv.slice(2)
const db = openSqlite(path, { readonly: true })
process.stdout.write('reading\n')
for (;;) {
  db.run('begin')
  db.query('select count(*) from events').get()
  Bun.sleepSync(Number(ms))
  db.run('commit')
}
