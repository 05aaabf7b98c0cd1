// What every Source keeps to, whatever is behind it.
import { expect, test } from 'bun:test'
import type { OpenedSource, Source, SourcePick } from '../../server/sources/source.ts'
import { AppError } from '../../shared/runtime/error.ts'

export interface SourceKit {
  /** A new Source over the same folder, as after a restart. */
  open(): Source
  pick: SourcePick
  /** Makes `value` what the file at `path` (from the opened root) holds in a new revision. */
  publish(value: string): Promise<void>
  path: string
  /** The other side is away, or there again. */
  away(isAway: boolean): void | Promise<void>
  /** What it answered since the last call. */
  requests(): number
}

const refusalOf = async (asked: Promise<unknown>): Promise<string> => {
  const error = await asked.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  return error instanceof AppError ? error.code : `no AppError: ${error}`
}

async function textOf({ tree, root }: OpenedSource, path: string): Promise<string | null> {
  const file = await tree.file(root === '' ? path : `${root}/${path}`)
  return file === null ? null : new TextDecoder().decode(file.bytes)
}

export function describeSource(create: () => Promise<SourceKit>): void {
  test('SO9 a revision stays what it was when there is a newer one, and the head is the newer one', async () => {
    const kit = await create()
    await kit.publish('one')
    const source = kit.open()
    const first = await source.fetch()
    expect(await source.has(first)).toBe(true)
    const opened = await source.open(first, kit.pick)
    expect(await textOf(opened, kit.path)).toContain('one')
    expect(opened.version.length).toBeLessThanOrEqual(200)
    await kit.publish('two')
    const second = await source.head()
    expect(second).not.toBe(first)
    expect(await source.fetch()).toBe(second)
    expect(await textOf(await source.open(second, kit.pick), kit.path)).toContain('two')
    expect(await textOf(await source.open(first, kit.pick), kit.path)).toContain('one')
  })

  test('SO9 without news the head stays', async () => {
    const kit = await create()
    await kit.publish('one')
    const source = kit.open()
    const first = await source.fetch()
    expect([await source.head(), await source.fetch(), await kit.open().head()]).toEqual([first, first, first])
  })

  test('SO10 while the other side is away what was read stays readable, after a restart as well, and it is said', async () => {
    const kit = await create()
    await kit.publish('one')
    const source = kit.open()
    const revision = await source.fetch()
    const opened = await source.open(revision, kit.pick)
    const text = await textOf(opened, kit.path) // a partial clone has what was read, and no more
    await kit.away(true)
    for (const held of [source, kit.open()]) {
      expect(await held.has(revision)).toBe(true)
      const again = await held.open(revision, kit.pick)
      expect([await textOf(again, kit.path), again.version]).toEqual([text, opened.version])
      expect(await again.tree.id(again.root)).toBe(await opened.tree.id(opened.root))
      expect(await refusalOf(held.fetch())).toMatch(/^(source|git)_unreachable$/)
      expect(await refusalOf(held.head())).toMatch(/^(source|git)_unreachable$/)
    }
    await kit.away(false)
    expect(await source.head()).toBe(revision)
  })

  test('SO10 what was read once is read again without a request', async () => {
    const kit = await create()
    await kit.publish('one')
    const source = kit.open()
    const revision = await source.fetch()
    await source.open(revision, kit.pick)
    kit.requests()
    for (const held of [source, kit.open()]) {
      const opened = await held.open(revision, kit.pick)
      await opened.tree.files(opened.root, () => true)
      expect(await held.has(revision)).toBe(true)
    }
    expect(kit.requests()).toBe(0)
  })

  test('SO11 ids name content: equal for equal bytes, other for others, null for nothing', async () => {
    const kit = await create()
    await kit.publish('one')
    const source = kit.open()
    const first = await source.open(await source.fetch(), kit.pick)
    await kit.publish('two')
    const second = await source.open(await source.fetch(), kit.pick)
    await kit.publish('one')
    const third = await source.open(await source.fetch(), kit.pick)
    const idOf = ({ tree, root }: OpenedSource, path: string) => tree.id(root === '' ? path : `${root}/${path}`)
    expect(await idOf(first, kit.path)).toBe(await idOf(third, kit.path))
    expect(await idOf(first, kit.path)).not.toBe(await idOf(second, kit.path))
    expect(await first.tree.id(first.root)).not.toBe(await second.tree.id(second.root))
    expect(await idOf(first, 'not/there')).toBeNull()
    expect(await first.tree.id(first.root)).toMatch(/^[0-9a-f]{40,64}$/)
  })

  test('SO11 folders are listed by name, files found by path, and what is not there is null or empty', async () => {
    const kit = await create()
    await kit.publish('one')
    const source = kit.open()
    const { tree, root } = await source.open(await source.fetch(), kit.pick)
    const entries = (await tree.list(root)) ?? []
    expect(entries.map(({ name }) => name)).toEqual(entries.map(({ name }) => name).sort())
    for (const { name, kind, id } of entries) {
      const at = root === '' ? name : `${root}/${name}`
      expect([at, await tree.id(at), (await tree.list(at)) !== null]).toEqual([at, id, kind === 'folder'])
    }
    const files = await tree.files(root, () => true)
    expect([...files.keys()]).toEqual([...files.keys()].sort())
    for (const [path, { oid, bytes }] of files) expect(await tree.file(path)).toEqual({ oid, bytes })
    const asked: string[] = []
    await tree.files(root, (path) => !path.endsWith('/') && asked.push(path) > 0)
    expect(asked.every((path) => !(root === '' ? path : path.slice(root.length + 1)).includes('/'))).toBe(true)
    expect([await tree.file('no/such'), await tree.list('no/such'), (await tree.files('no/such', () => true)).size]).toEqual([
      null,
      null,
      0,
    ])
    expect(await tree.list([...files.keys()][0] ?? '')).toBeNull()
    expect(await tree.file(root)).toBeNull()
  })
}
