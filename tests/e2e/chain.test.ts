// One cluster, from a commit to the API server and back: what arrives, what one change costs, what is pruned and what
// never is.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { agentWrites, configMapYaml, deploymentYaml, requestText, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'

setDefaultTimeout(60_000)
let scenario: Scenario
const site = () => {
  const found = scenario.sites['harbour']
  if (found === undefined) throw new Error('no site')
  return found
}
const kubectl = (...args: string[]) => site().cluster.kubectl(args)
const mark = () => site().cluster.auditMark()

beforeAll(async () => {
  scenario = await startScenario({ sites: { harbour: { labels: { env: 'prod' } } } })
  await scenario.fleet.run(['apply', '-f', '-'], {
    stdin: serviceYaml({ name: 'web' }) + serviceYaml({ name: 'settings' }) + serviceYaml({ name: 'stable' }),
  })
  await scenario.push({
    'web/deployment.yaml': deploymentYaml('web', 2),
    'web/service.yaml': 'apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n',
    ...Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`settings/s${n}.yaml`, configMapYaml(`s${n}`, { value: 'one' })])),
    'stable/a.yaml': configMapYaml('a', { value: 'never changes' }),
    'stable/b.yaml': configMapYaml('b', { value: 'never changes' }),
  })
  await scenario.settled('harbour', ['web', 'settings', 'stable'])
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => scenario?.stop())

describe('a commit', () => {
  test('E2E1 that changes one ConfigMap makes exactly one write, and two rows of traffic', async () => {
    const position = (await site().agent.status()).replica
    const since = mark()
    const commit = await scenario.push({ 'settings/s3.yaml': configMapYaml('s3', { value: 'two' }) })
    await scenario.settled('harbour', ['settings'], { commit })
    expect(await kubectl('get', 'configmap', 's3', '-n', 'settings', '-o', 'jsonpath={.data.value}')).toBe('two')
    expect(agentWrites(site().cluster, since).map(requestText)).toEqual(['patch /api/v1/namespaces/settings/configmaps/s3 200'])
    const trace = (await scenario.status('harbour', 'settings'))?.applied?.trace ?? 'none'
    await eventually('CO3 the events of server and agent have the id of the change', async () => {
      const told = JSON.parse(await scenario.fleet.run(['events', '--trace', trace, '-o', 'json'])) as { items: { reason: string }[] }
      return ['Applied', 'RevisionPublished'].every((wanted) => told.items.some(({ reason }) => reason === wanted))
    })
    const after = (await site().agent.status()).replica
    expect([after?.rows, after?.verified]).toEqual([position?.rows ?? -1, true])
    // Both rows of the revision carry one db_version: the position moved by exactly one.
    const dv = (text: string | null | undefined) => Number(text?.split('.')[2])
    expect(dv(after?.position) - dv(position?.position)).toBe(1)
  })

  test('E2E1 that changes nothing of a service makes no write and no row', async () => {
    const before = await site().agent.status()
    const since = mark()
    await scenario.push({ 'README.md': '# other words\n' })
    const commit = await scenario.push({ 'settings/s4.yaml': configMapYaml('s4', { value: 'two' }) })
    await scenario.settled('harbour', ['settings'], { commit })
    const after = await site().agent.status()
    expect(agentWrites(site().cluster, since).map(requestText)).toEqual(['patch /api/v1/namespaces/settings/configmaps/s4 200'])
    expect(after.replica?.rows).toBe(before.replica?.rows ?? -1)
    const stable = await scenario.status('harbour', 'stable')
    expect(stable?.applied?.commit).not.toBe(commit)
  })

  test('E2E2 that removes a manifest prunes that object and touches nothing else', async () => {
    const since = mark()
    const commit = await scenario.push({ 'settings/s11.yaml': null })
    await scenario.settled('harbour', ['settings'], { commit })
    await eventually('s11 is gone', async () => !(await kubectl('get', 'configmaps', '-n', 'settings', '-o', 'name')).includes('/s11\n'))
    expect(agentWrites(site().cluster, since).map(requestText)).toEqual(['delete /api/v1/namespaces/settings/configmaps/s11 200'])
  })
})

describe('input that prunes nothing', () => {
  const names = async () =>
    (await kubectl('get', 'configmaps', '-n', 'stable', '-o', 'name')).split('\n').filter((name) => /\/[ab]$/.test(name))

  test('E2E2 a syntax error keeps the last good revision and names file and line', async () => {
    const since = mark()
    await scenario.push({ 'stable/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {value: "unclosed}\n' })
    await eventually('describe tells the place', async () =>
      /^ {2}stable\/a\.yaml:5:15: /m.test(await scenario.fleet.run(['describe', 'service', 'stable'])),
    )
    expect(await names()).toEqual(['configmap/a', 'configmap/b'])
    expect(agentWrites(site().cluster, since)).toEqual([])
    await scenario.push({ 'stable/a.yaml': configMapYaml('a', { value: 'never changes' }) })
    await eventually(
      'the error goes',
      async () => !/^ {2}stable\/a\.yaml:5:15: /m.test(await scenario.fleet.run(['describe', 'service', 'stable'])),
    )
  })

  test('E2E2 an empty folder keeps everything and says which path is empty', async () => {
    const since = mark()
    await scenario.push({ 'stable/a.yaml': null, 'stable/b.yaml': null, 'stable/README.md': 'nothing here\n' })
    await eventually('describe says it', async () =>
      /^Message: .*stable has no manifests/m.test(await scenario.fleet.run(['describe', 'service', 'stable'])),
    )
    expect(await names()).toEqual(['configmap/a', 'configmap/b'])
    expect(agentWrites(site().cluster, since)).toEqual([])
    await scenario.push({
      'stable/a.yaml': configMapYaml('a', { value: 'never changes' }),
      'stable/b.yaml': configMapYaml('b', { value: 'never changes' }),
    })
    await eventually('the error goes', async () => /^State: +Synced/m.test(await scenario.fleet.run(['describe', 'service', 'stable'])))
  })

  test('E2E2 a selector that suddenly matches nobody waits for a person, with the names', async () => {
    const since = mark()
    await scenario.fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'stable', labels: { env: 'prdo' } }) })
    await eventually('confirm lists it', async () => {
      const waiting = await scenario.fleet.run(['confirm'])
      return waiting.includes('stable') && waiting.includes('harbour')
    })
    expect(await names()).toEqual(['configmap/a', 'configmap/b'])
    expect(agentWrites(site().cluster, since)).toEqual([])
    await scenario.fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'stable' }) })
    await eventually('nothing waits', async () => !(await scenario.fleet.run(['confirm'])).includes('stable'))
  })

  test('PR1 a commit that would prune most of a service is refused until a person confirms that revision', async () => {
    const since = mark()
    await scenario.push(Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`settings/s${n}.yaml`, null])))
    const id = await eventually('the refusal is listed with its names', async () => {
      const { items } = await scenario.fleet.api<{ items: Array<{ id: string; kind: string; service: string; names: string[] }> }>(
        '/confirmations',
      )
      const found = items.find((item) => item.kind === 'prune' && item.service === 'settings')
      return found?.names.includes('ConfigMap settings/s0') && found.names.length === 9 ? found.id : undefined
    })
    expect(agentWrites(site().cluster, since)).toEqual([])
    await scenario.fleet.run(['confirm', id, '--yes'])
    await eventually('the confirmed objects are gone', async () => {
      const left = await kubectl('get', 'configmaps', '-n', 'settings', '-o', 'name')
      return left.includes('/s9\n') && left.includes('/s10\n') && !left.includes('/s0\n') && !left.includes('/s8\n')
    })
    expect(agentWrites(site().cluster, since).filter((event) => event.verb === 'delete')).toHaveLength(9)
  })
})

describe('drift', () => {
  const healed = async (what: string, act: () => Promise<unknown>, check: () => Promise<boolean>) => {
    await act()
    await eventually(what, check, 10_000)
  }
  const get = (path: string) => kubectl('get', 'deployment', 'web', '-n', 'web', '-o', `jsonpath=${path}`)

  test('E2E3 kubectl delete, edit, scale, set image and label are healed', async () => {
    const uid = await get('{.metadata.uid}')
    await healed(
      'delete',
      () => kubectl('delete', 'deployment', 'web', '-n', 'web', '--wait=false'),
      async () => {
        const now = await get('{.metadata.uid}')
        return now !== '' && now !== uid
      },
    )
    await healed(
      'scale',
      () => kubectl('scale', 'deployment', 'web', '-n', 'web', '--replicas=5'),
      async () => (await get('{.spec.replicas}')) === '2',
    )
    await healed(
      'set image',
      () => kubectl('set', 'image', 'deployment/web', '-n', 'web', 'app=app:hacked'),
      async () => (await get('{.spec.template.spec.containers[0].image}')) === 'app:1',
    )
    await healed(
      'edit of a field',
      () => kubectl('patch', 'service', 'web', '-n', 'web', '--type=merge', '-p', '{"spec":{"selector":{"app":"other"}}}'),
      async () => (await kubectl('get', 'service', 'web', '-n', 'web', '-o', 'jsonpath={.spec.selector.app}')) === 'web',
    )
    await healed(
      'our label taken away',
      () => kubectl('label', 'configmap', 's9', '-n', 'settings', 'skerry.dev/service-'),
      async () =>
        (await kubectl('get', 'configmap', 's9', '-n', 'settings', '-o', 'jsonpath={.metadata.labels.skerry\\.dev/service}')) ===
        'default.settings',
    )
    await scenario.settled('harbour', ['web', 'settings'])
  })

  test('E2E3 foreign fields, restarts and status are left alone with no write', async () => {
    await scenario.settled('harbour', ['web'])
    const since = mark()
    await kubectl('annotate', 'deployment', 'web', '-n', 'web', 'example.com/note=mine')
    await kubectl('label', 'configmap', 's9', '-n', 'settings', 'team=other')
    await kubectl('rollout', 'restart', 'deployment/web', '-n', 'web')
    await kubectl(
      'patch',
      'deployment',
      'web',
      '-n',
      'web',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"observedGeneration":1}}',
    )
    await kubectl('set', 'env', 'deployment/web', '-n', 'web', 'ADDED=1')
    await kubectl('rollout', 'status', 'deployment/web', '-n', 'web', '--timeout=30s')
    await Bun.sleep(1_500)
    expect(agentWrites(site().cluster, since).map(requestText)).toEqual([])
    expect(await get('{.metadata.annotations.example\\.com/note}')).toBe('mine')
  })
})
