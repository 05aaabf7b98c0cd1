// What an exec renderer sees, with folders that a server may not read to their end.
import { expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { execVersion } from '../../server/render/sandbox/exec-version.ts'
import { tempDir } from '../support/temp-dir.ts'

const folder = tempDir()
mkdirSync(join(folder, 'private'))
for (const name of ['a.pem', 'private/key', 'z.pem']) writeFileSync(join(folder, name), name)
symlinkSync('a.pem', join(folder, 'link'))

const errno = (code: string) => Object.assign(new Error(`${code}: it says`), { code })
type Call = 'readdir' | 'lstat' | 'readlink'
/** As node:fs, but for one call at one place. */
function versionWith(call?: Call, at = '', code = '') {
  const guarded =
    <T>(name: Call, look: (path: string) => Promise<T>) =>
    (path: string) =>
      name === call && path === join(folder, at) ? Promise.reject(errno(code)) : look(path)
  const folders = {
    readdir: guarded('readdir', (path) => readdir(path)),
    lstat: guarded('lstat', (path) => lstat(path)) as typeof lstat,
    readlink: guarded('readlink', (path) => readlink(path)) as typeof readlink,
  }
  return execVersion({ command: ['/usr/bin/cat'], mounts: [[folder, '/etc/ssl']] }, folders)
}

test.each([
  ['readdir', 'private', 'EACCES'],
  ['readdir', 'private', 'EPERM'],
  ['readdir', 'private', 'ENOENT'],
  ['readdir', '', 'EACCES'],
  ['lstat', 'private/key', 'EACCES'],
  ['lstat', 'a.pem', 'ENOENT'],
  ['readlink', 'link', 'ENOENT'],
] as const)('EX3 %s of %j answers %s: a part of the version, the same each time', async (call, at, code) => {
  const version = await versionWith(call, at, code)
  expect(version).toMatch(/^[0-9a-f]{16}$/)
  expect(version).not.toBe(await versionWith())
  expect(await versionWith(call, at, code)).toBe(version)
  if (at === '') return
  writeFileSync(join(folder, 'z.pem'), `${call} ${at} ${code} and more than that`) // what follows counts all the same
  expect(await versionWith(call, at, code)).not.toBe(version)
  writeFileSync(join(folder, 'z.pem'), 'z.pem')
})

test('EX3 a folder that may not be read is another one than one that is gone', async () => {
  expect(await versionWith('readdir', 'private', 'EACCES')).not.toBe(await versionWith('readdir', 'private', 'ENOENT'))
})

test('EX3 any other error is told', async () => {
  await expect(versionWith('lstat', 'a.pem', 'EIO')).rejects.toThrow('EIO')
})
