// What the loop does about drift and about objects that leave their manifests, on the fake API server.
import { afterEach, describe, expect, test } from 'bun:test'
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { news } from '../../agent/messages/event-messages.ts'
import { objectPart, objectText } from '../../agent/messages/object-messages.ts'
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { crd, denied, namespace, requests, setup, stopAll, thing, track, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, configMaps, createReconcileKit, SHOP } from '../support/reconcile-kit.ts'

afterEach(stopAll)

describe('drift', () => {
  const settled = async () => {
    const parts = setup()
    parts.kit.desire(configMaps(20))
    await parts.run()
    requests(parts.cluster)
    return parts
  }

  test('DR7 a deleted object is made again: one look, one write', async () => {
    const { cluster, kit, settle } = await settled()
    cluster.deleteAs('kubectl', configMapRef('m0003'))
    await settle()
    expect(requests(cluster)).toEqual(['get ConfigMap m0003', 'apply ConfigMap m0003'])
    expect(kit.drift(configMapKey('m0003'))).toMatchObject({ action: 'healed', count: 1 })
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test('DR7 a changed value is put back with one write, and who did it is said', async () => {
    const { cluster, kit, settle } = await settled()
    cluster.editAs('kubectl-edit', configMapRef('m0003'), (object) => Object.assign(object, { data: { n: 'x' } }))
    await settle()
    expect(requests(cluster)).toEqual(['apply ConfigMap m0003'])
    expect(cluster.object(configMapRef('m0003'))?.['data']).toEqual({ n: '3' })
    expect(kit.drift(configMapKey('m0003'))).toMatchObject({ action: 'healed', paths: ['.data.n'], manager: 'kubectl-edit' })
  })

  test('DR8 the drift of an object is said no more when nothing is said of the object', async () => {
    const { cluster, kit, settle } = await settled()
    cluster.editAs('kubectl-edit', configMapRef('m0003'), (object) => Object.assign(object, { data: { n: 'x' } }))
    cluster.editAs('kubectl-edit', configMapRef('m0004'), (object) => Object.assign(object, { data: { n: 'x' } }))
    await settle()
    kit.desire(configMaps(20).filter(({ metadata }) => metadata.name !== 'm0003'))
    await settle()
    const said = () => kit.state.outbox(1_000).filter(({ kind, doc }) => kind === 'drift' && doc !== null)
    expect([kit.object(configMapKey('m0003')), kit.drift(configMapKey('m0003'))]).toEqual([null, null])
    expect(said().map(({ key }) => key)).toEqual([`web/shop/${configMapKey('m0004')}`])
    kit.remove('prune')
    await settle()
    kit.dropRow()
    await settle()
    expect([kit.service(), ...said()]).toEqual([null])
  })

  test('DR7 our label taken away: it comes back', async () => {
    const { cluster, settle } = await settled()
    cluster.editAs('kubectl-label', configMapRef('m0003'), (object) => Reflect.deleteProperty(object.metadata.labels ?? {}, SERVICE_LABEL))
    await settle()
    expect(cluster.object(configMapRef('m0003'))?.metadata.labels?.[SERVICE_LABEL]).toBe('web.shop')
    expect(writes(cluster)).toEqual(['apply ConfigMap m0003'])
  })

  test('DR1 fields, labels and annotations of others cost nothing', async () => {
    const { cluster, settle } = await settled()
    cluster.patchAs('kubectl', configMapRef('m0003'), {
      metadata: { annotations: { theirs: 'x' }, labels: { theirs: 'x' } },
      data: { extra: 'x' },
    })
    await settle()
    expect(requests(cluster)).toEqual([])
    expect(cluster.object(configMapRef('m0003'))?.['data']).toEqual({ n: '3', extra: 'x' })
  })

  test('DR4 a fight is given up for a while, is shown with the rival, and stops nothing else', async () => {
    const { cluster, kit, settle, clock } = await settled()
    for (let round = 0; round < 12; round += 1) {
      if (JSON.stringify(cluster.object(configMapRef('m0003'))?.['data']) !== '{"n":"3"}') break
      cluster.editAs('operator', configMapRef('m0003'), (object) => Object.assign(object, { data: { n: String(round) } }))
      await settle()
    }
    expect(writes(cluster)).toHaveLength(5)
    expect(kit.object(configMapKey('m0003'))).toMatchObject({ reason: 'Contested', message: expect.stringContaining('operator') })
    cluster.deleteAs('kubectl', configMapRef('m0004'))
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap m0004'])
    await clock.advance(60_000)
    expect(cluster.object(configMapRef('m0003'))?.['data']).toEqual({ n: '3' })
  })

  test('DR5 policy report shows and does not touch', async () => {
    const { cluster, kit, settle, run } = setup()
    kit.desire(configMaps(3), { sync: { drift: 'report' } })
    await run()
    writes(cluster)
    cluster.editAs('kubectl-edit', configMapRef('m0001'), (object) => Object.assign(object, { data: { n: 'x' } }))
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.object(configMapKey('m0001'))).toMatchObject({
      sync: 'OutOfSync',
      reason: 'Drifted',
      message: expect.stringContaining('.data.n'),
    })
    expect(kit.drift(configMapKey('m0001'))).toMatchObject({ action: 'reported' })
  })

  test('DR7 what happened while the agent was away is healed at its start, and nothing else is written', async () => {
    const { cluster, kit, settle } = await settled()
    await kit.stop()
    cluster.deleteAs('kubectl', configMapRef('m0003'))
    cluster.editAs('kubectl-edit', configMapRef('m0004'), (object) => Object.assign(object, { data: { n: 'x' } }))
    kit.start()
    await settle()
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap m0003', 'apply ConfigMap m0004'])
    expect(kit.drift(configMapKey('m0004'))).toMatchObject({ action: 'healed', paths: ['.data.n'], manager: 'kubectl-edit' })
  })

  test('DR12 an object that was deleted outside Git is told as that, also when nobody watched', async () => {
    const { cluster, kit, settle } = await settled()
    const told = (name: string) => kit.events().filter(({ object }) => object === configMapKey(name))
    cluster.deleteAs('kubectl', configMapRef('m0003'))
    await settle()
    expect(told('m0003')).toMatchObject([news('Restored', { object: 'ConfigMap default/m0003', drift: objectPart('deleted_outside') })])
    expect(kit.drift(configMapKey('m0003'))).toMatchObject({ action: 'healed', deleted: true, paths: [], manager: '' })
    await kit.stop()
    cluster.deleteAs('kubectl', configMapRef('m0004'))
    kit.start()
    await settle()
    expect(told('m0004').map(({ reason }) => reason)).toEqual(['Restored'])
    cluster.editAs('kubectl-edit', configMapRef('m0004'), (object) => Object.assign(object, { data: { n: 'x' } }))
    await settle()
    expect(told('m0004').map(({ reason }) => reason)).toEqual(['Restored', 'DriftHealed'])
    expect(kit.drift(configMapKey('m0004'))).toEqual(expect.not.objectContaining({ deleted: true }))
  })

  test('DR12 DR5 with sync.drift report it is said and not restored', async () => {
    const { cluster, kit, settle, run } = setup()
    kit.desire(configMaps(2), { sync: { drift: 'report' } })
    await run()
    writes(cluster)
    cluster.deleteAs('kubectl', configMapRef('m0001'))
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.object(configMapKey('m0001'))).toMatchObject({
      reason: 'Drifted',
      message: objectText('Drifted.deleted', { drift: objectPart('deleted_outside') }),
    })
    expect(kit.drift(configMapKey('m0001'))).toMatchObject({ action: 'reported', deleted: true })
  })

  test('RC5 watches that are cut, and that must start over, miss nothing and write nothing', async () => {
    const { cluster, settle, clock } = await settled()
    cluster.cutWatches({ forget: true })
    await settle()
    expect(writes(cluster)).toEqual([])
    cluster.fail(({ verb }) => (verb === 'watch' ? { ...denied, kind: 'unreachable' } : null))
    cluster.cutWatches({ forget: true })
    await settle()
    cluster.deleteAs('kubectl', configMapRef('m0005'))
    await settle()
    expect(writes(cluster)).toEqual([])
    cluster.fail(() => null)
    await clock.advance(5_000)
    expect(writes(cluster)).toEqual(['apply ConfigMap m0005'])
  })

  test('RC5 a kind that cannot be watched is Unknown, not missing', async () => {
    const { cluster, kit, settle } = await settled()
    cluster.fail(({ verb }) => (verb === 'watch' ? { ...denied, kind: 'server_error' } : null))
    cluster.cutWatches()
    await settle()
    expect(kit.service()).toMatchObject({ sync: 'Unknown', health: 'Unknown' })
    expect(writes(cluster)).toEqual([])
  })

  test('DR6 an incomplete revision changes nothing: what was applied stays in force, also after a restart', async () => {
    const { cluster, kit, settle } = await settled()
    kit.replica.reads.set('web/shop', { kind: 'incomplete', why: 'the digest does not fit' })
    await kit.stop()
    cluster.deleteAs('kubectl', configMapRef('m0003'))
    kit.start()
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap m0003'])
    expect(kit.service()).toMatchObject({ reason: 'RevisionIncomplete' })
  })
})

describe('pruning', () => {
  test('PR1 what left the manifests goes, and nothing else', async () => {
    const { cluster, kit, run, settle } = setup()
    cluster.applyAs('kubectl', configMap('foreign'))
    kit.desire(configMaps(10))
    await run()
    writes(cluster)
    kit.desire(configMaps(8))
    await settle()
    expect(writes(cluster)).toEqual(['delete ConfigMap m0008', 'delete ConfigMap m0009'])
    expect(cluster.object(configMapRef('foreign'))).not.toBeNull()
    expect(kit.service()).toMatchObject({ sync: 'Synced', objectCount: 8 })
    expect(kit.object(configMapKey('m0009'))).toBeNull()
  })

  test('PR2, PR4, PR5 an empty revision prunes nothing and names everything, until that revision is confirmed', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire(configMaps(3))
    await run()
    writes(cluster)
    const digest = kit.desire([])
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({
      sync: 'OutOfSync',
      reason: 'PruneBlocked',
      refusal: { digest, count: 3, names: ['ConfigMap default/m0000', 'ConfigMap default/m0001', 'ConfigMap default/m0002'] },
    })
    kit.desire([], { pruneConfirmed: 'another' })
    await settle()
    expect(writes(cluster)).toEqual([])
    kit.desire([], { pruneConfirmed: digest })
    await settle()
    expect(writes(cluster)).toHaveLength(3)
    expect(kit.service()?.refusal).toBeUndefined()
  })

  test('RP2 a revision of a restored server applies what it names and prunes nothing, until a person confirmed it', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire(configMaps(3))
    await run()
    writes(cluster)
    const digest = kit.desire(configMaps(2), { restored: true })
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ reason: 'PruneBlocked', refusal: { digest, count: 1, names: ['ConfigMap default/m0002'] } })
    expect(kit.service()?.refusal?.why).toContain('confirm')
    kit.desire(configMaps(2), { restored: true, pruneConfirmed: digest })
    await settle()
    expect(writes(cluster)).toHaveLength(1)
  })

  test('RL5 a render that only facts of the cluster changed applies what it names and prunes nothing, until a person confirmed it', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire(configMaps(3))
    await run()
    writes(cluster)
    const digest = kit.desire(configMaps(2), { factsOnly: true })
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ reason: 'PruneBlocked', refusal: { digest, count: 1 } })
    expect(kit.service()?.refusal?.why).toContain(deletionText('facts_only'))
    kit.desire(configMaps(2), { pruneConfirmed: digest })
    await settle()
    expect(writes(cluster)).toHaveLength(1)
  })

  test('RP2 a removal order of a restored server deletes nothing, until a person confirmed it', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire(configMaps(2))
    await run()
    writes(cluster)
    const removal = { policy: 'prune', by: 'a', atMs: 1, why: 'it was to go before the backup' } as const
    const digest = kit.desire([], { restored: true, removal })
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()?.refusal?.count).toBe(2)
    kit.desire([], { restored: true, removal, pruneConfirmed: digest })
    await settle()
    expect(writes(cluster)).toHaveLength(2)
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('PR6 a prune waits for the health of what is new', async () => {
    const { cluster, kit, run, settle } = setup()
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'd', namespace: 'default' },
      spec: {
        replicas: 1,
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    } as unknown as K8sObject
    const ref = { group: 'apps', kind: 'Deployment', namespace: 'default', name: 'd' }
    kit.desire([configMap('a')])
    await run()
    kit.desire([deployment])
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a', 'apply Deployment d'])
    expect(kit.service()).toMatchObject({ reason: 'PrunePending', message: expect.stringContaining('Deployment default/d is healthy') })
    cluster.setStatus(ref, { observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 })
    await settle()
    expect(writes(cluster)).toEqual(['delete ConfigMap a'])
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test('HE2 past its deadline an object is Degraded, with no event needed', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    kit.desire([crd, configMap('a')], { sync: { healthDeadline: '5m' } })
    await run()
    await clock.advance(5_000)
    kit.desire([crd, configMap('a'), thing('t')], { sync: { healthDeadline: '5m' } })
    await settle()
    cluster.setStatus(
      { group: 'example.com', kind: 'Thing', namespace: '', name: 't' },
      { conditions: [{ type: 'Ready', status: 'False', reason: 'Busy', message: 'm' }] },
    )
    await settle()
    expect(kit.service()).toMatchObject({ health: 'Progressing', reason: 'Busy' })
    await clock.advance(301_000)
    expect(kit.service()).toMatchObject({ health: 'Degraded', reason: 'DeadlineExceeded' })
  })

  test('IV4 what carries a keep mark is let go, not deleted', async () => {
    const { cluster, kit, run, settle } = setup()
    const kept = {
      ...configMap('kept'),
      metadata: { name: 'kept', namespace: 'default', annotations: { 'helm.sh/resource-policy': 'keep' } },
    } as K8sObject
    kit.desire([kept, configMap('a')])
    await run()
    writes(cluster)
    kit.desire([configMap('a')])
    await settle()
    expect(writes(cluster)).toEqual(['patch ConfigMap kept'])
    expect(cluster.object(configMapRef('kept'))?.['data']).toEqual({ a: '1' })
    expect(kit.service()).toMatchObject({ sync: 'Synced' })
  })

  test('PR6 an object that finalizers hold is pruned when they let it go; it is named meanwhile', async () => {
    const { cluster, kit, run, settle } = setup()
    const held = { ...configMap('held'), metadata: { name: 'held', namespace: 'default', finalizers: ['example.com/hold'] } } as K8sObject
    kit.desire([held, configMap('a')])
    await run()
    writes(cluster)
    kit.desire([configMap('a')])
    await settle()
    expect(writes(cluster)).toEqual(['delete ConfigMap held'])
    expect(kit.object(configMapKey('held'))?.message).toContain('example.com/hold')
    cluster.editAs('operator', configMapRef('held'), (object) => Object.assign(object.metadata, { finalizers: [] }))
    await settle()
    expect(kit.state.inventory({ project: 'web', service: 'shop' })).toHaveLength(1)
    expect(kit.service()).toMatchObject({ sync: 'Synced' })
  })

  test('IV5 without a row nothing is removed; with a removal order everything goes, CRs first, and is forgotten', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    kit.desire([crd, thing('t'), configMap('a', {}, 'shop'), namespace('shop')])
    await run()
    await clock.advance(5_000)
    writes(cluster)
    kit.dropRow()
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ reason: 'Unclaimed', sync: 'Unknown' })
    kit.remove('prune')
    await settle()
    expect(writes(cluster)).toEqual([
      'delete Thing t',
      'delete ConfigMap a',
      'delete CustomResourceDefinition things.example.com',
      'delete Namespace shop',
    ])
    expect(kit.service()).toMatchObject({ removed: true, reason: 'Removed' })
    expect(kit.state.services()).toEqual([])
    kit.dropRow()
    await settle()
    expect(kit.service()).toBeNull()
  })

  test('RC12 an orphaning order takes our marks and our entry, and leaves every field', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([configMap('a'), configMap('b')])
    await run()
    writes(cluster)
    kit.remove('orphan')
    await settle()
    expect(writes(cluster)).toEqual(['patch ConfigMap a', 'patch ConfigMap b'])
    const left = cluster.object(configMapRef('a')) as K8sObject
    expect(left['data']).toEqual({ a: '1' })
    expect(left.metadata.labels?.[SERVICE_LABEL]).toBeUndefined()
    expect(left.metadata.managedFields?.some(({ manager }) => manager === 'skerry')).toBeFalsy()
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('IV3, PR13 a lost inventory is found again by the marks: what is not wanted any more goes after its name was confirmed', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire(configMaps(10))
    await run()
    await kit.stop()
    writes(cluster)
    const second = createReconcileKit({ cluster, clock })
    track(second)
    second.desire(configMaps(9))
    second.start()
    await clock.advance(1_000)
    expect(writes(cluster)).toEqual(Array.from({ length: 9 }, (_, i) => `apply ConfigMap m000${i}`))
    expect(second.service()?.refusal).toMatchObject({ names: ['ConfigMap default/m0009'], only: true })
    expect(second.confirm()).toMatchObject({ kind: 'done' })
    await clock.advance(1_000)
    expect(writes(cluster)).toEqual(['delete ConfigMap m0009'])
    expect(second.service()).toMatchObject({ sync: 'Synced' })
  })

  test('IV3, PR13 an object that was pruned and that a person restores with its marks stays until its name was confirmed', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire(configMaps(3))
    await run()
    const { metadata, ...rest } = cluster.object(configMapRef('m0002')) as K8sObject
    const { name = '', namespace = '', labels = {}, annotations = {} } = metadata
    kit.desire(configMaps(2))
    await clock.advance(1_000)
    expect(writes(cluster)).toContain('delete ConfigMap m0002')
    await clock.advance(86_400_000)
    cluster.applyAs('velero', { ...rest, metadata: { name, namespace, labels, annotations } })
    await clock.advance(60_000)
    expect(writes(cluster)).toEqual([])
    expect(kit.service()?.refusal).toMatchObject({ names: ['ConfigMap default/m0002'], only: true })
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await clock.advance(1_000)
    expect(writes(cluster)).toEqual(['delete ConfigMap m0002'])
  })
  test('PR13 an object whose apply had no answer is pruned unasked', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire(configMaps(2))
    await run()
    const lost: ApiFailure = { kind: 'unreachable', status: 0, reason: 'Timeout', message: 'no answer' }
    cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.name === 'm0002' ? lost : null))
    kit.desire(configMaps(3))
    await clock.advance(10)
    expect(kit.state.inventory(SHOP).find(({ ref }) => ref.name === 'm0002')).toMatchObject({ uid: null, appliedDoc: null })
    const first = cluster.object(configMapRef('m0001')) as K8sObject
    const { labels = {}, annotations = {} } = first.metadata
    const marks = Object.fromEntries(Object.entries(annotations).map(([mark, text]) => [mark, text.replace('m0001', 'm0002')]))
    cluster.applyAs('skerry', { ...configMap('m0002'), metadata: { name: 'm0002', namespace: 'default', labels, annotations: marks } })
    kit.desire(configMaps(2))
    await clock.advance(60_000)
    expect(cluster.object(configMapRef('m0002'))).toBeNull()
  })

  test('RC8 a delete that failed and is held by the guard meanwhile does not spin', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    kit.desire(configMaps(3))
    await run()
    cluster.fail(({ verb }) => (verb === 'delete' ? denied : null))
    kit.desire(configMaps(2))
    await settle()
    const digest = kit.desire([])
    await settle()
    let reads = 0
    const { read } = kit.replica
    kit.replica.read = (id) => {
      reads += 1
      return read(id)
    }
    const before = kit.state.outboxDepth()
    await clock.advance(3_600_000)
    expect([reads, kit.state.outboxDepth()]).toEqual([0, before])
    cluster.fail(() => null)
    kit.desire([], { pruneConfirmed: digest })
    await settle()
    expect(kit.state.inventory({ project: 'web', service: 'shop' })).toEqual([])
  })

  test('PR1 nothing is pruned while the replica is not verified', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire(configMaps(10))
    await run()
    writes(cluster)
    kit.replica.ok = false
    kit.desire(configMaps(9))
    await settle()
    expect(writes(cluster)).toEqual([])
  })
})
