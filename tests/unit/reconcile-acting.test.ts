// ServiceAccounts, the namespace of a service, and failures that end when their cause does; on the fake API server.
import { afterEach, describe, expect, test } from 'bun:test'
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { objectPart, objectText } from '../../agent/messages/object-messages.ts'
import { actingAs, unplacedAccount } from '../../agent/reconcile/snapshot/account.ts'
import { endedBy, type Lacking, LackingObjects } from '../../agent/reconcile/snapshot/watch/causes.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { crd, namespace, namespaceRef, setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, configMaps } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'

afterEach(stopAll)

const OTHER = { project: 'web', service: 'other' }
const account = (namespace: string, name: string): K8sObject => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name, namespace },
})

describe('IM1 as whom a service writes', () => {
  test.each([
    ['IM1 nobody named', undefined, 'shop', { kind: 'agent' }],
    ['IM1 a name', 'deployer', 'shop', { kind: 'account', account: { namespace: 'shop', name: 'deployer' } }],
    ['IM1 a name of another namespace', 'infra/deployer', 'shop', { kind: 'account', account: { namespace: 'infra', name: 'deployer' } }],
    [
      'IM1 the same, in a service without namespace',
      'infra/deployer',
      undefined,
      { kind: 'account', account: { namespace: 'infra', name: 'deployer' } },
    ],
    ['IM2 a name in a service without namespace', 'deployer', undefined, { kind: 'unplaced', name: 'deployer' }],
  ] as const)('%s', (_, serviceAccount, namespace, expected) => {
    const sync = serviceAccount === undefined ? {} : { serviceAccount }
    expect(actingAs(sync, namespace)).toEqual(expected)
    expect(unplacedAccount(actingAs(sync, namespace)) === null).toBe(expected.kind !== 'unplaced')
  })

  const asked = (cluster: ReturnType<typeof setup>['cluster']) =>
    cluster.requests.filter(({ ref }) => ref?.name === 'a').map(({ verb, as }) => `${verb} ${as ?? 'agent'}`)

  test('applies, deletes and letting go are the account’s; looks are the agent’s', async () => {
    const { cluster, kit, settle, run } = setup()
    cluster.permit(() => true)
    const options = { namespace: 'default', sync: { serviceAccount: 'deployer' } }
    kit.desire([configMap('a'), configMap('b'), configMap('c')], options)
    await run()
    kit.desire([configMap('b'), configMap('c')], options)
    await settle()
    const user = 'system:serviceaccount:default:deployer'
    expect(asked(cluster)).toEqual(['get agent', `apply ${user}`, `delete ${user}`])
    kit.remove('orphan', undefined, 1, options)
    await settle()
    expect(cluster.requests.filter(({ verb }) => verb === 'patch').map(({ as }) => as)).toEqual([user, user])
    expect(cluster.requests.filter(({ ref, as }) => ref?.name === 'skerry-claim' && as !== undefined)).toEqual([])
  })

  test('IM3 what it may not do is said with the account, and one look tells whether it exists at all', async () => {
    const { clock, cluster, kit, run } = setup()
    kit.desire([configMap('a'), ...configMaps(20)], { namespace: 'default', sync: { serviceAccount: 'deployer' } })
    await run()
    expect(kit.object(configMapKey('a'))).toMatchObject({
      reason: 'Forbidden',
      message: expect.stringMatching(said(objectPart('account_missing', { failure: SOME, account: 'default/deployer' }))),
    })
    // One for all that failed together, another one for the few whose time came already.
    expect(cluster.requests.filter(({ verb, ref }) => verb === 'get' && ref?.kind === 'ServiceAccount').length).toBeLessThan(4)
    cluster.applyAs('somebody', account('default', 'deployer'))
    await clock.advance(400_000)
    expect(kit.object(configMapKey('a'))?.message).toContain('cannot patch resource "configmaps"')
    expect(kit.object(configMapKey('a'))?.message).toMatch(
      said(objectPart('account_without_right', { failure: SOME, account: 'default/deployer' })),
    )
    cluster.fail(({ as }) =>
      as === undefined
        ? null
        : ({ kind: 'forbidden', status: 403, reason: 'Forbidden', message: 'User "agent" cannot impersonate resource' } as ApiFailure),
    )
    await clock.advance(400_000)
    expect(kit.object(configMapKey('a'))?.message).toMatch(said(objectPart('may_not_impersonate', { failure: SOME })))
  })

  test('IM4 a service with the rights of its own account goes whole, the account and its rights last', async () => {
    const { clock, cluster, kit, run } = setup()
    const rbac = (kind: string, more = {}): K8sObject =>
      ({ apiVersion: 'rbac.authorization.k8s.io/v1', kind, metadata: { name: 'deployer' }, ...more }) as K8sObject
    const rights = [rbac('ClusterRole'), rbac('ClusterRoleBinding')]
    const waved = { ...rights[0], metadata: { name: 'deployer', annotations: { 'skerry.dev/wave': '5' } } } as K8sObject
    const objects = [configMap('a'), namespace('team'), crd, ...rights.slice(1), waved, account('default', 'deployer')]
    const isRight = ({ kind }: ObjectRef) => kind.startsWith('Cluster') || kind === 'ServiceAccount'
    const options = { namespace: 'default', sync: { serviceAccount: 'deployer' } }
    cluster.permit(() => true)
    kit.desire(objects, options)
    await run()
    expect(kit.service()).toMatchObject({ reason: 'Synced' })
    // Whoever deletes a right has it for as long as requests that came at the same time.
    const mayAct = () => cluster.objects().some(({ kind }) => kind === 'ClusterRoleBinding')
    cluster.permit(() => mayAct())
    cluster.requests.splice(0)
    kit.remove('delete', undefined, 1, options)
    await clock.advance(60_000)
    const deletes = cluster.requests.flatMap(({ verb, ref }) => (verb === 'delete' && ref !== undefined ? [ref] : []))
    expect(deletes.findIndex(isRight)).toBe(3)
    expect(deletes.slice(3).every(isRight)).toBe(true)
  })

  test('IM2 without a namespace nothing is sent, and nothing is deleted', async () => {
    const { cluster, kit, settle, run } = setup()
    kit.desire([configMap('a'), configMap('b')])
    await run()
    writes(cluster)
    kit.desire([configMap('b', { a: '2' })], { sync: { serviceAccount: 'deployer' } })
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.object(configMapKey('b'))).toMatchObject({
      reason: 'ServiceAccountUnplaced',
      message: expect.stringContaining('set spec.namespace'),
    })
    expect(cluster.object(configMapRef('a'))).not.toBeNull()
  })
})

describe('IM1 IM2 nothing is written as anybody else', () => {
  test('IM2 a hook of a service whose account has no place is not run as the agent', async () => {
    const { cluster, kit, run } = setup()
    const hook = configMap('hook')
    const annotations = { 'skerry.dev/hook': 'pre-sync' }
    kit.desire([{ ...hook, metadata: { ...hook.metadata, annotations } }, configMap('a')], { sync: { serviceAccount: 'deployer' } })
    await run()
    expect(writes(cluster)).toEqual([])
  })

  test('IM1 before any revision can be read, drift is healed as the account of the last one', async () => {
    const { cluster, kit, settle, run } = setup()
    cluster.permit(() => true)
    kit.desire([configMap('a')], { namespace: 'default', sync: { serviceAccount: 'deployer' } })
    await run()
    await kit.stop()
    kit.replica.reads.set('web/shop', { kind: 'incomplete', why: 'a row is missing' })
    kit.start()
    await settle()
    cluster.requests.splice(0)
    cluster.deleteAs('somebody', configMapRef('a'))
    await settle()
    expect(cluster.object(configMapRef('a'))).not.toBeNull()
    const applies = cluster.requests.filter(({ verb, ref }) => verb === 'apply' && ref?.name === 'a')
    expect(applies.map(({ as }) => as)).toEqual(['system:serviceaccount:default:deployer'])
  })
})

describe('RC22 what ends a failure', () => {
  const lacking = (kind: Lacking['kind'], namespace = 'shop', named: string | null = 'deployer'): Lacking => ({
    kind,
    message: '',
    ref: configMapRef('a', namespace),
    account: named === null ? null : { namespace: 'shop', name: named },
  })
  const webhook: Lacking = {
    ...lacking('webhook'),
    message: 'failed calling webhook "x": failed to call webhook: Post "https://hook.hooks.svc:443/v?timeout=5s": connection refused',
  }
  const RBAC = 'rbac.authorization.k8s.io'
  test.each([
    ['its namespace', '/Namespace//shop', true, lacking('namespace_missing'), true],
    ['its namespace, that was going', '/Namespace//shop', false, lacking('namespace_terminating'), true],
    ['another namespace', '/Namespace//other', true, lacking('namespace_missing'), false],
    ['a namespace, and the object is forbidden', '/Namespace//shop', true, lacking('forbidden'), false],
    ['the account', '/ServiceAccount/shop/deployer', true, lacking('forbidden'), true],
    ['another account', '/ServiceAccount/shop/default', true, lacking('forbidden'), false],
    ['an account, and the agent itself is forbidden', '/ServiceAccount/shop/deployer', true, lacking('forbidden', 'shop', null), false],
    ['a RoleBinding', `${RBAC}/RoleBinding/shop/x`, true, lacking('forbidden'), true],
    ['a RoleBinding of another namespace', `${RBAC}/RoleBinding/other/x`, true, lacking('forbidden'), false],
    ['a ClusterRole', `${RBAC}/ClusterRole//x`, true, lacking('forbidden'), true],
    ['a quota', '/ResourceQuota/shop/x', true, lacking('forbidden', 'shop', null), true],
    ['a quota of another namespace', '/ResourceQuota/other/x', true, lacking('forbidden'), false],
    ['a webhook configuration', 'admissionregistration.k8s.io/ValidatingWebhookConfiguration//x', true, lacking('webhook'), true],
    ['a policy', 'admissionregistration.k8s.io/ValidatingAdmissionPolicy//x', true, lacking('forbidden'), true],
    ['a workload that is well', 'apps/Deployment/x/hook', true, lacking('webhook'), true],
    ['a workload beside the webhook that is named', 'apps/Deployment/hooks/x', true, webhook, true],
    ['a workload elsewhere', 'apps/Deployment/shop/x', true, webhook, false],
    ['a workload that is not', 'apps/Deployment/x/hook', false, lacking('webhook'), false],
    ['a Service, of anywhere', '/Service/other/x', false, lacking('taken'), true],
    ['a ConfigMap', '/ConfigMap/shop/x', true, lacking('forbidden'), false],
  ] as const)('RC22 %s', (_, key, isHealthy, what, expected) => expect(endedBy(key, isHealthy)?.ends(what) ?? false).toBe(expected))

  test('RC22 RC31 a change visits only objects that failed for what it may end, each until it lacks that no more', () => {
    const objects = new LackingObjects()
    for (let n = 0; n < 3; n++) objects.add('webhook', `web.s${n}`, 'a')
    objects.add('taken', 'web.s0', 'a')
    objects.add('taken', 'web.s0', 'b')
    objects.add('invalid', 'web.s0', 'c')
    const visited = (...cause: Parameters<typeof endedBy>) =>
      endedBy(...cause)?.kinds.flatMap((kind) =>
        [...objects.of(kind)].flatMap(([service, keys]) => [...keys].map((key) => `${service} ${key}`)),
      )
    expect(visited('/Service/other/x', true)).toEqual(['web.s0 a', 'web.s0 b'])
    objects.drop('taken', 'web.s0', 'a')
    expect(visited('/Service/other/x', true)).toEqual(['web.s0 b'])
    objects.forget('web.s0')
    expect(visited('/Service/other/x', true)).toEqual([])
    expect(visited('apps/Deployment/hooks/x', true)).toEqual(['web.s1 a', 'web.s2 a'])
  })

  test('RC22 rights that another service brings are used at once, without a clock', async () => {
    const { cluster, kit, settle, run } = setup()
    let allowed = false
    cluster.permit(() => allowed)
    kit.desire([configMap('a')], { namespace: 'default', sync: { serviceAccount: 'deployer' } })
    await run()
    expect(kit.object(configMapKey('a'))?.reason).toBe('Forbidden')
    allowed = true
    kit.desire([account('default', 'deployer')], {}, OTHER)
    await settle()
    expect(kit.object(configMapKey('a'))?.sync).toBe('Synced')
  })

  test('RC22 a namespace that another service makes, and that is Active at once', async () => {
    const { cluster, kit, settle, run } = setup()
    kit.desire([configMap('a', {}, 'elsewhere')])
    await run()
    expect(kit.object(configMapKey('a', 'elsewhere'))?.reason).toBe('NamespaceMissing')
    kit.desire([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'elsewhere' } } as K8sObject], {}, OTHER)
    await settle()
    expect(cluster.object(configMapRef('a', 'elsewhere'))).not.toBeNull()
  })

  test('RC20 a deletion in a namespace that goes is no fight', async () => {
    const { clock, cluster, kit, run } = setup()
    cluster.editAs('somebody', namespaceRef('elsewhere'), () => {})
    kit.desire([configMap('a', {}, 'elsewhere')])
    await run()
    cluster.editAs('somebody', namespaceRef('elsewhere'), (object) => Object.assign(object.metadata, { finalizers: ['example.com/hold'] }))
    cluster.deleteAs('somebody', namespaceRef('elsewhere'))
    for (let second = 0; second < 120; second += 1) await clock.advance(1_000)
    expect(kit.object(configMapKey('a', 'elsewhere'))).toMatchObject({ reason: 'NamespaceTerminating' })
  })
})

describe('NS1 the namespace of a service', () => {
  const options = (sync: Record<string, unknown>) => ({ namespace: 'mine', sync })
  const labels = (cluster: ReturnType<typeof setup>['cluster']) => cluster.object(namespaceRef('mine'))?.metadata.labels

  test('its labels and annotations follow the service', async () => {
    const { cluster, kit, settle, run } = setup()
    kit.desire([configMap('a', {}, 'mine')], options({ namespaceLabels: { tier: 'a' }, namespaceAnnotations: { note: 'x' } }))
    await run()
    expect(labels(cluster)).toMatchObject({ tier: 'a' })
    expect(cluster.object(namespaceRef('mine'))?.metadata.annotations).toMatchObject({ note: 'x', 'skerry.dev/prune': 'disabled' })
    writes(cluster)
    kit.desire([configMap('a', {}, 'mine')], options({ namespaceLabels: { tier: 'b' } }))
    await settle()
    expect(writes(cluster)).toEqual(['apply Namespace mine'])
    expect(labels(cluster)).toMatchObject({ tier: 'b' })
  })

  test.each([
    ['labels', { namespaceLabels: [{ tier: 'b' }] }],
    ['annotations', { namespaceAnnotations: 'tier=b' }],
  ])('RV5 NS1 is left as it is by %s that cannot be read, also over a restart and a removal', async (_, unread) => {
    const { cluster, kit, settle, run, clock } = setup()
    kit.desire([configMap('a', {}, 'mine')], options({ namespaceLabels: { tier: 'a' } }))
    await run()
    const before = cluster.object(namespaceRef('mine'))
    writes(cluster)
    kit.desire([configMap('a', { v: '2' }, 'mine')], options(unread))
    await settle()
    await kit.stop()
    await run()
    await clock.advance(3_600_000)
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    expect(cluster.object(namespaceRef('mine'))).toEqual(before)
    expect(kit.service()).toMatchObject({ reason: 'Synced' })
    kit.desire([configMap('a', { v: '2' }, 'mine')], options({ namespaceLabels: { tier: 'b' } }))
    await settle()
    expect(labels(cluster)).toMatchObject({ tier: 'b' })
    kit.remove('prune', undefined, 1, options({ ...unread, deleteNamespace: true }))
    await settle()
    expect(cluster.object(namespaceRef('mine'))?.metadata.labels).toMatchObject({ tier: 'b' })
  })

  test('RV5 NS1 is not made without the labels that cannot be read', async () => {
    const { cluster, kit, run } = setup()
    kit.desire([configMap('b')], options({ namespaceLabels: [{ tier: 'b' }] }))
    await run()
    expect(writes(cluster)).toEqual(['apply ConfigMap b'])
  })

  test('one of others is never changed, nor deleted', async () => {
    const { cluster, kit, settle, run } = setup()
    cluster.editAs('somebody', namespaceRef('mine'), () => {})
    const mine = options({ namespaceLabels: { tier: 'a' }, deleteNamespace: true })
    kit.desire([configMap('a', {}, 'mine')], mine)
    await run()
    expect(labels(cluster)?.['tier']).toBeUndefined()
    kit.remove('prune', undefined, 1, mine)
    await settle()
    expect(cluster.object(configMapRef('a', 'mine'))).toBeNull()
    expect(cluster.object(namespaceRef('mine'))).not.toBeNull()
  })

  test.each([
    [
      'NS2 it goes with the service, after all else',
      { deleteNamespace: true },
      'prune',
      false,
      ['delete ConfigMap a', 'delete Namespace mine'],
      true,
    ],
    ['NS2 by default it stays', {}, 'prune', false, ['delete ConfigMap a', 'patch Namespace mine'], false],
    [
      'NS2 an order that lets go leaves it',
      { deleteNamespace: true },
      'orphan',
      false,
      ['patch ConfigMap a', 'patch Namespace mine'],
      false,
    ],
    [
      'NS2 another service has something in it',
      { deleteNamespace: true },
      'prune',
      true,
      ['delete ConfigMap a', 'patch Namespace mine'],
      false,
    ],
  ] as const)('%s', async (_, sync, policy, shared, expected, gone) => {
    const { cluster, kit, settle, run } = setup()
    kit.desire([configMap('a', {}, 'mine')], options(sync))
    await run()
    if (shared) kit.desire([configMap('b', {}, 'mine')], {}, OTHER)
    await settle()
    writes(cluster)
    kit.remove(policy, undefined, 1, options(sync))
    await settle()
    expect(writes(cluster).sort()).toEqual([...expected].sort())
    expect(cluster.object(namespaceRef('mine')) === null).toBe(gone)
    expect(kit.service()?.reason).toBe('Removed')
  })

  test('NS2 a Namespace of the manifests that says it is kept is kept', async () => {
    const { cluster, kit, settle, run } = setup()
    const annotations = { 'skerry.dev/prune': 'disabled', note: 'mine' }
    kit.desire(
      [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'mine', annotations } } as K8sObject],
      options({ deleteNamespace: true }),
    )
    await run()
    kit.remove('prune', undefined, 1, options({ deleteNamespace: true }))
    await settle()
    expect(cluster.object(namespaceRef('mine'))).not.toBeNull()
  })

  test('NS2 a service that moves to another namespace lets the old one go', async () => {
    const { cluster, kit, settle, run } = setup()
    kit.desire([configMap('a', {}, 'mine')], options({ deleteNamespace: true }))
    await run()
    kit.desire([configMap('a', {}, 'next')], { namespace: 'next', sync: { deleteNamespace: true, maxPrunePercent: 100 } })
    await settle()
    expect(cluster.object(configMapRef('a', 'next'))).not.toBeNull()
    expect(cluster.object(namespaceRef('mine'))).not.toBeNull()
  })

  test('NS3 an object of another namespace is an error of its own; one without a namespace is not concerned', async () => {
    const { cluster, kit, settle, run } = setup()
    const role: K8sObject = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'r' },
      rules: [],
    } as K8sObject
    const objects = [configMap('a', {}, 'mine'), configMap('b', {}, 'default'), role]
    kit.desire(objects, options({ enforceNamespace: true }))
    await run()
    expect(writes(cluster)).toEqual(['apply Namespace mine', 'apply ClusterRole r', 'apply ConfigMap a'].sort(compare))
    expect(kit.object(configMapKey('b'))).toMatchObject({
      reason: 'Unreadable',
      message: objectText('Unreadable.otherNamespace', { named: 'default', namespace: 'mine' }),
    })
    kit.desire(objects, options({}))
    await settle()
    expect(cluster.object(configMapRef('b'))).not.toBeNull()
  })
})

const ORDER = ['apply Namespace mine', 'apply ClusterRole r', 'apply ConfigMap a']
const compare = (a: string, b: string): number => ORDER.indexOf(a) - ORDER.indexOf(b)
