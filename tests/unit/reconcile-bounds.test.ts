// Refusals by a Project and by the site policy, in an agent on the fake API server: status, requests, kept objects.
import { afterEach, describe, expect, test } from 'bun:test'
import { objectPart, objectText } from '../../agent/messages/object-messages.ts'
import { permittedCluster } from '../../agent/reconcile/apply/acting.ts'
import type { SitePolicy } from '../../agent/reconcile/snapshot/permits.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { namespace, setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, SHOP } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const BOUNDS = { namespaces: ['default', 'shop'], clusterScopedKinds: [] as string[] }
const elsewhere = (name: string, namespace: string): K8sObject => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } })
const clusterRole: K8sObject = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'x' } }
const hook: K8sObject = {
  ...{ apiVersion: 'v1', kind: 'ConfigMap' },
  metadata: { generateName: 'h-', namespace: 'kube-system', annotations: { 'skerry.dev/hook': 'pre-sync' } },
}

describe('PJ12 bounds of the signed row', () => {
  test('what is outside is refused by its rule and never sent, and the rest is applied', async () => {
    const { cluster, kit, run } = setup()
    kit.desire([configMap('a'), elsewhere('b', 'kube-system'), clusterRole], { bounds: BOUNDS, namespace: 'default' })
    await run()
    expect(kit.object(configMapKey('a'))?.sync).toBe('Synced')
    expect(kit.object('/ConfigMap/kube-system/b')).toMatchObject({
      reason: 'ProjectRefused',
      message: expect.stringContaining('refused by project web, rule namespaces: namespace kube-system'),
    })
    expect(kit.object('rbac.authorization.k8s.io/ClusterRole//x')).toMatchObject({ reason: 'ProjectRefused' })
    expect(cluster.requests.filter(({ verb, ref }) => verb !== 'get' && (ref?.name === 'b' || ref?.name === 'x'))).toEqual([])
  })

  test('a hook with a generated name in another namespace does not run, and nothing of its revision begins', async () => {
    const { cluster, kit, run } = setup()
    kit.desire([hook, configMap('a')], { bounds: BOUNDS })
    await run()
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync' })
    expect(cluster.requests.filter(({ verb, ref }) => verb === 'apply' && ref?.namespace === 'kube-system')).toEqual([])
  })

  test('an object that is refused later is neither changed nor pruned, and widening takes it on again', async () => {
    const { cluster, kit, run, settle } = setup()
    cluster.applyAs('somebody', namespace('shop'))
    const objects = [configMap('a'), elsewhere('b', 'shop')]
    kit.desire(objects, {})
    await run()
    kit.desire(objects, { bounds: { ...BOUNDS, namespaces: ['default'] } })
    await settle()
    expect(kit.object('/ConfigMap/shop/b')).toMatchObject({ reason: 'ProjectRefused' })
    expect(cluster.requests.filter(({ verb }) => verb === 'delete')).toEqual([])
    kit.desire(objects, { bounds: BOUNDS })
    await settle()
    expect(kit.object('/ConfigMap/shop/b')?.sync).toBe('Synced')
  })

  test.each([
    ['as the agent', undefined],
    ['as the account of another namespace', 'kube-system/admin'],
  ])('a service %s is refused as a whole where the Project requires its own account', async (_, serviceAccount) => {
    const { cluster, kit, run } = setup()
    const sync = { createNamespace: false, ...(serviceAccount === undefined ? {} : { serviceAccount }) }
    kit.desire([configMap('a')], { namespace: 'default', sync, bounds: { ...BOUNDS, serviceAccounts: 'required' } })
    await run()
    expect(kit.object(configMapKey('a'))).toMatchObject({
      reason: 'ProjectRefused',
      message: expect.stringContaining('rule serviceAccounts'),
    })
    expect(cluster.requests.filter(({ verb, ref }) => verb === 'apply' && ref?.name === 'a')).toEqual([])
  })

  test('the namespace of the service is made without an entry among kinds, and not with labels', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([elsewhere('a', 'shop')], { namespace: 'shop', sync: { createNamespace: true }, bounds: BOUNDS })
    await run()
    expect(cluster.requests.some(({ verb, ref }) => verb === 'apply' && ref?.kind === 'Namespace' && ref.name === 'shop')).toBe(true)
    kit.desire([elsewhere('a', 'shop')], { namespace: 'shop', sync: { namespaceLabels: { a: 'b' } }, bounds: BOUNDS, commit: 'next' })
    await settle()
    expect(kit.object('/Namespace//shop')).toMatchObject({ reason: 'ProjectRefused' })
  })

  test('a request past the plan is refused by the port itself', async () => {
    const { cluster } = setup()
    const row = serviceRowSchema.parse({ commit: 'c', digest: 'd', count: 0, sync: {}, bounds: BOUNDS })
    const port = permittedCluster(cluster, { id: SHOP, row, policy: null })
    const resource = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true, verbs: [] }
    expect(await port.apply(resource, elsewhere('b', 'kube-system'), { force: true })).toMatchObject({
      kind: 'failed',
      failure: { reason: 'ProjectRefused' },
    })
    expect(cluster.requests).toEqual([])
  })
})

describe('LX1 the policy of the site', () => {
  const policed = (policy: SitePolicy | null) => {
    const held = { policy }
    return { held, ...setup({ policy: () => held.policy }) }
  }

  test('LX1 narrows what the server allows, names the local policy, and a change of it counts at once', async () => {
    const { held, cluster, kit, run, settle } = policed({ namespaces: ['shop'] })
    cluster.applyAs('somebody', namespace('shop'))
    kit.desire([configMap('a'), elsewhere('b', 'shop')], { bounds: BOUNDS })
    await run()
    expect(kit.object(configMapKey('a'))).toMatchObject({
      reason: 'LocalPolicy',
      message: expect.stringContaining(objectPart('local_policy')),
    })
    expect(kit.object('/ConfigMap/shop/b')?.sync).toBe('Synced')
    held.policy = { namespaces: ['shop', 'default'] }
    kit.reconciler.policyChanged()
    await settle()
    expect(kit.object(configMapKey('a'))?.sync).toBe('Synced')
    held.policy = { namespaces: ['default'] }
    kit.reconciler.policyChanged()
    await settle()
    expect(kit.object('/ConfigMap/shop/b')).toMatchObject({ reason: 'LocalPolicy' })
    expect(cluster.requests.filter(({ verb }) => verb === 'delete')).toEqual([])
  })

  test.each<[string, SitePolicy, string]>([
    ['LX2 projects', { projects: ['other'] }, objectText('LocalPolicy.project', { project: 'web', allowed: 'other' })],
    ['LX2 deny apply', { deny: ['apply'] }, objectText('LocalPolicy.apply')],
    ['LX2 serviceAccounts', { serviceAccounts: 'required' }, 'rule serviceAccounts'],
    ['LX2 kinds', { kinds: { deny: ['v1/ConfigMap'] } }, 'rule kinds: v1/ConfigMap is denied'],
  ])('%s', async (_, policy, told) => {
    const { cluster, kit, run } = policed(policy)
    kit.desire([configMap('a')])
    await run()
    expect(kit.object(configMapKey('a'))).toMatchObject({ reason: 'LocalPolicy', message: expect.stringContaining(told) })
    expect(cluster.requests.filter(({ verb, ref }) => verb === 'apply' && ref?.name === 'a')).toEqual([])
  })

  test.each<[string, SitePolicy, 'LocalPolicy.prune' | 'LocalPolicy.delete']>([
    ['LX3 deny prune', { deny: ['prune'] }, 'LocalPolicy.prune'],
    ['LX3 deny delete', { deny: ['delete'] }, 'LocalPolicy.delete'],
  ])('%s keeps what a revision no longer names, and a removed service', async (_, policy, code) => {
    const { held, cluster, kit, run, settle } = policed(policy)
    kit.desire([configMap('a'), configMap('b')])
    await run()
    kit.desire([configMap('a')])
    await settle()
    kit.remove('delete', undefined, 1)
    await settle()
    expect(cluster.requests.filter(({ verb }) => verb === 'delete')).toEqual([])
    expect(kit.service()?.message).toContain(objectText(code))
    held.policy = null
    kit.reconciler.policyChanged()
    await settle()
    expect(cluster.requests.filter(({ verb }) => verb === 'delete')).toHaveLength(2)
  })
})
