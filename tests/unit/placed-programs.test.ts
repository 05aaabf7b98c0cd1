// Paths of programs that go away, become something else or may not be looked at between two runs.
import { expect, test } from 'bun:test'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasFolders } from '../../server/render/sandbox/exec-version.ts'
import { createPrograms } from '../../server/render/sandbox/programs.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { tempDir } from '../support/temp-dir.ts'

function kit() {
  const dir = tempDir()
  mkdirSync(join(dir, 'data'))
  const file = join(dir, 'data', 'words')
  writeFileSync(file, 'a')
  const entry = { command: '/usr/bin/cat', args: [], readOnly: [file], inputs: [] }
  const programs = createPrograms({ renderers: new Map([['cat', entry]]), searchPath: [] }, process.execPath)
  return { dir, file, place: () => programs.place({ exec: 'cat' }) }
}
const refusal = (act: () => unknown): string => {
  try {
    return `no error: ${JSON.stringify(act())}`
  } catch (error) {
    return error instanceof AppError ? `${error.code}: ${error.data.detail}` : `no AppError: ${error}`
  }
}

const TROUBLES: ReadonlyArray<readonly [name: string, make: (folder: string, file: string) => void]> = [
  ['a file that went away', (_, file) => rmSync(file)],
  ['a folder that went away', (folder) => rmSync(folder, { recursive: true })],
  [
    'a file where its folder was',
    (folder) => {
      rmSync(folder, { recursive: true })
      writeFileSync(folder, '')
    },
  ],
  [
    'a link to itself',
    (_, file) => {
      rmSync(file)
      symlinkSync(file, file)
    },
  ],
]
test.each(TROUBLES)('EX3 SB16 %s is a reason, and what is there again is placed again', (_, make) => {
  const { dir, file, place } = kit()
  const first = place()
  expect([place() === first, hasFolders(first)]).toEqual([true, false])
  renameSync(join(dir, 'data'), join(dir, 'kept'))
  mkdirSync(join(dir, 'data'))
  writeFileSync(file, 'a')
  make(join(dir, 'data'), file)
  expect(refusal(place)).toMatch(/^renderer_missing: .*(ENOENT|ENOTDIR|ELOOP|no such file|not a directory|symbolic link)/i)
  expect(hasFolders(first)).toBe(true) // who knows: it is looked at again
  rmSync(join(dir, 'data'), { recursive: true, force: true })
  renameSync(join(dir, 'kept'), join(dir, 'data'))
  expect(place().mounts).toEqual(first.mounts)
})
