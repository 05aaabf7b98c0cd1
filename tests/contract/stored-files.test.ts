// What a source keeps in its folder, and how much of it.
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
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

test('SO43 several who write the same document at once all succeed, and nothing of them is left over', async () => {
  const dir = tempDir()
  const [first, second] = [createStoredFiles(dir), createStoredFiles(dir)]
  const write = (stored: typeof first) => [stored.writeText('note', 'x'), stored.writeBlob(sha256Of(blob('a')), blob('a'))]
  await Promise.all(Array.from({ length: 4 }, () => [...write(first), ...write(second)]).flat())
  expect([await first.readText('note'), await second.readBlob(sha256Of(blob('a')))]).toEqual(['x', blob('a')])
  expect([readdirSync(dir).sort(), readdirSync(join(dir, 'blobs'))]).toEqual([['blobs', 'note'], [sha256Of(blob('a'))]])
})

test('SO43 what a process left behind that was killed while it wrote goes with the next write', async () => {
  const dir = tempDir()
  mkdirSync(join(dir, 'blobs'))
  for (const name of ['note.7.new', 'note.new', 'blobs/a.8.new']) writeFileSync(join(dir, name), 'half')
  await createStoredFiles(dir).writeText('note', 'x')
  expect([readdirSync(dir).sort(), readdirSync(join(dir, 'blobs'))]).toEqual([['blobs', 'note'], []])
})

test('SO43 what cannot be removed of it keeps nothing from being written', async () => {
  const dir = tempDir()
  mkdirSync(join(dir, 'stuck.1.new')) // a folder is not removed as a file is
  const stored = createStoredFiles(dir)
  await stored.writeText('note', 'x')
  expect(await stored.readText('note')).toBe('x')
})
