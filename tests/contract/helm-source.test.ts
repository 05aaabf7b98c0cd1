// HelmSource against repositories made by the real helm.
import { afterEach, describe, expect, test } from 'bun:test'
import { readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readIndex } from '../../server/sources/helm/chart-index.ts'
import { createHelmSource, createIndexCache, type HelmSourceOptions } from '../../server/sources/helm/helm-source.ts'
import { createUnpacked } from '../../server/sources/stored/unpacked.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { askHelm, createHelmRepository, type HelmRepository, packChart, runHelm } from '../support/helm-charts.ts'
import { naming } from '../support/naming.ts'
import { loopbackGuard } from '../support/source-guard.ts'
import { tempDir } from '../support/temp-dir.ts'
import { describeSource } from './source.contract.ts'

const repositories: HelmRepository[] = []
afterEach(() => Promise.all(repositories.splice(0).map((repository) => repository.stop())))
function repositoryOf(options: { indexUrl?: string } = {}): HelmRepository {
  const repository = createHelmRepository(options)
  repositories.push(repository)
  return repository
}
const sourceOf = (url: string, change: Partial<HelmSourceOptions> = {}) =>
  createHelmSource({
    url,
    dir: tempDir(),
    fetcher: loopbackGuard().fetcher,
    namedOnly: loopbackGuard().namedOnly,
    credential: { secretRef: null, read: async () => ({}) },
    unpacked: createUnpacked(),
    indexes: createIndexCache(),
    ...change,
  })
const refusal = async (asked: Promise<unknown>): Promise<string> => {
  const error = await asked.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  return error instanceof AppError ? `${error.code}: ${error.data.detail}` : `no AppError: ${error}`
}

describe('a Helm repository', () => {
  describeSource(async () => {
    const repository = repositoryOf()
    const dir = tempDir()
    let version = 0
    return {
      open: () => sourceOf(repository.url, { dir }),
      pick: { chart: 'shop' },
      path: 'files/value.txt',
      publish: async (value) => repository.add({ name: 'shop', version: `1.0.${version++}`, files: { 'files/value.txt': value } }),
      away: (isAway) => {
        repository.mode = isAway ? 'away' : 'up'
      },
      requests: () => repository.requests.splice(0).length,
    }
  })
})

test('SO12 an index that did not change is asked for by its ETag, also after a restart', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' })
  const dir = tempDir()
  const first = await sourceOf(repository.url, { dir }).fetch()
  const source = sourceOf(repository.url, { dir })
  expect([await source.head(), await source.head()]).toEqual([first, first])
  expect(repository.requests.map(({ status }) => status)).toEqual([200, 304, 304])
})

test('SO12 a server without ETags is asked by the time that it named, also after a restart', async () => {
  const asked: Array<string | null> = []
  const time = 'Sun, 22 Nov 2026 06:00:00 GMT'
  const fetcher: HelmSourceOptions['fetcher'] = async (_, { headers }) => {
    const since = new Headers(headers).get('if-modified-since')
    asked.push(since)
    const index = 'apiVersion: v1\nentries:\n  app:\n  - version: 1.0.0\n    urls: [app.tgz]\n'
    return since === time ? new Response(null, { status: 304 }) : new Response(index, { headers: { 'last-modified': time } })
  }
  const dir = tempDir()
  const first = await sourceOf('https://charts.example/', { fetcher, dir }).fetch()
  expect(await sourceOf('https://charts.example/', { fetcher, dir }).fetch()).toBe(first)
  expect(asked).toEqual([null, time])
})

/** The chart at another address each time: another index. */
const moved = (repository: HelmRepository, n: number) =>
  repository.editIndex((text) => text.replace(/- \S*shop-1.0.0.tgz/, `- v${n}/shop-1.0.0.tgz`))

test('SO38 of the indexes the newest five stay, and one that came back is new', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' })
  const [dir, indexes] = [tempDir(), createIndexCache()]
  const source = sourceOf(repository.url, { dir, indexes })
  const revisions: string[] = []
  const publish = async (n: number) => {
    moved(repository, n)
    await Bun.sleep(2) // they are told apart by their times
    revisions[n] = await source.fetch()
  }
  for (let n = 0; n < 7; n++) await publish(n)
  const there = (source: ReturnType<typeof sourceOf>) => Promise.all(revisions.map((revision) => source.has(revision)))
  const isNew = [false, false, true, true, true, true, true]
  expect([await there(source), await there(sourceOf(repository.url, { dir }))]).toEqual([isNew, isNew])
  await publish(2)
  for (const n of [7, 8]) await publish(n)
  expect(await there(source)).toEqual([false, false, true, false, false, true, true, true, true])
  expect(readdirSync(dir).filter((name) => name.startsWith('index-'))).toHaveLength(5)
})

test('SO38 an index that a service still waits for stays, however many come after it, over a restart as well', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' })
  const dir = tempDir()
  const first = await sourceOf(repository.url, { dir }).fetch()
  for (let n = 0; n < 8; n++) {
    const source = sourceOf(repository.url, { dir }) // a start each time
    const { version } = await source.open(first, { chart: 'shop' })
    expect(version).toStartWith('1.0.0 ')
    moved(repository, n)
    await Bun.sleep(2)
    expect(await source.fetch()).not.toBe(first)
  }
  expect(readdirSync(dir).filter((name) => name.startsWith('index-'))).toHaveLength(5)
})

/** Reading it is EIO, as of a bad part of a disk. */
function unreadable(path: string): void {
  rmSync(path)
  symlinkSync('/proc/self/mem', path)
}

const DAMAGES: ReadonlyArray<readonly [name: string, damage: (dir: string, revision: string) => void]> = [
  ['an index that is another text', (dir, revision) => writeFileSync(join(dir, `index-${revision}.json`), '{}')],
  ['an index that is empty', (dir, revision) => writeFileSync(join(dir, `index-${revision}.json`), '')],
  ['an index that is gone', (dir, revision) => rmSync(join(dir, `index-${revision}.json`))],
  ['an index that the disk does not give back', (dir, revision) => unreadable(join(dir, `index-${revision}.json`))],
  ['a note that the disk does not give back', (dir) => unreadable(join(dir, 'head.json'))],
  ['a note that breaks off', (dir) => writeFileSync(join(dir, 'head.json'), '{"revision":"')],
  ['a note of an index that is not here', (dir) => writeFileSync(join(dir, 'head.json'), `{"revision":"${'0'.repeat(64)}","sha256":"","etag":"\\"x\\"","lastModified":null}`)], // biome-ignore format: one line
  ['a note that is gone', (dir) => rmSync(join(dir, 'head.json'))],
]
test.each(DAMAGES)('SO12 SO43 with %s the whole index is asked for after a restart, and is the same revision', async (_, damage) => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' })
  const dir = tempDir()
  const revision = await sourceOf(repository.url, { dir }).fetch()
  damage(dir, revision)
  for (let starts = 0; starts < 2; starts++) expect(await sourceOf(repository.url, { dir }).fetch()).toBe(revision)
  expect(repository.requests.map(({ status }) => status)).toEqual([200, 200, 304])
})

test('SO12 a new time in the index, or another description, is no news; a version, digest or URL is', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' })
  const source = sourceOf(repository.url)
  const first = await source.head()
  repository.editIndex((text) => text.replace(/generated: .*/, 'generated: "2020-01-01T00:00:00Z"').replace('of many words', 'of few'))
  expect(await source.head()).toBe(first)
  repository.editIndex((text) => text.replace(/- shop-1.0.0.tgz/, '- other/shop-1.0.0.tgz'))
  expect(await source.head()).not.toBe(first)
})

const VERSIONS = ['0.9.0', '1.2.3', '1.10.0', '2.0.0-rc.1', '2.0.0-rc.10', '2.1.0', '3.0.0-alpha.1']
test('SO6 SO13 the version that is taken of a range is the one that helm takes, and its digest is shown', async () => {
  const repository = repositoryOf()
  repository.add(...VERSIONS.map((version) => ({ name: 'shop', version })))
  const source = sourceOf(repository.url)
  const revision = await source.fetch()
  const ranges = [
    undefined,
    '*',
    '^1.2',
    '~1.2.0',
    '1.x',
    '>=1.0.0 <2.0.0',
    '>=1.0.0, <2',
    '>=2.0.0-0 <2.0.0',
    '>=2.0.0-0',
    '<=2.0.0-rc.5',
    '2.0.0-rc.1',
    '!=2.1.0',
    '^1 || ^2',
  ]
  const digest = /sha256:[0-9a-f]{64}$/
  for (const range of ranges) {
    const asked = await askHelm('show', 'chart', 'shop', '--repo', repository.url, ...(range === undefined ? [] : ['--version', range]))
    const helms = /^version: (.*)$/m.exec(asked)?.[1]
    const { version, tree } = await source.open(revision, { chart: 'shop', version: range })
    expect([range, version.split(' ')[0]]).toEqual([range, helms])
    expect(version).toMatch(digest)
    expect(new TextDecoder().decode((await tree.file('Chart.yaml'))?.bytes)).toContain(`version: ${helms}\n`)
  }
})

test('SO13 of a chart that is there once its archive is fetched once, for all who open it', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' }, { name: 'shop', version: '1.1.0' })
  const source = sourceOf(repository.url)
  const revision = await source.fetch()
  await Promise.all(Array.from({ length: 20 }, () => source.open(revision, { chart: 'shop', version: '^1' })))
  expect(repository.requests.map(({ path }) => path)).toEqual(['/charts/index.yaml', '/charts/shop-1.1.0.tgz'])
})

test('SO14 messages name host, chart and range, and the five newest versions there are', async () => {
  const repository = repositoryOf()
  repository.add(...VERSIONS.map((version) => ({ name: 'shop', version })))
  const source = sourceOf(repository.url)
  const revision = await source.fetch()
  const open = (chart: string, version?: string) => refusal(source.open(revision, { chart, version }))
  const newest = '3.0.0-alpha.1, 2.1.0, 2.0.0-rc.10, 2.0.0-rc.1, 1.10.0'
  expect(await open('shop', '^7')).toEqual(naming('source_refused', 'chart shop', repository.url, '^7', newest))
  expect(await open('shop', 'newest')).toEqual(naming('source_refused', 'newest is neither', newest))
  expect(await open('shopp')).toEqual(naming('source_refused', repository.url, 'chart shopp', 'shop?'))
  expect(await open('constructor')).toMatch(/^source_refused: .* chart constructor$/)
  expect(await refusal(source.open(revision, { path: '.' }))).toEqual(naming('source_refused', 'source.chart'))
  repository.mode = 'error'
  expect(await open('shop', '^1')).toEqual(naming('source_unreachable', 'shop 1.10.0', repository.url, new URL(repository.url).host, 503))
  repository.mode = 'away'
  expect(await open('shop', '^1')).toStartWith('source_unreachable: ')
})

test('SO15 a credential is asked for, named when it is refused, and goes to the repository alone', async () => {
  const other = repositoryOf()
  other.add({ name: 'shop', version: '1.0.0' })
  const repository = repositoryOf({ indexUrl: other.url })
  repository.add({ name: 'shop', version: '1.0.0' })
  repository.authorization = `Basic ${btoa('ada:s3cret')}`
  expect(await refusal(sourceOf(repository.url).fetch())).toContain('credential_missing: the index of')
  const secrets = { username: 'ada', password: 'wrong' }
  const credential = { secretRef: 'charts', read: async () => secrets }
  const source = sourceOf(repository.url, { credential })
  expect(await refusal(source.fetch())).toEqual(naming('credential_refused', 'Config charts', 401))
  expect(await refusal(source.fetch())).not.toContain('wrong')
  secrets.password = 's3cret'
  other.editIndex((text) => text)
  await source.open(await source.fetch(), { chart: 'shop' }).catch(() => {}) // packed at another second: its digest may differ
  expect(other.requests.map(({ authorization }) => authorization)).toEqual([null])
  const token = { secretRef: 'charts', read: async () => ({ token: 't0ken\n' }) }
  repository.authorization = 'Bearer t0ken'
  await sourceOf(repository.url, { credential: token }).fetch()
})

test('SO16 an archive is held against the digest of the index, and the next URL is tried', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' }, { name: 'evil', version: '1.0.0' })
  const open = async () => {
    const source = sourceOf(repository.url)
    return source.open(await source.fetch(), { chart: 'shop' })
  }
  repository.editIndex((text) => text.replace('- shop-1.0.0.tgz', '- evil-1.0.0.tgz'))
  expect(await refusal(open())).toMatch(/^source_refused: shop 1\.0\.0 .*archive .*sha256:[0-9a-f]{64}, .*index .*sha256:/)
  repository.editIndex((text) => text.replace(/^( *)- evil-1.0.0.tgz\n(?= *version: 1.0.0\n(?![\s\S]*- evil))/m, ''))
  repository.add({ name: 'shop', version: '1.0.1' })
  repository.editIndex((text) =>
    text.replaceAll(/^( *)- shop-1.0.1.tgz/gm, '$1- gone.tgz\n$1- evil-1.0.0.tgz\n$1- http://10.0.0.1/shop.tgz\n$1- shop-1.0.1.tgz'),
  )
  expect((await open()).version).toStartWith('1.0.1 ')
})

test.each([`${'../'.repeat(30)}dev/zero`, 'nul\0', 'abc'])(
  'SO16 a digest that is none (%j) names no file of this machine',
  async (digest) => {
    const repository = repositoryOf()
    repository.add({ name: 'shop', version: '1.0.0' })
    repository.editIndex((text) => text.replace(/digest: .*/, `digest: ${JSON.stringify(digest)}`))
    const source = sourceOf(repository.url)
    expect(await refusal(source.open(await source.fetch(), { chart: 'shop' }))).toMatch(/^source_refused: shop 1\.0\.0 .*digest.* SHA-256$/)
  },
)

test('SO14 a chart with a name that every object has is not there', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' })
  const source = sourceOf(repository.url)
  await source.fetch()
  for (const name of ['constructor', '__proto__'])
    expect(await refusal(source.chart?.(repository.url, name, '1.0.0') ?? Promise.resolve())).toContain(`has no chart ${name}`)
})

test('SO5 over plain HTTP a credential goes only to addresses that the operator named', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' })
  const credential = { secretRef: 'charts', read: async () => ({ username: 'me', password: 'secret' }) }
  const { namedOnly } = loopbackGuard({ allowed: [] })
  expect(await refusal(sourceOf(repository.url, { credential, namedOnly }).fetch())).toStartWith('source_address_refused: ')
  expect(repository.requests).toEqual([])
})

test('SO16 what an index has no digest of stays what it was when it was fetched first', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0', files: { 'files/value.txt': 'one' } })
  repository.editIndex((text) => text.replace(/^ *digest: .*\n/m, ''))
  const dir = tempDir()
  const source = sourceOf(repository.url, { dir })
  const first = await source.open(await source.fetch(), { chart: 'shop' })
  repository.add({ name: 'shop', version: '1.0.0', files: { 'files/value.txt': 'two' } })
  repository.editIndex((text) => text.replace(/^ *digest: .*\n/m, ''))
  const later = sourceOf(repository.url, { dir })
  expect((await later.open(await later.fetch(), { chart: 'shop' })).version).toBe(first.version)
})

test('SO16 what is no chart is refused with the chart’s name', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' })
  repository.editIndex((text) => text.replace('shop-1.0.0.tgz', 'index.yaml').replace(/^ *digest: .*\n/m, ''))
  const source = sourceOf(repository.url)
  expect(await refusal(source.open(await source.fetch(), { chart: 'shop' }))).toMatch(/^source_refused: shop 1\.0\.0 .* tar archive/)
})

test('SO13 exactly one version of a chart, for another that depends on it, of an index that may be older than it', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'common', version: '1.0.0' })
  const source = sourceOf(repository.url)
  const chart = async (version: string) => {
    const opened = await source.chart?.(repository.url, 'common', version)
    return opened ?? { version: 'none' }
  }
  expect((await chart('1.0.0')).version).toStartWith('1.0.0 ')
  repository.requests.length = 0
  await chart('1.0.0')
  expect(repository.requests).toEqual([])
  repository.add({ name: 'common', version: '1.0.1' })
  expect((await chart('1.0.1')).version).toStartWith('1.0.1 ')
  expect(await refusal(chart('2.0.0'))).toEqual(naming('source_refused', 'range 2.0.0', '1.0.1, 1.0.0'))
})

test('SO12 what is read of an index by its lines is what reading it whole says', async () => {
  const dir = tempDir()
  for (const name of ['a', 'b-c', 'd.e', '0'])
    for (const version of ['1.0.0', '1.1.0+build', '2.0.0-rc.1']) packChart({ name, version, files: { 'values.yaml': 'x: 1' } }, dir)
  runHelm('repo', 'index', dir, '--url', 'https://charts.example.com')
  const text = await Bun.file(join(dir, 'index.yaml')).text()
  const { value } = parseYamlDocuments(text, { file: 'index.yaml' }).documents[0] ?? { value: null }
  const whole = await readIndex(JSON.stringify(value), async () => {})
  expect(await readIndex(text, async () => {})).toEqual(whole)
  expect(Object.keys(whole)).toEqual(['0', 'a', 'b-c', 'd.e'])
  expect(whole['a']?.map(({ version }) => version)).toEqual(['1.0.0', '1.1.0+build', '2.0.0-rc.1'])
  runHelm('repo', 'index', dir, '--url', 'https://charts.example.com', '--json')
  expect(await readIndex(await Bun.file(join(dir, 'index.yaml')).text(), async () => {})).toEqual(whole)
})

test('SO13 SO43 what was damaged on the disk is fetched anew', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' })
  const dir = tempDir()
  const source = sourceOf(repository.url, { dir })
  const revision = await source.fetch()
  const { version } = await source.open(revision, { chart: 'shop' })
  writeFileSync(join(dir, 'blobs', version.replace(/^.*sha256:/, '')), 'garbage')
  repository.requests.length = 0
  expect((await sourceOf(repository.url, { dir }).open(revision, { chart: 'shop' })).version).toBe(version)
  expect(repository.requests.map(({ path }) => path)).toEqual(['/charts/shop-1.0.0.tgz'])
  unreadable(join(dir, 'blobs', version.replace(/^.*sha256:/, '')))
  expect((await sourceOf(repository.url, { dir }).open(revision, { chart: 'shop' })).version).toBe(version)
  writeFileSync(join(dir, `index-${revision}.json`), '{}')
  const later = sourceOf(repository.url, { dir })
  expect(await later.has(revision)).toBe(false)
  expect(await later.fetch()).toBe(revision)
})

test('SO16 SO43 a chart without a digest in the index that four services open at once is fetched once, and all get it', async () => {
  const repository = repositoryOf()
  repository.add({ name: 'shop', version: '1.0.0' })
  repository.editIndex((text) => text.replace(/^ *digest: .*\n/m, ''))
  const source = sourceOf(repository.url)
  const revision = await source.fetch()
  repository.requests.length = 0
  const opened = await Promise.all(Array.from({ length: 4 }, () => source.open(revision, { chart: 'shop' })))
  expect(new Set(opened.map(({ version }) => version)).size).toBe(1)
  expect(repository.requests.map(({ path }) => path)).toEqual(['/charts/shop-1.0.0.tgz'])
})

test('SO44 who writes the digest of another repository’s chart into an index of his own gets nothing of it', async () => {
  const theirs = repositoryOf()
  theirs.add({ name: 'secret', version: '1.0.0', files: { 'files/value.txt': 'theirs' } })
  const unpacked = createUnpacked()
  const source = sourceOf(theirs.url, { unpacked })
  const { version } = await source.open(await source.fetch(), { chart: 'secret' })
  const own = repositoryOf()
  own.add({ name: 'mine', version: '1.0.0' })
  own.editIndex((text) => text.replace(/digest: .*/, `digest: ${version.replace(/^.*sha256:/, '')}`))
  const other = sourceOf(own.url, { unpacked })
  expect(await refusal(other.open(await other.fetch(), { chart: 'mine' }))).toMatch(/^source_refused: .*archive .*sha256:/)
})

test('SO44 an index that another repository has read is not here for this one', async () => {
  const theirs = repositoryOf()
  theirs.add({ name: 'secret', version: '1.0.0' })
  const indexes = createIndexCache()
  const revision = await sourceOf(theirs.url, { indexes }).fetch()
  const other = sourceOf(repositoryOf().url, { indexes })
  expect(await other.has(revision)).toBe(false)
  expect(await refusal(other.open(revision, { chart: 'secret' }))).toStartWith('source_unreachable: ')
})

test('SO45 archives at another host are held against the CA of the Config and the public ones', async () => {
  const given: unknown[] = []
  const fetcher: HelmSourceOptions['fetcher'] = async (url, { tls }) => {
    given.push([new URL(url).host, Array.isArray(tls?.ca) ? tls.ca.length > 1 : tls?.ca])
    const index = 'apiVersion: v1\nentries:\n  app:\n  - version: 1.0.0\n    urls: [https://store.example/app.tgz]\n'
    return url.endsWith('index.yaml') ? new Response(index) : new Response('', { status: 404 })
  }
  const source = sourceOf('https://charts.example/', { fetcher, credential: { secretRef: 'c', read: async () => ({ caCert: 'PEM' }) } })
  await refusal(source.open(await source.fetch(), { chart: 'app' }))
  expect(given).toEqual([
    ['charts.example', 'PEM'],
    ['store.example', true],
  ])
})
