// Services that wait: for each other, and for a person. A real server, agent, API server, controllers.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { agentWrites, configMapYaml, deploymentYaml, requestText, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'

setDefaultTimeout(120_000)
let scenario: Scenario
const site = () => {
  const found = scenario.sites['harbour']
  if (found === undefined) throw new Error('no site')
  return found
}
const kubectl = (...args: string[]) => site().cluster.kubectl(args)
/** What the agent tells people beside their objects is no change of them. */
const changes = (since: number) => agentWrites(site().cluster, since).filter(({ requestURI }) => !requestURI.includes('/events'))
const mark = () => site().cluster.auditMark()
const apply = (...documents: string[]) => scenario.fleet.run(['apply', '-f', '-'], { stdin: documents.join('') })
const reason = (service: string, expected: string) =>
  eventually(`${service} is ${expected}`, async () => {
    const status = await scenario.status('harbour', service)
    if (status?.reason === expected) return status
    throw new Error(JSON.stringify(status))
  })
const dataOf = (namespace: string, name: string) => kubectl('get', 'configmap', name, '-n', namespace, '-o', 'jsonpath={.data.value}')

beforeAll(async () => {
  scenario = await startScenario({ sites: { harbour: { labels: { env: 'prod' } } } })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => scenario?.stop())

test('DE1 DE3 a service waits for another one that is not healthy yet, and begins when that one is', async () => {
  const nowhere = deploymentYaml('base').replace('    spec:\n', '    spec:\n      nodeSelector: {no: where}\n')
  await scenario.push({ 'base/deployment.yaml': nowhere, 'app/settings.yaml': configMapYaml('settings', { value: 'one' }) })
  const since = mark()
  await apply(serviceYaml({ name: 'app', extra: 'dependsOn: [{name: base}]' }), serviceYaml({ name: 'base' }))
  const blocked = await reason('app', 'BlockedBy')
  expect(blocked.message).toContain('waiting for service default/base')
  expect(blocked.next).toContain('`skerry describe service app -p default`')
  await eventually('the other one is rolled out', async () => (await scenario.status('harbour', 'base'))?.health === 'Progressing')
  expect(changes(since).filter(({ requestURI }) => requestURI.includes('/namespaces/app'))).toEqual([])
  expect(await scenario.fleet.run(['describe', 'service', 'app'])).toMatch(
    /Depends on: +default\/base: ready in 0 of 1 cluster; not yet in harbour\n/,
  )
  const commit = await scenario.push({ 'base/deployment.yaml': deploymentYaml('base') })
  await scenario.settled('harbour', ['base'], { commit })
  await scenario.settled('harbour', ['app'])
  const [base, app] = [await scenario.status('harbour', 'base'), await scenario.status('harbour', 'app')]
  const laterMs = (app?.applied?.atMs ?? 0) - (base?.healthy?.atMs ?? 0)
  expect(laterMs).toBeGreaterThanOrEqual(0)
  expect(laterMs).toBeLessThan(2_000)
  expect(await scenario.fleet.run(['describe', 'service', 'base'])).toMatch(/Needed by: +default\/app\n/)
})

test('TG15 services that would wait for each other are refused, with the whole circle', async () => {
  const closing = apply(serviceYaml({ name: 'base', extra: 'dependsOn: [{name: app}]' }))
  expect(await closing.then(() => 'taken', String)).toContain('dependency cycle: base → app → base')
})

test('DE4 of two that are deleted, the one that depends on the other goes first', async () => {
  await kubectl('patch', 'configmap', 'settings', '-n', 'app', '--type=merge', '-p', '{"metadata":{"finalizers":["example.com/wait"]}}')
  await scenario.fleet.run(['delete', 'service', 'app', '--yes'])
  await eventually('it is being deleted', async () => (await kubectl('get', 'configmap', 'settings', '-n', 'app', '-o', 'jsonpath={.metadata.deletionTimestamp}')) !== '') // biome-ignore format: short
  await scenario.fleet.run(['delete', 'service', 'base', '--yes'])
  await eventually('the other one waits', async () =>
    (await scenario.status('harbour', 'base'))?.message.includes(
      deletionText('dependents_first', { first: 'service default/app', count: 1 }),
    ),
  )
  expect(await kubectl('get', 'deployments', '-n', 'base', '-o', 'name')).toContain('/base')
  await kubectl('patch', 'configmap', 'settings', '-n', 'app', '--type=merge', '-p', '{"metadata":{"finalizers":[]}}')
  await eventually('both are gone', async () => !/^(app|base) /m.test(await scenario.fleet.run(['get', 'services', '--no-headers'])))
  expect(await kubectl('get', 'deployments', '-n', 'base', '-o', 'name')).toBe('')
})

const ruleYaml = (when: string) => `---
apiVersion: skerry.dev/v1
kind: HealthRule
metadata: {name: ruled}
spec: {group: "", kind: ConfigMap, healthy: {when: "metadata.name != 'ruled' || ${when}"}}
`

test('HR2 HR4 HR6 a HealthRule of the fleet judges at the site as soon as it is applied, changed or deleted', async () => {
  await scenario.push({ 'ruled/settings.yaml': configMapYaml('ruled', { value: 'one' }) })
  await apply(ruleYaml("data.value == 'two'"), serviceYaml({ name: 'ruled' }))
  const told = () => scenario.status('harbour', 'ruled')
  await eventually('judged by the rule', async () => (await told())?.reason === 'HealthRuleNotMet')
  await apply(ruleYaml("data.value == 'one'"))
  await eventually('judged by the changed rule', async () => (await told())?.health === 'Healthy')
  await apply(ruleYaml('false'))
  await eventually('judged once more', async () => (await told())?.health === 'Progressing')
  await scenario.fleet.run(['delete', 'health-rule', 'ruled', '--yes'])
  await eventually('judged by no rule', async () => (await told())?.health === 'Healthy')
})

test('SM1 TG16 TG17 RH8 a revision of a service that is synced by hand waits for `skerry sync`, with its plan', async () => {
  const since = mark()
  await scenario.push({ 'hand/a.yaml': configMapYaml('a', { value: 'one' }), 'hand/b.yaml': configMapYaml('b', { value: 'one' }) })
  await apply(serviceYaml({ name: 'hand', sync: '{mode: manual}' }))
  const waiting = await reason('hand', 'ManualSync')
  expect(waiting.next).toContain('`skerry sync hand -p default --cluster harbour`')
  const plan = await scenario.fleet.run(['sync', 'hand', '--dry-run'])
  expect(plan).toContain('  create ConfigMap hand/a\n  create ConfigMap hand/b\n')
  expect(changes(since)).toEqual([])
  await scenario.fleet.run(['sync', 'hand', '--yes'])
  await scenario.settled('harbour', ['hand'])

  const commit = await scenario.push({ 'hand/a.yaml': configMapYaml('a', { value: 'two' }), 'hand/b.yaml': null })
  await reason('hand', 'ManualSync')
  // The newest commit has no such file: the applied revision is traced in its own commit.
  const traced = JSON.parse(await scenario.fleet.run(['trace', 'configmap/hand/b', '--cluster', 'harbour', '-o', 'json']))
  expect(traced.file).toMatchObject({ path: 'hand/b.yaml', line: 1, version: traced.commit })
  expect(traced.commit).not.toBe(commit)
  const before = mark()
  await kubectl('patch', 'configmap', 'a', '-n', 'hand', '--type=merge', '-p', '{"data":{"value":"drifted"}}')
  await eventually('healed to what is applied', async () => (await dataOf('hand', 'a')) === 'one')
  expect(changes(before).map(requestText)).toEqual(['patch /api/v1/namespaces/hand/configmaps/a 200'])
  expect(await scenario.fleet.run(['sync', 'hand', '--dry-run'])).toContain('  change ConfigMap hand/a\n  prune ConfigMap hand/b\n')
  await scenario.fleet.run(['sync', 'hand', '--cluster', 'harbour', '--yes'])
  await scenario.settled('harbour', ['hand'], { commit })
  await eventually('pruned', async () => !(await kubectl('get', 'configmaps', '-n', 'hand', '-o', 'name')).includes('/b'))
  expect(await dataOf('hand', 'a')).toBe('two')
  expect((await scenario.fleet.run(['events', '--service', 'hand', '--no-headers'])).match(/SyncAllowed/g)).toHaveLength(2)
})

test('SC1 SC3 a service takes variables from a ConfigMap of its site, again when somebody changes it there, and says when one is missing', async () => {
  const site = 'siteConfig: {namespace: kube-public, name: site-values, keys: [color]}'
  await scenario.push({ 'colored/settings.yaml.liquid': configMapYaml('colored', { value: '{{ config.color }}' }) })
  await apply(serviceYaml({ name: 'colored', extra: site }))
  await eventually('it waits for the value', async () =>
    (await scenario.fleet.run(['describe', 'service', 'colored'])).includes('unknown name config.color'),
  )
  await kubectl('create', 'configmap', 'site-values', '-n', 'kube-public', '--from-literal=color=green', '--from-literal=hidden=x')
  await scenario.settled('harbour', ['colored'])
  expect(await dataOf('colored', 'colored')).toBe('green')
  expect(await scenario.fleet.run(['render', 'colored', '--cluster', 'harbour', '--explain'])).toMatch(
    /^color +"green" +site ConfigMap kube-public\/site-values\n/,
  )
  expect(await scenario.fleet.run(['diff', 'colored', '--ref', 'main'])).toBe('no differences in 1 cluster\n')
  await kubectl('patch', 'configmap', 'site-values', '-n', 'kube-public', '--type=merge', '-p', '{"data":{"color":"red"}}')
  await eventually('the other value is applied', async () => (await dataOf('colored', 'colored')) === 'red')
  const described = await scenario.fleet.run(['describe', 'cluster', 'harbour'])
  expect(described).toMatch(/kube-public\/site-values: +color=red\n/)
  expect(described).not.toContain('hidden')
})
