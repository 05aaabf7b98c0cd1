import { afterEach, expect, test } from 'bun:test'
import type { LogResult } from '../../agent/cluster/pod-logs.ts'
import { WEAK_AGAIN_AFTER_MS } from '../../agent/reconcile/report/explainer.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { requests, setup, stopAll } from '../support/reconcile-fixtures.ts'

afterEach(stopAll)

const KEY = 'apps/Deployment/default/web'
const REF: ObjectRef = { group: 'apps', kind: 'Deployment', namespace: 'default', name: 'web' }
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'app', image: 'x' }] } },
  },
} as unknown as K8sObject
const podRef = (name: string): ObjectRef => ({ group: '', kind: 'Pod', namespace: 'default', name })

const LATE = {
  observedGeneration: 9,
  replicas: 1,
  updatedReplicas: 1,
  conditions: [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'too late' }],
}
const WELL = { observedGeneration: 9, replicas: 1, updatedReplicas: 1, availableReplicas: 1, readyReplicas: 1 }

async function site(told: Parameters<typeof setup>[0] = {}) {
  const parts = setup(told)
  parts.cluster.editAs('replicaset-controller', podRef('web-1-a'), (pod) =>
    Object.assign(pod.metadata, {
      labels: { app: 'web' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'r' }],
    }),
  )
  const breakPod = (exitCode: number) =>
    parts.cluster.setStatus(podRef('web-1-a'), {
      containerStatuses: [{ name: 'app', state: { terminated: { exitCode, reason: 'Error' } } }],
    })
  parts.kit.desire([deployment])
  await parts.run()
  breakPod(1)
  const say = async (status: Record<string, unknown>) => {
    parts.cluster.setStatus(REF, status)
    await parts.settle()
  }
  await say(WELL)
  requests(parts.cluster)
  const pods = () => requests(parts.cluster).filter((line) => line === 'watch Pod').length
  return { ...parts, say, pods, breakPod, status: () => parts.kit.object(KEY) }
}
const MESSAGE = 'too late; Pod default/web-1-a: container app exited with code 1'

test('HE8 a workload that became Degraded is explained by its Pods, read once', async () => {
  const { say, pods, status, settle, kit } = await site()
  expect(pods()).toBe(0)
  await say(LATE)
  expect(status()).toMatchObject({ health: 'Degraded', reason: 'ProgressDeadlineExceeded', message: MESSAGE })
  expect(kit.service()?.message).toBe(`Deployment default/web: ${MESSAGE}`)
  expect(pods()).toBe(1)
  kit.reconciler.revisionsChanged([{ project: 'web', service: 'shop' }])
  await settle()
  expect(pods()).toBe(0)
})

test('HE8 it is asked again when it changes, at most once a minute, and never while it does not', async () => {
  const { say, pods, clock, status, breakPod } = await site()
  await say(LATE)
  expect(pods()).toBe(1)
  breakPod(2)
  const [condition] = LATE.conditions
  await say({ ...LATE, conditions: [{ ...condition, message: 'later' }] })
  const later = MESSAGE.replace('too late', 'later')
  await clock.advance(59_000)
  expect([pods(), status()?.message]).toEqual([0, later])
  await clock.advance(2_000)
  expect([pods(), status()?.message]).toEqual([1, later.replace('code 1', 'code 2')])
  await clock.advance(3_600_000)
  expect(pods()).toBe(0)
})

test('HE8 an answer without a cause is read again with growing delays until there is one, and at most four times', async () => {
  const { say, pods, status, clock, cluster, settle } = await site()
  const pending = (conditions: object[]) => cluster.setStatus(podRef('web-1-a'), { phase: 'Pending', conditions })
  pending([])
  await say(LATE)
  const weak = 'too late; Pod default/web-1-a: phase Pending'
  expect([pods(), status()?.message]).toEqual([1, weak])
  await clock.advance(2_500)
  expect([pods(), status()?.message]).toEqual([1, weak])
  pending([{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes are available: 3 Insufficient cpu.' }])
  await clock.advance(9_000)
  const cause = 'too late; Pod default/web-1-a: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.'
  expect([pods(), status()?.message]).toEqual([1, cause])
  await clock.advance(3_600_000)
  expect(pods()).toBe(0)

  pending([])
  await say({ ...LATE, conditions: [{ ...LATE.conditions[0], message: 'later' }] })
  await settle()
  expect(pods()).toBe(1)
  await clock.advance(3_600_000)
  expect([pods(), status()?.message]).toEqual([WEAK_AGAIN_AFTER_MS.length, weak.replace('too late', 'later')])
})

test('HE8 a workload without Pods at first is explained when they are there', async () => {
  const { kit, cluster, run, settle, clock } = setup()
  kit.desire([deployment])
  await run()
  cluster.setStatus(REF, LATE)
  await settle()
  expect(kit.object(KEY)?.message).toBe('too late')
  cluster.editAs('replicaset-controller', podRef('web-1-a'), (pod) =>
    Object.assign(pod.metadata, {
      labels: { app: 'web' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1', uid: 'r' }],
    }),
  )
  cluster.setStatus(podRef('web-1-a'), { containerStatuses: [{ name: 'app', state: { terminated: { exitCode: 1, reason: 'Error' } } }] })
  await clock.advance(3_000)
  expect(kit.object(KEY)?.message).toBe(MESSAGE)
})

test('HE8 one that is on its way for a moment is not read again within the minute, and nothing is said of it meanwhile', async () => {
  const { say, pods, status, clock } = await site()
  await say(LATE)
  expect(pods()).toBe(1)
  await say({ ...WELL, availableReplicas: 0, readyReplicas: 0 })
  expect(status()).toMatchObject({ health: 'Progressing', message: '0 of 1 replicas are available' })
  await say(LATE)
  expect([pods(), status()?.message]).toEqual([0, MESSAGE])
  await clock.advance(61_000)
  expect(pods()).toBe(1)
})

test('HE8 one that is well again is explained no more', async () => {
  const { say, status, pods } = await site()
  await say(LATE)
  await say(WELL)
  expect(status()).toMatchObject({ health: 'Healthy', message: '' })
  pods()
  await say(LATE)
  expect([pods(), status()?.message]).toEqual([1, MESSAGE])
})

test('HE8 one that is late is explained at half of its deadline', async () => {
  const { say, pods, clock, status } = await site()
  await say({ ...WELL, availableReplicas: 0, readyReplicas: 0 })
  await clock.advance(299_000)
  expect(pods()).toBe(0)
  await clock.advance(2_000)
  expect(pods()).toBe(1)
  expect(status()).toMatchObject({
    health: 'Progressing',
    message: '0 of 1 replicas are available; Pod default/web-1-a: container app exited with code 1',
  })
  await clock.advance(300_000)
  expect(pods()).toBe(0)
  expect(status()).toMatchObject({ health: 'Degraded', reason: 'DeadlineExceeded', message: expect.stringContaining('exited with code 1') })
})

test.each([
  ['DaemonSet', { observedGeneration: 9, desiredNumberScheduled: 1, currentNumberScheduled: 1, updatedNumberScheduled: 1 }],
  ['StatefulSet', { observedGeneration: 9, replicas: 1, updatedReplicas: 1 }],
  ['ReplicaSet', { observedGeneration: 9, replicas: 1 }],
] as const)(
  'HE8 HE21 a %s whose Pod finds no node says why and is Degraded after its deadline, after a take-over too',
  async (kind, hangs) => {
    const { kit, cluster, run, settle, clock } = setup()
    const ref: ObjectRef = { group: 'apps', kind, namespace: 'default', name: 'web' }
    const workload = { ...deployment, kind, spec: { ...(deployment['spec'] as object), serviceName: 'web' } } as unknown as K8sObject
    const metadata = { ...workload.metadata, labels: { 'app.kubernetes.io/managed-by': 'Helm' } }
    cluster.applyAs('helm', { ...workload, metadata })
    const { uid = '' } = cluster.object(ref)?.metadata ?? {}
    cluster.setStatus(ref, hangs)
    cluster.editAs('controller', podRef('web-a'), (pod) =>
      Object.assign(pod.metadata, { labels: { app: 'web' }, ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'web', uid }] }),
    )
    const message = '0/3 nodes are available: 3 Insufficient cpu'
    const unschedulable = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }
    cluster.setStatus(podRef('web-a'), { phase: 'Pending', conditions: [unschedulable] })
    await clock.advance(6_000_000)
    kit.desire([workload], { sync: { takeover: true } })
    await run()
    cluster.setStatus(ref, hangs)
    await settle()
    const status = () => kit.object(`apps/${kind}/default/web`)
    expect(status()).toMatchObject({ sync: 'Synced', health: 'Progressing' })
    await clock.advance(310_000)
    expect(status()).toMatchObject({
      health: 'Progressing',
      message: expect.stringContaining(`Pod default/web-a: Unschedulable: ${message}`),
    })
    await clock.advance(310_000)
    expect(status()).toMatchObject({ health: 'Degraded', reason: 'DeadlineExceeded', message: expect.stringContaining(message) })
  },
)

test('HE8 whoever may not read Pods is told so', async () => {
  const { say, cluster, status } = await site()
  const forbidden = { kind: 'forbidden', status: 403, reason: 'Forbidden', message: 'pods is forbidden' } as const
  cluster.fail(({ verb, kind }) => (verb === 'watch' && kind === 'Pod' ? forbidden : null))
  await say(LATE)
  expect(status()?.message).toBe('too late; cannot read its Pods (pods is forbidden); allow the agent to list and watch pods')
})

test('HE8 a service goes on while Pods are asked', async () => {
  const { say, cluster, status, settle, kit } = await site()
  const answer = Promise.withResolvers<void>()
  const watch = cluster.watch.bind(cluster)
  cluster.watch = async function* (resource, options) {
    if (resource.kind === 'Pod') await answer.promise
    yield* watch(resource, options)
  }
  await say(LATE)
  expect(status()?.message).toBe('too late')
  kit.desire([deployment, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b', namespace: 'default' } }])
  await settle()
  expect(cluster.object({ group: '', kind: 'ConfigMap', namespace: 'default', name: 'b' })).not.toBeNull()
  answer.resolve()
  await settle()
  expect(status()?.message).toBe(MESSAGE)
})

test('HE8 log lines are read only where the agent was told to', async () => {
  const asked: unknown[] = []
  const logTail = async (pod: ObjectRef, options: object): Promise<LogResult> => {
    asked.push({ name: pod.name, ...options })
    return { kind: 'log', text: 'starting\npanic: no database\n' }
  }
  const { say, status } = await site({ told: { podLogs: { logTail, lines: 5 } } })
  await say(LATE)
  expect(asked).toEqual([{ name: 'web-1-a', container: 'app', previous: false, lines: 5 }])
  expect(status()?.message).toBe(`${MESSAGE}; last log lines: starting | panic: no database`)
})

test('HE8 a hook that failed is explained by its Pod', async () => {
  const { cluster, kit, settle, run } = setup()
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'migrate', namespace: 'default', annotations: { 'skerry.dev/hook': 'pre-sync' } },
    spec: { selector: { matchLabels: { job: 'migrate' } }, template: { spec: { containers: [{ name: 'app', image: 'x' }] } } },
  } as unknown as K8sObject
  kit.desire([job, deployment])
  await run()
  const ref: ObjectRef = { group: 'batch', kind: 'Job', namespace: 'default', name: 'migrate' }
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'migrate', uid: cluster.object(ref)?.metadata.uid ?? '' }
  cluster.editAs('job-controller', podRef('migrate-a'), (pod) =>
    Object.assign(pod.metadata, { labels: { job: 'migrate' }, ownerReferences: [owner] }),
  )
  cluster.setStatus(podRef('migrate-a'), { containerStatuses: [{ name: 'app', state: { terminated: { exitCode: 3, reason: 'Error' } } }] })
  cluster.setStatus(ref, { conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', message: 'too often' }] })
  await settle()
  const status = kit.object('batch/Job/default/migrate')
  expect(status).toMatchObject({ health: 'Degraded', message: expect.stringContaining('container app exited with code 3') })
})

test('HE8 a cluster that breaks while it is asked ends nothing', async () => {
  const { say, cluster, status, settle, kit } = await site()
  const watch = cluster.watch.bind(cluster)
  cluster.watch = (resource, options) => {
    if (resource.kind === 'Pod') throw new Error('broken')
    return watch(resource, options)
  }
  await say(LATE)
  expect(status()).toMatchObject({ health: 'Degraded', message: 'too late' })
  kit.desire([])
  await settle()
  expect(kit.service()?.reason).toBe('PruneBlocked')
})
