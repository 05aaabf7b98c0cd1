// Remote bases without a network: which addresses kustomizations may write, how their content enters the tree, and the
// limits at their edges.
import { describe, expect, test } from 'bun:test'
import { baseFolder, baseName, parseBaseName, parseRemote, type RemoteBase, shownBase } from '../../server/render/kustomize/remote.ts'
import { relativePath } from '../../server/render/kustomize/remote-trees.ts'
import { scanKustomization } from '../../server/render/kustomize/scan.ts'
import type { OpenedBase } from '../../server/render/renderer.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { INPUTS, memoryTree } from '../support/render-job.ts'

const git = (url: string, ref = 'HEAD', submodules = false): RemoteBase => ({ kind: 'git', url, ref, submodules })

describe('KU12 addresses as kustomize reads them', () => {
  const SHA = 'a'.repeat(40)
  test.each<[text: string, base: RemoteBase, path: string]>([
    ['https://host/org/repo//deploy?ref=v1', git('https://host/org/repo', 'v1'), 'deploy'],
    ['https://host/group/sub/repo//deploy/eu/', git('https://host/group/sub/repo'), 'deploy/eu'],
    ['https://host/org/repo/deploy/eu?ref=v1&timeout=90s', git('https://host/org/repo', 'v1'), 'deploy/eu'],
    ['https://host/org/repo', git('https://host/org/repo'), ''],
    ['https://host/org/repo.git?version=v1', git('https://host/org/repo.git', 'v1'), ''],
    ['https://host/org/repo.git/deploy?version=v1&ref=v2', git('https://host/org/repo.git', 'v2'), 'deploy'],
    ['https://host/a/b/c.git/deploy', git('https://host/a/b/c.git'), 'deploy'],
    ['https://host/org/project/_git/repo/deploy?ref=v1', git('https://host/org/project/_git/repo', 'v1'), 'deploy'],
    ['https://host:8443/org/repo//deploy', git('https://host:8443/org/repo'), 'deploy'],
    ['http://host/org/repo//deploy', git('http://host/org/repo'), 'deploy'],
    [`git::https://host/org/repo//?ref=${SHA}`, git('https://host/org/repo', SHA), ''],
    ['git::https://host/org/repo/file.yaml', git('https://host/org/repo'), 'file.yaml'],
    ['github.com/org/repo', git('https://github.com/org/repo'), ''],
    ['GitHub.com/org/repo/deploy?ref=v1', git('https://github.com/org/repo', 'v1'), 'deploy'],
    ['https://github.com/org/repo?submodules=true', git('https://github.com/org/repo', 'HEAD', true), ''],
    ['https://github.com/org/repo?submodules=false', git('https://github.com/org/repo'), ''],
    ['git@github.com:org/repo.git//deploy', git('git@github.com:org/repo.git'), 'deploy'],
    ['git@host:org/repo/deploy?ref=v1', git('git@host:org/repo', 'v1'), 'deploy'],
    ['ssh://git@host:2222/org/repo//deploy', git('ssh://git@host:2222/org/repo'), 'deploy'],
    ['ssh://git@github.com/org/repo', git('git@github.com:org/repo'), ''],
    ['https://host/org/repo//a/../b', git('https://host/org/repo'), 'b'],
    ['https://host/x/install.yaml', { kind: 'file', url: 'https://host/x/install.yaml' }, ''],
    ['https://host/x/install.JSON?token=1', { kind: 'file', url: 'https://host/x/install.JSON?token=1' }, ''],
    ['https://host/org/repo//x/install.yaml', git('https://host/org/repo'), 'x/install.yaml'],
  ])('%s', (text, base, path) => expect(parseRemote(text, true)).toEqual({ kind: 'remote', base, path }))

  test.each(['deploy.yaml', '../base', 'base', 'host.example/org/repo', 'C:/x', 'a@b/c'])('%s is a local path', (text) =>
    expect(parseRemote(text, true)).toBeNull(),
  )
  test.each([
    'https://token@host/org/repo',
    'https://user:password@host/org/repo',
    'https://user@github.com/org/repo',
    'file:///srv/repo//deploy',
    's3::https://host/bucket',
    'oci://host/org/repo',
    'https://host',
    'https://host/org',
    'https://host/org/repo//../x',
    'git::',
    `https://host/org/repo?ref=${'a'.repeat(256)}`,
  ])('%s is refused', (text) => expect(parseRemote(text, true)?.kind).toBe('refused'))

  test('where only a folder may be, a URL of a YAML file is a repository', () => {
    expect(parseRemote('https://host/org/x.yaml', false)).toEqual({ kind: 'remote', base: git('https://host/org/x.yaml'), path: '' })
  })
  test('names are read back, and no query of a file is shown', () => {
    const file: RemoteBase = { kind: 'file', url: 'https://host/x.yaml?token=hunter2' }
    for (const base of [file, git('git@host:a/b', 'v1', true)]) expect(parseBaseName(baseName(base))).toEqual(base)
    expect([parseBaseName('{'), parseBaseName('{"kind":"git","url":"file:///etc"}')]).toEqual([null, null])
    expect([shownBase(file), baseFolder(file)].filter((text) => text.includes('hunter2'))).toEqual([])
    const alike = [
      git('https://h/a/b', 'c/d'),
      git('https://h/a/b', 'c_d'),
      git('https://h/a_b', 'c_d'),
      file,
      { ...file, url: 'https://h/x.yaml' },
    ]
    expect(new Set(alike.map(baseFolder)).size).toBe(alike.length)
  })
})

test.each([
  ['a/b', 'remote/x', '../../remote/x'],
  ['', 'remote', 'remote'],
  ['remote/x/deploy', 'remote/x/base', '../base'],
  ['a', 'a', '.'],
])('from %p to %p', (from, to, expected) => expect(relativePath(from, to)).toBe(expected))

type Bases = Readonly<Record<string, Readonly<Record<string, string>> | 'pending' | AppError>>
async function scan(texts: Readonly<Record<string, string>>, bases: Bases, options: { remoteBases?: boolean; templated?: boolean } = {}) {
  const asked: string[] = []
  const scanned = await scanKustomization(
    {
      ...{ inputs: INPUTS, source: { tree: memoryTree(texts), root: 'app' }, helmCharts: false },
      ...{ remoteBases: options.remoteBases ?? true, templated: options.templated ?? false },
      bases: async (base): Promise<OpenedBase> => {
        asked.push(shownBase(base))
        const found = bases[shownBase(base)]
        if (found === undefined) throw new Error(`there is no ${shownBase(base)}`)
        if (found === 'pending') return { kind: 'pending' }
        return found instanceof AppError
          ? { kind: 'failed', error: found }
          : { kind: 'ready', tree: memoryTree(found), revision: 'c'.repeat(40) }
      },
    },
    { folders: [] },
  )
  const problems = scanned.remote.told(scanned.problems)
  const files = scanned.remote.rewritten(scanned.files)
  return { asked, problems, text: (path: string) => new TextDecoder().decode(files.get(path)), files }
}
const refers = (...paths: string[]) => JSON.stringify({ resources: paths })

describe('KU13 content of remote bases', () => {
  test('lies in the tree, below the folder of its repository, and the kustomization names its path there', async () => {
    const { asked, problems, text, files } = await scan(
      {
        'app/kustomization.yaml':
          'resources:\n- https://h/o/r//deploy?ref=v1\n- own.yaml\n- https://h/x.yaml\ncomponents: [https://h/o/r//part?ref=v1]',
        'app/own.yaml': 'a: 1',
      },
      {
        'https://h/o/r?ref=v1': {
          'deploy/kustomization.yaml': refers('../base', 'a.yaml'),
          'deploy/a.yaml': 'a: {{ config.image.tag }}',
          'base/kustomization.yaml': '{}',
          'part/kustomization.yaml': 'kind: Component',
          'unused.yaml': 'x',
        },
        'https://h/x.yaml': { file: 'b: 1' },
      },
      { templated: true },
    )
    expect(problems).toEqual([])
    expect(asked).toEqual(['https://h/o/r?ref=v1', 'https://h/x.yaml'])
    const folder = `remote-bases/${baseFolder(git('https://h/o/r', 'v1'))}`
    const file = `${baseFolder({ kind: 'file', url: 'https://h/x.yaml' })}.yaml`
    expect(JSON.parse(JSON.stringify(Bun.YAML.parse(text('app/kustomization.yaml'))))).toEqual({
      resources: [`../${folder}/deploy`, 'own.yaml', file],
      components: [`../${folder}/part`],
    })
    expect([...files.keys()].sort()).toEqual(
      [
        'app/kustomization.yaml',
        'app/own.yaml',
        `app/${file}`,
        ...['base/kustomization.yaml', 'deploy/a.yaml', 'deploy/kustomization.yaml', 'part/kustomization.yaml'].map(
          (path) => `${folder}/${path}`,
        ),
      ].sort(),
    )
    // A remote base is no template, whatever the service says: it cannot read variables of the service.
    expect(text(`${folder}/deploy/a.yaml`)).toBe('a: {{ config.image.tag }}')
  })
  test('what is wrong in it is told with its address', async () => {
    const { problems } = await scan(
      { 'app/kustomization.yaml': refers('https://h/o/r//deploy') },
      { 'https://h/o/r': { 'deploy/kustomization.yaml': 'resources:\n- ../../out\n- gone.yaml\n' } },
    )
    expect(problems.map(({ path }) => path)).toEqual([
      'https://h/o/r//deploy/kustomization.yaml:2',
      'https://h/o/r//deploy/kustomization.yaml:3',
    ])
  })
  test('what cannot be had is told with file, line and address, and without its query', async () => {
    const { problems } = await scan(
      { 'app/kustomization.yaml': 'resources:\n- https://h/x.yaml?token=hunter2\n- https://h/o/r//gone\n- https://h/o/p\n' },
      {
        [shownBase({ kind: 'file', url: 'https://h/x.yaml?token=hunter2' })]: new AppError('source_unreachable', {
          detail: 'h cannot be reached',
        }),
        'https://h/o/r': {},
        'https://h/o/p': 'pending',
      },
    )
    expect(problems.map(({ path }) => path)).toEqual([2, 3, 4].map((line) => `app/kustomization.yaml:${line}`))
    const [first, second] = problems.map(({ message }) => message)
    expect([first?.includes('https://h/x.yaml '), first?.includes('h cannot be reached'), first?.includes('hunter2')]).toEqual([
      true,
      true,
      false,
    ])
    expect(second).toContain('https://h/o/r//gone')
  })
  test('KU16 one that wants credentials is told with its URL and the option that takes them, and with no field of another resource', async () => {
    const error = new AppError('credential_missing', { detail: 'h wants credentials', remedy: 'Name a Config in spec.git.auth.secretRef.' })
    const { problems } = await scan({ 'app/kustomization.yaml': refers('https://h/o/r//deploy') }, { 'https://h/o/r': error })
    const [message = ''] = problems.map((problem) => problem.message)
    expect(message).toContain('credentials for https://h/o/r in render.kustomize.remoteBaseSecretRefs')
    expect(message).not.toContain('spec.git')
  })
  test('KU3 without the option nothing is asked for', async () => {
    const { asked, problems } = await scan({ 'app/kustomization.yaml': refers('https://h/o/r//deploy') }, {}, { remoteBases: false })
    expect([asked, problems.map(({ path }) => path)]).toEqual([[], ['app/kustomization.yaml:1']])
    expect(problems[0]?.message).toContain('render.kustomize.remoteBases')
  })
  test('KU3 other fields take no URL with the option either', async () => {
    const { asked, problems } = await scan({ 'app/kustomization.yaml': 'patches:\n- path: https://h/x.yaml\n' }, {})
    expect([asked, problems.map(({ path }) => path)]).toEqual([[], ['app/kustomization.yaml:2']])
  })
})

describe('KU14 limits of remote bases', () => {
  const chain = (depth: number): Bases =>
    Object.fromEntries(
      Array.from({ length: depth }, (_, index) => [
        `https://h/o/r${index + 1}`,
        { 'kustomization.yaml': index + 1 < depth ? refers(`https://h/o/r${index + 2}`) : '{}' },
      ]),
    )
  test('5 of them in each other, and no more', async () => {
    const texts = { 'app/kustomization.yaml': refers('https://h/o/r1') }
    expect((await scan(texts, chain(5))).problems).toEqual([])
    expect((await scan(texts, chain(6))).problems.map(({ path }) => path)).toEqual(['https://h/o/r5//kustomization.yaml:1'])
  })
  test('50 of them, each counted once, and no more', async () => {
    const of = (count: number) => Array.from({ length: count }, (_, index) => `https://h/o/r${index}`)
    const bases: Bases = Object.fromEntries(of(51).map((url) => [url, { 'kustomization.yaml': '{}', 'a/kustomization.yaml': '{}' }]))
    const texts = (count: number) => ({ 'app/kustomization.yaml': refers(...of(count), ...of(count).map((url) => `${url}/a`)) })
    expect((await scan(texts(50), bases)).problems).toEqual([])
    expect((await scan(texts(51), bases)).problems).toHaveLength(2)
  })
  test('a circle ends', async () => {
    const bases: Bases = {
      'https://h/o/a': { 'kustomization.yaml': refers('https://h/o/b') },
      'https://h/o/b': { 'kustomization.yaml': refers('https://h/o/a') },
    }
    const { asked, problems } = await scan({ 'app/kustomization.yaml': refers('https://h/o/a') }, bases)
    expect([asked, problems]).toEqual([['https://h/o/a', 'https://h/o/b'], []])
  })
  test('KU2 counts the files of remote bases', async () => {
    const large = {
      'kustomization.yaml': refers('a.yaml', 'b.yaml', 'c.yaml', 'd.yaml', 'e.yaml'),
      ...Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [`${name}.yaml`, '#'.repeat(16 * 1024 * 1024)])),
    }
    const { problems } = await scan({ 'app/kustomization.yaml': refers('https://h/o/r') }, { 'https://h/o/r': large })
    expect(problems).toHaveLength(1)
  })
})
