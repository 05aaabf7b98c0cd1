// A disk that is full, on a real file system of 2 MiB. Mounting one takes root; without it these tests are skipped, and
// say so.
import { afterAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { openGitSource } from '../../server/sources/git/open.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createTestAdmin, repositoryDoc } from '../support/admin-app.ts'
import { gitDeps } from '../support/git-source-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const MIB = 1024 * 1024
const disk = mkdtempSync(join(tmpdir(), 'skerry-disk-'))
const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=2m,mode=700', 'none', disk]).exitCode === 0
afterAll(() => {
  if (mounted) Bun.spawnSync(['umount', disk])
  rmSync(disk, { recursive: true, force: true })
})
if (!mounted) process.stderr.write('disk-full.test.ts: SKIPPED, because mounting a small file system takes root\n')

const filler = join(disk, 'filler')
/** Leaves less than a page. */
function fill(): void {
  const { bavail, bsize } = statfsSync(disk)
  writeFileSync(filler, Buffer.alloc(bavail * bsize))
}

test.skipIf(!mounted)('ST11 a full disk is told as 507 with what to do, loses nothing, and is forgotten once there is space', async () => {
  const store = await openSqliteStore(join(disk, 'fleet.sqlite'), { clock: systemClock, random: seededRandom(1) })
  const admin = await createTestAdmin({ store })
  const call = (name: string) => admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc(name)] })
  expect((await call('before')).status).toBe(200)
  fill()
  let refused = await call('r0')
  for (let n = 1; refused.status === 200 && n < 2_000; n++) refused = await call(`r${n}`)
  expect([refused.status, refused.body]).toMatchObject([
    507,
    { code: 'disk_full', title: expect.any(String), remedy: expect.stringContaining('Free some space') },
  ])
  expect((await store.getResource({ kind: 'Repository', project: 'default', name: 'before' }))?.name).toBe('before')
  rmSync(filler)
  expect((await call('after')).status).toBe(200)
  await store.close()
  const again = await openSqliteStore(join(disk, 'fleet.sqlite'), { clock: systemClock, random: seededRandom(1) })
  expect((await again.getResource({ kind: 'Repository', project: 'default', name: 'after' }))?.name).toBe('after')
  await again.close()
})

test.skipIf(!mounted)('ST11 content that finds no space leaves no piece of itself behind', async () => {
  const content = createFileContentStore(join(disk, 'content'), systemClock)
  const bytes = new Uint8Array(MIB).map((_, i) => i % 251)
  fill()
  await expect(content.put(bytes)).rejects.toMatchObject({ code: 'disk_full' })
  rmSync(filler)
  expect(await content.get(await content.put(bytes))).toEqual(bytes)
})

test.skipIf(!mounted)('ST11 a commit that finds no space is told as that, and fetched once there is space', async () => {
  const root = tempDir()
  const server = await createGitServer({ dir: root })
  try {
    const noise = Array.from({ length: 40 }, () => randomBytes(2_000).toString('base64')).join('\n')
    const commit = await server.commit({ 'web/a.yaml': `a: 1\n# ${noise.replaceAll('\n', '\n# ')}\n` }, 'first')
    const source = openGitSource({ url: server.url, ref: 'main', dir: join(disk, 'git'), secrets: null }, gitDeps())
    fill()
    await expect(source.fetch()).rejects.toMatchObject({ code: 'disk_full' })
    rmSync(filler)
    expect(await source.fetch()).toBe(commit)
  } finally {
    await server.stop()
  }
})
