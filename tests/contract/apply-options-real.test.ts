// The effects of annotations and sync options on how objects are applied, on a real API server with its controllers:
// Replace, Force, ServiceAccounts, namespaces, huge objects.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { objectPart } from '../../agent/messages/object-messages.ts'
import { type K8sObject, type ObjectRef, refKey, refOf } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { crd, deadApiService } from '../support/contract-kit.ts'
import { CLUSTER_START_TIMEOUT_MS, type KubeCluster, WRITE_VERBS } from '../support/kube-cluster.ts'
import { type RealCluster, startRealCluster } from '../support/real-cluster.ts'
import { configMap, createReconcileKit, type ReconcileKit } from '../support/reconcile-kit.ts'
import { SOME, said as saying } from '../support/said.ts'
import { until } from '../support/watch-probe.ts'

const AGENT = 'skerry-agent/options'
const OPTIONS = 'skerry.dev/sync-options'
let server: KubeCluster
let real: RealCluster
beforeAll(async () => {
  real = await startRealCluster({ name: 'options', controllers: true, userAgent: AGENT })
  server = real.server
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => real?.stop(), CLUSTER_START_TIMEOUT_MS)

let kit: ReconcileKit
let spaces = 0
/** Of all tests, so that each prunes what the one before it applied (PR13). */
const folder = mkdtempSync(join(tmpdir(), 'skerry-apply-options-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const start = (): string => {
  kit = createReconcileKit({ cluster: real.cluster, clock: systemClock, statePath: join(folder, 'agent.sqlite') })
  kit.start()
  spaces += 1
  return `space-${spaces}`
}
afterEach(() => kit.stop())

const annotated = (object: K8sObject, annotations: Record<string, string>): K8sObject => ({
  ...object,
  metadata: { ...object.metadata, annotations },
})
const live = async (ref: ObjectRef): Promise<K8sObject | null> => {
  const { resources } = await real.cluster.discover()
  const resource = resources.find(({ group, kind }) => group === ref.group && kind === ref.kind)
  if (resource === undefined) return null
  const found = await real.cluster.get(resource, ref)
  return found.kind === 'found' ? found.object : null
}
const synced = (digest: string) =>
  until('the revision is applied', () => kit.service()?.sync === 'Synced' && kit.service()?.applied?.digest === digest)
const said = (object: K8sObject) => kit.object(refKey(refOf(object)))
const member = (object: K8sObject | null, path: readonly (string | number)[]): unknown => {
  let value: unknown = object
  for (const name of path)
    value = value !== null && typeof value === 'object' ? (value as Record<string | number, unknown>)[name] : undefined
  return value
}
const deployment = (namespace: string, image: string, change: Record<string, unknown> = {}, app = 'a'): K8sObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace, annotations: { [OPTIONS]: 'Replace, Force' } },
  spec: {
    replicas: 0,
    selector: { matchLabels: { app } },
    template: { metadata: { labels: { app } }, spec: { containers: [{ name: 'c', image }] } },
    ...change,
  },
})

describe('AO3 Replace', () => {
  test('what others added to a Deployment goes, what the API server filled in stays, and drift is seen afterwards', async () => {
    const space = start()
    const web = (image: string) => deployment(space, image)
    await synced(kit.desire([web('app:1')], { namespace: space }))
    const env = JSON.stringify({ spec: { template: { spec: { containers: [{ name: 'c', env: [{ name: 'EXTRA', value: 'x' }] }] } } } })
    await server.kubectl(['-n', space, 'patch', 'deployment', 'web', '-p', env])
    await server.kubectl(['-n', space, 'annotate', 'deployment', 'web', 'example.com/note=theirs'])
    const container = ['spec', 'template', 'spec', 'containers', 0]
    expect(member(await live(refOf(web(''))), [...container, 'env'])).toHaveLength(1)
    await synced(kit.desire([web('app:2')], { namespace: space }))
    const after = await live(refOf(web('')))
    expect(member(after, [...container, 'image'])).toBe('app:2')
    expect(member(after, [...container, 'env'])).toBeUndefined()
    expect(after?.metadata.annotations?.['example.com/note']).toBeUndefined()
    expect(member(after, ['spec', 'strategy', 'type'])).toBe('RollingUpdate')
    await server.kubectl(['-n', space, 'set', 'image', 'deployment/web', 'c=app:theirs'])
    await until('it is healed', async () => member(await live(refOf(web(''))), [...container, 'image']) === 'app:2')
    await until('the drift is said', () => kit.drift(refKey(refOf(web(''))))?.action === 'healed')
    const mark = server.auditMark()
    await kit.stop()
    kit.start()
    await until('it looked again', () => kit.service()?.sync === 'Synced')
    expect(
      server.auditLines({ userAgent: AGENT, since: mark, verbs: WRITE_VERBS }).filter(({ objectRef }) => objectRef?.name === 'web'),
    ).toEqual([])
  }, 60_000)

  test('a Job, which no PUT could replace', async () => {
    const space = start()
    const job = (labels: Record<string, string>): K8sObject => ({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'once', namespace: space, labels, annotations: { [OPTIONS]: 'Replace' } },
      spec: { suspend: true, template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'app:1' }] } } },
    })
    await synced(kit.desire([job({ v: '1' })], { namespace: space }))
    await server.kubectl(['-n', space, 'label', 'job', 'once', 'theirs=1'])
    await synced(kit.desire([job({ v: '2' })], { namespace: space }))
    expect((await live(refOf(job({}))))?.metadata.labels).toMatchObject({ v: '2' })
    expect((await live(refOf(job({}))))?.metadata.labels?.['theirs']).toBeUndefined()
  }, 60_000)
})

describe('AO4 Force', () => {
  test('a Deployment with another selector: its Pods first, then it, then the new one', async () => {
    const space = start()
    const first = deployment(space, 'app:1')
    await synced(kit.desire([first], { namespace: space }))
    const uid = (await live(refOf(first)))?.metadata.uid
    const mark = server.auditMark()
    await synced(kit.desire([deployment(space, 'app:1', {}, 'b')], { namespace: space }))
    const after = await live(refOf(first))
    expect(after?.metadata.uid).not.toBe(uid)
    expect(member(after, ['spec', 'selector', 'matchLabels'])).toEqual({ app: 'b' })
    const verbs = server
      .auditLines({ userAgent: AGENT, since: mark, verbs: WRITE_VERBS })
      .filter(({ objectRef, stage }) => objectRef?.name === 'web' && stage === 'ResponseComplete')
    expect(verbs.filter(({ verb }) => verb === 'delete')).toHaveLength(1)
    expect(kit.events().map(({ reason }) => reason)).toContain('Recreated')
  }, 60_000)

  test('without the option nothing is deleted', async () => {
    const space = start()
    const plain = (app: string) => annotated(deployment(space, 'app:1', {}, app), {})
    await synced(kit.desire([plain('a')], { namespace: space }))
    const uid = (await live(refOf(plain('a'))))?.metadata.uid
    kit.desire([plain('b')], { namespace: space })
    await until('it is refused', () => said(plain('a'))?.reason === 'Immutable')
    expect((await live(refOf(plain('a'))))?.metadata.uid).toBe(uid)
  }, 60_000)
})

describe('IM1 writes as a ServiceAccount', () => {
  test('what it may it does, under its name; what it may not is an error of that object; rights that come are used at once', async () => {
    const space = start()
    await server.kubectl(['create', 'namespace', space])
    await server.kubectl(['create', 'namespace', `${space}-other`])
    const options = { namespace: space, sync: { serviceAccount: 'deployer' } }
    const [here, there] = [configMap('here', { a: '1' }, space), configMap('there', { a: '1' }, `${space}-other`)]
    kit.desire([here, there], options)
    await until('nothing is allowed yet', () => said(here)?.reason === 'Forbidden' && said(there)?.reason === 'Forbidden')
    expect(said(here)?.message).toMatch(saying(objectPart('account_missing', { failure: SOME, account: `${space}/deployer` })))
    await server.kubectl(['-n', space, 'create', 'serviceaccount', 'deployer'])
    await server.kubectl(['-n', space, 'create', 'role', 'writer', '--verb=*', '--resource=configmaps'])
    // To the group of all accounts of the namespace: the API server adds it to the user that we name.
    await server.kubectl(['-n', space, 'create', 'rolebinding', 'writer', '--role=writer', `--group=system:serviceaccounts:${space}`])
    await until('it is applied', () => said(here)?.sync === 'Synced', 60_000)
    expect(said(there)?.message).toContain(`User "system:serviceaccount:${space}:deployer" cannot`)
    const advice = saying(objectPart('account_without_right', { failure: SOME, account: `${space}/deployer` }))
    await until('the account is known to exist', () => advice.test(said(there)?.message ?? ''), 60_000)
    const writes = server.auditLines({ userAgent: AGENT, verbs: WRITE_VERBS }).filter(({ objectRef }) => objectRef?.name === 'here')
    expect(writes.length).toBeGreaterThan(0)
    expect(new Set(writes.map((event) => (event as { impersonatedUser?: { username?: string } }).impersonatedUser?.username))).toEqual(
      new Set([`system:serviceaccount:${space}:deployer`]),
    )
    kit.remove('orphan')
    await until('it is let go', async () => (await live(refOf(here)))?.metadata.labels?.['skerry.dev/service'] === undefined)
  }, 120_000)
})

describe('NS1 NS2 namespaces', () => {
  test('labels follow the service, and the namespace goes with it, last of all', async () => {
    const space = start()
    const inside = configMap('inside', { a: '1' }, space)
    const options = (tier: string) => ({ namespace: space, sync: { namespaceLabels: { tier }, deleteNamespace: true } })
    const ref = { group: '', kind: 'Namespace', namespace: '', name: space }
    await synced(kit.desire([inside], options('a')))
    expect((await live(ref))?.metadata.labels?.['tier']).toBe('a')
    kit.desire([inside], options('b'))
    await until('the label is changed', async () => (await live(ref))?.metadata.labels?.['tier'] === 'b')
    kit.remove('prune', undefined, 1, options('b'))
    await until('it is gone', async () => (await live(ref)) === null, 60_000)
    await until('the service is', () => kit.service()?.reason === 'Removed')
  }, 120_000)
})

describe('RC20 a namespace that cannot go', () => {
  test('a dead APIService that holds its deletion is said; when it is away, the namespace and all in it come back', async () => {
    const space = start()
    const inside = configMap('inside', { a: '1' }, space)
    const ref = { group: '', kind: 'Namespace', namespace: '', name: space }
    await synced(kit.desire([inside], { namespace: space }))
    const uid = (await live(ref))?.metadata.uid
    await server.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(deadApiService('dead.example')) })
    await until('the group is stale', async () => (await real.cluster.discover()).staleGroups.includes('dead.example'), 30_000)
    await server.kubectl(['delete', 'namespace', space, '--wait=false'])
    const words = () => [kit.object(refKey(ref))?.message, said(inside)?.message].map((message) => message ?? '')
    await until(
      'it is said what holds it',
      () => words().every((message) => /[Dd]iscovery failed/.test(message) && message.includes('dead.example')),
      60_000,
    )
    expect(said(inside)).toMatchObject({ sync: 'OutOfSync', reason: 'Waiting' })
    await server.kubectl(['delete', 'apiservice', 'v1.dead.example'])
    await until('another namespace is there', async () => ![undefined, uid].includes((await live(ref))?.metadata.uid), 90_000)
    await until('what was in it, too', async () => (await live(refOf(inside))) !== null && kit.service()?.sync === 'Synced', 30_000)
  }, 240_000)
})

describe('RC21 huge objects', () => {
  const hugeCrd = (bytes: number, note = 'a'): K8sObject => {
    const field = (_: unknown, i: number) => [`field${i}`, { type: 'string', description: 'x'.repeat(950) }] as const
    const properties = Object.fromEntries(Array.from({ length: Math.ceil(bytes / 1_000) }, field))
    return crd('huge.example', { schema: { openAPIV3Schema: { type: 'object', description: note, properties } } })
  }

  test('a CRD of 700 KB and a ConfigMap of nearly 1 MiB are applied, watched and healed', async () => {
    const space = start()
    const large = configMap('large', { blob: 'x'.repeat(1_000_000), v: '1' }, space)
    await synced(kit.desire([large, hugeCrd(700_000)], { namespace: space }))
    await server.kubectl(['-n', space, 'patch', 'configmap', 'large', '--type=merge', '-p', '{"data":{"v":"theirs"}}'])
    await until('the ConfigMap is healed', async () => member(await live(refOf(large)), ['data', 'v']) === '1')
    await until('it is said', () => kit.drift(refKey(refOf(large)))?.paths[0] === '.data.v')
    await server.kubectl([
      'patch',
      'crd',
      'boats.huge.example',
      '--type=merge',
      '-p',
      '{"spec":{"names":{"shortNames":["bo"],"singular":"ship"}}}',
    ])
    await until('the CRD is healed', async () => member(await live(refOf(hugeCrd(0))), ['spec', 'names', 'singular']) === 'boat', 30_000)
    await synced(kit.desire([large, hugeCrd(700_000, 'b')], { namespace: space }))
  }, 120_000)

  test.each([
    ['of more than etcd takes', 1_700_000],
    ['of more than the API server’s etcd client sends', 2_400_000],
    ['of more than the API server reads', 3_400_000],
  ])(
    'KA1 a CRD %s is refused for good, and says so',
    async (_, bytes) => {
      start()
      const object = hugeCrd(bytes)
      kit.desire([object])
      await until('it is refused', () => said(object)?.reason === 'Invalid')
      expect(said(object)?.message).toMatch(/too large|larger than max|limit is/)
    },
    60_000,
  )
})
