// Contract of a Git Source, kept by the library and by the program, against git's own server over http and a real sshd.
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LINK_HOPS_MAX } from '../../server/sources/git/places.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createGitKit, failureOf, filesOf, GIT_WAYS, type GitKit, idOf, sshIsThere, textsOf } from '../support/git-source-kit.ts'
import { naming } from '../support/naming.ts'

// A handshake of ssh takes a third of a second on a busy machine.
setDefaultTimeout(60_000)

describe.each(GIT_WAYS.map((way) => [way] as const))('%s', (way) => {
  const skipped = way === 'git over ssh' && !sshIsThere
  const it = test.skipIf(skipped)
  /** The handling of objects and refs after the transfer is the same over http and ssh. Tests of it run over http only,
   *  which is faster. */
  const itOverHttp: typeof test = way === 'git over ssh' ? (Object.assign(() => {}, test) as typeof test) : test
  let kit: GitKit

  beforeAll(async () => {
    if (!skipped) kit = await createGitKit(way)
  })
  afterAll(() => kit?.close())
  beforeEach(() => {
    if (kit !== undefined) kit.requests.length = 0
  })
  const open = (...args: Parameters<GitKit['open']>) => kit.open(...args)
  const commit = (files: Record<string, string | null>, message = 'change') => kit.server.commit(files, message)
  const work = (path: string) => join(kit.root, 'remote', 'work', path)

  it('IN1 SO36 head, tree ids and files of a commit', async () => {
    const first = await commit({ 'web/a.yaml': 'a: 1\n', 'web/deep/b.yaml': 'b: 1\n', 'db/c.yaml': 'c: 1\n', 'README.md': 'x', empty: '' })
    const source = open()
    expect(await source.head()).toBe(first)
    expect(await source.fetch()).toBe(first)
    expect(await source.has(first)).toBe(true)
    expect(await source.has('0'.repeat(40))).toBe(false)
    expect(await textsOf(source, first, './web/')).toEqual({ 'web/a.yaml': 'a: 1\n', 'web/deep/b.yaml': 'b: 1\n' })
    expect([...(await filesOf(source, first, '.', (path) => !path.startsWith('web/'))).keys()]).toEqual(['README.md', 'db/c.yaml', 'empty'])
    const { tree } = await source.open(first, { path: 'web' })
    expect((await tree.list('.'))?.map(({ name, kind }) => [name, kind])).toEqual([
      ['README.md', 'file'],
      ['db', 'folder'],
      ['empty', 'file'],
      ['web', 'folder'],
    ])
    expect([await tree.list('README.md'), await tree.list('nowhere')]).toEqual([null, null])
    expect(await tree.file('web/a.yaml')).toEqual({ oid: (await tree.id('web/a.yaml')) ?? '', bytes: new TextEncoder().encode('a: 1\n') })
    expect([await tree.file('web'), await tree.file('web/a.yaml/b'), await tree.file('nowhere')]).toEqual([null, null, null])
    expect(await idOf(source, first, 'nowhere')).toBeNull()
    expect((await filesOf(source, first, 'nowhere')).size).toBe(0)

    const second = await commit({ 'web/a.yaml': 'a: 2\n' })
    expect(await source.fetch()).toBe(second)
    expect(await idOf(source, second, 'db')).toBe(await idOf(source, first, 'db'))
    expect(await idOf(source, second, 'web')).not.toBe(await idOf(source, first, 'web'))
  })

  it('IN2 looking at an unchanged branch costs one request; what was fetched and read before is read without the network', async () => {
    const source = open()
    const before = await source.fetch()
    await filesOf(source, before, 'web')
    kit.requests.length = 0
    const changed = await commit({ 'web/a.yaml': 'a: 3\n' })
    expect(await source.head()).toBe(changed)
    expect(kit.requests).toHaveLength(way === 'git over ssh' ? 0 : 1)
    kit.requests.length = 0
    expect(await source.fetch()).toBe(changed)
    if (way === 'library over http') expect(kit.requests).toHaveLength(2)
    kit.requests.length = 0
    await kit.setDown(true)
    expect((await textsOf(source, changed, 'web'))['web/a.yaml']).toBe('a: 3\n')
    await kit.setDown(false)
    expect(kit.requests).toEqual([])
  })

  itOverHttp('IN1 tags, annotated tags, full ref names and commit ids are refs; a branch wins over a tag', async () => {
    const tagged = await commit({ 'web/a.yaml': 'a: 4\n' })
    kit.git('tag', 'light')
    kit.git('tag', '-a', 'heavy', '-m', 'x')
    kit.git('tag', 'both')
    kit.git('push', '-q', '--tags')
    const later = await commit({ 'web/a.yaml': 'a: 5\n' })
    kit.git('push', '-q', 'origin', 'HEAD:refs/heads/both')
    for (const [ref, expected] of [
      ['light', tagged],
      ['heavy', tagged],
      ['refs/tags/heavy', tagged],
      [tagged, tagged],
      ['both', later],
      ['refs/tags/both', tagged],
      ['refs/heads/main', later],
      ['HEAD', later],
    ] as const) {
      const source = open({ ref })
      expect([ref, await source.head()]).toEqual([ref, expected])
      expect([ref, await source.fetch()]).toEqual([ref, expected])
      expect((await filesOf(source, expected, 'web')).size).toBe(2)
    }
  })

  itOverHttp('SO37 the greatest tag of a semver range; pre-releases only for ranges that name one', async () => {
    const commits = new Map<string, string>()
    for (const tag of ['v1.2.0', '1.10.1', 'v1.11.0-rc.1', 'v2.0.0', 'nightly']) {
      commits.set(tag, await commit({ 'web/a.yaml': `tag: ${tag}\n` }))
      kit.git('tag', ...(tag === 'v2.0.0' ? ['-a', '-m', 'x'] : []), tag)
    }
    kit.git('push', '-q', '--tags')
    for (const [semver, tag] of [
      ['^1.0.0', '1.10.1'],
      ['>=1.11.0-0 <2.0.0', 'v1.11.0-rc.1'],
      ['*', 'v2.0.0'],
      ['1.2.x', 'v1.2.0'],
    ] as const) {
      const source = open({ semver })
      kit.requests.length = 0
      expect([semver, await source.head()]).toEqual([semver, commits.get(tag) ?? ''])
      if (way !== 'git over ssh') expect(kit.requests).toHaveLength(1)
      expect(await source.fetch()).toBe(commits.get(tag) ?? '')
      expect([source.tagOf?.(commits.get(tag) ?? ''), source.tagOf?.('another')]).toEqual([tag, null])
    }
    const none = open({ semver: '^3.0.0' })
    const message = naming(kit.url, '^3.0.0', ': v2.0.0, v1.11.0-rc.1, 1.10.1, v1.2.0')
    expect(await failureOf(none.head())).toEqual(['git_ref_not_found', message])
    expect(await failureOf(none.fetch())).toEqual(['git_ref_not_found', message])
  })

  itOverHttp('IN3 a rewritten branch is followed', async () => {
    const source = open()
    await source.fetch()
    kit.git('commit', '--amend', '--no-verify', '-qm', 'rewritten')
    kit.git('push', '-qf', 'origin', 'HEAD:main')
    const rewritten = kit.git('rev-parse', 'HEAD')
    expect(await source.fetch()).toBe(rewritten)
    expect((await filesOf(source, rewritten, 'web')).size).toBe(2)
  })

  itOverHttp('IN4 packs do not pile up', async () => {
    const dir = kit.newDir()
    const source = open({ dir, packsMax: 3 })
    let last = ''
    for (let n = 0; n < 7; n++) {
      last = await commit({ 'web/a.yaml': `n: ${n}\n` })
      expect(await source.fetch()).toBe(last)
      expect((await textsOf(source, last, 'web'))['web/a.yaml']).toBe(`n: ${n}\n`)
    }
    // One pack with folders and one with files: the last fetch may bring both.
    expect(readdirSync(join(dir, 'objects', 'pack')).filter((name) => name.endsWith('.pack')).length).toBeLessThanOrEqual(4)
  })

  itOverHttp('IN4 a folder that cannot be read any more is fetched afresh', async () => {
    const dir = kit.newDir()
    const first = open({ dir })
    await filesOf(first, await first.fetch(), 'web')
    const packs = join(dir, 'objects', 'pack')
    for (const name of readdirSync(packs)) writeFileSync(join(packs, name), 'torn', { mode: 0o600 })
    const source = open({ dir })
    const after = await commit({ 'web/a.yaml': 'torn: 1\n' })
    expect(await source.fetch()).toBe(after)
    expect((await filesOf(source, after, 'web')).size).toBe(2)
  })

  it('IN5 an unreachable server and a missing ref are told apart and name host and ref', async () => {
    const missing = `${kit.url} has no branch or tag nope`
    expect(await failureOf(open({ ref: 'nope' }).head())).toEqual(['git_ref_not_found', missing])
    expect(await failureOf(open({ ref: 'nope' }).fetch())).toEqual(['git_ref_not_found', missing])
    expect((await failureOf(open({ ref: 'f'.repeat(40) }).fetch()))[0]).toBe('git_ref_not_found')
    for (const ref of ['--upload-pack=touch /tmp/owned', 'a b', 'x..y', 'refs/heads/*', 'a\nb'])
      expect((await failureOf(open({ ref }).fetch()))[0]).toBe('git_ref_not_found')
    await kit.setDown(true)
    const [code, message] = await failureOf(open().head())
    expect([code, message]).toEqual(['git_unreachable', expect.stringContaining('127.0.0.1')])
    expect((await failureOf(open().fetch()))[0]).toBe('git_unreachable')
    await kit.setDown(false)
    expect((await failureOf(open({ url: `${kit.url}x` }).head()))[0]).toBe('git_failed')
    expect((await failureOf(open({ url: `${kit.url}x` }).fetch()))[0]).toBe('git_failed')
  })

  it('SO1 an address that the operator did not allow is refused before anything is sent', async () => {
    const url = kit.url.replace('127.0.0.1', '169.254.169.254')
    expect((await failureOf(open({ url }).head()))[0]).toBe('source_address_refused')
    expect((await failureOf(open({ url }).fetch()))[0]).toBe('source_address_refused')
  })

  itOverHttp('IN6 SO22 links inside the repository are followed; those that lead out are refused by name', async () => {
    const link = (path: string, target: string) => {
      mkdirSync(join(work(path), '..'), { recursive: true })
      symlinkSync(target, work(path))
    }
    await commit({ 'shared/x.yaml': 'x: 1\n', 'shared/more/y.yaml': 'y: 1\n' })
    link('linked/x.yaml', '../shared/x.yaml')
    link('linked/all', '../shared')
    link('linked/twice.yaml', 'x.yaml')
    link('out/link.yaml', '../../../etc/passwd')
    link('absolute/link.yaml', '/etc/passwd')
    link('circle/again', '..')
    link('pair/a/b', '../b')
    link('pair/b/a', '../a')
    link('self/link.yaml', 'link.yaml')
    link('dangling/link.yaml', 'nothing.yaml')
    for (let n = 0; n <= LINK_HOPS_MAX; n++) link(`hops/l${n}`, n === 0 ? '../shared/x.yaml' : `l${n - 1}`)
    const at = await commit({ 'linked/own.yaml': 'own: 1\n' })
    const source = open()
    await source.fetch()
    expect(await textsOf(source, at, 'linked')).toEqual({
      'linked/all/more/y.yaml': 'y: 1\n',
      'linked/all/x.yaml': 'x: 1\n',
      'linked/own.yaml': 'own: 1\n',
      'linked/twice.yaml': 'x: 1\n',
      'linked/x.yaml': 'x: 1\n',
    })
    const { tree } = await source.open(at, { path: '.' })
    expect(new TextDecoder().decode((await tree.file('linked/all/more/y.yaml'))?.bytes)).toBe('y: 1\n')
    expect((await tree.list('linked'))?.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      'all folder',
      'own.yaml file',
      'twice.yaml file',
      'x.yaml file',
    ])
    expect((await tree.list('out'))?.map(({ kind }) => kind)).toEqual(['link'])
    for (const [path, ...values] of [
      ['out', 'out/link.yaml', 'outside'],
      ['absolute', 'absolute/link.yaml', 'outside'],
      ['circle', 'circle/again', 'circular link', 'root'],
      ['pair', 'circular link', 'pair/'],
      ['self', 'self/link.yaml', 'circular link', '40'],
      ['dangling', 'dangling/link.yaml', 'broken link'],
      ['README.md', 'file', 'folder'],
    ] as const)
      expect(await failureOf(filesOf(source, at, path))).toEqual(['source_refused', naming(path, ...values)])
    expect(await failureOf(tree.file('out/link.yaml'))).toEqual(['source_refused', naming('out/link.yaml', 'outside')])
    expect((await tree.file(`hops/l${LINK_HOPS_MAX - 1}`)) !== null).toBe(true)
    expect((await failureOf(tree.file(`hops/l${LINK_HOPS_MAX}`)))[0]).toBe('source_refused')
    // What is not wanted is not looked at.
    expect((await filesOf(source, at, 'out', (path) => !path.startsWith('out/link'))).size).toBe(0)
  })

  itOverHttp('SO22 a folder has another id when what its links lead to changes, and the same when it does not', async () => {
    const source = open()
    const before = await source.fetch()
    const after = await commit({ 'shared/more/y.yaml': 'y: 2\n' })
    await source.fetch()
    expect(await idOf(source, after, 'linked')).not.toBe(await idOf(source, before, 'linked'))
    expect(await idOf(source, after, 'web')).toBe(await idOf(source, before, 'web'))
    const same = await commit({ 'web/a.yaml': 'other: 1\n' })
    await source.fetch()
    expect(await idOf(source, same, 'linked')).toBe(await idOf(source, after, 'linked'))
  })

  itOverHttp('SO22 a name that leads elsewhere, in objects that were made by hand, is refused', async () => {
    const inWork = (stdin: Buffer, type: string) =>
      Bun.spawnSync(['git', '-C', work('.'), 'hash-object', '-t', type, '-w', '--literally', '--stdin'], { stdin })
        .stdout.toString()
        .trim()
    const blob = inWork(Buffer.from('x: 1\n'), 'blob')
    const tree = (mode: string, name: string, oid: string) =>
      inWork(Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(oid, 'hex')]), 'tree')
    for (const top of [
      tree('40000', '..', tree('100644', 'passwd', blob)),
      tree('100644', '../x.yaml', blob),
      tree('100644', '..', blob),
    ]) {
      const text = `tree ${top}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n`
      const forged = inWork(Buffer.from(text), 'commit')
      kit.git('push', '-qf', 'origin', `${forged}:refs/heads/forged`)
      const source = open({ ref: 'forged' })
      const [code] = await failureOf(source.fetch().then((at) => filesOf(source, at, '.')))
      expect(['source_refused', 'git_failed']).toContain(code)
      expect((await failureOf(source.fetch().then(async (at) => (await source.open(at, { path: '.' })).tree.list('.'))))[0]).not.toBe('')
    }
  })

  itOverHttp(
    'SO10 what is damaged on the disk, and as long as it was, is fetched afresh by the next look; once a day at most',
    async () => {
      const at = await commit({ 'hurt/0/a.yaml': `a: ${'x'.repeat(1_000)}\n`, 'hurt/1/b.yaml': 'b: 1\n', 'hurt/2/c.yaml': 'c: 1\n' })
      const dir = kit.newDir()
      let nowMs = 1_000_000_000
      const reopen = () => kit.open({ dir }, { clock: { ...systemClock, nowMs: () => nowMs } })
      const packs = () => readdirSync(join(dir, 'objects', 'pack')).filter((name) => name.endsWith('.pack'))
      const hurt = (names: readonly string[]) => {
        for (const path of names.map((name) => join(dir, 'objects', 'pack', name))) {
          const bytes = readFileSync(path)
          chmodSync(path, 0o600)
          writeFileSync(path, bytes.fill(0, 14, bytes.byteLength - 20))
        }
      }
      await reopen().fetch()
      const first = packs()
      await filesOf(reopen(), at, 'hurt/0')
      hurt(way === 'library over http' ? first : packs().filter((name) => !first.includes(name)))
      const source = reopen()
      expect(await source.has(at)).toBe(true)
      expect((await failureOf(filesOf(source, at, 'hurt/0')))[0]).toBe('git_failed')
      expect([await source.head(), await source.has(at)]).toEqual([at, false])
      expect([await source.fetch(), await source.has(at)]).toEqual([at, true])
      expect((await filesOf(source, at, 'hurt/0')).size).toBe(1)
      if (way !== 'library over http') return // files that it did not read are fetched when they are
      for (const [folder, passedMs, isHere] of [
        ['hurt/1', 3_600_000, true],
        ['hurt/2', 86_400_000, false],
      ] as const) {
        nowMs += passedMs
        await source.head() // packs are let go of
        hurt(packs())
        expect((await failureOf(filesOf(source, at, folder)))[0]).toBe('git_failed')
        expect([folder, await source.has(at)]).toEqual([folder, isHere])
      }
    },
  )

  itOverHttp('SO23 a Git LFS pointer is refused with what to do', async () => {
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 12\n`
    const at = await commit({ 'lfs/big.yaml': pointer })
    const source = open()
    await source.fetch()
    const [code, message] = await failureOf(filesOf(source, at, 'lfs'))
    expect(code).toBe('source_refused')
    expect(message).toEqual(naming('lfs/big.yaml', 'Git LFS pointer', 'git lfs migrate export --include="lfs/big.yaml"'))
  })

  itOverHttp('IN6 a file and a folder past the limits are refused by name, one byte below they are read', async () => {
    const mib = 'x'.repeat(1024 * 1024)
    const files: Record<string, string> = { 'most/a.yaml': mib.repeat(16), 'large/a.yaml': `${mib.repeat(16)}x` }
    for (let n = 0; n < 5; n++) files[`many/${n}.yaml`] = mib.repeat(13).replace('x', `${n}`)
    const at = await commit(files)
    const source = open()
    await source.fetch()
    expect((await filesOf(source, at, 'most')).size).toBe(1)
    expect(await failureOf(filesOf(source, at, 'large'))).toEqual(['source_refused', naming('large/a.yaml', '16 MiB')])
    const [code, message] = await failureOf(filesOf(source, at, 'many'))
    expect([code, message]).toEqual(['source_refused', naming('64 MiB')])
    await commit(Object.fromEntries(Object.keys(files).map((path) => [path, null])))
  })
})
