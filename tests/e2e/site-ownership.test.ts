// Who owns what: autoscalers, ignored fields, a ServiceAccount with few rights, objects that move between services or
// must be made again, CRDs that go after their objects.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { OBJECT } from '../../agent/messages/object-messages.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { agentWrites, configMapYaml, deploymentYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'

setDefaultTimeout(60_000)
let scenario: Scenario
const site = () => {
  const found = scenario.sites['harbour']
  if (found === undefined) throw new Error('no site')
  return found
}
const kubectl = (...args: string[]) => site().cluster.kubectl(args)
const mark = () => site().cluster.auditMark()
/** `patch deployments web`: what it tells people beside their objects is no change of them. */
const changes = (since: number): string[] =>
  agentWrites(site().cluster, since)
    .filter(({ objectRef }) => objectRef?.resource !== 'events' && (objectRef?.namespace ?? objectRef?.name) !== 'skerry-system')
    .map(({ verb, objectRef }) => `${verb} ${objectRef?.resource} ${objectRef?.name}`)
const service = (name: string, sync?: string, extra?: string) =>
  serviceYaml({ name, labels: { env: 'prod' }, ...(sync === undefined ? {} : { sync }), ...(extra === undefined ? {} : { extra }) })
const apply = (...documents: string[]) => scenario.fleet.run(['apply', '-f', '-'], { stdin: documents.join('') })
const describe = (name: string) => scenario.fleet.run(['describe', 'service', name])
const field = (namespace: string, what: string, path: string) => kubectl('get', what, '-n', namespace, '-o', `jsonpath={${path}}`)

beforeAll(async () => {
  scenario = await startScenario({ sites: { harbour: { labels: { env: 'prod' } } } })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => scenario?.stop())

test('DR10 DR9 an autoscaler scales, an ignored field is left to people, and neither costs a write', async () => {
  const hpa = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 3, maxReplicas: 5}
`
  await scenario.push({
    'web/web.yaml': deploymentYaml('web', 1),
    'web/hpa.yaml': hpa,
    'web/flags.yaml': configMapYaml('flags', { ours: '1', theirs: '1' }),
  })
  await apply(service('web', undefined, 'ignore: [{kind: ConfigMap, name: flags, jsonPointers: [/data/theirs]}]'))
  await scenario.settled('harbour', ['web'])
  await eventually('scaled by its autoscaler', async () => (await field('web', 'deployment/web', '.spec.replicas')) === '3')
  await scenario.settled('harbour', ['web'])
  const since = mark()
  await kubectl('scale', 'deployment', 'web', '-n', 'web', '--replicas=5')
  await kubectl('patch', 'configmap', 'flags', '-n', 'web', '--type=merge', '-p', '{"data":{"theirs":"2"}}')
  await Bun.sleep(2_000)
  expect(changes(since)).toEqual([])
  expect(await field('web', 'deployment/web', '.spec.replicas')).toBe('5')
  expect(await scenario.fleet.run(['get', 'objects', '--service', 'web', '--kind', 'Deployment', '-o', 'yaml'])).toContain(
    'HorizontalPodAutoscaler',
  )

  const commit = await scenario.push({
    'web/web.yaml': deploymentYaml('web', 1, 'app:2'),
    'web/flags.yaml': configMapYaml('flags', { ours: '2', theirs: '3' }),
  })
  await scenario.settled('harbour', ['web'], { commit })
  expect(await field('web', 'deployment/web', '.spec.replicas')).toBe('5')
  expect(await field('web', 'configmap/flags', '.data')).toBe('{"ours":"2","theirs":"2"}')
})

test('IM1 IM3 RC22 what a ServiceAccount may not do is said per object, and done as soon as it may', async () => {
  await kubectl('create', 'namespace', 'tenant')
  await kubectl('create', 'serviceaccount', 'deployer', '-n', 'tenant')
  await kubectl('create', 'role', 'few', '-n', 'tenant', '--verb=*', '--resource=configmaps')
  await kubectl('create', 'rolebinding', 'few', '-n', 'tenant', '--role=few', '--serviceaccount=tenant:deployer')
  await scenario.push({
    'tenant/a.yaml': configMapYaml('a', { v: '1' }),
    'tenant/b.yaml': 'apiVersion: v1\nkind: Secret\nmetadata: {name: b}\nstringData: {password: hidden-value}\n',
  })
  await apply(service('tenant', '{serviceAccount: deployer}'))
  await eventually('the Secret is refused', async () => (await scenario.status('harbour', 'tenant'))?.reason === 'Forbidden')
  const said = await describe('tenant')
  expect(said).toContain('Secret tenant/b')
  expect(said).toContain('system:serviceaccount:tenant:deployer')
  expect(said).not.toContain('hidden-value')
  expect(await field('tenant', 'configmap/a', '.data.v')).toBe('1')
  await kubectl('create', 'role', 'more', '-n', 'tenant', '--verb=*', '--resource=secrets')
  const grantedMs = performance.now()
  await kubectl('create', 'rolebinding', 'more', '-n', 'tenant', '--role=more', '--serviceaccount=tenant:deployer')
  await scenario.settled('harbour', ['tenant'])
  process.stdout.write(`  a right arrived, the object ${Math.round(performance.now() - grantedMs)} ms later\n`)
})

test('RC3 an object that moves between services in one commit is never deleted', async () => {
  const shared = configMapYaml('shared', { v: '1' }).replace('name: shared', 'name: shared\n  namespace: default')
  await scenario.push({
    'giver/shared.yaml': shared,
    'giver/own.yaml': configMapYaml('own', {}),
    'taker/own.yaml': configMapYaml('own', {}),
  })
  await apply(service('giver'), service('taker'))
  await scenario.settled('harbour', ['giver', 'taker'])
  const uid = await field('default', 'configmap/shared', '.metadata.uid')
  const since = mark()
  const commit = await scenario.push({ 'giver/shared.yaml': null, 'taker/shared.yaml': shared })
  await scenario.settled('harbour', ['giver', 'taker'], { commit })
  await eventually('it is the taker’s', async () =>
    (await field('default', 'configmap/shared', '.metadata.annotations.skerry\\.dev/tracking')).includes('/default/taker:'),
  )
  expect(await field('default', 'configmap/shared', '.metadata.uid')).toBe(uid)
  expect(changes(since)).toEqual(['patch configmaps shared'])
})

test('AO4 HE10 an immutable change is refused with what to do, and Force makes the object anew', async () => {
  const selected = (label: string, annotations = '') =>
    deploymentYaml('web').replace('  name: web', `  name: web${annotations}`).replaceAll('{app: web}', `{app: ${label}}`)
  await scenario.push({ 'fixed/web.yaml': selected('one') })
  await apply(service('fixed'))
  await scenario.settled('harbour', ['fixed'])
  const uid = await field('fixed', 'deployment/web', '.metadata.uid')
  await scenario.push({ 'fixed/web.yaml': selected('two') })
  await eventually('refused', async () => (await scenario.status('harbour', 'fixed'))?.reason === 'Immutable')
  expect(await describe('fixed')).toContain(OBJECT.Immutable.next)
  const commit = await scenario.push({ 'fixed/web.yaml': selected('two', '\n  annotations: {skerry.dev/sync-options: Force}') })
  await scenario.settled('harbour', ['fixed'], { commit })
  expect(await field('fixed', 'deployment/web', '.metadata.uid')).not.toBe(uid)
  expect(await field('fixed', 'deployment/web', '.spec.selector.matchLabels.app')).toBe('two')
})

test('OR2 a service that brings a CRD and its objects is removed with the objects first', async () => {
  const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  names: {kind: Boat, plural: boats, singular: boat, listKind: BoatList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
  const boat = (name: string) =>
    `apiVersion: example.com/v1\nkind: Boat\nmetadata: {name: ${name}, finalizers: [example.com/moored]}\nspec: {length: 3}\n`
  await scenario.push({
    'fleet/crd.yaml': crd,
    'fleet/boats.yaml': `${boat('one')}---\n${boat('two')}`,
    'fleet/operator.yaml': deploymentYaml('operator'),
  })
  await apply(service('fleet'))
  await scenario.settled('harbour', ['fleet'])
  const since = mark()
  await scenario.fleet.run(['delete', 'service', 'fleet', '--yes'])
  await eventually('the boats wait for their operator, and that is said', async () =>
    /Boat fleet\/one.*example\.com\/moored/.test((await scenario.status('harbour', 'fleet'))?.message ?? ''),
  )
  // The namespace was there for others to use: it is let go.
  expect(changes(since).sort()).toEqual(['delete boats one', 'delete boats two', 'patch namespaces fleet'])
  for (const name of ['one', 'two'])
    await kubectl('patch', 'boat', name, '-n', 'fleet', '--type=merge', '-p', '{"metadata":{"finalizers":[]}}')
  await eventually('all is gone', async () => !(await scenario.fleet.run(['get', 'services', '--no-headers'])).includes('fleet'))
  expect(changes(since).slice(3)).toEqual(['delete deployments operator', 'delete customresourcedefinitions boats.example.com'])
  expect(await kubectl('get', 'namespace', 'fleet', '-o', 'name')).toBe('namespace/fleet\n')
})

test('RC7 IV8 after all of it idle writes nothing, and neither does an agent that was killed', async () => {
  await eventually('the outbox is empty', async () => (await site().agent.status()).outboxDepth === 0)
  const since = mark()
  await Bun.sleep(2_000)
  await site().agent.kill()
  await site().agent.start()
  await eventually('enforcing', async () => (await site().agent.status()).enforcement.state === 'enforcing')
  await Bun.sleep(2_000)
  expect(changes(since)).toEqual([])
  await scenario.settled('harbour', ['web', 'tenant', 'giver', 'taker', 'fixed'])
})
