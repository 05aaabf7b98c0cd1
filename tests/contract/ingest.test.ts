// From a commit to the rows that an agent pulls, with everything real but HTTP and the agents.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { eventually } from '../support/kube-cluster.ts'
import { naming } from '../support/naming.ts'

let kit: IngestKit
let one: ClusterId
let two: ClusterId
let first: string
beforeEach(async () => {
  kit = await createIngestKit()
  one = await kit.join('1')
  two = await kit.join('2')
  first = await kit.git.commit(
    { 'shop/a.yaml': configMap('a', '1'), 'shop/b.yaml': configMap('b', '1'), 'other/c.yaml': configMap('c', '1') },
    'first',
  )
  await kit.repository()
  await kit.service()
})
afterEach(() => kit.close())
const A = 'object/default/shop//ConfigMap/shop/a'
const B = 'object/default/shop//ConfigMap/shop/b'
const ROW = 'service/default/shop'

describe('commits', () => {
  test('IN7 a first commit is everything, one changed ConfigMap is exactly two rows, in every target', async () => {
    expect([await kit.pull(one), await kit.pull(two)]).toEqual([
      [A, B, ROW],
      [A, B, ROW],
    ])
    const second = await kit.push({ 'shop/a.yaml': configMap('a', '2') })
    expect([await kit.pull(one), await kit.pull(two)]).toEqual([
      [A, ROW],
      [A, ROW],
    ])
    expect((await kit.row(one))?.commit).toBe(second)
    await kit.push({ 'shop/b.yaml': null })
    expect(await kit.pull(one)).toEqual([`-${B}`, ROW])
  })

  test.each([
    ['shop', 'till'],
    ['till', 'shop'],
  ])('IN7a an object that moves from %s to %s reaches its new service first', async (from, to) => {
    await kit.push({ [`${from}/m.yaml`]: configMap('m', '1'), 'till/t.yaml': configMap('t', '1'), 'shop/a.yaml': configMap('a', '1') })
    await kit.service({ namespace: 'one' })
    await kit.service({ namespace: 'one' }, 'till')
    const move = (file: string | null) =>
      kit.push({ [`${from}/m.yaml`]: file === null ? configMap('m', '1') : null, [`${to}/m.yaml`]: file })
    const written: string[] = []
    const write = kit.shards.writeRevisions.bind(kit.shards)
    kit.shards.writeRevisions = (revisions) => {
      for (const { clusterId, service } of revisions) if (clusterId === one) written.push(service)
      return write(revisions)
    }
    await move(configMap('m', '1'))
    await move(null)
    expect(written).toEqual([to, from, from, to])
  })

  test('PR8 what goes over to another service with one commit is named in the row of the one that loses it, also in a swap, until its next digest', async () => {
    const files = {
      'till/q.yaml': configMap('q', '1'),
      'till/t.yaml': configMap('t', '1'),
      'shop/p.yaml': configMap('p', '1'),
      'shop/a.yaml': configMap('a', '1'),
    }
    await kit.push(files)
    await kit.service({ namespace: 'one' })
    await kit.service({ namespace: 'one' }, 'till')
    const before = { shop: await kit.row(one), till: await kit.row(one, 'till') }
    await kit.push({ 'shop/p.yaml': null, 'till/p.yaml': configMap('p', '1'), 'till/q.yaml': null, 'shop/q.yaml': configMap('q', '1') })
    const after = { shop: await kit.row(one), till: await kit.row(one, 'till') }
    // Whoever was first, or both that had their passes at once, name the other's old revision.
    const [x, y] = [after.shop?.handover, after.till?.handover]
    expect(x).toMatchObject([{ object: '/ConfigMap/one/p', project: 'default', service: 'till' }])
    expect(y).toMatchObject([{ object: '/ConfigMap/one/q', project: 'default', service: 'shop' }])
    expect([before.till?.digest, undefined]).toContain(x?.[0]?.after)
    expect([before.shop?.digest, undefined]).toContain(y?.[0]?.after)
    expect(x?.[0]?.after ?? y?.[0]?.after).toBeDefined()
    await kit.pull(one)
    await kit.service({ namespace: 'one' })
    expect(await kit.pull(one)).toEqual([])
    await kit.push({ 'shop/a.yaml': configMap('a', '2'), 'till/p.yaml': null })
    expect((await kit.row(one))?.handover).toBeUndefined()
  }, 30_000)

  test('PR8 so is an object of a custom kind, to which each service gives its own namespace', async () => {
    const issuer = (size: number) => `apiVersion: x.io/v1\nkind: Issuer\nmetadata:\n  name: le\nspec:\n  size: ${size}\n`
    await kit.push({ 'till/t.yaml': configMap('t', '1'), 'shop/i.yaml': issuer(1) })
    await kit.service({ namespace: 'one' })
    await kit.service({ namespace: 'two' }, 'till')
    await kit.push({ 'shop/i.yaml': null, 'till/i.yaml': issuer(2) })
    expect((await kit.row(one))?.handover).toMatchObject([{ object: 'x.io/Issuer//le', project: 'default', service: 'till' }])
  }, 30_000)

  test('IN7 commits that change nothing of a service write nothing for it', async () => {
    await kit.pull(one)
    const ordinals = await kit.store.clusterOrdinals()
    await kit.push({})
    await kit.push({ 'other/c.yaml': configMap('c', '2'), 'shop/README.md': 'words' })
    await kit.push({ 'shop/a.yaml': `# a comment\n${configMap('a', '1')}` })
    expect(await kit.pull(one)).toEqual([])
    expect(await kit.store.clusterOrdinals()).toEqual(ordinals)
    expect((await kit.row(one))?.commit).toBe(first)
    await kit.service({ sync: { prune: false } })
    expect(await kit.pull(one)).toEqual([ROW])
    expect((await kit.row(one))?.commit).toBe(first)
  })

  test('IN8 after a restart the first look at everything writes nothing, also without the Git server', async () => {
    await kit.pull(one)
    const events = await kit.events()
    kit.git.setDown(true)
    const again = kit.restarted()
    await again.serviceChanged(SHOP)
    await again.clustersChanged()
    kit.git.setDown(false)
    await again.repositoryChanged('default', 'apps')
    expect(await kit.pull(one)).toEqual([])
    expect(await kit.events()).toEqual(events)
  })

  test('IN8 a lost Git folder is fetched again', async () => {
    rmSync(join(kit.dir, 'git'), { recursive: true })
    const again = kit.restarted()
    await again.serviceChanged(SHOP)
    expect(await kit.row(one)).not.toBeNull()
    await again.repositoryChanged('default', 'apps')
    const commit = await kit.git.commit({ 'shop/a.yaml': configMap('a', '9') }, 'later')
    await again.repositoryChanged('default', 'apps')
    expect((await kit.row(one))?.commit).toBe(commit)
  })

  test('IN9 the loop finds a commit by polling and stops when it is told to', async () => {
    await kit.store.applyResource(
      { kind: 'Repository', project: 'default', name: 'apps' },
      { labels: {}, spec: JSON.stringify({ git: { url: kit.git.url, ref: 'main' }, poll: '1s' }), nowMs: 1 },
    )
    const stop = new AbortController()
    const polling = kit.restarted(stop.signal).run()
    const commit = await kit.git.commit({ 'shop/a.yaml': configMap('a', '3') }, 'polled')
    await eventually('it is published', async () => (await kit.row(one))?.commit === commit)
    stop.abort()
    await polling
  })
})

describe('bad input changes nothing and says why', () => {
  const unchanged = async (act: () => Promise<unknown>) => {
    await kit.pull(one)
    await act()
    expect(await kit.pull(one)).toEqual([])
    return (await kit.store.renderState(SHOP)).error
  }

  test('RN3 an empty folder names path and commit', async () => {
    let commit = ''
    const error = await unchanged(async () => {
      commit = await kit.push({ 'shop/a.yaml': null, 'shop/b.yaml': null })
    })
    expect(error).toMatchObject({
      code: 'no_manifests',
      message: naming('folder shop', `commit ${commit.slice(0, 12)}`, 'root: other'),
    })
    expect((await kit.store.renderState(SHOP)).commit).toBe(first)
  })

  test('RN1 RL8 a syntax error names file, line, commit and author, is told once, and its end too', async () => {
    const error = await unchanged(async () => {
      const commit = await kit.push({ 'shop/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\n' })
      await kit.push({ 'other/c.yaml': configMap('c', '3') })
      expect((await kit.events()).join()).toMatch(new RegExp(` \\(commit ${commit.slice(0, 12)} by Skerry demo: [^)]+\\); the last good`))
    })
    expect(error).toMatchObject({
      code: 'render_failed',
      at: { author: 'Skerry demo', subject: expect.any(String) },
      problems: [{ path: 'shop/a.yaml:3:11' }],
    })
    await kit.push({ 'shop/a.yaml': configMap('a', '1') })
    expect((await kit.store.renderState(SHOP)).error).toBeNull()
    const told = (await kit.events()).filter((event) => event.startsWith('Render'))
    expect(told.map((event) => event.split(':')[0])).toEqual(['RenderFailed', 'RenderRecovered'])
    expect(told[1]).toMatch(/ \(.+, by Skerry demo\)$/)
  })

  test('YM2 a key that is read as a boolean is told as an event with file and line', async () => {
    await kit.push({ 'shop/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  on: "1"\n' })
    const message = 'shop/a.yaml:5:3: the key on is read as "true", as by kubectl; quote it if that is not intended'
    expect(await kit.events()).toContain(`ManifestWarning: ${message}`)
  })

  test('IN6 a link in the folder is refused by name', async () => {
    Bun.spawnSync(['ln', '-s', '/etc/passwd', join(kit.dir, 'remote', 'work', 'shop', 'link.yaml')])
    const error = await unchanged(() => kit.push({ 'shop/a.yaml': configMap('a', '4') }))
    expect(error).toMatchObject({ code: 'source_refused' })
    expect(error?.message).toContain('shop/link.yaml is a link')
  })

  test('IN5 an unreachable Git server and a missing ref are states of the repository, with since when', async () => {
    const state = () => kit.store.repositoryState('default', 'apps')
    kit.git.setDown(true)
    await unchanged(() => kit.ingest.repositoryChanged('default', 'apps'))
    const down = await state()
    expect(down).toMatchObject({ commit: first, error: { code: 'git_unreachable' } })
    await kit.ingest.repositoryChanged('default', 'apps')
    expect(await state()).toEqual(down)
    kit.git.setDown(false)
    await kit.ingest.repositoryChanged('default', 'apps')
    expect((await state()).error).toBeNull()
    await unchanged(() => kit.repository('nope'))
    expect((await state()).error).toMatchObject({ code: 'git_ref_not_found', message: naming(kit.git.url, 'nope') })
    const told = (await kit.events()).filter((event) => event.startsWith('Repository')).map((event) => event.split(':')[0])
    expect(told).toEqual(['RepositoryFailed', 'RepositoryRecovered', 'RepositoryFailed'])
  })

  test('IN10 one service’s error stops no other, and a repository that does not exist is an error of the service', async () => {
    await kit.service({}, 'other')
    expect(await kit.pull(one)).toContain('service/default/other')
    await kit.push({ 'shop/a.yaml': 'a: [', 'other/c.yaml': configMap('c', '5') })
    expect(await kit.pull(one)).toEqual(['object/default/other//ConfigMap/other/c', 'service/default/other'])
    const error = await unchanged(() => kit.service({ source: { repository: 'nowhere', path: 'shop' } }))
    expect(error).toMatchObject({ code: 'repository_missing', message: expect.stringMatching(/\bnowhere\b.* default$/) })
    await kit.service({ source: { repository: 'aps', path: 'shop' } })
    expect((await kit.store.renderState(SHOP)).error).toMatchObject({
      code: 'repository_missing',
      message: naming('repository aps', 'project default', 'apps?'),
    })
  })
})

/** Ends when everything of that kind was listed once. */
function nextList(kind: string): Promise<void> {
  const { listResources } = kit.store
  return new Promise((resolve) => {
    kit.store.listResources = async (...asked) => {
      const page = await listResources(...asked)
      if (asked[0] === kind) {
        kit.store.listResources = listResources
        setImmediate(resolve)
      }
      return page
    }
  })
}

/** The store cannot be reached for the next list. */
function failNextList(): void {
  const { listResources } = kit.store
  kit.store.listResources = async () => {
    kit.store.listResources = listResources
    throw new AppError('store_unreachable', { detail: 'just now' })
  }
}

test('IN8 ST14 a store that cannot be reached in the first moment of a server is asked again', async () => {
  await kit.git.commit({ 'shop/a.yaml': configMap('a', 'while it was down') }, 'second')
  failNextList()
  rmSync(join(kit.dir, 'git'), { recursive: true }) // without content a repository is read at once
  const stop = new AbortController()
  const running = kit.restarted(stop.signal).run()
  const before = await kit.row(one)
  await eventually('it is published', async () => (await kit.row(one))?.commit !== before?.commit)
  stop.abort()
  await running
})

test('IN8 ST14 clusters that changed when the store could not be reached get their services all the same', async () => {
  const stop = new AbortController()
  const ingest = kit.restarted(stop.signal)
  const listed = nextList('Service')
  const running = ingest.run()
  await listed
  const three = await kit.join('3')
  failNextList()
  await expect(ingest.clustersChanged()).rejects.toMatchObject({ code: 'store_unreachable' })
  await eventually('it is placed there', async () => (await kit.row(three)) !== null)
  stop.abort()
  await running
})

test('IN8a of a repository that was deleted and made again before anybody looked, the old folder goes', async () => {
  const folders = () => readdirSync(join(kit.dir, 'git'))
  const [before] = folders()
  await kit.store.deleteResource({ kind: 'Repository', project: 'default', name: 'apps' })
  await kit.repository()
  expect(folders()).toHaveLength(1)
  expect(folders()).not.toEqual([before])
  expect((await kit.row(one))?.commit).toBe(first)
})
