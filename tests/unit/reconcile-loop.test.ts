// The whole loop on the fake API server: what it writes, what it leaves alone, and what it says.
import { afterEach, describe, expect, test } from 'bun:test'
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { CLAIM_NAME, CLAIM_NAMESPACE } from '../../agent/reconcile/claim.ts'
import { SERVICE_LABEL, TRACKING_ANNOTATION } from '../../shared/kube/marks.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { createFakeCluster, type FakeCluster, type FakeRequest } from '../support/fake-cluster.ts'
import {
  CLUSTER_ID,
  configMap,
  configMapKey,
  configMapRef,
  configMaps,
  createReconcileKit,
  type KitOptions,
  type ReconcileKit,
} from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const started: ReconcileKit[] = []
afterEach(async () => {
  for (const kit of started.splice(0)) await kit.stop()
})

function setup(options: Partial<KitOptions> = {}) {
  const clock = createVirtualClock()
  const cluster = createFakeCluster({ clock })
  const kit = createReconcileKit({ cluster, clock, ...options })
  started.push(kit)
  const settle = () => clock.advance(50)
  const run = async () => {
    kit.start()
    await settle()
  }
  return { clock, cluster, kit, settle, run }
}

const WRITES: ReadonlySet<FakeRequest['verb']> = new Set(['apply', 'delete', 'patch'])
const isClaim = ({ ref }: FakeRequest) => ref?.namespace === CLAIM_NAMESPACE || ref?.name === CLAIM_NAMESPACE
/** `apply ConfigMap a`, in the order in which they arrived since the last call. */
function writes(cluster: FakeCluster): string[] {
  const seen = cluster.requests.splice(0)
  return seen.filter((request) => WRITES.has(request.verb) && !isClaim(request)).map(({ verb, ref }) => `${verb} ${ref?.kind} ${ref?.name}`)
}
const requests = (cluster: FakeCluster): string[] =>
  cluster.requests.splice(0).map(({ verb, ref, kind }) => `${verb} ${ref?.kind ?? kind ?? ''} ${ref?.name ?? ''}`.trim())

const namespace = (name: string): K8sObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }) as K8sObject
const namespaceRef = (name: string): ObjectRef => ({ group: '', kind: 'Namespace', namespace: '', name })
const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.example.com' },
  spec: {
    group: 'example.com',
    names: { kind: 'Thing', plural: 'things', singular: 'thing', listKind: 'ThingList' },
    scope: 'Cluster',
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
} as unknown as K8sObject
const thing = (name: string, metadata = {}): K8sObject =>
  ({ apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name, ...metadata }, spec: { size: 1 } }) as K8sObject
const denied: ApiFailure = { kind: 'forbidden', status: 403, reason: 'Forbidden', message: 'quota' }

describe('applying', () => {
  test('RC7 a set arrives, becomes healthy, and a second pass of the same costs no request', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    kit.desire(configMaps(30))
    await run()
    expect(writes(cluster)).toHaveLength(30)
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', objectCount: 30, healthyCount: 30 })
    expect(kit.service()?.healthy?.digest).toBe(kit.service()?.received?.digest as string)
    requests(cluster)
    const depth = kit.state.outboxDepth()
    kit.desire(configMaps(30))
    await settle()
    await clock.advance(3_600_000)
    expect(requests(cluster)).toEqual([])
    expect(kit.state.outboxDepth()).toBe(depth)
  })

  test('RC7 a revision that changes one object of many is one write and no read', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire(configMaps(50))
    await run()
    requests(cluster)
    const [first, ...others] = configMaps(50)
    kit.desire([configMap('m0000', { n: 'new' }), ...others])
    expect(first).toBeDefined()
    await settle()
    expect(requests(cluster)).toEqual(['apply ConfigMap m0000'])
  })

  test('RC2 what is sent carries the marks', async () => {
    const { cluster, kit, run } = setup()
    kit.desire([configMap('a')])
    await run()
    const { metadata } = cluster.object(configMapRef('a')) as K8sObject
    expect(metadata.labels?.[SERVICE_LABEL]).toBe('web.shop')
    expect(metadata.annotations?.[TRACKING_ANNOTATION]).toBe(`${CLUSTER_ID}/web/shop:/ConfigMap/default/a`)
  })

  test('OR1, RC11 a namespace, a CRD, its kind and what goes into the namespace, in one set', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([thing('t'), configMap('a', {}, 'shop'), crd, namespace('shop')])
    await run()
    await clock.advance(10_000)
    const order = writes(cluster)
    expect(order.slice(0, 2)).toEqual(['apply Namespace shop', 'apply CustomResourceDefinition things.example.com'])
    expect(order.sort()).toEqual([
      'apply ConfigMap a',
      'apply CustomResourceDefinition things.example.com',
      'apply Namespace shop',
      'apply Thing t',
    ])
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', healthyCount: 4 })
  })

  test('RC4 a cluster-scoped kind loses its namespace; an object without one goes to the namespace of the service', async () => {
    const { cluster, kit, run } = setup()
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'r', namespace: 'shop' },
      rules: [],
    } as unknown as K8sObject
    kit.desire([role, configMap('a', {}, ''), { ...configMap('b'), metadata: { name: 'b' } } as K8sObject], { namespace: 'shop' })
    await run()
    expect(cluster.object({ group: 'rbac.authorization.k8s.io', kind: 'ClusterRole', namespace: '', name: 'r' })).not.toBeNull()
    expect(cluster.object(configMapRef('b', 'shop'))).not.toBeNull()
  })

  test('RC16 a kind that nobody serves is said, the rest goes on, and it arrives when its CRD does', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([thing('t'), configMap('a')])
    await run()
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    expect(kit.object('example.com/Thing//t')).toMatchObject({ sync: 'OutOfSync', health: 'Missing', reason: 'UnknownKind' })
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', reason: 'UnknownKind' })
    cluster.applyAs('kubectl', crd)
    await clock.advance(300_000)
    expect(writes(cluster)).toEqual(['apply Thing t'])
    expect(kit.service()).toMatchObject({ sync: 'Synced' })
  })

  test('RC8 one failing object stops no other, is retried with a growing wait, and says why', async () => {
    const { cluster, kit, run, clock } = setup()
    cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.name === 'm0001' ? denied : null))
    kit.desire(configMaps(3))
    await run()
    expect(kit.object(configMapKey('m0001'))).toMatchObject({
      sync: 'OutOfSync',
      reason: 'Forbidden',
      message: 'quota; allow it by RBAC, quota or admission; it is tried again',
    })
    expect(kit.object(configMapKey('m0002'))).toMatchObject({ sync: 'Synced' })
    writes(cluster)
    await clock.advance(600_000)
    const attempts = writes(cluster).length
    expect(attempts).toBeGreaterThan(4)
    expect(attempts).toBeLessThan(20)
    expect(kit.events().filter(({ reason }) => reason === 'Failed')).toHaveLength(1)
    cluster.fail(() => null)
    await clock.advance(300_000)
    expect(kit.service()).toMatchObject({ sync: 'Synced' })
  })

  test('RC8 a terminal refusal waits for another document, and the applied one stays in force', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    kit.desire([configMap('a', { v: '1' })])
    await run()
    cluster.fail(({ verb }) => (verb === 'apply' ? { kind: 'invalid', status: 422, reason: 'Invalid', message: 'no' } : null))
    kit.desire([configMap('a', { v: '2' })])
    await settle()
    writes(cluster)
    await clock.advance(3_600_000)
    expect(writes(cluster)).toEqual([])
    cluster.fail(() => null)
    cluster.editAs('kubectl-edit', configMapRef('a'), (object) => Object.assign(object, { data: { v: 'edited' } }))
    await settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ v: '1' })
    expect(kit.object(configMapKey('a'))).toMatchObject({ reason: 'Invalid', sync: 'OutOfSync' })
    kit.desire([configMap('a', { v: '3' })])
    await settle()
    expect(kit.object(configMapKey('a'))).toMatchObject({ sync: 'Synced' })
  })

  test('RC11 the namespace of a service is made if it is missing, left alone if it is there, and never pruned', async () => {
    const { cluster, kit, run, settle } = setup()
    cluster.applyAs('kubectl', namespace('old'))
    const id = { project: 'web', service: 'other' }
    kit.desire([configMap('a', {}, 'new')], { namespace: 'new' })
    kit.desire([configMap('a', {}, 'old')], { namespace: 'old' }, id)
    await run()
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap a', 'apply ConfigMap a', 'apply Namespace new'])
    expect([kit.service()?.sync, kit.service(id)?.sync]).toEqual(['Synced', 'Synced'])
    expect(kit.service()?.objectCount).toBe(1)
    kit.remove('prune')
    kit.remove('prune', id)
    await settle()
    expect(kit.service()).toMatchObject({ removed: true })
    expect(cluster.object(namespaceRef('new'))).not.toBeNull()
    expect(cluster.object(configMapRef('a', 'new'))).toBeNull()
  })

  test('RC3 an object of another tool is not adopted, unless the service takes over', async () => {
    const { cluster, kit, run, settle } = setup()
    cluster.applyAs('argocd', {
      ...configMap('a', { a: 'theirs' }),
      metadata: { name: 'a', namespace: 'default', annotations: { 'argocd.argoproj.io/tracking-id': 'app:x' } },
    } as K8sObject)
    kit.desire([configMap('a'), configMap('b')])
    await run()
    expect(writes(cluster)).toEqual(['apply ConfigMap b'])
    expect(kit.object(configMapKey('a'))).toMatchObject({
      reason: 'OwnedBy',
      message: expect.stringContaining('Argo CD (argocd.argoproj.io/tracking-id: app:x)'),
    })
    kit.desire([configMap('a'), configMap('b')], { sync: { takeover: true } })
    await settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ a: '1' })
  })

  test('RC3 of two services that want one object the first keeps it; when it lets go, it moves and is not deleted', async () => {
    const { cluster, kit, run, settle } = setup()
    const other = { project: 'web', service: 'other' }
    kit.desire([configMap('a', { from: 'shop' }), configMap('b')])
    await run()
    kit.desire([configMap('a', { from: 'other' })], {}, other)
    await settle()
    expect(kit.object(configMapKey('a'), other)).toMatchObject({ reason: 'OwnedBy', message: expect.stringContaining('web/shop') })
    const uid = cluster.object(configMapRef('a'))?.metadata.uid
    kit.desire([configMap('b')])
    await settle()
    expect(cluster.object(configMapRef('a'))).toMatchObject({
      data: { from: 'other' },
      metadata: { uid, labels: { [SERVICE_LABEL]: 'web.other' } },
    })
    expect([kit.service()?.sync, kit.service(other)?.sync]).toEqual(['Synced', 'Synced'])
  })
})

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

  test('RC1 an incomplete revision changes nothing: what was applied stays in force, also after a restart', async () => {
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
      reason: 'PruneRefused',
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

  test('IV2 a prune waits for the health of what is new', async () => {
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

  test('IV2 an object that finalizers hold is pruned when they let it go; it is named meanwhile', async () => {
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

  test('IV3 a lost inventory is found again by the marks: what is not wanted any more goes, past the guard', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire(configMaps(10))
    await run()
    await kit.stop()
    writes(cluster)
    const second = createReconcileKit({ cluster, clock })
    started.push(second)
    second.desire(configMaps(9))
    second.start()
    await clock.advance(1_000)
    const seen = writes(cluster)
    expect(seen.at(-1)).toBe('delete ConfigMap m0009')
    expect(seen.filter((write) => write.startsWith('apply'))).toHaveLength(9)
    expect(second.service()).toMatchObject({ sync: 'Synced' })
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

describe('the claim', () => {
  const claimRef = configMapRef(CLAIM_NAME, CLAIM_NAMESPACE)
  test('CM1 enforcement begins with the claim held, and its namespace is made', async () => {
    const { cluster, kit, run } = setup()
    kit.desire([configMap('a')])
    await run()
    const applied = cluster.requests.filter(({ verb }) => verb === 'apply').map(({ ref }) => ref?.name)
    expect(applied.indexOf(CLAIM_NAME)).toBeLessThan(applied.indexOf('a'))
    expect(cluster.object(claimRef)?.['data']).toEqual({ agent: 'a-1', incarnation: '1' })
    expect(kit.claims.at(-1)).toEqual({ kind: 'held' })
  })

  test('CM2 a higher incarnation takes over at once; the other writes nothing more', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([configMap('a')])
    await run()
    cluster.editAs('skerry', claimRef, (object) => Object.assign(object, { data: { agent: 'a-2', incarnation: '2' } }))
    await settle()
    writes(cluster)
    expect(kit.claims.at(-1)).toEqual({ kind: 'superseded', by: { agent: 'a-2', incarnation: 2 } })
    cluster.deleteAs('kubectl', configMapRef('a'))
    kit.desire([configMap('a'), configMap('b')])
    await settle()
    expect(writes(cluster)).toEqual([])
  })

  test('CM4 while the claim cannot be written nothing is enforced', async () => {
    const { cluster, kit, run, clock } = setup()
    cluster.fail((request) => (request.verb === 'apply' && isClaim(request) ? denied : null))
    kit.desire([configMap('a')])
    await run()
    expect(writes(cluster)).toEqual([])
    expect(kit.claims.at(-1)).toMatchObject({ kind: 'asking' })
    cluster.fail(() => null)
    await clock.advance(60_000)
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
  })
})
