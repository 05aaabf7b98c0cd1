// Questions of a person to a real cluster: server, agent, API server, and a kubelet for the logs. Nothing connects to
// the site but its own agent.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answerNote, questionRefusal } from '../../agent/messages/question-messages.ts'
import type { WhyView } from '../../shared/model/why.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { type KubeletStub, startKubeletStub } from '../support/kubelet-stub.ts'
import { configMapYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'

setDefaultTimeout(60_000)
let scenario: Scenario
let kubelet: KubeletStub
let dir: string
const policy = (text: string) => writeFileSync(join(dir, 'policy.yaml'), text)

const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
        - {name: app, image: "shop:1", env: [{name: DB_PASSWORD, value: hunter2}], resources: {requests: {cpu: 250m}}}
`
const SECRET = `apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {token: hunter2}
`

const LOOPING = `apiVersion: apps/v1
kind: Deployment
metadata: {name: till}
spec:
  progressDeadlineSeconds: 1
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till}}
    spec: {containers: [{name: app, image: "till:1"}]}
`

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'skerry-ask-'))
  policy('{}\n')
  kubelet = startKubeletStub()
  scenario = await startScenario({
    sites: { oslo: { kwok: false, labels: { env: 'prod' }, agentArgs: ['--policy', join(dir, 'policy.yaml')] } },
  })
  await kubelet.register(cluster(), 'node-1')
  const services = serviceYaml({ name: 'shop', sync: '{drift: report}' }) + serviceYaml({ name: 'till' })
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: services })
  await scenario.push({
    'shop/web.yaml': DEPLOYMENT,
    'shop/keys.yaml': SECRET,
    'shop/conf.yaml': configMapYaml('conf', { colour: 'blue' }),
    'till/web.yaml': LOOPING,
  })
  await eventually('synced', async () => (await scenario.status('oslo', 'shop'))?.sync === 'Synced', 45_000)
  await eventually('a Pod has a node', async () => (await podNames()).length === 1, 30_000)
}, CLUSTER_START_TIMEOUT_MS)
afterAll(async () => {
  await scenario?.stop()
  await kubelet?.stop()
  rmSync(dir, { recursive: true, force: true })
})

const cluster = () => {
  const site = scenario.sites['oslo']
  if (site === undefined) throw new Error('no site')
  return site.cluster
}
const podNames = async (namespace = 'shop') =>
  (
    await cluster().kubectl([
      '-n',
      namespace,
      'get',
      'pods',
      '--field-selector=spec.nodeName=node-1',
      '-o',
      'jsonpath={.items[*].metadata.name}',
    ])
  )
    .split(' ')
    .filter((name) => name !== '')
const ask = (...args: string[]) => scenario.fleet.skerry([...args, '--cluster', 'oslo'])

test('AK2 a live object is shown with managers on request, and without the values of secrets', async () => {
  const conf = await ask('get', 'object', 'cm/shop/conf', '-o', 'yaml')
  expect([conf.code, conf.stdout]).toEqual([0, expect.stringContaining('colour: blue')])
  expect(conf.stdout).not.toContain('managedFields')
  expect((await ask('get', 'object', 'cm/shop/conf', '--managed-fields')).stdout).toContain('manager: skerry')
  const secret = await ask('get', 'object', 'secret/shop/keys', '-o', 'json')
  expect(JSON.parse(secret.stdout)).toMatchObject({ kind: 'Secret', data: { token: '<redacted>' } })
  const deployment = await ask('get', 'object', 'deploy/shop/shop', '-o', 'yaml')
  expect(deployment.stdout).not.toContain('hunter2')
  const missing = await ask('get', 'object', 'cm/shop/none')
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('does not exist')])
})

test('WY1 WY10 a crash loop that a kubelet reports is the first cause, with the log of the run that crashed', async () => {
  const [pod = ''] = await eventually('a Pod has a node', async () => podNames('till').then((names) => names.length > 0 && names))
  kubelet.previous = 'panic: no database\n'
  const container = { name: 'app', image: 'till:1', imageID: '', ready: false, restartCount: 3 }
  const [waiting, terminated] = [{ reason: 'CrashLoopBackOff' }, { exitCode: 3, reason: 'Error' }]
  const status = { phase: 'Running', containerStatuses: [{ ...container, state: { waiting }, lastState: { terminated } }] }
  const patch = JSON.stringify({ status })
  await cluster().kubectl(['-n', 'till', 'patch', 'pod', pod, '--subresource=status', '--type=merge', '-p', patch])
  const why = await eventually(
    'the cause',
    async () => {
      const { code, stdout, stderr } = await ask('why', 'till', '-o', 'json')
      if (!stdout.includes('CrashLoop')) throw new Error(`${stdout} ${stderr}`)
      return { code, ...(JSON.parse(stdout) as WhyView) }
    },
    45_000,
  )
  const [first] = why.causes
  expect([why.code, first?.cause, first?.object]).toEqual([1, 'CrashLoop', 'Deployment till/till'])
  expect(first?.evidence).toContainEqual(expect.objectContaining({ from: 'log', text: 'panic: no database' }))
})

test('AK2 the tree of a workload ends in its Pods, each with its health', async () => {
  const { stdout } = await ask('tree', 'deploy/shop/shop', '--json')
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.map(({ ref }) => ref.kind)).toEqual(['Deployment', 'ReplicaSet', 'Pod'])
  expect(lines[2].parent).toBe(lines[1].uid)
  expect(lines.map(({ health }) => health)).toEqual(['Progressing', 'Progressing', 'Progressing'])
})

test('AK2 the difference between desired and live names the fields, both values and the manager', async () => {
  expect(await ask('diff', 'shop', '--live')).toMatchObject({ code: 0, stdout: '' })
  await cluster().kubectl(['-n', 'shop', 'patch', 'cm', 'conf', '--type=merge', '-p', '{"data":{"colour":"red"}}'])
  await cluster().kubectl(['-n', 'shop', 'patch', 'secret', 'keys', '--type=merge', '-p', '{"stringData":{"token":"swapped"}}'])
  const { code, stdout } = await ask('diff', 'shop', '--live', '-o', 'json')
  expect(code).toBe(1)
  expect(stdout).not.toMatch(/hunter2|swapped/)
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.find(({ ref }) => ref.name === 'conf').fields).toEqual([
    { path: '.data.colour', desired: 'blue', live: 'red', managers: ['kubectl-patch'], writtenMs: expect.any(Number) },
  ])
  expect(lines.find(({ ref }) => ref.name === 'keys').fields).toMatchObject([
    { path: '.data.token', desired: '<redacted>', live: '<redacted>' },
  ])
})

test('AK2 logs come through the API server from the kubelet: tail, previous, a missing container', async () => {
  const [pod = ''] = await podNames()
  kubelet.log = 'one\ntwo\nthree\n'
  kubelet.previous = 'before the crash\n'
  const spec = { nodeName: 'node-1', containers: [{ name: 'app', image: 'x' }] }
  const stranger = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'stranger', namespace: 'shop', labels: { app: 'shop' } }, spec }
  await cluster().kubectl(['create', '-f', '-'], { stdin: JSON.stringify(stranger) })
  expect((await ask('logs', `pod/shop/${pod}`)).stdout).toBe('one\ntwo\nthree\n')
  expect((await ask('logs', `pod/shop/${pod}`, '--tail', '1')).stdout).toBe('three\n')
  expect((await ask('logs', `pod/shop/${pod}`, '-c', 'app', '--previous')).stdout).toBe('before the crash\n')
  expect((await ask('logs', 'deploy/shop/shop', '--tail', '1')).stdout).toBe(`[${pod}/app] three\n`)
  await cluster().kubectl(['-n', 'shop', 'delete', 'pod', 'stranger', '--grace-period=0', '--force'])
  expect(await ask('logs', `pod/shop/${pod}`, '-c', 'none')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no container none'),
  })
})

test('AK6 a log is followed, and the kubelet is left as soon as nobody reads', async () => {
  const [pod = ''] = await podNames()
  kubelet.log = 'begin\n'
  let isLive = false
  kubelet.follow = async function* () {
    for (let n = 0; n < 1_000; n++) {
      yield `line ${n}\n`
      await Bun.sleep(isLive ? 100 : 20)
    }
  }
  const leave = new AbortController()
  const response = await fetch(`${scenario.fleet.serverUrl}/api/v1/clusters/oslo/ask`, {
    method: 'POST',
    headers: { authorization: `Bearer ${scenario.fleet.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ question: { kind: 'logs', ref: { group: '', kind: 'Pod', namespace: 'shop', name: pod }, follow: true } }),
    signal: leave.signal,
  })
  let text = ''
  for await (const chunk of response.body ?? new ReadableStream()) {
    text += new TextDecoder().decode(chunk as Uint8Array)
    if (text.includes('line 5')) break
  }
  isLive = true
  expect(text).toContain('begin')
  leave.abort()
  await eventually('nobody follows', async () => kubelet.followers() === 0, 15_000)
  kubelet.follow = async function* () {
    yield 'last words\n' // and the kubelet goes
  }
  expect((await ask('logs', `pod/shop/${pod}`, '-f')).stdout).toContain('last words\n')
})

test('AK2 a restart replaces the Pods, and Git is still in force', async () => {
  const before = await podNames()
  const { code, stdout } = await ask('restart', 'deploy/shop/shop')
  expect([code, stdout]).toEqual([0, 'oslo: Deployment shop/shop restarts\n'])
  const path = 'jsonpath={.spec.template.metadata.annotations.kubectl\\.kubernetes\\.io/restartedAt}'
  expect(await cluster().kubectl(['-n', 'shop', 'get', 'deploy', 'shop', '-o', path])).toMatch(/^\d{4}-/)
  await eventually('another Pod', async () => (await podNames()).some((name) => !before.includes(name)), 30_000)
  expect((await ask('restart', 'cm/shop/conf')).code).toBe(1)
})

test('AK2 a dry run and the nodes are answered', async () => {
  const asked = async (question: object) => {
    const response = await fetch(`${scenario.fleet.serverUrl}/api/v1/clusters/oslo/ask`, {
      method: 'POST',
      headers: { authorization: `Bearer ${scenario.fleet.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ question }),
    })
    return (await response.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  }
  const service = { project: 'default', service: 'shop' }
  const objects = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'new' }, data: {} },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'conf' }, data: { colour: 'green' } },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'bad' }, spec: { replicas: -1 } },
  ]
  const tried = (await asked({ kind: 'dryRun', service, objects })).filter(({ t }) => t === 'dryRun')
  expect(Object.fromEntries(tried.map(({ ref, result }) => [ref.name, result]))).toEqual({
    new: 'created',
    conf: 'changed',
    bad: 'refused',
  })
  const nodes = await asked({ kind: 'nodes' })
  expect(nodes[0]).toMatchObject({ t: 'node', name: 'node-1', capacity: { cpu: '8' }, requested: { cpu: expect.any(Number) } })
  expect((await scenario.fleet.run(['get', 'nodes', '-l', 'env=prod'])).split('\n')[1]).toMatch(/^oslo +node-1 +yes +v1\./)
  expect(await scenario.fleet.run(['events', '--for', 'deploy/shop/shop', '--cluster', 'oslo'])).toContain('ScalingReplicaSet')
})

test('AK2 a proposal is tried in the cluster, and what the API server refuses is said before it is committed', async () => {
  const file = join(dir, 'proposal', 'shop', 'web.yaml')
  mkdirSync(join(dir, 'proposal', 'shop'), { recursive: true })
  writeFileSync(file, DEPLOYMENT.replace('matchLabels: {app: shop}', 'matchLabels: {app: other}').replace('{app: shop}}', '{app: other}}'))
  const { code, stdout } = await ask('diff', 'shop', '--live', '--dir', join(dir, 'proposal'), '-o', 'json')
  expect(code).toBe(2)
  expect(JSON.parse(stdout)).toMatchObject({
    cluster: 'oslo',
    ref: { kind: 'Deployment', name: 'shop' },
    result: 'refused',
    message: expect.stringContaining('immutable'),
  })
  writeFileSync(file, DEPLOYMENT.replace('250m', '300m'))
  const allowed = await ask('diff', 'shop', '--live', '--dir', join(dir, 'proposal'))
  expect([allowed.code, allowed.stdout]).toEqual([1, expect.stringContaining('"300m" desired, "250m" live')])
})

test('AK4 one question to several clusters: answers of those that are there, and the others by name', async () => {
  const { code, stdout, stderr } = await scenario.fleet.skerry(['get', 'object', 'cm/shop/conf', '--cluster', 'oslo,bergen', '-o', 'json'])
  expect([code, JSON.parse(stdout).cluster]).toEqual([1, 'oslo'])
  expect(stderr).toContain('bergen: ')
  expect(stderr).toContain('1 of 2 clusters gave no answer')
})

test('AK5 AK7 the site refuses and hides by its own policy; both audit logs name the asker', async () => {
  policy('ask: {deny: [restart], namespaces: [shop], hide: [v1/ConfigMap]}\n')
  await eventually(
    'the policy is in force',
    async () =>
      (await ask('restart', 'deploy/shop/shop')).stderr.includes(questionRefusal('local_policy.deny', { kind: 'restart' }).message),
    15_000,
  )
  expect((await ask('get', 'object', 'cm/shop/conf', '-o', 'json')).stdout).toContain('"<redacted>"')
  expect((await ask('get', 'object', 'cm/kube-system/x')).stderr).toContain(
    questionRefusal('local_policy.namespace', { namespace: 'kube-system' }).message,
  )
  const { items } = await scenario.fleet.api<{ items: Array<{ actor: { id: string } }> }>('/audit?verb=restart')
  const entry = items.find((one) => 'cluster' in one && one.cluster === 'oslo')
  expect(entry).toMatchObject({ kind: 'Cluster', name: 'oslo', detail: 'restart Deployment shop/shop' })
  const atSite = (await scenario.sites['oslo']?.agent.command(['audit', '--questions', '-o', 'json']))?.stdout ?? ''
  const lines = atSite
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const restarts = lines.filter(({ verb }) => verb === 'ask:restart')
  expect(restarts[0]).toMatchObject({ actor: { id: entry?.actor.id }, detail: 'Deployment shop/shop', result: 'started' })
  expect(restarts.at(-1)).toMatchObject({ result: 'denied', reason: expect.stringContaining('ask.deny') })
  policy('{}\n')
})

test('AK2 AK3 who may not ask is refused on the server, and a right on a service ends at its objects', async () => {
  const token = async (name: string, ...flags: string[]) =>
    JSON.parse(await scenario.fleet.run(['token', 'create', name, ...flags, '-o', 'json'])).token as string
  const as = async (bearer: string, question: object, within?: object) => {
    const response = await fetch(`${scenario.fleet.serverUrl}/api/v1/clusters/oslo/ask`, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      body: JSON.stringify({ question, ...(within === undefined ? {} : { within }) }),
    })
    return { status: response.status, text: await response.text() }
  }
  const object = (name: string, namespace = 'shop') => ({ kind: 'object', ref: { group: '', kind: 'ConfigMap', namespace, name } })
  expect((await as(await token('looks', '--role', 'viewer'), object('conf'))).status).toBe(403)
  const deployer = await token('deploys', '--role', 'deployer')
  expect((await as(deployer, object('conf'))).status).toBe(403)
  const within = { project: 'default', service: 'shop' }
  expect((await as(deployer, object('conf'), within)).text).toContain('"colour"')
  expect((await as(deployer, object('kube-root-ca.crt'), within)).text).toContain('outside_service')
  const ca = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kube-root-ca.crt' }, data: { 'ca.crt': 'mine' } }
  const tried = (await as(deployer, { kind: 'dryRun', service: within, objects: [ca] }, within)).text
  expect([tried.includes(answerNote('not_managed')), tried.includes('BEGIN CERTIFICATE')]).toEqual([true, false])
  const [pod = ''] = await podNames()
  const logs = { kind: 'logs', ref: { group: '', kind: 'Pod', namespace: 'shop', name: pod }, tailLines: 1 }
  expect((await as(deployer, logs, within)).text).toContain('"t":"log"')
})

test('AK4 a cluster that is offline is refused at once', async () => {
  await scenario.sites['oslo']?.agent.kill()
  const refused = await eventually(
    'offline',
    async () => {
      const answer = await ask('get', 'object', 'cm/shop/conf')
      return answer.stderr.includes('has been offline since') ? answer : undefined
    },
    30_000,
  )
  expect(refused.code).toBe(1)
  const startMs = performance.now()
  await ask('get', 'object', 'cm/shop/conf')
  expect(performance.now() - startMs).toBeLessThan(5_000)
})
