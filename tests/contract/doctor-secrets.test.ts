// The doctor finds what a fleet still has in clear, wherever a server keeps it.
import { expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadSealing } from '../../server/access/sealing.ts'
import { loadSecretBox } from '../../server/access/secret-box.ts'
import { changeBackupState } from '../../server/backup/archive/state.ts'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { encodeRenderedSet } from '../../server/desired/rendered-set.ts'
import { examine } from '../../server/doctor/examine.ts'
import { createCacheFiles } from '../../server/render/cache/files.ts'
import { renderToBytes } from '../../server/render/cache/results.ts'
import type { RenderedObjects } from '../../server/render/object-rows.ts'
import { contentPath } from '../../server/store/content/content-names.ts'
import { setDigest } from '../../shared/kube/canonical.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { fillDataFolder, openDataFolderServer, WEB } from '../support/data-folder-kit.ts'
import { serviceDoc } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const NOW: Clock = { ...systemClock, sleep: async () => {} }

async function start() {
  const dir = join(tempDir(), 'data')
  mkdirSync(dir, { mode: 0o700 })
  const clusters = await fillDataFolder(dir)
  return {
    dir,
    first: () => clusters[0] as ClusterId,
    look: () => examine({ dataDir: dir, store: null }, { clock: NOW, progress: () => {} }),
    async withServer(work: (server: Awaited<ReturnType<typeof openDataFolderServer>>) => Promise<void>) {
      const server = await openDataFolderServer(dir)
      await work(server)
      await server.close()
    },
  }
}

test('SL9 SL9a what is left in clear is found: content, shard files, kept renders, archives, and a fleet that does not seal', async () => {
  const { dir, first, look, withServer } = await start()
  rmSync(join(dir, 'keys', 'sealing.json'))
  expect((await look()).findings).toMatchObject([{ code: 'sealing_off', where: ['3 clusters'] }])
  loadSealing(join(dir, 'keys')).begin()
  expect((await look()).findings.map(({ code }) => code)).toEqual(['sealing_unfinished'])
  loadSealing(join(dir, 'keys')).isClean(Date.parse('2026-01-02T00:00:00Z'))
  expect((await look()).findings).toEqual([])
  const id = 'object/shop/old//Secret/default/db'
  const write = (doc: string, folder: string) => {
    const bytes = encodeRenderedSet(new Map([[id, doc]]))
    const sha256 = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
    mkdirSync(join(dir, 'content', sha256.slice(0, 2)), { recursive: true })
    writeFileSync(join(dir, folder, contentPath(sha256)), bytes)
    return contentPath(sha256)
  }
  const clear = write('{"apiVersion":"v1","data":{},"kind":"Secret","metadata":{"name":"db"}}', 'content')
  write('{"$sealed":{"k":"00000000","m":"m","v":1,"z":"z"},"apiVersion":"v1","kind":"Secret","metadata":{"name":"db"}}', 'content')
  expect((await look()).findings).toMatchObject([{ code: 'secret_clear', where: [`content/${clear} of service shop/old`] }])
  rmSync(join(dir, 'content', clear))
  const renders = createCacheFiles({ dir: join(dir, 'renders'), seal: loadSecretBox(join(dir, 'keys')), clock: NOW, bytesMax: 1_000_000 })
  const objects = new Map([[id, '{"apiVersion":"v1","kind":"Secret"}']])
  const kept: RenderedObjects = { kind: 'rendered', objects, digest: setDigest(objects), count: 1, hooks: 0, warnings: [] }
  await renders.put('a'.repeat(32), renderToBytes(kept, { result: kept, renderedFrom: null }), false)
  await renders.put('b'.repeat(32), renderToBytes(kept, { result: kept, renderedFrom: null }), true)
  expect((await look()).findings).toMatchObject([{ code: 'secret_clear', where: [`renders/${'a'.repeat(32)} of service shop/old`] }])
  rmSync(join(dir, 'renders'), { recursive: true })
  changeBackupState(dir, { into: 's3://backups', keptMs: ['2026-01-01', '2026-01-03'].map((day) => Date.parse(`${day}T00:00:00Z`)) })
  expect((await look()).findings).toMatchObject([{ code: 'backup_clear', count: 1, where: [expect.stringContaining('2026-01-01')] }])
  changeBackupState(dir, { keptMs: [] })
  await withServer(async ({ store, content, shards }) => {
    const rows = new Map([['object/shop/web//Secret/default/db', '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db"}}']])
    const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(rows)))
    await publishRevisions({ store, content, shards }, [{ clusterId: first(), ...WEB, doc, placedBy: '{}', objects: rows }])
  })
  const places = (await look()).findings.flatMap(({ code, where }) => (code === 'secret_clear' ? where : []))
  expect(places.join()).toContain(`${first()}, service shop/web`)
})
