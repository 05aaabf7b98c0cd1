// A folder of this machine as a source: the same files as a commit of it, and the same refusals.
import { beforeEach, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createFolderTree } from '../../server/sources/folder-tree.ts'
import { SOURCE_FILE_BYTES_MAX } from '../../server/sources/source.ts'
import { tempDir } from '../support/temp-dir.ts'

let root: string
beforeEach(() => {
  root = join(tempDir(), 'tree')
  for (const folder of ['.git', 'apps/web/deep', 'shared']) mkdirSync(join(root, folder), { recursive: true })
  for (const path of ['.git/config', 'apps/web/a.yaml', 'apps/web/b.txt', 'apps/web/deep/c.yaml', 'shared/d.yaml'])
    writeFileSync(join(root, path), path)
  writeFileSync(join(root, '../secret.yaml'), 'secret')
})
const all = () => true
const text = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes)
const names = async (path: string, wanted: (path: string) => boolean = all) => [
  ...(await createFolderTree(root).files(path, wanted)).keys(),
]

test('RH5 files, folders and ids; .git is no part of it', async () => {
  const tree = createFolderTree(root)
  expect(await names('.')).toEqual(['apps/web/a.yaml', 'apps/web/b.txt', 'apps/web/deep/c.yaml', 'shared/d.yaml'])
  expect(await names('apps//web/', (path) => path.endsWith('.yaml'))).toEqual(['apps/web/a.yaml'])
  expect(await names('none')).toEqual([])
  expect((await tree.list('apps/web'))?.map(({ name, kind }) => `${kind} ${name}`)).toEqual(['file a.yaml', 'file b.txt', 'folder deep'])
  expect([await tree.list('apps/web/a.yaml'), await tree.list('none'), await tree.list('.git')]).toEqual([null, null, null])
  expect([await tree.file('apps'), await tree.file('.git/config'), await tree.file('apps/web/a.yaml/x')]).toEqual([null, null, null])
  expect(text((await tree.file('./apps/web/a.yaml'))?.bytes)).toBe('apps/web/a.yaml')
  const before = [await tree.id('apps'), await tree.id('apps/web/a.yaml'), await tree.id('shared'), await tree.id('none')]
  writeFileSync(join(root, 'apps/web/a.yaml'), 'other')
  const after = [await tree.id('apps'), await tree.id('apps/web/a.yaml'), await tree.id('shared'), await tree.id('none')]
  expect(after.map((id, at) => id === before[at])).toEqual([false, false, true, true])
})

test('RH5 links inside the folder are what they lead to', async () => {
  symlinkSync('../../shared', join(root, 'apps/web/linked'))
  symlinkSync('../../shared/d.yaml', join(root, 'apps/web/e.yaml'))
  const tree = createFolderTree(root)
  expect(await names('apps/web')).toEqual([
    'apps/web/a.yaml',
    'apps/web/b.txt',
    'apps/web/deep/c.yaml',
    'apps/web/e.yaml',
    'apps/web/linked/d.yaml',
  ])
  expect(text((await tree.file('apps/web/linked/d.yaml'))?.bytes)).toBe('shared/d.yaml')
  expect((await tree.list('apps/web'))?.find(({ name }) => name === 'e.yaml')?.kind).toBe('link')
})

test.each<[string, () => void, RegExp]>([
  ['a link out of it', () => symlinkSync('../../../secret.yaml', join(root, 'apps/web/x.yaml')), /apps\/web\/x\.yaml .*leads out/],
  ['an absolute link', () => symlinkSync('/etc/hostname', join(root, 'apps/web/x.yaml')), /leads out/],
  [
    'a link over a link out of it',
    () => [symlinkSync('../..', join(root, 'shared/up')), symlinkSync('../../shared/up/secret.yaml', join(root, 'apps/web/x.yaml'))],
    /leads out/,
  ],
  ['a link to itself', () => symlinkSync('x.yaml', join(root, 'apps/web/x.yaml')), /circular link/],
  ['a folder that holds itself', () => symlinkSync('..', join(root, 'apps/web/up')), /circular link/],
  ['a link to nothing', () => symlinkSync('none', join(root, 'apps/web/x.yaml')), /broken link/],
  ['a pipe', () => Bun.spawnSync(['mkfifo', join(root, 'apps/web/x.yaml')]), /neither a file/],
  [
    'an LFS pointer',
    () => writeFileSync(join(root, 'apps/web/x.yaml'), 'version https://git-lfs.github.com/spec/v1\noid sha256:0\n'),
    /x\.yaml .*Git LFS pointer/,
  ],
  [
    'a file past the limit',
    () => [writeFileSync(join(root, 'apps/web/x.yaml'), ''), truncateSync(join(root, 'apps/web/x.yaml'), SOURCE_FILE_BYTES_MAX + 1)],
    /\b16 MiB/,
  ],
  [
    'more than all files may be',
    () =>
      ['1', '2', '3', '4', '5'].map((n) => {
        writeFileSync(join(root, `apps/web/${n}`), '')
        return truncateSync(join(root, `apps/web/${n}`), SOURCE_FILE_BYTES_MAX)
      }),
    /\b64 MiB/,
  ],
])('RH5 %s is refused by name', async (_, make, message) => {
  make()
  await expect(createFolderTree(root).files('apps/web', all)).rejects.toMatchObject({
    code: 'source_refused',
    message: expect.stringMatching(message),
  })
})

test('RH5 a path that leads out is refused, also where a name would lead back', async () => {
  for (const path of ['..', '../secret.yaml', 'apps/../../secret.yaml'])
    await expect(createFolderTree(root).file(path)).rejects.toMatchObject({ code: 'source_refused' })
})
