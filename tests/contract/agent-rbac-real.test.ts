// The RBAC that `skerry-agent rbac` prints, on a real API server: an agent with exactly that ServiceAccount applies, heals and prunes, and its audit log has no refusal.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type RbacWish, rbacManifests } from '../../agent/rbac.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { type CatalogueSite, startCatalogueSite } from '../support/catalogue-site.ts'
import { CLUSTER_START_TIMEOUT_MS } from '../support/kube-cluster.ts'
import { configMap } from '../support/reconcile-kit.ts'
import { until } from '../support/watch-probe.ts'

let site: CatalogueSite
beforeAll(async () => {
  site = await startCatalogueSite('rbac')
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => site.stop(), CLUSTER_START_TIMEOUT_MS)

const service = (name: string): K8sObject =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { ports: [{ port: 80 }], selector: { app: name } },
  }) as K8sObject
const labels = { app: 'w' }
const deployment = {
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'w', namespace: 'default' } },
  spec: {
    replicas: 1,
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'c' }] } },
  },
} as K8sObject

test.each<[what: string, wish: Partial<RbacWish>, sync: { serviceAccount?: string }]>([
  ['the agent itself in one namespace', { namespaces: ['default'] }, {}],
  ['the agent itself in all namespaces', {}, {}],
  ['a ServiceAccount of the service', { serviceAccounts: ['default/deployer'] }, { serviceAccount: 'default/deployer' }],
])(
  'RB1 %s: applies, heals and prunes without one refusal, and may do nothing else',
  async (what, wish, sync) => {
    const name = `agent-${what.length}`
    const kinds = ['v1/ConfigMap', 'v1/Service', 'apps/Deployment']
    const manifests = rbacManifests({
      kinds,
      namespaces: null,
      serviceAccounts: [],
      agent: `skerry-system/${name}`,
      podLogs: false,
      ...wish,
    })
    await site.apply(...(manifests as K8sObject[]))
    if (sync.serviceAccount !== undefined)
      await site.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'deployer', namespace: 'default' } })
    const token = (await site.server.kubectl(['create', 'token', name, '-n', 'skerry-system'])).trim()
    const agent = await site.agent(name, { tokenOf: token })
    const options = { namespace: 'default', sync: { ...sync, createNamespace: false, pruneWhen: 'applied' as const } }
    const mark = site.server.auditMark()
    agent.start()
    agent.desire([configMap(`${name}-a`), configMap(`${name}-b`), service(name), deployment], options)
    await until('it is applied', () => site.live('deployment', 'w'))
    await until('the Service', () => site.live('service', name))

    await site.server.kubectl(['patch', 'configmap', `${name}-a`, '--type=merge', '-p', '{"data":{"a":"drift"}}'])
    await until('the drift is healed', async () => (await site.live('configmap', `${name}-a`))?.['data']?.['a' as never] === '1')
    await site.remove('configmap', `${name}-b`)
    await until('what was deleted is back', () => site.live('configmap', `${name}-b`))
    agent.desire([configMap(`${name}-a`)], options)
    await until(
      'the rest is pruned',
      async () => (await site.live('service', name)) === null && (await site.live('deployment', 'w')) === null,
    )

    const events = site.server.auditLines({ userAgent: `skerry-agent/${name}`, since: mark })
    expect(events.length).toBeGreaterThan(20)
    expect(
      events.filter(({ responseStatus }) => responseStatus?.code === 403).map(({ verb, requestURI }) => `${verb} ${requestURI}`),
    ).toEqual([])

    // Least: nothing beside these kinds, and only in its namespaces.
    const may = (verb: string, resource: string, namespace: string) =>
      site.server
        .kubectl(['auth', 'can-i', verb, resource, '-n', namespace, `--as=system:serviceaccount:skerry-system:${name}`])
        .then((answer) => answer.trim() === 'yes')
        .catch(() => false)
    const isOwn = sync.serviceAccount === undefined
    expect([
      await may('patch', 'configmaps', 'default'),
      await may('patch', 'configmaps', 'kube-system'),
      await may('get', 'secrets', 'default'),
      await may('create', 'rolebindings', 'default'),
      await may('impersonate', 'serviceaccounts/deployer', 'default'),
      await may('impersonate', 'serviceaccounts/default', 'kube-system'),
    ]).toEqual([isOwn, isOwn && wish.namespaces === undefined, false, false, !isOwn, false])
  },
  90_000,
)

test('RB1 kinds of other groups need their plural, and what is no kind is told', () => {
  const wish = { namespaces: null, serviceAccounts: [], agent: 'skerry-system/a', podLogs: false }
  expect(() => rbacManifests({ ...wish, kinds: ['example.com/Thing'] })).toThrow('the plural of example.com/Thing is not known')
  for (const kinds of [[], ['deployments'], ['apps/']]) expect(() => rbacManifests({ ...wish, kinds })).toThrow()
  expect(
    JSON.stringify(rbacManifests({ ...wish, kinds: ['example.com/Tenant=tenants/cluster', 'networking.k8s.io/NetworkPolicy'] })),
  ).toContain('"networkpolicies"')
})
