// The folder in memory that the property of ST12 runs on does what a real one does.
import { describe, expect, test } from 'bun:test'
import { type ContentFiles, contentFilesIn } from '../../server/store/content/content-files.ts'
import { createMemoryFolder } from '../support/memory-content-files.ts'
import { tempDir } from '../support/temp-dir.ts'

const [ONE, TWO] = [new Uint8Array([1]), new Uint8Array([2, 2])]
let nowMs = 1_700_000_000_000
const FOLDERS: Record<string, () => ContentFiles> = {
  memory: () =>
    createMemoryFolder().files(
      () => nowMs,
      async () => {},
    ),
  disk: () => contentFilesIn(tempDir(), { nowMs: () => nowMs, monotonicMs: () => nowMs, sleep: async () => {} }),
}

describe.each(Object.entries(FOLDERS))('ST12 a folder (%s)', (_, create) => {
  test('knows names, bytes and times', async () => {
    const files = create()
    expect([await files.list(''), await files.list('ab'), await files.read('ab/x'), await files.stat('ab/x')]).toEqual([[], [], null, null])
    await files.writeNew('ab/x', ONE)
    await expect(files.writeNew('ab/x', TWO)).rejects.toThrow()
    await files.sync('ab')
    expect([await files.list(''), await files.list('ab'), await files.read('ab/x')]).toEqual([['ab'], ['x'], ONE])
    expect(await files.stat('ab/x')).toEqual({ mtimeMs: nowMs, bytes: 1 })
    nowMs += 5_000
    expect([await files.touch('ab/x'), await files.touch('ab/none')]).toEqual([true, false])
    expect((await files.stat('ab/x'))?.mtimeMs).toBe(nowMs)
  })

  test('renames over what is there, links only beside it, and keeps two names of one file', async () => {
    const files = create()
    await files.writeNew('ab/x', ONE)
    await files.writeNew('ab/y', TWO)
    expect([await files.link('ab/x', 'ab/y'), await files.link('ab/none', 'ab/z')]).toEqual(['exists', 'missing'])
    expect([await files.rename('ab/x', 'ab/y'), await files.rename('ab/x', 'ab/y')]).toEqual([true, false])
    expect([await files.read('ab/y'), await files.list('ab')]).toEqual([ONE, ['y']])
    expect(await files.link('ab/y', 'ab/z')).toBe('linked')
    expect(await files.rename('ab/y', 'ab/z')).toBe(true)
    expect((await files.list('ab')).sort()).toEqual(['y', 'z'])
    nowMs += 5_000
    await files.touch('ab/y')
    expect((await files.stat('ab/z'))?.mtimeMs).toBe(nowMs)
    await files.remove('ab/y')
    await files.remove('ab/none')
    expect(await files.list('ab')).toEqual(['z'])
  })
})
