// cr-sqlite draws the id of a new file from the system's random bytes, and the id travels in pages: here it follows
// from the seed. Set in the library's own class, so that the product has no seam for it.
import { createHash } from 'node:crypto'
import { type Database, openSqlite } from '../../shared/adapters/sqlite.ts'

let seed: number | null = null
let files = 0

/** From now on ids are those of a history; the first history patches the class. */
export function drawSiteIdsFrom(history: number): void {
  patch()
  seed = history
  files = 0
}

let patched = false

function patch(): void {
  if (patched) return
  patched = true
  const probe = openSqlite(':memory:')
  const database = Object.getPrototypeOf(probe) as Database
  probe.close()
  const { loadExtension } = database
  database.loadExtension = function (this: Database, ...args) {
    if (seed !== null && this.filename !== ':memory:')
      giveSiteId(this, createHash('sha256').update(`site ${seed} ${files}`).digest().subarray(0, 16))
    return Reflect.apply(loadExtension, this, args)
  }
}

/** As cr-sqlite itself does it, which keeps an id that it finds. */
function giveSiteId(db: Database, id: Uint8Array): void {
  if (db.query("SELECT 1 FROM sqlite_master WHERE name = 'crsql_site_id'").get() !== null) return
  files += 1
  db.transaction(() => {
    db.run('CREATE TABLE "crsql_site_id" (site_id BLOB NOT NULL, ordinal INTEGER PRIMARY KEY)')
    db.run('CREATE UNIQUE INDEX crsql_site_id_site_id ON "crsql_site_id" (site_id)')
    db.run('INSERT INTO crsql_site_id (site_id, ordinal) VALUES (?, 0)', [id])
  }).immediate()
}
