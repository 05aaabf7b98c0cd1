import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

const folder = mkdtempSync(join(tmpdir(), 'skerry-content-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const content = createFileContentStore(folder, systemClock)
const bytes = new TextEncoder().encode('hello')
const sha = sha256Hex(bytes)
const path = join(folder, sha.slice(0, 2), sha.slice(2))

test('ST10 content is found by its hash, and putting it again changes nothing', async () => {
  expect(await content.get(sha)).toBeNull()
  expect(await content.put(bytes)).toBe(sha)
  expect(await content.put(bytes)).toBe(sha)
  expect(await content.get(sha)).toEqual(bytes)
  expect(readdirSync(join(folder, sha.slice(0, 2)))).toEqual([sha.slice(2)])
})

test('ST10 content that does not hash to its name is missing, and is written again', async () => {
  await content.put(bytes)
  writeFileSync(path, 'jello')
  expect(await content.get(sha)).toBeNull()
  await content.put(bytes)
  expect(await content.get(sha)).toEqual(bytes)
})

test('ST10 many writers of the same bytes at once leave one file', async () => {
  const other = new TextEncoder().encode('other')
  const names = await Promise.all(Array.from({ length: 20 }, () => content.put(other)))
  expect(new Set(names).size).toBe(1)
  expect(await content.get(sha256Hex(other))).toEqual(other)
  expect(readdirSync(join(folder, sha256Hex(other).slice(0, 2))).filter((name) => name.includes('.'))).toEqual([])
})

test.each(['', '..', '../../etc/passwd', sha.toUpperCase()])('ST10 %p names nothing', async (name) =>
  expect(await content.get(name)).toBeNull(),
)
