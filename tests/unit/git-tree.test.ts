// Links of commits that nobody means well with: thousands, over one another, through hundreds of folders.
import { expect, test } from 'bun:test'
import type { GitEntry, GitFolder, GitObjects } from '../../server/sources/git/objects.ts'
import { LINK_HOPS_MAX, TREE_STEPS_MAX } from '../../server/sources/git/places.ts'
import { createLinkCache, GitTree } from '../../server/sources/git/tree.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { naming } from '../support/naming.ts'
import { residentGrowth } from '../support/resident-growth.ts'

/** `depth` folders named d, and in the last of them these links and a file f. */
function treeOf(depth: number, links: Readonly<Record<string, string>>): GitTree {
  const last = new Map<string, GitEntry>([['f', { name: 'f', kind: 'file', oid: 'file' }]])
  const blobs = new Map<string, Uint8Array>([['file', new Uint8Array([65])]])
  for (const [name, target] of Object.entries(links)) {
    last.set(name, { name, kind: 'link', oid: `to ${target}` })
    blobs.set(`to ${target}`, new TextEncoder().encode(target))
  }
  const folders = new Map<string, GitFolder>([[`tree ${depth}`, last]])
  for (let at = 0; at < depth; at++) folders.set(`tree ${at}`, new Map([['d', { name: 'd', kind: 'folder', oid: `tree ${at + 1}` }]]))
  const objects: GitObjects = {
    folders: async (oids) => oids.map((oid) => folders.get(oid) ?? new Map()),
    blobs: async (wanted) => new Map(wanted.map(({ oid }) => [oid, blobs.get(oid) ?? new Uint8Array()])),
    bring: async () => {},
    text: async () => null,
  }
  return new GitTree({ root: 'tree 0', objects, links: createLinkCache(), openSubmodule: async () => null })
}
const numbered = (count: number, of: (n: number) => [string, string]) => Object.fromEntries(Array.from({ length: count }, (_, n) => of(n)))
const refusal = (act: Promise<unknown>): Promise<string> =>
  act.then(
    () => 'read',
    (error: unknown) => (error instanceof AppError && error.code === 'source_refused' ? String(error.data.detail) : `thrown: ${error}`),
  )
/** Links over one another, the last to f. */
const chain = (hops: number) => numbered(hops, (n) => [`c${n}`, n === hops - 1 ? 'f' : `c${n + 1}`])

test('SO22 SO41 thousands of links over 38 others at depth 400 are followed once each, and others have their turn', async () => {
  const tree = treeOf(400, { ...chain(38), ...numbered(2_000, (n) => [`l${n}`, 'c0']) })
  let turns = 0
  let waiting = true
  const turn = () => {
    turns += 1
    if (waiting) setImmediate(turn)
  }
  setImmediate(turn)
  const startMs = performance.now()
  const files = await tree.files('.', () => true)
  waiting = false
  expect(files.size).toBe(2_039)
  // Two minutes when each hop walked the whole way from the root; generous, as the machine may be busy.
  expect(performance.now() - startMs).toBeLessThan(8_000)
  expect(turns).toBeGreaterThan(2)
}, 30_000)

test('SO41 names of paths that one call looks at, all together', async () => {
  const tree = treeOf(
    400,
    numbered(9_000, (n) => [`l${n}`, 'f']),
  )
  const detail = naming('d', TREE_STEPS_MAX, 'links')
  expect(await refusal(tree.files('d', () => true))).toEqual(detail)
  expect(await refusal(tree.file(`${'d/'.repeat(400)}l0`))).toBe('read')
}, 30_000)

test('SO22 over 40 links, whichever of them was looked at before', async () => {
  const links = chain(LINK_HOPS_MAX + 1)
  for (const first of ['c0', 'c1', `c${LINK_HOPS_MAX}`]) {
    const tree = treeOf(2, links)
    await refusal(tree.file(`d/d/${first}`))
    expect(await refusal(tree.file('d/d/c1'))).toBe('read')
    expect(await refusal(tree.file('d/d/c0'))).toEqual(naming('d/d/c0', 'circular', 40))
  }
})

test('SO22 through links to folders, to files that are none, and to nothing', async () => {
  const tree = treeOf(2, { up: '..', self: '../d/./up/d/f', none: 'x', through: 'f/x' })
  expect((await tree.file('d/d/up/d/f'))?.oid).toBe('file')
  expect((await tree.file('d/d/self'))?.oid).toBe('file')
  expect((await tree.file('d/d/up/d/up/d/self'))?.oid).toBe('file')
  for (const path of ['d/d/none', 'd/d/through', 'd/d/f/x', 'd/d/self/x', 'd/d/none/x', 'd/x']) expect(await tree.file(path)).toBeNull()
  expect(await tree.id('d/d/up')).toBe(await tree.id('d'))
})

test('SO41 what links lead to is kept within bounds, however many there are and however long their texts', async () => {
  const [folderCount, linkCount] = [400, 100]
  const names = (count: number, letter: string) => Array.from({ length: count }, (_, n) => `${letter}${n}`)
  const folder = (oids: [string, GitEntry['kind'], string][]): GitFolder =>
    new Map(oids.map(([name, kind, oid]) => [name, { name, kind, oid }]))
  const objects: GitObjects = {
    folders: async (oids) =>
      oids.map((oid) =>
        oid === 'root'
          ? folder(names(folderCount, 'd').map((name) => [name, 'folder', name]))
          : folder([
              ['f', 'file', 'file'],
              ...names(linkCount, 'l').map((name) => [name, 'link', `${oid}/${name}`] as [string, 'link', string]),
            ]),
      ),
    blobs: async (wanted) =>
      new Map(wanted.map(({ oid }) => [oid, new TextEncoder().encode(oid.endsWith('/l0') ? 'f' : `${oid}${'x'.repeat(10_000)}`)])),
    bring: async () => {},
    text: async () => null,
  }
  const tree = new GitTree({ root: 'root', objects, links: createLinkCache(), openSubmodule: async () => null })
  const growth = residentGrowth()
  const files = await tree.files('.', (path) => /(^|\/)d\d+\/(l0)?$/.test(path))
  expect(files.size).toBe(folderCount)
  expect(growth() / 1024 / 1024).toBeLessThan(100)
  expect(await refusal(tree.file('d0/l1'))).toEqual(naming('d0/l1', '1024 characters'))
  expect((await tree.file('d0/l0'))?.oid).toBe('file')
}, 30_000)
