// ST12 with a real folder, store and publisher: what is desired stays, what nobody needs goes, and a publication that took long refers to nothing that went.
import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { collectContent } from '../../server/store/content-collect.ts'
import { contentFilesIn } from '../../server/store/content-files.ts'
import { contentPath } from '../../server/store/content-names.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { fillDataFolder, openDataFolderServer, WEB } from '../support/data-folder-kit.ts'
import { objectRows, serviceDoc } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const HOUR = 60 * 60_000

test('ST12 sets that were replaced go after their day; what clusters shall have stays', async () => {
  const dir = tempDir()
  const clusters = await fillDataFolder(dir)
  const server = await openDataFolderServer(dir)
  let nowMs = systemClock.nowMs()
  const files = contentFilesIn(join(dir, 'content'), { ...systemClock, nowMs: () => nowMs })
  const collect = () => collectContent({ files, referenced: server.store.referencedContent, clock: { nowMs: () => nowMs } })
  const used = async () => {
    const shas = new Set<string>()
    for (const id of clusters) for (const { setSha } of await server.store.desiredInCluster(id)) if (setSha !== null) shas.add(setSha)
    return shas
  }
  const replaced = [...(await used())]
  for (const service of ['web', 'db']) await server.publish(clusters, { project: 'shop', service }, { a: 'newer' })
  expect(await collect()).toMatchObject({ aside: 0, removed: 0 })
  nowMs += 2 * HOUR
  expect((await collect()).aside).toBeGreaterThanOrEqual(replaced.length)
  for (const sha of [...replaced, ...(await used())]) expect(await server.content.get(sha)).not.toBeNull()
  nowMs += 25 * HOUR
  expect((await collect()).removed).toBeGreaterThanOrEqual(replaced.length)
  for (const sha of replaced) expect(await server.content.get(sha)).toBeNull()
  for (const sha of await used()) expect(await server.content.get(sha)).not.toBeNull()
  await server.close()
})

test('ST12 a set that went between the moment it was put and the commit that refers to it is put again', async () => {
  const dir = tempDir()
  const [clusterId] = await fillDataFolder(dir)
  if (clusterId === undefined) throw new Error('no cluster')
  const { store, content, shards, close } = await openDataFolderServer(dir)
  const objects = objectRows(WEB, { a: 'late' })
  const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
  const put: string[] = []
  const slow = {
    ...content,
    put: async (bytes: Uint8Array) => {
      const sha = await content.put(bytes)
      if (put.length === 0) rmSync(join(dir, 'content', contentPath(sha))) // hours later
      put.push(sha)
      return sha
    },
  }
  await publishRevisions({ store, content: slow, shards }, [{ clusterId, ...WEB, doc, placedBy: '{}', objects }])
  expect(put.length).toBe(2)
  const row = (await store.desiredInCluster(clusterId)).find(({ service }) => service === 'web')
  expect(row?.setSha).toBe(put[0] ?? '')
  expect(await content.get(put[0] ?? '')).not.toBeNull()
  await close()
})
