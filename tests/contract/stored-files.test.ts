// What a source keeps in its folder, and how much of it.
import { expect, test } from 'bun:test'
import { readdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { createStoredFiles, sha256Of } from '../../server/sources/stored/files.ts'
import { tempDir } from '../support/temp-dir.ts'

const blob = (letter: string) => new TextEncoder().encode(letter.repeat(100))

test('SO38 beyond the limit blobs go that were not used since the start, the oldest first', async () => {
  const dir = tempDir()
  const before = createStoredFiles(dir, 300)
  for (const [age, letter] of ['a', 'b', 'c'].entries()) {
    await before.writeBlob(sha256Of(blob(letter)), blob(letter))
    utimesSync(join(dir, 'blobs', sha256Of(blob(letter))), 1_000 + age, 1_000 + age)
  }
  const held = createStoredFiles(dir, 300)
  expect(await held.readBlob(sha256Of(blob('a')))).toEqual(blob('a'))
  await held.writeBlob(sha256Of(blob('d')), blob('d'))
  expect(readdirSync(join(dir, 'blobs')).sort()).toEqual(['a', 'c', 'd'].map((letter) => sha256Of(blob(letter))).sort())
  for (const letter of ['c', 'e', 'f']) await held.writeBlob(sha256Of(blob(letter)), blob(letter))
  expect(readdirSync(join(dir, 'blobs')).length).toBe(5) // all of them are in use
})

test('SO38 documents are listed the newest first, and a name that is not there is null', async () => {
  const dir = tempDir()
  const stored = createStoredFiles(dir)
  for (const [age, name] of ['index-b', 'index-a', 'head'].entries()) {
    await stored.writeText(name, name)
    utimesSync(join(dir, name), 1_000 + age, 1_000 + age)
  }
  expect(await stored.names('index-')).toEqual(['index-a', 'index-b'])
  await stored.remove('index-a')
  expect([await stored.readText('index-a'), await stored.readText('index-b'), await stored.hasBlob('0'.repeat(64))]).toEqual([
    null,
    'index-b',
    false,
  ])
})
