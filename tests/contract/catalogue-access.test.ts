// Failure catalogue: what the agent may do is taken away, and its token ends. Nothing is deleted for it, nothing is
// forgotten, and it goes on when it may again.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { objectText } from '../../agent/messages/object-messages.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { type CatalogueSite, startCatalogueSite } from '../support/catalogue-site.ts'
import { CLUSTER_START_TIMEOUT_MS } from '../support/kube-cluster.ts'
import { configMap, configMapKey } from '../support/reconcile-kit.ts'
import { said } from '../support/said.ts'
import { until } from '../support/watch-probe.ts'

let site: CatalogueSite
beforeAll(async () => {
  // A watch is judged when it opens: here it is opened anew every 11 to 22 s.
  site = await startCatalogueSite('access', { extraApiServerFlags: ['--min-request-timeout=11'] })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => site.stop(), CLUSTER_START_TIMEOUT_MS)

const RBAC = 'rbac.authorization.k8s.io/v1'
const ALL = ['get', 'list', 'watch', 'create', 'patch', 'update', 'delete']
const secret = (name: string): K8sObject =>
  ({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'default' }, data: { k: 'djE=' } }) as K8sObject
const secretKey = (name: string) => `/Secret/default/${name}`

/** A ServiceAccount that may do everything with these resources. */
const account = (name: string, resources: readonly string[]) => [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'default' } },
  { apiVersion: RBAC, kind: 'ClusterRole', metadata: { name }, rules: [{ apiGroups: [''], resources, verbs: ALL }] },
  {
    apiVersion: RBAC,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
  },
]
const boundSecret = (name: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: `${name}-bound`, namespace: 'default' } })

async function agentOf(name: string) {
  await site.apply(...account(name, ['configmaps', 'secrets', 'namespaces']), boundSecret(name))
  const agent = await site.agent(name, { tokenOf: await site.token(name, `${name}-bound`) })
  agent.start()
  return agent
}

test('RC5 PR1 RBAC is removed for one kind: it is unknown, nothing of it is deleted or forgotten, the others go on', async () => {
  const agent = await agentOf('rbac')
  agent.desire([configMap('rbac-a'), configMap('rbac-b'), secret('rbac-s'), secret('rbac-t')])
  await agent.well()
  const mark = site.server.auditMark()
  await site.apply(...account('rbac', ['configmaps', 'namespaces']))
  await agent.says(
    /secrets is forbidden: User "system:serviceaccount:default:rbac" cannot .*change the RBAC rule.*; retrying/,
    'NotWatched',
  )
  expect((await agent.objectSays(secretKey('rbac-s'), /forbidden/)).sync).toBe('Unknown')

  // The rest of the service is enforced, and a revision that drops a Secret forgets nothing.
  agent.desire([configMap('rbac-a'), configMap('rbac-c'), secret('rbac-s')])
  await until('the new object', () => site.live('configmap', 'rbac-c'))
  await site.remove('configmap', 'rbac-a')
  await until('the healed object', () => site.live('configmap', 'rbac-a'))
  expect(agent.inventory()).toEqual(['ConfigMap/rbac-a', 'ConfigMap/rbac-b', 'ConfigMap/rbac-c', 'Secret/rbac-s', 'Secret/rbac-t'])
  expect(agent.deletes(mark)).toEqual([])

  await site.apply(...account('rbac', ['configmaps', 'secrets', 'namespaces']))
  const tookMs = await agent.well('it is well again')
  expect(agent.inventory()).toEqual(['ConfigMap/rbac-a', 'ConfigMap/rbac-c', 'Secret/rbac-s'])
  expect(agent.deletes(mark).sort()).toEqual(['configmaps/rbac-b', 'secrets/rbac-t'])
  // 30 s is the longest wait of a watch.
  expect(tookMs).toBeLessThan(35_000)
}, 120_000)

test('RC8 KA2 writing one kind is no longer allowed: the API server’s words and what to do, and the rest is applied', async () => {
  const agent = await agentOf('readonly')
  agent.desire([configMap('readonly-a'), secret('readonly-s')])
  await agent.well()
  const [serviceAccount, role, binding] = account('readonly', ['configmaps', 'namespaces'])
  const rules = [
    ...((role as { rules: object[] }).rules ?? []),
    { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch'] },
  ]
  await site.apply(serviceAccount ?? {}, { ...role, rules }, binding ?? {})
  agent.desire([configMap('readonly-a', { a: '2' }), { ...secret('readonly-s'), data: { k: 'djI=' } } as K8sObject])
  await agent.says(
    /secrets "readonly-s" is forbidden: .*cannot patch resource "secrets".*change the RBAC rule, quota or admission policy/,
    'Forbidden',
  )
  await until('the other one', async () => (await site.live('configmap', 'readonly-a'))?.['data'])
  await site.apply(...account('readonly', ['configmaps', 'secrets', 'namespaces']))
  expect(await agent.well('it is well again')).toBeLessThan(30_000)
  expect((await site.live('secret', 'readonly-s'))?.['data']).toEqual({ k: 'djI=' })
}, 120_000)

test('KA8 KA9 RC5 the token ends: said, nothing deleted; a rotated file is read and what changed meanwhile is healed', async () => {
  const agent = await agentOf('token')
  agent.desire([configMap('token-a'), configMap('token-b')])
  await agent.well()
  const mark = site.server.auditMark()
  await site.remove('secret', 'token-bound', '-n', 'default')
  await agent.says(said(objectText('Unauthorized', { failure: 'Unauthorized' })), 'NotWatched')
  expect((await agent.objectSays(configMapKey('token-a'), /Unauthorized/)).sync).toBe('Unknown')
  await site.remove('configmap', 'token-a')
  agent.desire([configMap('token-a'), configMap('token-b', { a: '2' })])
  expect(agent.inventory()).toEqual(['ConfigMap/token-a', 'ConfigMap/token-b'])

  await site.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'token-next', namespace: 'default' } })
  writeFileSync(agent.tokenFile ?? '', await site.token('token', 'token-next'))
  const tookMs = await agent.well('it is well again')
  expect((await site.live('configmap', 'token-a'))?.['data']).toEqual({ a: '1' })
  expect((await site.live('configmap', 'token-b'))?.['data']).toEqual({ a: '2' })
  expect(agent.deletes(mark)).toEqual([])
  expect(tookMs).toBeLessThan(35_000)
}, 120_000)
