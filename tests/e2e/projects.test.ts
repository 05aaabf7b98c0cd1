// A tenant tries to leave its project, with a real server, agent and API server: by what it writes, and by what it
// commits.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { configMapYaml, repositoryYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'

setDefaultTimeout(120_000)
let scenario: Scenario
beforeAll(async () => {
  scenario = await startScenario({ sites: { harbour: { labels: { tenant: 'web' }, controllers: false } } })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => scenario?.stop())

const apply = (...documents: string[]) => scenario.fleet.run(['apply', '-f', '-'], { stdin: documents.join('---\n') })
const kubectl = (...args: string[]) => scenario.sites['harbour']?.cluster.kubectl(args) ?? Promise.reject(new Error('no site'))
const projectYaml = (namespaces: string, more = '') => `apiVersion: skerry.dev/v1
kind: Project
metadata: {name: default}
spec:
  sources: ["${new URL(scenario.git.url).origin}/*"]
  destinations: [{clusters: {matchLabels: {tenant: web}}, namespaces: [${namespaces}]}]
  ${more}
`
const placed = (name: string, namespace: string, metadata = '') =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, namespace: ${namespace}${metadata}}\n`

test('PJ2 PJ5 what a tenant may not write is refused with the rule', async () => {
  await apply(projectYaml('web-*'))
  const { origin, host } = new URL(scenario.git.url)
  const refused: Array<[document: string, rule: string]> = [
    [repositoryYaml('stolen', 'https://evil.example.com/web'), 'rule sources'],
    [repositoryYaml('stolen', `${origin}/web/..%2fother`), 'rule sources'],
    [repositoryYaml('stolen', `https://${host}/web`), 'rule sources'],
    [serviceYaml({ name: 'shop', namespace: 'kube-system' }), 'rule destinations'],
    [serviceYaml({ name: 'shop', namespace: 'web-1', sync: '{serviceAccount: kube-system/admin}' }), 'rule serviceAccounts'],
    [serviceYaml({ name: 'shop', namespace: 'web-1', sync: '{namespaceLabels: {a: b}}' }), 'rule clusterScopedKinds'],
  ]
  for (const [document, rule] of refused) expect(await apply(document).then(() => 'taken', String)).toContain(rule)
})

test('PJ10 PJ12 what a tenant commits outside of its project fails the render, and nothing of it reaches the cluster', async () => {
  await scenario.push({ 'shop/a.yaml': configMapYaml('a', { value: 'one' }) })
  await apply(serviceYaml({ name: 'shop', namespace: 'web-1' }))
  await scenario.settled('harbour', ['shop'])
  const escapes = {
    'shop/other.yaml': placed('other', 'kube-system'),
    'shop/role.yaml': 'apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: escape}\n',
    'shop/namespace.yaml':
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: web-2, labels: {pod-security.kubernetes.io/enforce: privileged}}\n',
    'shop/list.yaml':
      'apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: listed, namespace: default}}]\n',
    'shop/hook.yaml': placed('hooked', 'default', ', annotations: {skerry.dev/hook: pre-sync}'),
    'shop/template.yaml.liquid': placed('templated', '{{ "kube-" | append: "system" }}'),
  }
  await scenario.push({ ...escapes, 'shop/a.yaml': configMapYaml('a', { value: 'two' }) })
  // `describe` reads the service before its events: the events alone may already have the failure.
  const refused = ['other', 'escape', 'web-2', 'listed', 'hooked', 'templated'].map(
    (name) => new RegExp(`\\b${name}: refused by project default, rule `),
  )
  const text = await eventually('the service lists all refused objects', async () => {
    const found = await scenario.fleet.run(['describe', 'service', 'shop'])
    return refused.every((pattern) => pattern.test(found)) ? found : undefined
  })
  for (const file of Object.keys(escapes)) expect(text).toContain(file.replace('.liquid', ''))
  expect(await kubectl('get', 'configmaps', '-A', '-o', 'name')).not.toMatch(/other|listed|hooked|templated/)
  expect(await kubectl('get', 'configmap', 'a', '-n', 'web-1', '-o', 'jsonpath={.data.value}')).toBe('one')
  const removed = Object.fromEntries(Object.keys(escapes).map((file) => [file, null]))
  const commit = await scenario.push(removed)
  await scenario.settled('harbour', ['shop'], { commit })
  expect(await kubectl('get', 'configmap', 'a', '-n', 'web-1', '-o', 'jsonpath={.data.value}')).toBe('two')
})

test('PJ8 a narrowed project lists its violations, and its objects stay in the cluster', async () => {
  expect(await apply(projectYaml('other'))).toContain('not allowed: default/service/shop: spec.namespace')
  await eventually('the service fails', async () =>
    (await scenario.fleet.run(['describe', 'service', 'shop'])).includes('rule destinations'),
  )
  expect(await kubectl('get', 'configmap', 'a', '-n', 'web-1', '-o', 'jsonpath={.data.value}')).toBe('two')
  await apply(projectYaml('web-*'))
  await scenario.settled('harbour', ['shop'])
})

test('PJ5 without a ServiceAccount of its own a service is applied as that of the project, with its rights alone', async () => {
  await apply(projectYaml('web-*', 'serviceAccounts: {default: deployer}'))
  await scenario.push({ 'shop/a.yaml': configMapYaml('a', { value: 'three' }) })
  await eventually('the account has no rights', async () => (await scenario.status('harbour', 'shop'))?.message.includes('web-1/deployer'))
  expect(await kubectl('get', 'configmap', 'a', '-n', 'web-1', '-o', 'jsonpath={.data.value}')).toBe('two')
  await kubectl('create', 'serviceaccount', 'deployer', '-n', 'web-1')
  await kubectl('create', 'role', 'deployer', '-n', 'web-1', '--verb=create,patch,delete', '--resource=configmaps')
  await kubectl('create', 'rolebinding', 'deployer', '-n', 'web-1', '--role=deployer', '--serviceaccount=web-1:deployer')
  await eventually(
    'applied as the account',
    async () => (await kubectl('get', 'configmap', 'a', '-n', 'web-1', '-o', 'jsonpath={.data.value}')) === 'three',
  )
})
