// What is deleted when, and what is said while it is not: health, deadlines, annotations, hand-overs, holds, windows, a
// person at the site.
import { afterEach, describe, expect, test } from 'bun:test'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { news } from '../../agent/messages/event-messages.ts'
import { objectText } from '../../agent/messages/object-messages.ts'
import { serviceText } from '../../agent/messages/service-messages.ts'
import { sitePart } from '../../agent/messages/site-messages.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { crd, namespace, namespaceRef, setup, stopAll, thing, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, type RowOptions, SHOP } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'

afterEach(stopAll)

const MINUTE = 60_000
const WHOLE = sitePart('whole_cluster')
const OTHER: ServiceId = { project: 'web', service: 'other' }
const deployment = (name: string): K8sObject =>
  ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [] } },
    },
  }) as unknown as K8sObject
const deploymentRef = (name: string): ObjectRef => ({ group: 'apps', kind: 'Deployment', namespace: 'default', name })
const available = {
  observedGeneration: 1,
  replicas: 1,
  updatedReplicas: 1,
  readyReplicas: 1,
  availableReplicas: 1,
  conditions: [{ type: 'Available', status: 'True' }],
}
const annotated = (object: K8sObject, annotations: Record<string, string>): K8sObject => ({
  ...object,
  metadata: { ...object.metadata, annotations },
})

describe('a prune that waits for health', () => {
  test('PR6, PR11 past the health deadline it names both sides and what to do; it goes when the new one is well', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([deployment('old')])
    await run()
    cluster.setStatus(deploymentRef('old'), available)
    await clock.advance(1_000)
    kit.desire([deployment('new')])
    await clock.advance(MINUTE)
    expect(kit.service()).toMatchObject({ reason: 'PrunePending' })
    expect(kit.service()?.message).toMatch(
      said(deletionText('when_ready', { object: 'Deployment default/new', until: 'healthy', pruneWhen: 'healthy', names: SOME })),
    )
    await clock.advance(10 * MINUTE)
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', reason: 'PruneOverdue' })
    const overdue = { object: 'Deployment default/new', deadline: '10m', why: SOME, names: 'Deployment default/old' }
    expect(kit.service()?.message).toMatch(said(deletionText('overdue_healthy', overdue)))
    expect(cluster.object(deploymentRef('old'))).not.toBeNull()
    cluster.setStatus(deploymentRef('new'), available)
    await clock.advance(1_000)
    expect(cluster.object(deploymentRef('old'))).toBeNull()
    expect(kit.service()).toMatchObject({ reason: 'Synced' })
  })

  test('PR6 with pruneWhen: applied the old one goes before the new one is healthy', async () => {
    const { cluster, kit, run, clock } = setup()
    const sync = { pruneWhen: 'applied' } as const
    kit.desire([deployment('old')], { sync })
    await run()
    kit.desire([deployment('new')], { sync })
    await clock.advance(1_000)
    expect(cluster.object(deploymentRef('old'))).toBeNull()
  })
})

describe('a deletion that does not end', () => {
  test('PR9 past the deadline the object is DeletionStuck and names its finalizers, across a restart; then it goes by itself', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('keep'), configMap('stuck')])
    await run()
    cluster.editAs('controller', configMapRef('stuck'), ({ metadata }) => Object.assign(metadata, { finalizers: ['example.com/hold'] }))
    kit.desire([configMap('keep')])
    await clock.advance(MINUTE)
    expect(kit.object(configMapKey('stuck'))).toMatchObject({ reason: 'Waiting', health: 'Progressing' })
    await kit.stop()
    kit.start()
    await clock.advance(10 * MINUTE)
    expect(kit.object(configMapKey('stuck'))).toMatchObject({ reason: 'DeletionStuck', health: 'Degraded' })
    expect(kit.object(configMapKey('stuck'))?.message).toMatch(
      said(objectText('DeletionStuck', { deleting: `${SOME}example.com/hold`, length: '10 min', advice: SOME })),
    )
    expect(kit.service()).toMatchObject({ reason: 'DeletionStuck' })
    cluster.editAs('controller', configMapRef('stuck'), ({ metadata }) => Reflect.deleteProperty(metadata, 'finalizers'))
    await clock.advance(1_000)
    expect(kit.service()).toMatchObject({ reason: 'Synced' })
  })

  test('OR2 a custom resource that is held keeps its operator and its CRD', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('keep'), crd, thing('t'), deployment('operator')])
    await run()
    cluster.setStatus(deploymentRef('operator'), available)
    const ref = { group: 'example.com', kind: 'Thing', namespace: '', name: 't' }
    cluster.editAs('operator', ref, ({ metadata }) => Object.assign(metadata, { finalizers: ['example.com/clean'] }))
    const objects = [configMap('keep')]
    kit.desire(objects, { pruneConfirmed: kit.desire(objects) })
    await clock.advance(MINUTE)
    expect(cluster.object(deploymentRef('operator'))).not.toBeNull()
    cluster.editAs('operator', ref, ({ metadata }) => Reflect.deleteProperty(metadata, 'finalizers'))
    await clock.advance(MINUTE)
    expect(cluster.objects().map(({ metadata }) => metadata.name)).not.toContain('operator')
    expect(kit.service()).toMatchObject({ reason: 'Synced' })
  })
})

describe('annotations that speak of deletion', () => {
  test('PR3 a Namespace goes without a person when its annotation allows it, and not without', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('keep'), annotated(namespace('yes'), { 'skerry.dev/prune': 'allowed' }), namespace('no')])
    await run()
    kit.desire([configMap('keep'), namespace('no')])
    await clock.advance(1_000)
    expect(cluster.object(namespaceRef('yes'))).toBeNull()
    kit.desire([configMap('keep')])
    await clock.advance(1_000)
    expect(cluster.object(namespaceRef('no'))).not.toBeNull()
    expect(kit.service()).toMatchObject({ reason: 'PruneBlocked' })
  })

  test('PR12 IV4 a keep mark that came a moment before counts, also before its event', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('a'), configMap('b'), configMap('c')])
    await run()
    cluster.lagWatches(() => 60_000)
    const mark = { metadata: { annotations: { 'skerry.dev/prune': 'disabled' } } }
    cluster.patchAs('kubectl', configMapRef('a'), mark)
    cluster.patchAs('kubectl', configMapRef('b'), { metadata: { annotations: { 'example.com/note': 'x' } } })
    writes(cluster)
    kit.desire([configMap('c')], { sync: { maxPrunePercent: 100 } })
    await clock.advance(50)
    expect(writes(cluster).sort()).toEqual(['delete ConfigMap a', 'delete ConfigMap b', 'delete ConfigMap b', 'patch ConfigMap a'])
    expect(cluster.object(configMapRef('a'))?.metadata.annotations).toMatchObject(mark.metadata.annotations)
    expect(cluster.object(configMapRef('b'))).toBeNull()
    expect(kit.service()).toMatchObject({ sync: 'Synced', reason: 'Synced' })
  })

  test('PR12 an object that changes before each delete is tried three times at once and then with backoff, and says so', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('a'), configMap('b')])
    await run()
    let revision = 0
    let isBusy = true
    cluster.fail(({ verb, ref }) => {
      if (isBusy && verb === 'delete' && ref?.name === 'a')
        cluster.patchAs('controller', configMapRef('a'), { metadata: { annotations: { 'example.com/seen': String(revision++) } } })
      return null
    })
    writes(cluster)
    kit.desire([configMap('b')])
    await clock.advance(500)
    expect(writes(cluster).length).toBeLessThanOrEqual(5)
    await clock.advance(MINUTE)
    expect(writes(cluster).length).toBeLessThanOrEqual(12)
    expect(kit.object(configMapKey('a'))).toMatchObject({
      sync: 'OutOfSync',
      reason: 'Conflict',
      message: expect.stringMatching(said(objectText('Conflict.delete', { failure: `changed by another client${SOME}` }))),
    })
    expect(kit.events().filter(({ reason }) => reason === 'DeletionConflict')).toHaveLength(1)
    isBusy = false
    await clock.advance(10 * MINUTE)
    expect(cluster.object(configMapRef('a'))).toBeNull()
    expect(kit.service()).toMatchObject({ reason: 'Synced' })
  })

  test('IV4 what Argo CD has put its mark on since is let go and not deleted', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('keep'), configMap('taken')])
    await run()
    cluster.editAs('argocd-controller', configMapRef('taken'), ({ metadata }) =>
      Object.assign(metadata, {
        annotations: { ...metadata.annotations, 'argocd.argoproj.io/tracking-id': 'shop:/ConfigMap:default/taken' },
      }),
    )
    kit.desire([configMap('keep')])
    await clock.advance(1_000)
    expect(cluster.object(configMapRef('taken'))?.metadata.annotations).toEqual({
      'argocd.argoproj.io/tracking-id': 'shop:/ConfigMap:default/taken',
    })
    expect(kit.service()).toMatchObject({ reason: 'Synced' })
  })
})

describe('PR8 an object that is handed over', () => {
  const handover = (after?: string): RowOptions => ({
    handover: [{ object: configMapKey('moved'), ...OTHER, ...(after === undefined ? {} : { after }) }],
  })
  const both = async () => {
    const parts = setup()
    parts.kit.desire([configMap('own'), configMap('moved')])
    const before = parts.kit.desire([configMap('other')], {}, OTHER)
    await parts.run()
    return { ...parts, before, uid: parts.cluster.object(configMapRef('moved'))?.metadata.uid as string }
  }
  const uidNow = ({ cluster }: Awaited<ReturnType<typeof both>>) => cluster.object(configMapRef('moved'))?.metadata.uid

  test('PR8 is kept while the revision that names it is not here, and goes over when it is', async () => {
    const parts = await both()
    parts.kit.desire([configMap('own')], handover(parts.before))
    await parts.clock.advance(MINUTE)
    expect(uidNow(parts)).toBe(parts.uid)
    expect(parts.kit.object(configMapKey('moved'))?.message).toBe(deletionText('moving_next', { service: 'service web/other' }))
    parts.kit.desire([configMap('other'), configMap('moved')], {}, OTHER)
    await parts.clock.advance(MINUTE)
    expect(uidNow(parts)).toBe(parts.uid)
    expect([parts.kit.service()?.reason, parts.kit.service(OTHER)?.reason]).toEqual(['Synced', 'Synced'])
  })
  test('PR8 is kept if it has no namespace and the server gave it that of each service', async () => {
    const { cluster, kit, clock, run } = setup()
    cluster.applyAs('somebody', crd)
    const named = (place: string) => ({ object: `example.com/Thing/${place}/big`, project: 'web' })
    kit.desire([configMap('own'), thing('big', { namespace: 'one' })])
    const other = kit.desire([configMap('other')], {}, OTHER)
    await run()
    const ref = { group: 'example.com', kind: 'Thing', namespace: '', name: 'big' }
    const uid = cluster.object(ref)?.metadata.uid
    expect(uid).toBeDefined()
    kit.desire([configMap('own')], { handover: [{ ...named('one'), ...OTHER, after: other }] })
    await clock.advance(MINUTE)
    // The taker hands it on; nobody can read it there yet.
    kit.desire([configMap('other', { v: '2' })], { handover: [{ ...named('two'), service: 'third' }] }, OTHER)
    await clock.advance(MINUTE)
    expect(cluster.object(ref)?.metadata.uid).toBe(uid as string)
    const unserved = { ...thing('big', { namespace: 'three' }), apiVersion: 'example.com/v9' }
    kit.desire([configMap('third'), unserved], {}, { project: 'web', service: 'third' })
    await clock.advance(MINUTE)
    expect(cluster.object(ref)?.metadata.uid).toBe(uid as string)
    kit.desire([configMap('third'), thing('big', { namespace: 'three' })], {}, { project: 'web', service: 'third' })
    await clock.advance(MINUTE)
    expect(cluster.object(ref)?.metadata.uid).toBe(uid as string)
    expect(kit.service({ project: 'web', service: 'third' })?.reason).toBe('Synced')
  })
  test('PR8 is kept while the taker has no row, and after a restart', async () => {
    const parts = await both()
    parts.kit.dropRow(OTHER)
    parts.kit.desire([configMap('own')], handover())
    await parts.clock.advance(MINUTE)
    await parts.kit.stop()
    parts.kit.start()
    await parts.clock.advance(MINUTE)
    expect(uidNow(parts)).toBe(parts.uid)
  })
  test.each([
    ['a taker that never came', null],
    ['a taker that went back to what it was', 'after'],
  ])('PR8 a removal that waits for %s says what to do, and ends when that is done', async (_, after) => {
    const parts = await both()
    const { cluster, kit, clock, before, uid } = parts
    if (after === null) kit.dropRow(OTHER)
    await clock.advance(MINUTE)
    kit.remove('prune', undefined, 1, handover(after === null ? undefined : before))
    await clock.advance(3_600_000)
    expect(uidNow(parts)).toBe(uid)
    expect(kit.state.inventory(SHOP).map(({ ref }) => ref.name)).toEqual(['moved'])
    expect(kit.object(configMapKey('moved'))?.message).toBe(
      deletionText(after === null ? 'moving' : 'moving_next', { service: 'service web/other' }),
    )
    cluster.deleteAs('somebody', configMapRef('moved'))
    await clock.advance(MINUTE)
    expect(kit.state.inventory(SHOP)).toEqual([])
    expect(kit.events().map(({ reason }) => reason)).toContain('Removed')
  })
  test('PR8 is pruned when a later revision of the taker does not want it', async () => {
    const parts = await both()
    parts.kit.desire([configMap('own')], handover(parts.before))
    await parts.clock.advance(1_000)
    parts.kit.desire([configMap('other', { v: '2' })], {}, OTHER)
    await parts.clock.advance(1_000)
    expect(uidNow(parts)).toBeUndefined()
  })
  test('PR8 two services that swap lose nothing in either order', async () => {
    const { cluster, kit, run, clock } = setup()
    const a = kit.desire([configMap('x'), configMap('a')])
    const b = kit.desire([configMap('y'), configMap('b')], {}, OTHER)
    await run()
    const uids = () => ['x', 'y'].map((name) => cluster.object(configMapRef(name))?.metadata.uid)
    const before = uids()
    kit.desire([configMap('y'), configMap('a')], { handover: [{ object: configMapKey('x'), ...OTHER, after: b }] })
    await clock.advance(MINUTE)
    expect(uids()).toEqual(before)
    kit.desire(
      [configMap('x'), configMap('b')],
      { handover: [{ object: configMapKey('y'), project: 'web', service: 'shop', after: a }] },
      OTHER,
    )
    await clock.advance(6 * MINUTE)
    expect(uids()).toEqual(before)
    expect([kit.service()?.reason, kit.service(OTHER)?.reason]).toEqual(['Synced', 'Synced'])
  })
})

describe('holds and windows', () => {
  const hold = { kind: 'hold', service: 'web/shop', by: 'ola', why: 'a repair' } as const

  test('HO1 a held service changes, corrects and prunes nothing, puts back what is gone, and says who holds it; across a restart', async () => {
    const { cluster, kit, run, clock, settle } = setup()
    kit.desire([configMap('a'), configMap('b'), configMap('gone')])
    await run()
    expect(kit.reconciler.order(hold)).toMatchObject({ kind: 'done' })
    await settle()
    expect(kit.service()).toMatchObject({ sync: 'Synced', reason: 'Held', held: { by: 'ola', why: 'a repair' } })
    await kit.stop()
    kit.start()
    await settle()
    writes(cluster)
    kit.desire([configMap('a', { a: '2' }), configMap('b')])
    cluster.editAs('kubectl-edit', configMapRef('a'), (object) => Object.assign(object, { data: { a: 'by hand' } }))
    cluster.deleteAs('kubectl', configMapRef('b'))
    await clock.advance(MINUTE)
    expect(writes(cluster)).toEqual(['apply ConfigMap b'])
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', reason: 'Held' })
    expect(kit.service()?.message).toContain('held by ola since 2023-11-14T22:13Z: a repair')
    expect(kit.reconciler.order({ kind: 'unhold', service: 'web/shop', by: 'ola' })).toMatchObject({ kind: 'done' })
    await clock.advance(MINUTE)
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap a', 'delete ConfigMap gone'])
    expect(kit.service()).toMatchObject({ reason: 'Synced' })
    expect(kit.service()?.held).toBeUndefined()
    expect(kit.events().map(({ reason }) => reason)).toEqual(expect.arrayContaining(['Held', 'Released']))
  })

  test('HO1 lifting one of two holds says that the other one stays', async () => {
    const { kit, run } = setup()
    kit.desire([configMap('a')])
    await run()
    const unhold = { kind: 'unhold', service: null, by: 'ola' } as const
    kit.reconciler.order(hold)
    expect(kit.reconciler.order(unhold).message).toBe(
      news('Released.butFor', { what: WHOLE, by: 'ola', held: 'web/shop', count: 1 }).message,
    )
    kit.reconciler.order({ ...hold, service: null })
    expect(kit.reconciler.order({ ...unhold, service: 'web/shop' }).message).toBe(
      news('Released.still', { what: 'web/shop', by: 'ola' }).message,
    )
    expect(kit.reconciler.order(unhold).message).toBe(news('Released', { what: WHOLE, by: 'ola' }).message)
  })

  test('HO2 a hold on the whole cluster ends at its hour, with nobody asking', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('a')])
    await run()
    expect(kit.reconciler.order({ ...hold, service: null, untilMs: clock.nowMs() + 30 * MINUTE })).toMatchObject({ kind: 'done' })
    kit.desire([configMap('a', { a: '2' })])
    await clock.advance(29 * MINUTE)
    expect(cluster.object(configMapRef('a'))).toMatchObject({ data: { a: '1' } })
    await clock.advance(2 * MINUTE)
    expect(cluster.object(configMapRef('a'))).toMatchObject({ data: { a: '2' } })
    expect(kit.reconciler.order({ ...hold, service: 'web/nobody' })).toMatchObject({ kind: 'refused' })
  })

  test('HO2 an end that no clock knows is refused, and nothing is held', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([configMap('a')])
    await run()
    expect(kit.reconciler.order({ ...hold, untilMs: 8_900_000_000_000_000 })).toMatchObject({ kind: 'refused' })
    kit.desire([configMap('a', { a: '2' })])
    await settle()
    expect(cluster.object(configMapRef('a'))).toMatchObject({ data: { a: '2' } })
  })

  test('WI2 a service that is denied minute by minute goes on when that ends, with nobody asking', async () => {
    const windows = [{ kind: 'deny', schedule: '* 22-23,0-3 * * *', duration: '1m', timeZone: 'UTC' }] as const
    const { cluster, kit, run, clock } = setup({ windowsOf: () => ({ windows }) })
    kit.desire([configMap('a')])
    await run()
    await clock.advance(5 * 60 * MINUTE)
    expect(cluster.object(configMapRef('a'))).toBeNull()
    await clock.advance(60 * MINUTE)
    expect(cluster.object(configMapRef('a'))).not.toBeNull()
  })

  test('WI2 outside of its window a service waits, and goes on when the window opens', async () => {
    // 2023-11-14T22:13Z: the clock of the tests.
    const windows = [{ kind: 'allow', schedule: '0 23 * * *', duration: '1h', timeZone: 'UTC' }] as const
    const { cluster, kit, run, clock } = setup({ windowsOf: () => ({ windows }) })
    kit.desire([configMap('a')])
    await run()
    expect(cluster.object(configMapRef('a'))).toBeNull()
    expect(kit.object(configMapKey('a'))).toMatchObject({ reason: 'OutsideWindow' })
    await clock.advance(50 * MINUTE)
    expect(cluster.object(configMapRef('a'))).not.toBeNull()
    kit.desire([configMap('b')])
    await clock.advance(1_000)
    expect(cluster.object(configMapRef('a'))).toBeNull()
    await clock.advance(60 * MINUTE)
    kit.desire([configMap('c')])
    await clock.advance(60 * MINUTE)
    expect(cluster.object(configMapRef('b'))).not.toBeNull()
    expect(kit.service()?.message).toMatch(said(serviceText('OutsideWindow.opens', { closed: SOME, at: '2023-11-15T23:00Z' })))
  })
})

describe('a confirmation at the site', () => {
  const refused = async (isCurrent = () => true) => {
    const parts = setup({ isCurrent })
    parts.kit.desire(Array.from({ length: 8 }, (_, i) => configMap(`m${i}`)))
    await parts.run()
    const digest = parts.kit.desire([configMap('m0')])
    await parts.settle()
    return { ...parts, digest }
  }
  const names = ({ cluster }: Awaited<ReturnType<typeof refused>>) =>
    cluster.objects().filter(({ metadata }) => /^m\d$/.test(metadata.name ?? '')).length

  test('EC1 prunes what was refused, for that very digest, also with no contact to the server; and outlives a restart', async () => {
    const parts = await refused(() => false)
    const { kit, digest, settle } = parts
    expect(kit.service()).toMatchObject({ reason: 'PruneBlocked' })
    const confirm = (text: string) => kit.reconciler.order({ kind: 'confirm', service: 'web/shop', digest: text, by: 'ola' })
    expect(confirm(digest)).toMatchObject({ kind: 'refused' })
    await settle()
    expect(names(parts)).toBe(8)
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await settle()
    expect(names(parts)).toBe(1)
    expect(kit.events().map(({ reason }) => reason)).toContain('PruneConfirmed')
    expect(kit.confirm()).toMatchObject({ kind: 'refused' })
  })
  test('EC1 is not for the next revision', async () => {
    const parts = await refused()
    const { kit, cluster, settle } = parts
    cluster.fail(({ verb }) => (verb === 'delete' ? { kind: 'forbidden', status: 403, reason: 'Forbidden', message: 'no' } : null))
    kit.confirm()
    await settle()
    kit.desire([configMap('m1')])
    cluster.fail(() => null)
    await parts.clock.advance(10 * MINUTE)
    expect(names(parts)).toBe(8)
    expect(kit.service()).toMatchObject({ reason: 'PruneBlocked' })
  })
})

describe('takeover', () => {
  test('RC3 an object of another tool is taken over when the service may; what a mark that stays will do is said once', async () => {
    const { cluster, kit, run, clock } = setup()
    const marked = annotated(configMap('a', { theirs: 'x' }), { 'argocd.argoproj.io/tracking-id': 'shop:/ConfigMap:default/a' })
    cluster.applyAs('some-controller', marked)
    kit.desire([configMap('a')])
    await run()
    expect(kit.object(configMapKey('a'))).toMatchObject({ reason: 'OwnedByOther' })
    kit.desire([configMap('a')], { sync: { takeover: true } })
    await clock.advance(MINUTE)
    kit.desire([configMap('a', { a: '2' })], { sync: { takeover: true } })
    await clock.advance(MINUTE)
    const told = kit.events().filter(({ reason }) => reason === 'TakenOver')
    expect(told).toHaveLength(1)
    expect(told[0]?.message).toContain(
      'the mark of Argo CD stays on the object (argocd.argoproj.io/tracking-id): it deletes the object when',
    )
    expect(cluster.object(configMapRef('a'))?.metadata.annotations?.['argocd.argoproj.io/tracking-id']).toBeDefined()
  })
  test.each([
    ['goes with what the tool applied, and nothing is said', true],
    ['stays where nothing is taken (sync.force), and that is said', false],
  ])('TK3 the mark %s', async (_, force) => {
    const { cluster, kit, run } = setup()
    const tracking = 'argocd.argoproj.io/tracking-id'
    cluster.applyAs('argocd-controller', annotated(configMap('a'), { [tracking]: 'shop:/ConfigMap:default/a' }))
    kit.desire([configMap('a')], { sync: { takeover: true, force } })
    await run()
    expect(kit.object(configMapKey('a'))).toMatchObject({ sync: 'Synced' })
    expect(cluster.object(configMapRef('a'))?.metadata.annotations?.[tracking] === undefined).toBe(force)
    expect(kit.events().some(({ reason }) => reason === 'TakenOver')).toBe(!force)
  })
  test('RC3 takeover takes nothing from another service of the same cluster: the first one keeps it', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('a')])
    await run()
    kit.desire([configMap('a', { a: 'other' })], { sync: { takeover: true } }, OTHER)
    await clock.advance(MINUTE)
    expect(kit.object(configMapKey('a'), OTHER)).toMatchObject({ reason: 'OwnedByOther' })
    expect(cluster.object(configMapRef('a'))).toMatchObject({ data: { a: '1' } })
  })
})
