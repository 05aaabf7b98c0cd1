// From a commit to the rows that an agent pulls, with everything real but HTTP and the agents.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ClusterId } from '../../shared/model/ids.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { configMap, confirmationId, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { eventually } from '../support/kube-cluster.ts'

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
      message: `folder shop does not exist at commit ${commit.slice(0, 12)}; folders in its root: other`,
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
    expect((await state()).error).toMatchObject({ code: 'git_ref_not_found', message: `${kit.git.url} has no branch or tag nope` })
    const told = (await kit.events()).filter((event) => event.startsWith('Repository')).map((event) => event.split(':')[0])
    expect(told).toEqual(['RepositoryFailed', 'RepositoryRecovered', 'RepositoryFailed'])
  })

  test('IN10 one service’s error stops no other, and a repository that does not exist is an error of the service', async () => {
    await kit.service({}, 'other')
    expect(await kit.pull(one)).toContain('service/default/other')
    await kit.push({ 'shop/a.yaml': 'a: [', 'other/c.yaml': configMap('c', '5') })
    expect(await kit.pull(one)).toEqual(['object/default/other//ConfigMap/other/c', 'service/default/other'])
    const error = await unchanged(() => kit.service({ source: { repository: 'nowhere', path: 'shop' } }))
    expect(error?.message).toBe('repository nowhere does not exist in project default')
    await kit.service({ source: { repository: 'aps', path: 'shop' } })
    expect((await kit.store.renderState(SHOP)).error?.message).toBe('repository aps does not exist in project default; did you mean apps?')
  })
})

describe('targets', () => {
  test('TG5 a selector that suddenly matches nobody waits with the names; mended, nothing has happened', async () => {
    await kit.pull(one)
    await kit.service({ targets: { selector: { matchLabels: { env: 'prodd' } } } })
    expect([await kit.pull(one), await kit.pull(two)]).toEqual([[], [A, B, ROW]])
    expect(await kit.store.listConfirmations()).toMatchObject([{ kind: 'leave_targets', names: ['cluster-1', 'cluster-2'] }])
    await kit.push({ 'shop/a.yaml': configMap('a', '6') })
    expect(await kit.pull(one)).toEqual([A, ROW])
    await kit.service()
    expect(await kit.store.listConfirmations()).toEqual([])
    expect((await kit.row(one))?.removal).toBeUndefined()
  })

  test('TG3 a fleet that is relabelled cluster by cluster loses five, the others are asked about', async () => {
    for (const digit of ['3', '4', '5', '6', '7', '8']) await kit.join(digit)
    await kit.ingest.clustersChanged()
    for (let n = 1; n <= 8; n++) await kit.relabel(`cluster-${n}`, { env: 'prd' })
    const rows = await kit.store.desiredOfService(SHOP)
    expect(rows.filter(({ doc }) => doc?.removal !== undefined)).toHaveLength(5)
    expect(await kit.store.listConfirmations()).toMatchObject([{ kind: 'leave_targets', names: ['cluster-6', 'cluster-7', 'cluster-8'] }])
  })

  test('TG7 TG8 relabelling moves a service: removal order, report, tombstone', async () => {
    const three = await kit.join('3', { env: 'test' })
    await kit.pull(one)
    await kit.relabel('cluster-1', { env: 'test' })
    await kit.relabel('cluster-3', { env: 'prod' })
    expect(await kit.pull(one)).toEqual([`-${A}`, `-${B}`, ROW])
    expect((await kit.row(one))?.removal).toMatchObject({ policy: 'delete', by: 'skerry' })
    expect(await kit.pull(three)).toEqual([A, B, ROW])
    await kit.reportRemoved(one)
    expect(await kit.pull(one)).toEqual([`-${ROW}`])
    expect(await kit.store.listStatus({ clusterId: one, kind: 'service' })).toEqual([])
  })

  test('TG8 an agent’s answer to an order that was taken back does not end the next one', async () => {
    await kit.relabel('cluster-1', { env: 'test' })
    const before = (await kit.row(one))?.removal?.atMs ?? 0
    await kit.relabel('cluster-1', { env: 'prod' })
    await Bun.sleep(2)
    await kit.relabel('cluster-1', { env: 'test' })
    await kit.report(one, { removed: true, removedOrderMs: before })
    await kit.report(one, { removed: true })
    expect((await kit.row(one))?.removal).toBeDefined()
    await kit.reportRemoved(one)
    expect(await kit.row(one)).toBeNull()
  })

  test('TG11 a deleted service goes by removal orders and is gone when all have reported', async () => {
    expect(await kit.actions.deleteService(SHOP, 'ada')).toEqual({ kind: 'removing', clusters: ['cluster-1', 'cluster-2'] })
    expect((await kit.row(one))?.removal).toMatchObject({ by: 'ada', why: 'the service was deleted' })
    await kit.reportRemoved(one)
    expect(await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' })).not.toBeNull()
    await kit.reportRemoved(two)
    await kit.ingest.serviceChanged(SHOP)
    expect(await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' })).toBeNull()
    expect(await kit.actions.deleteService(SHOP, 'ada')).toEqual({ kind: 'not_found' })
  })

  test('RM1 RM4 names of data that come with a deletion go with the order of their cluster, later ones into the same order', async () => {
    const names = (data: Array<[ClusterId, string[]]>) => new Map([['default/shop', new Map(data)]])
    await kit.actions.deleteService(SHOP, 'ada', names([[one, ['PersistentVolumeClaim shop/data']]]))
    const order = (await kit.row(one))?.removal
    expect([(await kit.row(one))?.confirmed, (await kit.row(two))?.confirmed]).toEqual([['PersistentVolumeClaim shop/data'], undefined])
    expect((await kit.events()).find((event) => event.startsWith('DeletionRequested'))).toContain(
      'with the data of PersistentVolumeClaim shop/data',
    )
    await kit.actions.deleteService(SHOP, 'ada', names([[one, ['PersistentVolumeClaim shop/more']]]))
    expect(await kit.row(one)).toMatchObject({
      confirmed: ['PersistentVolumeClaim shop/data', 'PersistentVolumeClaim shop/more'],
      removal: { atMs: order?.atMs ?? -1 },
    })
  })

  test('RM4 names count for what follows from the change that they came with, and for nothing later', async () => {
    const confirmed = new Map([['default/shop', new Map([[one, ['PersistentVolumeClaim shop/data']]])]])
    await kit.ingest.dataConfirmed(confirmed)
    await kit.ingest.serviceChanged(SHOP)
    await kit.relabel('cluster-1', { env: 'test' })
    expect(await kit.row(one)).toMatchObject({ removal: { policy: 'delete' } })
    expect((await kit.row(one))?.confirmed).toBeUndefined()
  })

  test('RM4 names that come with a change of labels go with the order; a service that lets go takes none', async () => {
    const confirmed = new Map([['default/shop', new Map([one, two].map((id) => [id, ['PersistentVolumeClaim shop/data']]))]])
    await kit.ingest.dataConfirmed(confirmed)
    await kit.relabel('cluster-1', { env: 'test' })
    expect((await kit.row(one))?.confirmed).toEqual(['PersistentVolumeClaim shop/data'])
    await kit.service({ deletionPolicy: 'orphan' })
    await kit.ingest.dataConfirmed(confirmed)
    await kit.relabel('cluster-2', { env: 'test' })
    expect([(await kit.row(two))?.removal?.policy, (await kit.row(two))?.confirmed]).toEqual(['orphan', undefined])
  })

  test('TG4 a protected service is deleted only after a person confirmed the exact names', async () => {
    await kit.service({ protect: true })
    const outcome = await kit.actions.deleteService(SHOP, 'ada')
    expect(outcome).toMatchObject({ kind: 'waiting', confirmation: { names: ['cluster-1', 'cluster-2'] } })
    expect((await kit.row(one))?.removal).toBeUndefined()
    await kit.actions.confirm(await confirmationId(kit.store), 'grace')
    expect((await kit.row(one))?.removal).toMatchObject({ by: 'grace' })
    expect(await kit.store.listConfirmations()).toEqual([])
  })

  test('DE4 TG4 the question names the services that depend on it, and they stay', async () => {
    await kit.service({ protect: true })
    await kit.service({ dependsOn: [{ name: 'shop' }] }, 'till')
    const outcome = await kit.actions.deleteService(SHOP, 'ada')
    expect(outcome).toMatchObject({
      kind: 'waiting',
      confirmation: { why: expect.stringMatching(/; its dependents stay unchanged and start no new revision without it: default\/till$/) },
    })
  })

  test('TG14 a deletion that waits is taken back by applying the service again; a yes that comes later is for nothing', async () => {
    await kit.service({ protect: true })
    await kit.actions.deleteService(SHOP, 'ada')
    const id = await confirmationId(kit.store)
    expect(await kit.actions.takeBackDeletion(SHOP, 'grace')).toBe(true)
    await kit.service({ protect: true })
    expect(await kit.store.listConfirmations()).toEqual([])
    expect(await kit.actions.confirm(id, 'ada')).toBeNull()
    await kit.ingest.serviceChanged(SHOP)
    expect([(await kit.row(one))?.removal, (await kit.row(two))?.removal]).toEqual([undefined, undefined])
    expect((await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' }))?.deletingMs).toBeNull()
    expect(await kit.events()).toContain('DeletionTakenBack: by grace, who applied the service again')
    // Deleted again it asks again; after the yes there is no way back.
    await kit.actions.deleteService(SHOP, 'ada')
    await kit.actions.confirm(await confirmationId(kit.store), 'ada')
    expect(await kit.actions.takeBackDeletion(SHOP, 'grace')).toBe(false)
  })

  test('TG14 a deletion that is taken back while its last pass runs leaves the service', async () => {
    await kit.service({ protect: true })
    await kit.actions.deleteService(SHOP, 'ada')
    const read = kit.store.confirmationsOfService
    kit.store.confirmationsOfService = async (id) => {
      const questions = await read(id)
      // The pass that finds no cluster any more is the last one, whoever asked for it.
      if ((await kit.store.listClusters()).length === 0) await kit.actions.takeBackDeletion(SHOP, 'grace')
      return questions
    }
    await kit.actions.deleteCluster('cluster-1', 'ada')
    await kit.actions.deleteCluster('cluster-2', 'ada')
    await kit.ingest.serviceChanged(SHOP)
    expect(await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' })).toMatchObject({ deletingMs: null })
  })

  test('IN7 a yes to a prune is no new revision to tell of', async () => {
    const published = async () => (await kit.events()).filter((event) => event.startsWith('RevisionPublished')).length
    const before = await published()
    const digest = (await kit.row(one))?.digest ?? ''
    await kit.report(one, { refusal: { digest, names: ['ConfigMap shop/x'], count: 1, ownedCount: 3, why: 'most of it would go' } })
    await kit.actions.confirm(await confirmationId(kit.store), 'ada')
    expect([(await kit.row(one))?.pruneConfirmed, await published()]).toEqual([digest, before])
  })

  test('TG12 a refused prune opens a question with names; a yes puts the digest into that row; the question goes with the refusal', async () => {
    await kit.pull(one)
    const digest = (await kit.row(one))?.digest ?? ''
    await kit.report(one, { refusal: { digest, names: ['ConfigMap shop/x'], count: 1, ownedCount: 3, why: 'most of it would go' } })
    expect(await kit.store.listConfirmations()).toMatchObject([{ kind: 'prune', cluster: 'cluster-1', names: ['ConfigMap shop/x'] }])
    await kit.actions.confirm(await confirmationId(kit.store), 'ada')
    expect(await kit.pull(one)).toEqual([ROW])
    expect([(await kit.row(one))?.pruneConfirmed, (await kit.row(two))?.pruneConfirmed]).toEqual([digest, undefined])
    await kit.report(two, { refusal: { digest, names: ['ConfigMap shop/y'], count: 1, ownedCount: 3, why: 'x' } })
    await kit.report(two, {})
    expect(await kit.store.listConfirmations()).toEqual([])
  })

  test('TG12 an agent that reports of services which its cluster does not have opens no questions, and costs next to nothing', async () => {
    const refusal = { digest: 'a'.repeat(64), names: ['ConfigMap shop/x'], count: 1, ownedCount: 3, why: 'x' }
    const doc = {
      sync: 'Synced',
      health: 'Healthy',
      reason: '',
      message: '',
      sinceMs: 1,
      objectCount: 1,
      healthyCount: 1,
      removed: true,
      refusal,
    }
    const rows = Array.from({ length: 200 }, (_, n) => ({ kind: 'service' as const, key: `default/s${n}`, rev: n + 1, doc }))
    let passes = 0
    let lists = 0
    const { listClusters, getResource } = kit.store
    kit.store.listClusters = () => {
      lists += 1
      return listClusters()
    }
    kit.store.getResource = (key) => {
      passes += 1
      return getResource(key)
    }
    kit.actions.onStatus({ clusterId: one, clusterName: 'cluster-1' }, rows)
    await Bun.sleep(300)
    expect([(await kit.store.listConfirmations()).length, lists, passes]).toEqual([0, 0, 0])
    kit.actions.onStatus({ clusterId: one, clusterName: 'cluster-1' }, [
      { ...rows[0], key: 'default/shop', doc: { ...doc, removed: false } } as never,
    ])
    await eventually('it asks', async () => (await kit.store.listConfirmations()).length > 0)
    expect(await kit.store.listConfirmations()).toMatchObject([{ kind: 'prune', cluster: 'cluster-1', service: 'shop' }])
  })

  test('TG13 a deleted cluster takes its rows along and leaves the others alone', async () => {
    expect(await kit.actions.deleteCluster('cluster-1', 'ada')).toBe(true)
    expect(await kit.actions.deleteCluster('cluster-1', 'ada')).toBe(false)
    expect(await kit.store.desiredInCluster(one)).toEqual([])
    expect(await kit.row(two)).not.toBeNull()
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
