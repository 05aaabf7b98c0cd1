// BK6 with PostgreSQL's own tools: the database is dumped first, content and keys are backed up later; what was
// committed and collected in between is missed by nobody.
import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createBackup } from '../../server/backup/create.ts'
import { restoreBackup } from '../../server/backup/restore.ts'
import { examine } from '../../server/doctor/examine.ts'
import { collectContent } from '../../server/store/content/content-collect.ts'
import { contentFilesIn } from '../../server/store/content/content-files.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { DB, fillDataFolder, openDataFolderServer, WEB } from '../support/data-folder-kit.ts'
import { POSTGRES } from '../support/stores.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)
const HOUR = 60 * 60_000
const BIN = join(import.meta.dir, '../../build/postgres/bin')

async function run(name: string, ...args: string[]): Promise<void> {
  const child = Bun.spawn([join(BIN, name), ...args], { stdout: 'ignore', stderr: 'pipe', env: { PATH: '/usr/bin:/bin' } })
  const [err, code] = await Promise.all([new Response(child.stderr).text(), child.exited])
  if (code !== 0) throw new Error(`${name}: ${err}`)
}

test('BK6 a database that was dumped before the content was copied finds all of its content, though the server went on and collected', async () => {
  const base = tempDir()
  const [data, backup, restored, dump] = ['data', 'backup', 'restored', 'fleet.dump'].map((name) => join(base, name)) as [
    string,
    string,
    string,
    string,
  ]
  mkdirSync(data, { mode: 0o700 })
  const place = await POSTGRES.place()
  const clusters = await fillDataFolder(data, await place.open())
  await run('pg_dump', '--format=custom', `--file=${dump}`, place.at)

  // Twenty hours of other revisions: what the dump refers to, nobody else does.
  const server = await openDataFolderServer(data, await place.open())
  let nowMs = systemClock.nowMs()
  const clock = { ...systemClock, nowMs: () => nowMs }
  const files = contentFilesIn(join(data, 'content'), clock)
  let aside = 0
  for (let hour = 0; hour < 20; hour++) {
    nowMs += HOUR
    for (const service of [WEB, DB]) await server.publish(clusters, service, { a: `hour ${hour}` })
    aside += (await collectContent({ files, referenced: server.store.referencedContent, clock })).aside
  }
  expect(aside).toBeGreaterThan(1)
  const deps = { clock, progress: () => {}, signal: new AbortController().signal }
  await createBackup({ dataDir: data, to: backup, withoutKeys: false, postgres: true }, deps)
  await server.close()

  const other = await POSTGRES.place({ bare: true })
  await run('pg_restore', '--no-owner', `--dbname=${other.at}`, dump)
  const openFolder = (path: string) => {
    mkdirSync(path, { mode: 0o700 })
    return { path, place: null, unlock: () => {} }
  }
  await restoreBackup({ folder: backup, dataDir: restored, keysFrom: null, newKeys: false }, { ...deps, openFolder })
  const store = { target: parsePostgresUrl(other.at), password: async () => null }
  const report = await examine({ dataDir: restored, store }, { clock: systemClock, progress: () => {} })
  expect(report.findings.map(({ code }) => code)).toEqual(['shard_missing'])
  const again = await openDataFolderServer(restored, await other.open())
  for (const clusterId of clusters)
    for (const { setSha } of await again.store.desiredInCluster(clusterId))
      if (setSha !== null) expect(await again.content.get(setSha)).not.toBeNull()
  await again.close()
})
