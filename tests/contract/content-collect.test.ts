// ST12 with a real folder, store and publisher: what is desired stays, what nobody needs goes, and a publication that
// took long refers to nothing that went.
import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { collectContent } from '../../server/store/content/content-collect.ts'
import { contentFilesIn } from '../../server/store/content/content-files.ts'
import { contentPath } from '../../server/store/content/content-names.ts'
import { contentStoreOn } from '../../server/store/content/file-content-store.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
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

test('ST12 three servers that put and collect in one folder, and are killed at any moment: what is referred to is always there, and in the end nothing else', async () => {
  const dir = tempDir()
  const kept = 30
  const files = contentFilesIn(dir, systemClock)
  const content = contentStoreOn(files)
  const bytes = Array.from({ length: kept }, (_, n) => new TextEncoder().encode(`kept ${n}`))
  for (const each of bytes) await content.put(each)
  const references = new Set(bytes.map(sha256Hex))
  const script = join(import.meta.dir, '../support/collect-until-killed.ts')
  const start = async (name: string) => {
    const child = Bun.spawn([process.execPath, script, dir, String(kept), name], { stdout: 'pipe', stderr: 'inherit' })
    await child.stdout.getReader().read()
    return child
  }
  const random = seededRandom(5)
  const children = await Promise.all(['a', 'b', 'c'].map(start))
  let looks = 0
  for (let round = 0; round < 8; round++) {
    for (const untilMs = systemClock.nowMs() + 150 + random() * 300; systemClock.nowMs() < untilMs; looks++)
      for (const sha of references) expect(await content.get(sha)).not.toBeNull()
    const victim = round % children.length
    children[victim]?.kill('SIGKILL')
    await children[victim]?.exited
    children[victim] = await start(`a${round}`)
  }
  for (const child of children) {
    child.kill('SIGKILL')
    await child.exited
  }
  expect(looks).toBeGreaterThan(8)
  let nowMs = systemClock.nowMs() + 10_000 * HOUR // past all times that the children gave to files
  let removed = 0
  for (let round = 0; round < 3; round++) {
    const referenced = async (names: readonly string[]) => new Set(names.filter((sha) => references.has(sha)))
    removed += (
      await collectContent({
        files: contentFilesIn(dir, { ...systemClock, nowMs: () => nowMs }),
        referenced,
        clock: { nowMs: () => nowMs },
      })
    ).removed
    nowMs += 25 * HOUR
  }
  expect(removed).toBeGreaterThan(20)
  const left: string[] = []
  for (const folder of await files.list('')) for (const name of await files.list(folder)) left.push(folder + name)
  expect(left.sort()).toEqual([...references].sort())
}, 60_000)
