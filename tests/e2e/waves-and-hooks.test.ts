// Waves and hooks on a real API server with real controllers: Jobs that kwok's nodes complete, rollouts that get ready
// or do not, TTLs that delete.
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { orderText } from '../../agent/messages/service-messages.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { annotated, hooked, POLICY, waved } from '../support/hook-fixtures.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually, type KubeCluster, WRITE_VERBS } from '../support/kube-cluster.ts'
import { agentsOn, type RealCluster, serviceIs, settled, startRealCluster } from '../support/real-cluster.ts'
import { configMap, type ReconcileKit } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'

const USER_AGENT = 'skerry-agent/test'
const NAMESPACE = 'ordered'
let real: RealCluster
let server: KubeCluster
beforeAll(async () => {
  real = await startRealCluster({ name: 'waves', controllers: true, userAgent: USER_AGENT })
  server = real.server
}, CLUSTER_START_TIMEOUT_MS)
const { start, removeAll } = agentsOn(() => real.cluster)
afterEach(removeAll, 90_000)
afterAll(() => real?.stop())

const desire = (kit: ReconcileKit, objects: readonly K8sObject[], sync = {}) => kit.desire(objects, { namespace: NAMESPACE, sync })

const pod = { restartPolicy: 'Never', terminationGracePeriodSeconds: 0, containers: [{ name: 'a', image: 'a:1' }] }
const NOWHERE = { nodeSelector: { nowhere: 'true' } }
const job = (name: string, spec: Record<string, unknown> = {}, podSpec = {}): K8sObject =>
  ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: NAMESPACE },
    spec: { backoffLimit: 0, ...spec, template: { spec: { ...pod, ...podSpec } } },
  }) as unknown as K8sObject
/** Its Pod fits on no node, and its time is soon over. */
const failingJob = (name: string): K8sObject => job(name, { activeDeadlineSeconds: 1 }, NOWHERE)
const deployment = (name: string, podSpec = {}, spec: Record<string, unknown> = {}): K8sObject =>
  ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      replicas: 2,
      ...spec,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { ...pod, restartPolicy: 'Always', ...podSpec } },
    },
  }) as unknown as K8sObject
const settings = (name: string, data: Record<string, string> = { v: '1' }): K8sObject => configMap(name, data, NAMESPACE)
const get = async (...what: string[]) =>
  (await server.kubectl(['-n', NAMESPACE, 'get', ...what, '--ignore-not-found', '-o', 'name'])).trim()
const field = (path: string, ...what: string[]) => server.kubectl(['-n', NAMESPACE, 'get', ...what, '-o', `jsonpath=${path}`])

/** Names of what the agent applied, in order. */
const applied = async (mark: number): Promise<string[]> =>
  (await server.auditLines({ since: mark, userAgent: USER_AGENT, verbs: WRITE_VERBS })).flatMap(({ verb, objectRef }) =>
    verb === 'patch' && objectRef?.namespace === NAMESPACE && objectRef.resource !== 'namespaces' ? [objectRef.name ?? ''] : [],
  )

test('OR3, OR4, HK2, HK3 pre-sync Job, three waves, post-sync Job; a second life writes nothing, a new revision runs both again', async () => {
  const kit = start()
  const mark = server.auditMark()
  const objects = (v: string) => [
    hooked(job('migrate'), 'pre-sync'),
    waved(deployment('db'), -1),
    deployment('web'),
    waved(settings('last', { v }), 2),
    hooked(job('smoke'), 'post-sync', { [POLICY]: 'hook-succeeded' }),
  ]
  const startedMs = performance.now()
  await settled(kit, desire(kit, objects('1')))
  process.stdout.write(`  two hooks and three waves after ${Math.round(performance.now() - startedMs)} ms\n`)
  expect(await applied(mark)).toEqual(['migrate', 'db', 'web', 'last', 'smoke'])
  expect([await get('job', 'migrate'), await get('job', 'smoke')]).toEqual(['job.batch/migrate', ''])
  const uid = await field('{.metadata.uid}', 'job', 'migrate')
  await kit.stop()
  const second = server.auditMark()
  kit.start()
  await eventually('claim held', async () => kit.claims.at(-1)?.kind === 'held')
  await Bun.sleep(1_500)
  expect(await applied(second)).toEqual([])
  await settled(kit, desire(kit, objects('2')))
  expect(await applied(second)).toEqual(['migrate', 'last', 'smoke'])
  expect(await field('{.metadata.uid}', 'job', 'migrate')).not.toBe(uid)
}, 120_000)

test('HK4 a failing pre-sync Job keeps the old documents in force and runs sync-fail; a fix goes on', async () => {
  const kit = start()
  await settled(kit, desire(kit, [settings('a')]))
  const rescue = hooked(job('rescue'), 'sync-fail')
  desire(kit, [hooked(failingJob('migrate'), 'pre-sync'), rescue, settings('a', { v: '2' })])
  await serviceIs(kit, 'hook failed', ({ reason, health }) => reason === 'HookFailed' && health === 'Degraded')
  expect(kit.service()?.message).toContain('the pre-sync hook Job ordered/migrate failed at ')
  await eventually('rescue ran', async () => (await field('{.status.succeeded}', 'job', 'rescue')) === '1')
  expect(await field('{.data.v}', 'configmap', 'a')).toBe('1')
  await settled(kit, desire(kit, [hooked(job('migrate'), 'pre-sync'), rescue, settings('a', { v: '2' })]))
  expect(await field('{.data.v}', 'configmap', 'a')).toBe('2')
}, 120_000)

test('OR4 a rollout that fails stops the waves after it, and they go on when it is corrected', async () => {
  const kit = start()
  const stuck = deployment('web', NOWHERE, { progressDeadlineSeconds: 2 })
  desire(kit, [stuck, waved(settings('last'), 1)])
  await serviceIs(kit, 'degraded', ({ health, reason }) => health === 'Degraded' && reason === 'WaitingForWave')
  expect(kit.object('/ConfigMap/ordered/last')?.message).toMatch(
    said(orderText('degraded', { what: orderText('wave', { wave: 0, object: 'Deployment ordered/web' }), since: SOME, why: SOME })),
  )
  expect(await get('configmap', 'last')).toBe('')
  await settled(kit, desire(kit, [deployment('web'), waved(settings('last'), 1)]))
}, 120_000)

test('HK7, HK8, HK9 TTL, generateName and a hook that leaves Git', async () => {
  const kit = start()
  const { name: _, ...metadata } = job('x').metadata
  const generated = hooked({ ...job('x'), metadata: { ...metadata, generateName: 'run-' } } as K8sObject, 'pre-sync')
  const short = hooked(job('short', { ttlSecondsAfterFinished: 0 }), 'pre-sync')
  await settled(kit, desire(kit, [generated, short, settings('a')]))
  await eventually('taken by its TTL', async () => (await get('job', 'short')) === '')
  const first = await get('job')
  expect(first).toMatch(/^job\.batch\/run-[0-9a-f]{10}$/)
  const mark = server.auditMark()
  await Bun.sleep(1_000)
  expect(await applied(mark)).toEqual([])
  await settled(kit, desire(kit, [generated, settings('a', { v: '2' })]))
  const second = await get('job')
  expect(second).toMatch(/^job\.batch\/run-[0-9a-f]{10}$/)
  expect(second).not.toBe(first)
  await settled(kit, desire(kit, [settings('a', { v: '2' })]))
  await eventually('no hook is left', async () => (await get('job')) === '')
}, 120_000)

test('JB1, JB2 a plain Job with a TTL runs once, also when it ends and goes while no agent runs, and again when its manifest changes', async () => {
  const kit = start()
  const short = (image: string) => {
    const template = { spec: { ...pod, containers: [{ name: 'a', image }] } }
    return { ...job('short'), spec: { backoffLimit: 0, ttlSecondsAfterFinished: 0, template } } as unknown as K8sObject
  }
  const failing = { ...failingJob('failing') }
  Object.assign(failing['spec'] as object, { ttlSecondsAfterFinished: 0 })
  const mark = server.auditMark()
  desire(kit, [short('a:1'), failing])
  const isOver = async () =>
    (await get('job')) === '' && kit.service()?.health === 'Degraded' && kit.object('batch/Job/ordered/short')?.reason === 'Finished'
  await eventually('both ended and are gone', isOver, 60_000)
  // A Job that ran again would be here by now: a drift is corrected within milliseconds.
  await Bun.sleep(2_000)
  expect((await applied(mark)).sort()).toEqual(['failing', 'short'])
  expect(kit.object('batch/Job/ordered/failing')).toMatchObject({
    reason: 'JobFailed',
    message: expect.stringContaining('was active longer'),
  })

  // It ends, and is taken by its TTL, while no agent runs.
  const digest = desire(kit, [short('a:2')])
  await eventually('sent again', async () => (await applied(mark)).length === 3)
  await kit.stop()
  await eventually('taken by its TTL', async () => (await get('job')) === '', 60_000)
  kit.start()
  await settled(kit, digest)
  await Bun.sleep(1_000)
  expect((await applied(mark)).sort()).toEqual(['failing', 'short', 'short'])
}, 180_000)

test('HK5 a newer revision does not wait for a hook that hangs', async () => {
  const kit = start()
  desire(kit, [hooked(job('migrate', {}, NOWHERE), 'pre-sync'), settings('a')])
  await serviceIs(kit, 'waits', ({ reason }) => reason === 'WaitingForHook')
  await eventually('its Job is there', async () => (await get('job', 'migrate')) !== '')
  await settled(kit, desire(kit, [hooked(job('migrate'), 'pre-sync'), settings('a', { v: '2' })]))
}, 120_000)

test('HK10, OR5 a removal runs its hooks around the prune, waves backwards', async () => {
  const kit = start()
  const helm = (name: string, phase: string) => annotated(job(name), { 'helm.sh/hook': phase })
  const mark = server.auditMark()
  await settled(kit, desire(kit, [helm('first', 'pre-delete'), helm('last', 'post-delete'), settings('a'), waved(settings('b'), 1)]))
  kit.remove('prune')
  await serviceIs(kit, 'removed', ({ removed }) => removed === true)
  const lines = await server.auditLines({ since: mark, userAgent: USER_AGENT, verbs: WRITE_VERBS })
  const writes = lines.flatMap(({ verb, objectRef }) => (objectRef?.namespace === NAMESPACE ? [`${verb} ${objectRef.name}`] : []))
  expect(writes.slice(0, 6)).toEqual(['patch a', 'patch b', 'patch first', 'delete b', 'delete a', 'patch last'])
  expect(writes.slice(6).sort()).toEqual(['delete first', 'delete last'])
  expect(await get('job')).toBe('')
}, 120_000)
