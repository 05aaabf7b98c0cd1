// A power cut while a file of cr-sqlite is made for the first time: its log ends between two of the tables. SQLite unloads an extension whose initialization
// failed, and closing the connection then ended the process, at every start. In processes of their own, because the first file that opens keeps the library.
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite } from '../../shared/adapters/sqlite.ts'

const ROOT = join(import.meta.dir, '../..')

const OPEN = {
  shard: `const { openShardFile } = await import('${join(ROOT, 'server/desired/shard-file.ts')}')
    const open = (path) => openShardFile({ path, suspect: true, newDbId: () => 'a'.repeat(32) }).rebuilt`,
  replica: `const { openCrdtDb } = await import('${join(ROOT, 'shared/adapters/crdt-db.ts')}')
    const open = (path) => { try { openCrdtDb(path) } catch (error) { return error.message } }`,
}

test.each(Object.keys(OPEN) as Array<keyof typeof OPEN>)(
  'CU2 a %s without the version of cr-sqlite is refused, and the process goes on',
  async (kind) => {
    const dir = mkdtempSync(join(tmpdir(), 'skerry-half-made-'))
    const path = join(dir, 'half-made.db')
    try {
      const made = openSqlite(path)
      made.run('CREATE TABLE crsql_master (key TEXT PRIMARY KEY, value ANY)')
      made.close()
      const script = `${OPEN[kind]}
        console.log(open(${JSON.stringify(path)}))
        Bun.gc(true)
        process.exit(0)`
      const child = Bun.spawn([process.execPath, '-e', script], { cwd: ROOT, stdout: 'pipe', stderr: 'pipe' })
      const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
      expect([await child.exited, err]).toEqual([0, ''])
      expect(out).toContain('cr-sqlite version 0')
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  },
)
