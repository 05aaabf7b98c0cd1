// A shop is rolled out, breaks, is mended, held, pruned and removed, all through the doors that people have: Git, the
// two programs, kubectl.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { orderText, serviceText } from '../../agent/messages/service-messages.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { SOME, said } from '../support/said.ts'
import { agentWrites, configMapYaml, deploymentYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'

setDefaultTimeout(90_000)
let scenario: Scenario
const site = () => {
  const found = scenario.sites['harbour']
  if (found === undefined) throw new Error('no site')
  return found
}
const kubectl = (...args: string[]) => site().cluster.kubectl(args)
const inShop = (...args: string[]) => kubectl('-n', 'shop', ...args)
const mark = () => site().cluster.auditMark()
const edge = (...args: string[]) => site().agent.command(args)
/** `create jobs migrate`, of what the agent changed; what it tells people beside their objects is no change of them. */
const changes = (since: number): string[] =>
  agentWrites(site().cluster, since)
    .filter(({ objectRef }) => objectRef?.resource !== 'events' && (objectRef?.namespace ?? objectRef?.name) !== 'skerry-system')
    .map(({ verb, objectRef }) => `${verb} ${objectRef?.resource} ${objectRef?.name}`)
const reason = (service: string, expected: string, health?: string) =>
  eventually(`${service} is ${expected}`, async () => {
    const status = await scenario.status('harbour', service)
    if (status?.reason === expected && (health === undefined || status.health === health)) return status
    throw new Error(JSON.stringify(status))
  })
const hooksRun = async (service: string): Promise<string[]> => {
  const lines = (await scenario.fleet.run(['events', '--service', service, '--no-headers'])).split('\n')
  return lines.flatMap((line) => /HookSucceeded .*Job\/\S+\/(\S+)/.exec(line)?.[1] ?? [])
}
const quiet = async () => {
  await eventually('the outbox is empty', async () => (await site().agent.status()).outboxDepth === 0)
  const since = mark()
  await Bun.sleep(2_500)
  return changes(since)
}

const job = (name: string, annotations: string): string => `apiVersion: batch/v1
kind: Job
metadata: {name: ${name}, annotations: {${annotations}}}
spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: a, image: "${name}:1"}]}}}
`
const DATABASE = `apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: {skerry.dev/wave: "-1"}}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "db:1", volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`
const ingress = (host: string): string => `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, annotations: {skerry.dev/wave: "1"}}
spec: {rules: [{host: ${host}, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
`
const stuck = (name: string): string =>
  deploymentYaml(name, 2, 'web:2')
    .replace('spec:\n', 'spec:\n  progressDeadlineSeconds: 2\n')
    .replace('    spec:\n', '    spec:\n      nodeSelector: {disk: fast}\n')
const SHOP = {
  'shop/db.yaml': DATABASE,
  'shop/web.yaml': deploymentYaml('web', 2, 'web:1'),
  'shop/ingress.yaml': ingress('one.example.com'),
  'shop/migrate.yaml': job('migrate', 'skerry.dev/hook: pre-sync'),
  'shop/smoke.yaml': job('smoke', 'skerry.dev/hook: post-sync, skerry.dev/hook-delete-policy: hook-succeeded'),
  'shop/alarm.yaml': job('alarm', 'skerry.dev/hook: sync-fail'),
  'shop/bye.yaml': job('bye', 'skerry.dev/hook: pre-delete'),
}

beforeAll(async () => {
  scenario = await startScenario({ sites: { harbour: { labels: { env: 'prod' } } } })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => scenario?.stop())

test('OR4 HK2 HK3 NS1 a namespace, volumes, hooks and waves, each at its time and once', async () => {
  const since = mark()
  const commit = await scenario.push(SHOP)
  const sync = '{namespaceLabels: {team: a}, deleteNamespace: true}'
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'shop', labels: { env: 'prod' }, sync }) })
  await scenario.settled('harbour', ['shop'], { commit })
  expect(changes(since)).toEqual([
    'patch namespaces shop',
    'patch jobs migrate',
    'patch statefulsets db',
    'patch services db',
    'patch deployments web',
    'patch ingresses web',
    'patch jobs smoke',
    'delete jobs smoke',
  ])
  expect(await kubectl('get', 'namespace', 'shop', '-o', 'jsonpath={.metadata.labels.team}')).toBe('a')
  expect(await inShop('get', 'pvc', '-o', 'jsonpath={.items[*].status.phase}')).toBe('Bound Bound')
  expect(await hooksRun('shop')).toEqual(['migrate', 'smoke'])
  expect(await quiet()).toEqual([])
})

test('OR4 HE8 HK4 a rollout that gets stuck stops what comes after it, says why, and is mended by the next commit', async () => {
  const since = mark()
  await scenario.push({ 'shop/web.yaml': stuck('web'), 'shop/ingress.yaml': ingress('two.example.com') })
  const waiting = await reason('shop', 'WaitingForWave', 'Degraded')
  const what = orderText('wave', { wave: 0, object: 'Deployment shop/web' })
  expect(waiting.message).toMatch(said(orderText('degraded', { what, since: SOME, why: SOME })))
  expect(waiting.next).toContain('correct it in Git')
  await eventually('the Pod’s reason is in the message', async () =>
    (await scenario.status('harbour', 'shop'))?.message.includes('Unschedulable: 0/2 nodes'),
  )
  const described = await scenario.fleet.run(['describe', 'service', 'shop'])
  expect(described).toMatch(/Deployment\.apps +shop +web +Synced +Degraded .* ProgressDeadlineExceeded /)
  expect(described).toMatch(/Pod shop\/web-\S+: Unschedulable/)
  expect((await edge('status')).stdout).toContain('default/shop  OutOfSync  Degraded')
  await eventually('the alarm rang', async () => (await hooksRun('shop')).includes('alarm'))
  expect(await inShop('get', 'ingress', 'web', '-o', 'jsonpath={.spec.rules[0].host}')).toBe('one.example.com')
  expect(changes(since)).toEqual(['delete jobs migrate', 'patch jobs migrate', 'patch deployments web', 'patch jobs alarm'])
  expect(await quiet()).toEqual([])

  const commit = await scenario.push({ 'shop/web.yaml': deploymentYaml('web', 2, 'web:3') })
  await scenario.settled('harbour', ['shop'], { commit })
  expect(await inShop('get', 'ingress', 'web', '-o', 'jsonpath={.spec.rules[0].host}')).toBe('two.example.com')
  expect(await hooksRun('shop')).toEqual(['migrate', 'smoke', 'migrate', 'alarm', 'migrate', 'smoke'])
})

test('HO1 a hold at the site stops hooks and changes, and says so everywhere', async () => {
  const since = mark()
  expect((await edge('hold', 'default/shop', '--reason', 'stocktaking', '--by', 'ola')).stdout).toContain(
    'default/shop is held by ola since ',
  )
  const commit = await scenario.push({ 'shop/web.yaml': deploymentYaml('web', 2, 'web:4') })
  const held = await reason('shop', 'Held')
  expect(held.message).toMatch(said(serviceText('Held', { by: 'ola', since: SOME, until: '', why: 'stocktaking', scope: 'default/shop' })))
  await eventually('its commit has arrived', async () => (await scenario.status('harbour', 'shop'))?.received?.commit === commit)
  expect(await quiet()).toEqual([])
  await inShop('delete', 'service', 'db')
  await eventually('what is deleted comes back', async () => (await inShop('get', 'service', 'db', '-o', 'name')) !== '')
  expect(changes(since)).toEqual(['patch services db'])
  expect((await edge('unhold', 'default/shop', '--by', 'ola')).code).toBe(0)
  await scenario.settled('harbour', ['shop'], { commit })
})

test('PR1 EC1 a prune that is too large waits, and a person at the site says yes to exactly that', async () => {
  const names = Array.from({ length: 12 }, (_, i) => `c${String(i).padStart(2, '0')}`)
  await scenario.push({ 'many/all.yaml': names.map((name) => configMapYaml(name, { a: '1' })).join('---\n') })
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'many', labels: { env: 'prod' } }) })
  await scenario.settled('harbour', ['many'])
  await scenario.push({ 'many/all.yaml': configMapYaml('c00', { a: '1' }) })
  const refused = await reason('many', 'PruneBlocked')
  expect(refused.message).toMatch(said(`${deletionText('too_many', { count: 11, owned: 13, percent: 50 })}${SOME}ConfigMap many/c01`))
  expect((await edge('status')).stdout).toContain('`skerry-agent confirm default/many` shows them')
  const shown = (await edge('confirm', 'default/many')).stdout
  const digest = /--digest (\S+)/.exec(shown)?.[1] ?? ''
  expect(shown.match(/ConfigMap many\//g)).toHaveLength(11)
  expect(await quiet()).toEqual([])
  expect((await edge('confirm', 'default/many', '--digest', digest, '--by', 'ola')).code).toBe(0)
  await scenario.settled('harbour', ['many'])
  expect(await kubectl('get', 'configmaps', '-n', 'many', '-l', 'skerry.dev/service', '-o', 'name')).toBe('configmap/c00\n')
  await eventually('nobody is asked any more', async () => !(await scenario.fleet.run(['confirm'])).includes('many'))
})

test('RC7 HK2 IV8 idle writes nothing, a kill -9 writes nothing, and no hook runs again', async () => {
  expect(await quiet()).toEqual([])
  const since = mark()
  const before = await hooksRun('shop')
  await site().agent.kill()
  await site().agent.start()
  await eventually('enforcing', async () => (await site().agent.status()).enforcement.state === 'enforcing')
  await Bun.sleep(2_000)
  expect(changes(since)).toEqual([])
  expect(await hooksRun('shop')).toEqual(before)
})

test('HK10 NS2 RM3 a service that is deleted runs its pre-delete hook; its namespace waits for a person because of the volumes in it, and goes last', async () => {
  const since = mark()
  await scenario.fleet.run(['delete', 'service', 'shop', '--yes'])
  const pending = await eventually('a person is asked', async () => {
    const status = await reason('shop', 'ConfirmationPending')
    return status.confirmationId === null ? false : { ...status, confirmationId: status.confirmationId }
  })
  const claims = [0, 1].map((ordinal) => `PersistentVolumeClaim shop/data-db-${ordinal}`).join(', ')
  expect(pending.message).toContain(`Namespace shop (${deletionText('others_inside', { count: 2, isMore: false, names: claims })})`)
  expect(await inShop('get', 'pvc', '-o', 'jsonpath={.items[*].status.phase}')).toBe('Bound Bound')
  await scenario.fleet.run(['confirm', pending.confirmationId, '--yes'])
  await eventually(
    'the namespace is gone',
    async () => (await kubectl('get', 'namespace', 'shop', '--ignore-not-found', '-o', 'name')) === '',
    60_000,
  )
  const done = changes(since)
  expect(done[0]).toBe('patch jobs bye')
  expect(done.at(-1)).toBe('delete namespaces shop')
  expect(done.indexOf('delete ingresses web')).toBeLessThan(done.indexOf('delete deployments web'))
  expect(done.indexOf('delete deployments web')).toBeLessThan(done.indexOf('delete statefulsets db'))
  await eventually('the service is gone', async () => !(await scenario.fleet.run(['get', 'services', '--no-headers'])).includes('shop'))
})
