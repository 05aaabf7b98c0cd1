// The RBAC that `skerry-agent rbac` prints, on a real API server: an agent with exactly that ServiceAccount applies,
// heals and prunes, and its audit log has no refusal.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type RbacWish, rbacManifests, rbacValues } from '../../agent/rbac.ts'
import { createKubernetesValues, PROJECTS_ANNOTATION } from '../../server/values/kubernetes-values.ts'
import { ValueError } from '../../server/values/value-source.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { Question } from '../../shared/protocol/ask.ts'
import { type CatalogueSite, startCatalogueSite } from '../support/catalogue-site.ts'
import { renderChart } from '../support/chart-kit.ts'
import { hook, hooked, POLICY } from '../support/hook-fixtures.ts'
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

const SITE = { server: 'https://skerry.example.com', cluster: 'oslo' }
const KINDS = ['v1/ConfigMap', 'v1/Service', 'apps/Deployment', 'batch/Job']
const rightsOf = (account: string, namespaces: string[]) =>
  rbacManifests({ kinds: KINDS, namespaces, serviceAccounts: [], agent: `skerry-system/${account}`, podLogs: true, asking: true })

test.each<[preset: string, rbac: (account: string) => object]>([
  ['cluster-admin', () => ({ rbac: { preset: 'cluster-admin' } })],
  ['namespaced', () => ({ rbac: { preset: 'namespaced', namespaces: ['default'] } })],
  ['custom', (account) => rbacValues(rightsOf(account, ['default']))],
])(
  'IK3 the chart with the preset %s: the agent applies, heals, runs hooks, answers questions and prunes without one refusal',
  async (preset, rbac) => {
    const name = `chart-${preset}`
    const objects = renderChart('skerry-agent', name, { ...SITE, ...rbac(name), serviceAccount: { name } })
    await site.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'skerry-system' } })
    await site.apply(...objects.filter(({ kind }) => kind === 'ServiceAccount' || /Role(Binding)?$/.test(kind)))
    const token = (await site.server.kubectl(['create', 'token', name, '-n', 'skerry-system'])).trim()
    const agent = await site.agent(name, { tokenOf: token })
    const options = { namespace: 'default', sync: { createNamespace: false, pruneWhen: 'applied' as const } }
    const mark = site.server.auditMark()
    const before = hooked(configMap(`${name}-before`), 'pre-sync', { [POLICY]: 'hook-succeeded' })
    const job = hook(`${name}-job`, 'pre-sync', { [POLICY]: 'hook-succeeded' })
    agent.start()
    agent.desire([before, job, configMap(`${name}-a`), service(name), deployment], options)
    await until('the Job of the hook is there', async () => (await site.live('job', `${name}-job`)) !== null)
    await site.server.kubectl(['patch', 'job', `${name}-job`, '--subresource=status', '--type=merge', '-p', finishedJob()])
    await until('it is applied', async () => (await site.live('service', name)) !== null)
    const hooks = async () => [await site.live('job', `${name}-job`), await site.live('configmap', `${name}-before`)]
    await until('the hooks are deleted', async () =>
      (await hooks()).every((one) => one === null || one.metadata['deletionTimestamp'] !== undefined),
    )
    await site.server.kubectl(['patch', 'configmap', `${name}-a`, '--type=merge', '-p', '{"data":{"a":"drift"}}'])
    await until('the drift is healed', async () => (await site.live('configmap', `${name}-a`))?.['data']?.['a' as never] === '1')
    await site.apply(podOfDeployment())
    const ref = { group: 'apps', kind: 'Deployment', namespace: 'default', name: 'w' }
    const errors: string[] = []
    for (const question of [
      { kind: 'object', ref },
      { kind: 'tree', ref },
      { kind: 'events', ref },
      { kind: 'nodes' },
      { kind: 'diff', service: agent.id },
      { kind: 'dryRun', service: agent.id },
      { kind: 'restart', ref },
      { kind: 'logs', ref: { ...ref, group: '', kind: 'Pod', name: 'w-1' } },
    ] satisfies Question[]) {
      const { error } = await agent.ask(question)
      if (error !== null) errors.push(`${question.kind}: ${error}`)
    }
    // No kubelet runs here: the API server has no log of a Pod without a node, and says so after it asked for the
    // right.
    expect(errors.filter((text) => !text.startsWith('logs: '))).toEqual([])
    expect(
      site.server.auditLines({ userAgent: `skerry-agent/${name}`, since: mark }).some(({ requestURI }) => /\/w-1\/log/.test(requestURI)),
    ).toBe(true)
    const restarted = await site.live('deployment', 'w')
    expect(JSON.stringify(restarted?.['spec'])).toContain('kubectl.kubernetes.io/restartedAt')
    agent.desire([configMap(`${name}-a`)], options)
    await until('the Service is pruned', async () => (await site.live('service', name)) === null)
    const events = site.server.auditLines({ userAgent: `skerry-agent/${name}`, since: mark })
    expect(events.length).toBeGreaterThan(20)
    expect(
      events.filter(({ responseStatus }) => responseStatus?.code === 403).map(({ verb, requestURI }) => `${verb} ${requestURI}`),
    ).toEqual([])
  },
  90_000,
)

/** As a ReplicaSet would make it. */
const podOfDeployment = (): K8sObject => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'w-1', namespace: 'default', labels } },
  spec: { containers: [{ name: 'c', image: 'c' }] },
})

/** No controller runs here. The API server takes an end only with its beginning and its reason. */
function finishedJob(): string {
  const time = new Date().toISOString().replace(/\.\d+Z/, 'Z')
  const condition = (type: string) => ({ type, status: 'True', reason: 'Done', lastProbeTime: time, lastTransitionTime: time })
  const conditions = [condition('SuccessCriteriaMet'), condition('Complete')]
  return JSON.stringify({ status: { startTime: time, completionTime: time, succeeded: 1, conditions } })
}

test('RB1 kinds of other groups need their plural, and what is no kind is told', () => {
  const wish = { namespaces: null, serviceAccounts: [], agent: 'skerry-system/a', podLogs: false }
  expect(() => rbacManifests({ ...wish, kinds: ['example.com/Thing'] })).toThrow('the plural of example.com/Thing is not known')
  for (const kinds of [[], ['deployments'], ['apps/']]) expect(() => rbacManifests({ ...wish, kinds })).toThrow()
  expect(
    JSON.stringify(rbacManifests({ ...wish, kinds: ['example.com/Tenant=tenants/cluster', 'networking.k8s.io/NetworkPolicy'] })),
  ).toContain('"networkpolicies"')
})

test('CG13 the server reads the Secrets that its chart names, for the projects that they name, and no others', async () => {
  const rendered = renderChart('skerry', 'values', { valueSecrets: { enabled: true, names: ['shop-db', 'others'] } })
  const rbac = rendered.filter(({ kind }) => ['ServiceAccount', 'Role', 'RoleBinding'].includes(kind))
  expect(rbac.map(({ kind }) => kind).sort()).toEqual(['Role', 'RoleBinding', 'ServiceAccount'])
  const [account = ''] = rbac.flatMap(({ kind, metadata }) => (kind === 'ServiceAccount' ? [metadata.name] : []))
  const secret = (name: string, projects: string, password: string) =>
    ({
      ...{ apiVersion: 'v1', kind: 'Secret', stringData: { password } },
      metadata: { name, namespace: 'skerry-system', annotations: { [PROJECTS_ANNOTATION]: projects } },
    }) as unknown as K8sObject
  await site.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'skerry-system' } })
  await site.apply(...rbac, secret('shop-db', 'shop, web', 'hunter2'), secret('others', 'bank', 'x'), secret('unnamed', '*', 'y'))
  const token = (await site.server.kubectl(['create', 'token', account, '-n', 'skerry-system'])).trim()
  const place = { url: site.server.server, namespace: 'skerry-system', token: () => token, ca: site.server.caPem }
  const values = createKubernetesValues(place, fetch)
  const found = async (project: string, name: string, key = 'password') =>
    (await values.read({ project, name: 'vars' }, [{ name: 'v', kubernetesSecret: { name, key } }])).get('v')
  const read = async (project: string, name: string, key?: string) => {
    const one = await found(project, name, key)
    return one instanceof ValueError ? one.message : one?.value
  }
  expect(await read('shop', 'shop-db')).toBe('hunter2')
  expect(await read('web', 'shop-db')).toBe('hunter2')
  expect(await read('shop', 'shop-db', 'none')).toContain('no key none')
  expect(await read('shop', 'others')).toContain('does not name project shop')
  expect(await read('shop', 'unnamed')).toContain('may not read') // the chart does not name it
  const before = await found('shop', 'shop-db')
  await site.apply(secret('shop-db', 'shop', 'another'))
  const after = await found('shop', 'shop-db')
  expect(after).toMatchObject({ value: 'another' })
  expect(JSON.stringify(after)).not.toBe(JSON.stringify(before))
})
