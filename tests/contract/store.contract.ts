// What every fleet store must do, whatever database is under it. Fixtures are tiny and named; ids are fixed so that a
// failure reads well.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { ResourceKey } from '../../server/fleet/records.ts'
import type { Store } from '../../server/store/store.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { clusterId, joinCluster, publishOne, type StoreHarness } from '../support/store-fixtures.ts'
import { agentContract } from './store-agents.contract.ts'
import { peopleContract } from './store-people.contract.ts'
import { statusContract } from './store-status.contract.ts'

const repository = (name: string, project = 'default'): ResourceKey => ({ kind: 'Repository', project, name })
const service = (name: string, project = 'default'): ResourceKey => ({ kind: 'Service', project, name })
const write = (store: Store, key: ResourceKey, spec = '{}', labels: Record<string, string> = {}, nowMs = 1) =>
  store.applyResource(key, { labels, spec, nowMs })

export function storeContract(name: string, create: () => Promise<Store>): void {
  describe(name, () => {
    let store: Store
    beforeEach(async () => {
      store = await create()
    })
    afterEach(() => store.close())
    const harness: StoreHarness = { store: () => store }

    describe('resources', () => resourceContract(harness))
    describe('dependencies', () => dependencyContract(harness))
    describe('sources', () => sourceContract(harness))
    describe('desired', () => desiredContract(harness))
    describe('clusters and agents', () => agentContract(harness))
    describe('status and events', () => statusContract(harness))
    describe('people', () => peopleContract(harness))
  })
}

const dependsOn = (...names: string[]) =>
  JSON.stringify({
    dependsOn: names.map((text) => (text.includes('/') ? { project: text.split('/')[0], name: text.split('/')[1] } : { name: text })),
  })

/** TG15: each write looks at what is committed when it is. */
function dependencyContract({ store }: StoreHarness): void {
  test.each([
    ['itself', [], ['a', 'a'], ['default/a', 'default/a'], 0],
    ['one that depends on it', [['b', 'a']], ['a', 'b'], ['default/a', 'default/b', 'default/a'], 0],
    ['itself, its own project named', [], ['a', 'default/a'], ['default/a', 'default/a'], 0],
    [
      'a long way, over projects',
      [
        ['b', 'net/c'],
        ['net/c', 'd'],
        ['net/d', 'default/a'],
      ],
      ['a', 'x', 'b'],
      ['default/a', 'default/b', 'net/c', 'net/d', 'default/a'],
      1,
    ],
    [
      'the shortest of two',
      [
        ['b', 'c', 'a'],
        ['c', 'a'],
      ],
      ['a', 'c', 'b'],
      ['default/a', 'default/c', 'default/a'],
      0,
    ],
  ] as const)('TG15 a service that depends on %s is refused, and nothing is written', async (_, before, [from, ...to], cycle, entry) => {
    const key = (text: string) => service(text.split('/').at(-1) ?? '', text.includes('/') ? text.split('/')[0] : undefined)
    for (const [name, ...others] of before) expect(await write(store(), key(name), dependsOn(...others))).toMatchObject({ kind: 'created' })
    expect(await write(store(), key(from), dependsOn(...to))).toEqual({ kind: 'cycle', cycle: [...cycle], entry })
    expect(await store().getResource(key(from))).toBeNull()
  })

  test('TG15 what does not exist, a diamond, and the same name in another project are no circle', async () => {
    expect(await write(store(), service('a'), dependsOn('b', 'c', 'none'))).toMatchObject({ kind: 'created' })
    for (const name of ['b', 'c']) expect(await write(store(), service(name), dependsOn('d'))).toMatchObject({ kind: 'created' })
    expect(await write(store(), service('d'), dependsOn('other/a'))).toMatchObject({ kind: 'created' })
    expect(await write(store(), service('a', 'other'))).toMatchObject({ kind: 'created' })
  })

  test('TG15 of two writes at once that close a circle together, one is refused', async () => {
    const kinds = (await Promise.all([write(store(), service('a'), dependsOn('b')), write(store(), service('b'), dependsOn('a'))])).map(
      ({ kind }) => kind,
    )
    expect(kinds.sort()).toEqual(['created', 'cycle'])
  })

  test('TG15 what closes no circle any more is taken', async () => {
    await write(store(), service('b'), dependsOn('a'))
    await write(store(), service('a'), '{}')
    await store().deleteResource(service('b'))
    await write(store(), service('a'), dependsOn('b'))
    expect(await write(store(), service('a'), dependsOn('b'))).toMatchObject({ kind: 'unchanged' })
    expect(await write(store(), service('b'), dependsOn())).toMatchObject({ kind: 'created' })
    expect(await write(store(), service('b'), dependsOn('a'))).toMatchObject({ kind: 'cycle' })
    expect(await write(store(), service('a'), dependsOn())).toMatchObject({ kind: 'configured' })
    expect(await write(store(), service('b'), dependsOn('a'))).toMatchObject({ kind: 'configured' })
  })
}

function resourceContract({ store }: StoreHarness): void {
  test('ST1 created, unchanged, configured: generation counts specs, version counts every change', async () => {
    const created = await write(store(), repository('apps'), '{"a":1}', { x: 'y' }, 5)
    expect(created).toMatchObject({ kind: 'created', resource: { generation: 1, createdMs: 5, updatedMs: 5, labels: { x: 'y' } } })
    const again = await write(store(), repository('apps'), '{"a":1}', { x: 'y' }, 9)
    if (!('resource' in created)) throw new Error('conflict')
    expect(again).toEqual({ kind: 'unchanged', resource: created.resource })
    const labelled = await write(store(), repository('apps'), '{"a":1}', { x: 'z' }, 10)
    expect(labelled).toMatchObject({
      kind: 'configured',
      resource: { generation: 1, createdMs: 5, updatedMs: 10, uid: created.resource.uid },
    })
    const changed = await write(store(), repository('apps'), '{"a":2}', { x: 'z' }, 11)
    expect(changed).toMatchObject({ kind: 'configured', resource: { generation: 2 } })
    if (!('resource' in labelled) || !('resource' in changed)) throw new Error('conflict')
    expect(labelled.resource.version).toBeGreaterThan(created.resource.version)
    expect(changed.resource.version).toBeGreaterThan(labelled.resource.version)
    expect(await store().getResource(repository('apps'))).toEqual(changed.resource)
  })

  test('ST1 a change with the wrong version changes nothing, with the right one it is taken', async () => {
    const created = await write(store(), repository('apps'))
    if (!('resource' in created)) throw new Error('conflict')
    const { version } = created.resource
    const change = { labels: {}, spec: '{"b":1}', nowMs: 2 }
    expect(await store().applyResource(repository('apps'), { ...change, ifVersion: version + 1 })).toEqual({ kind: 'conflict', version })
    expect((await store().getResource(repository('apps')))?.spec).toBe('{}')
    expect(await store().applyResource(repository('apps'), { ...change, ifVersion: version })).toMatchObject({ kind: 'configured' })
    expect(await store().applyResource(repository('none'), { ...change, ifVersion: 1 })).toEqual({ kind: 'conflict', version: null })
  })

  test('ST1 a version is never given again, so an old ETag cannot match a resource that was made anew', async () => {
    const first = await write(store(), repository('apps'))
    await store().deleteResource(repository('apps'))
    const second = await write(store(), repository('apps'))
    if (!('resource' in first) || !('resource' in second)) throw new Error('conflict')
    expect(second.resource.version).toBeGreaterThan(first.resource.version)
    expect(second.resource.uid).not.toBe(first.resource.uid)
  })

  test('ST1 kind, project and name together are the key', async () => {
    await write(store(), repository('web'), '{"r":1}')
    await write(store(), service('web'), '{"s":1}')
    await write(store(), service('web', 'other'), '{"o":1}')
    expect((await store().getResource(service('web')))?.spec).toBe('{"s":1}')
    expect(await store().deleteResource(service('web'))).toBe(true)
    expect(await store().deleteResource(service('web'))).toBe(false)
    expect(await store().getResource(service('web'))).toBeNull()
    expect((await store().getResource(repository('web')))?.spec).toBe('{"r":1}')
    expect((await store().getResource(service('web', 'other')))?.spec).toBe('{"o":1}')
  })

  test('ST4 pages are ordered by project and name, and together hold everything once', async () => {
    for (const [project, name] of [['b', 'a'], ['a', 'z'], ['a', 'm'], ['a', 'b-c'], ['a', 'b']] as const) await write(store(), service(name, project)) // biome-ignore format: a table
    await write(store(), repository('a', 'a'))
    const seen: string[] = []
    let after: string | undefined
    for (let pages = 0; pages < 10; pages++) {
      const page = await store().listResources('Service', { limit: 2, ...(after === undefined ? {} : { after }) })
      seen.push(...page.items.map((item) => `${item.project}/${item.name}`))
      if (page.next === null) break
      expect(page.items).toHaveLength(2)
      after = page.next
    }
    expect(seen).toEqual(['a/b', 'a/b-c', 'a/m', 'a/z', 'b/a'])
  })

  test('ST4 exactly one page has no next one', async () => {
    await write(store(), service('a'))
    await write(store(), service('b'))
    expect((await store().listResources('Service', { limit: 2 })).next).toBeNull()
    expect((await store().listResources('Service', { limit: 1 })).next).not.toBeNull()
  })

  test('ST4 selector and project narrow before the limit counts', async () => {
    for (let i = 0; i < 20; i++) await write(store(), service(`s${10 + i}`), '{}', { even: String(i % 2 === 0) })
    await write(store(), service('s00', 'other'), '{}', { even: 'true' })
    const selector = { matchLabels: { even: 'true' } }
    const first = await store().listResources('Service', { project: 'default', selector, limit: 4 })
    expect(first.items.map((item) => item.name)).toEqual(['s10', 's12', 's14', 's16'])
    const rest = await store().listResources('Service', { project: 'default', selector, limit: 50, after: first.next ?? '' })
    expect(rest.items.map((item) => item.name)).toEqual(['s18', 's20', 's22', 's24', 's26', 's28'])
    expect(rest.next).toBeNull()
  })

  test('ST1 a service that is being deleted stays, marked, and keeps the first time', async () => {
    await write(store(), service('web'))
    expect(await store().markDeleting(service('web'), 7, 'ann')).toBe(true)
    expect(await store().markDeleting(service('web'), 9, 'bob')).toBe(true)
    expect(await store().getResource(service('web'))).toMatchObject({ deletingMs: 7, deletingBy: 'ann' })
    expect(await store().markDeleting(service('none'), 7, 'ann')).toBe(false)
  })

  test('ST1 a deletion is finished only of what is still marked and still the same', async () => {
    const made = await store().applyResource(service('web'), { labels: {}, spec: '{}', nowMs: 1 })
    const version = async () => (await store().getResource(service('web')))?.version ?? 0
    expect(made.kind).toBe('created')
    expect(await store().finishDeletion(service('web'), await version())).toBe(false)
    await store().markDeleting(service('web'), 2, 'ann')
    const seen = await version()
    await store().applyResource(service('web'), { labels: { a: 'b' }, spec: '{}', nowMs: 3 })
    expect(await store().finishDeletion(service('web'), seen)).toBe(false)
    await store().setRenderState(
      { project: 'default', service: 'web' },
      { ...(await store().renderState({ project: 'default', service: 'web' })), commit: 'c' },
    )
    expect(await store().finishDeletion(service('web'), await version())).toBe(true)
    expect(await store().getResource(service('web'))).toBeNull()
    expect((await store().renderState({ project: 'default', service: 'web' })).commit).toBeNull()
  })

  test('ST8 events of a change are told with it, or not at all', async () => {
    const id = { project: 'default', service: 'web' }
    const event = (reason: string) => ({ ...id, atMs: 1, type: 'Normal' as const, reason, message: '', cluster: null, object: null })
    const version = async () => (await store().getResource(service('web')))?.version ?? 0
    await write(store(), service('web'))
    await store().markDeleting(service('none'), 2, 'ann', [event('none')])
    await store().markDeleting(service('web'), 2, 'ann', [event('marked')])
    const state = await store().renderState(id)
    await store().setRenderState(id, { ...state, commit: 'c' }, [], [event('rendered')])
    await store().setRenderState(id, { ...state, commit: 'c' }, [], [event('rendered again')])
    await store().finishDeletion(service('web'), (await version()) + 1, [event('too early')])
    await store().finishDeletion(service('web'), await version(), [event('finished')])
    const told = (await store().listEvents({ limit: 9 })).map(({ reason }) => reason)
    expect(told).toEqual(['marked', 'rendered', 'rendered again', 'finished'])
  })

  test('ST5 a cluster that never joined cannot be written', async () => {
    expect(await write(store(), { kind: 'Cluster', project: '', name: 'ghost' })).toEqual({ kind: 'conflict', version: null })
    expect(await store().clusterByName('ghost')).toBeNull()
  })
}

function sourceContract({ store }: StoreHarness): void {
  const error = { code: 'git_unreachable', message: 'no route', problems: [{ path: 'a.yaml:3', message: 'bad' }], sinceMs: 4 }

  test('ST1 repository state: empty at first, kept whole, forgotten with the repository', async () => {
    await write(store(), repository('apps'))
    expect(await store().repositoryState('default', 'apps')).toEqual({ commit: null, fetchedMs: null, tag: null, error: null })
    const state = { commit: 'abc', fetchedMs: 3, tag: 'v1.2.0', error }
    await store().setRepositoryState('default', 'apps', state)
    expect(await store().repositoryState('default', 'apps')).toEqual(state)
    await store().setRepositoryState('default', 'apps', { ...state, error: null })
    expect(await store().repositoryState('default', 'apps')).toEqual({ ...state, error: null })
    await store().deleteResource(repository('apps'))
    expect((await store().repositoryState('default', 'apps')).commit).toBeNull()
  })

  test('ST1 render state: empty at first, kept whole, forgotten with the service', async () => {
    const id = { project: 'default', service: 'web' }
    await write(store(), service('web'))
    const empty = { commit: null, generation: 0, digest: null, objectCount: 0, renderedMs: null, error: null }
    expect(await store().renderState(id)).toEqual(empty)
    const state = { commit: 'abc', generation: 2, digest: 'd', objectCount: 12, renderedMs: 3, error }
    await store().setRenderState(id, state)
    expect(await store().renderState(id)).toEqual(state)
    await store().deleteResource(service('web'))
    expect(await store().renderState(id)).toEqual(empty)
  })
}

const serviceRow = (digest: string) => ({
  commit: 'abc',
  digest,
  count: 1,
  sync: {
    prune: true,
    pruneWhen: 'healthy' as const,
    maxPrunePercent: 50,
    drift: 'correct' as const,
    createNamespace: true,
    force: true,
    takeover: false,
    healthDeadline: '10m',
  },
  protect: false,
})

function desiredContract({ store }: StoreHarness): void {
  const web = (clusterId: ClusterId, digest: string | null, placedBy = 'p') => ({
    clusterId,
    project: 'default',
    service: 'web',
    doc: digest === null ? null : serviceRow(digest),
    setSha: digest === null ? null : `sha-${digest}`,
    placedBy,
  })

  test('CU7 ordinals count the transactions of one cluster', async () => {
    const [a, b] = [await joinCluster(store(), 'a'), await joinCluster(store(), 'b')]
    expect(await publishOne(store(), web(a, 'one'))).toEqual({ changed: true, ordinal: 1 })
    expect(await publishOne(store(), { ...web(a, 'one'), service: 'api' })).toEqual({ changed: true, ordinal: 2 })
    expect(await publishOne(store(), web(b, 'one'))).toEqual({ changed: true, ordinal: 1 })
    expect(await publishOne(store(), web(a, 'two'))).toEqual({ changed: true, ordinal: 3 })
    expect(await store().clusterOrdinals()).toEqual(new Map([[a, 3], [b, 1]])) // biome-ignore format: a table
    expect((await store().desiredInCluster(a)).map((row) => [row.service, row.ordinal])).toEqual([['api', 2], ['web', 3]]) // biome-ignore format: a table
    expect((await store().desiredOfService({ project: 'default', service: 'web' })).map((row) => row.clusterId)).toEqual([a, b])
    expect((await store().desiredInCluster(b))[0]).toEqual({ ...web(b, 'one'), ordinal: 1 })
  })

  test('RV4 publishing the same again takes no ordinal, and neither does another placement of the same', async () => {
    const a = await joinCluster(store(), 'a')
    await publishOne(store(), web(a, 'one'))
    expect(await publishOne(store(), web(a, 'one'))).toEqual({ changed: false, ordinal: 1 })
    expect(await publishOne(store(), web(a, 'one', 'other selector'))).toEqual({ changed: false, ordinal: 1 })
    expect((await store().desiredInCluster(a))[0]).toMatchObject({ ordinal: 1, placedBy: 'other selector' })
    // RL5: nor does what it was made of.
    expect(await publishOne(store(), { ...web(a, 'one', 'other selector'), factsKey: 'm' })).toEqual({ changed: false, ordinal: 1 })
    expect((await store().desiredInCluster(a))[0]).toMatchObject({ ordinal: 1, placedBy: 'other selector', factsKey: 'm' })
    await publishOne(store(), web(a, 'one', 'other selector'))
    expect((await store().desiredInCluster(a))[0]?.factsKey).toBeUndefined()
    await publishOne(store(), { ...web(a, 'two'), factsKey: 'n' })
    expect((await store().desiredInCluster(a))[0]).toMatchObject({ ordinal: 2, factsKey: 'n' })
  })

  test('CU7 a tombstone keeps its ordinal; a tombstone of nothing is nothing', async () => {
    const a = await joinCluster(store(), 'a')
    expect(await publishOne(store(), web(a, null))).toEqual({ changed: false, ordinal: 0 })
    await publishOne(store(), web(a, 'one'))
    expect(await publishOne(store(), web(a, null))).toEqual({ changed: true, ordinal: 2 })
    expect(await publishOne(store(), web(a, null))).toEqual({ changed: false, ordinal: 2 })
    expect(await store().desiredInCluster(a)).toEqual([{ ...web(a, null), ordinal: 2 }])
    expect(await publishOne(store(), web(a, 'back'))).toEqual({ changed: true, ordinal: 3 })
  })

  test('UK7 tombstones come in the order of their keys, and go when they are not the newest row of their cluster and left no status', async () => {
    const [a, b] = [await joinCluster(store(), 'a'), await joinCluster(store(), 'b')]
    const of = (clusterId: ClusterId, name: string, digest: string | null) => ({ ...web(clusterId, digest), service: name })
    for (const clusterId of [a, b]) for (const name of ['web', 'api', 'kept']) await publishOne(store(), of(clusterId, name, 'one'))
    const status = { kind: 'object' as const, key: 'default/web//Pod/n/x', rev: 1, doc: {} }
    await store().upsertStatus(a, [status], { complete: false, nowMs: 1 })
    for (const [clusterId, name] of [[a, 'web'], [a, 'api'], [b, 'api'], [b, 'web']] as const) await publishOne(store(), of(clusterId, name, null)) // biome-ignore format: a table
    const all = await store().tombstones({ limit: 9 })
    expect(all.map(({ clusterId, service, ordinal, hasStatus }) => [clusterId, service, ordinal, hasStatus])).toEqual([
      [a, 'api', 5, true],
      [a, 'web', 4, true],
      [b, 'api', 4, true],
      [b, 'web', 5, true],
    ])
    const [first, second, third] = all
    if (first === undefined || second === undefined || third === undefined) throw new Error('no tombstones')
    expect(await store().tombstones({ limit: 2, after: first })).toEqual([second, third])

    expect(await store().dropTombstones(all)).toBe(0) // status rows may be left
    for (const tombstone of all) await store().deleteStatusOfService(tombstone.clusterId, tombstone)
    expect(await store().listStatus({ kind: 'object' })).toEqual([])
    expect((await store().tombstones({ limit: 9 })).map(({ hasStatus }) => hasStatus)).toEqual([false, false, false, false])
    await publishOne(store(), of(b, 'api', 'back'))
    await store().upsertStatus(b, [{ ...status, key: 'default/api//Pod/n/x' }], { complete: false, nowMs: 1 })
    await store().deleteStatusOfService(b, { project: 'default', service: 'api' }) // by somebody who saw the tombstone
    expect(await store().listStatus({ kind: 'object' })).toHaveLength(1)
    expect(await store().dropTombstones(all)).toBe(2) // neither a/api, which is the newest of its cluster, nor what was placed again
    expect((await store().desiredInCluster(a)).map(({ service, doc }) => [service, doc === null])).toEqual([['kept', false], ['api', true]]) // biome-ignore format: a table
    expect((await store().desiredInCluster(b)).map(({ service, doc }) => [service, doc === null])).toEqual([['kept', false], ['api', false]]) // biome-ignore format: a table
    expect((await store().clusterOrdinals()).get(a)).toBe(5)
  })

  test('CU7 many at once still count without a gap', async () => {
    const a = await joinCluster(store(), 'a')
    const rows = Array.from({ length: 40 }, (_, i) => ({ ...web(a, 'one'), service: `s${i}` }))
    const results = await Promise.all(rows.map((row) => publishOne(store(), row)))
    expect(results.map((result) => result.ordinal).sort((x, y) => x - y)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1))
  })

  test('HR4 clusters of a project are those that have one of its services; health rules are none', async () => {
    const [a, b, c] = [await joinCluster(store(), 'a'), await joinCluster(store(), 'b'), await joinCluster(store(), 'c')]
    const rules = { ...web(a, null), project: '', service: '', setSha: 'sha-rules' }
    expect(await publishOne(store(), rules)).toEqual({ changed: true, ordinal: 1 })
    expect(await publishOne(store(), rules)).toEqual({ changed: false, ordinal: 1 })
    for (const row of [web(a, 'one'), web(b, 'one'), web(b, null), { ...web(c, 'one'), project: 'other' }]) await publishOne(store(), row)
    expect(await store().clustersOfProject('default', [a, b, c])).toEqual(new Set([a]))
    expect(await store().clustersOfProject('other', [a, b, c])).toEqual(new Set([c]))
    expect(await store().clustersOfProject('other', [a, b])).toEqual(new Set())
    expect(await store().clustersOfProject('', [a, b, c])).toEqual(new Set())
    expect(await publishOne(store(), { ...rules, setSha: null })).toEqual({ changed: true, ordinal: 3 })
  })

  test('ST6 nothing is published to a cluster that is gone', async () => {
    expect(await publishOne(store(), web(clusterId('f'), 'one'))).toEqual({ changed: false, ordinal: 0 })
    expect(await store().desiredInCluster(clusterId('f'))).toEqual([])
  })
}
