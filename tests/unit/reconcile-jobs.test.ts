// Workloads whose Pods cannot run: what is said of them, and when their health deadline counts.
import { afterEach, expect, test } from 'bun:test'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { requests, setup, stopAll } from '../support/reconcile-fixtures.ts'

afterEach(stopAll)

const MINUTE_MS = 60_000
const JOB: ObjectRef = { group: 'batch', kind: 'Job', namespace: 'default', name: 'work' }
const JOB_KEY = 'batch/Job/default/work'
const CRON: ObjectRef = { group: 'batch', kind: 'CronJob', namespace: 'default', name: 'nightly' }
const CRON_KEY = 'batch/CronJob/default/nightly'
const SET_KEY = 'apps/StatefulSet/default/db'
const podRef = (name: string): ObjectRef => ({ group: '', kind: 'Pod', namespace: 'default', name })
const metadata = (name: string) => ({ name, namespace: 'default' })
const selector = (name: string) => ({ matchLabels: { 'batch.kubernetes.io/job-name': name } })
const template = { spec: { containers: [{ name: 'app', image: 'x' }], restartPolicy: 'Never' } }
const job = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: metadata('work'),
  spec: { selector: selector('work'), template },
} as unknown as K8sObject
const cronJob = {
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  metadata: metadata('nightly'),
  spec: { schedule: '0 2 * * *', jobTemplate: { spec: { template } } },
} as unknown as K8sObject

const UNSCHEDULABLE = {
  type: 'PodScheduled',
  status: 'False',
  reason: 'Unschedulable',
  message: '0/3 nodes are available: 3 Insufficient cpu',
}
const HANGS = { startTime: '2023-11-14T22:13:20Z', active: 1, ready: 0 }
const RUNS = { ...HANGS, ready: 1 }

function site() {
  const parts = setup()
  const { cluster, kit, settle } = parts
  const say = async (ref: ObjectRef, status: Record<string, unknown>) => {
    cluster.setStatus(ref, status)
    await settle()
  }
  const pod = (owner: ObjectRef, name: string, status: Record<string, unknown>) => {
    const { uid = '' } = cluster.object(owner)?.metadata ?? {}
    cluster.editAs('job-controller', podRef(name), (object) =>
      Object.assign(object.metadata, {
        labels: { 'batch.kubernetes.io/job-name': owner.name },
        ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: owner.name, uid }],
      }),
    )
    cluster.setStatus(podRef(name), status)
  }
  const begin = async (...objects: K8sObject[]) => {
    kit.desire(objects)
    await parts.run()
  }
  return { ...parts, say, pod, begin, status: (key = JOB_KEY) => kit.object(key) }
}

test('HE21 HE8 a Job whose Pod cannot be scheduled says why at half of its deadline, and is Degraded after it', async () => {
  const { begin, say, pod, clock, status, kit } = site()
  await begin(job)
  await say(JOB, HANGS)
  pod(JOB, 'work-a', { phase: 'Pending', conditions: [UNSCHEDULABLE] })
  await clock.advance(5 * MINUTE_MS)
  expect(status()).toMatchObject({
    health: 'Progressing',
    message: expect.stringContaining('Pod default/work-a: Unschedulable: 0/3 nodes'),
  })
  await clock.advance(5 * MINUTE_MS)
  expect(status()).toMatchObject({ health: 'Degraded', reason: 'DeadlineExceeded', message: expect.stringContaining('Insufficient cpu') })
  expect(kit.service()?.health).toBe('Degraded')
  await say(JOB, RUNS)
  expect(status()).toMatchObject({ health: 'Progressing', reason: 'Running' })
})

test('HE21 a Job that runs has no deadline, and one that hangs after it ran has the whole of it', async () => {
  const { begin, say, clock, status } = site()
  await begin(job)
  await say(JOB, HANGS)
  await clock.advance(8 * MINUTE_MS)
  await say(JOB, RUNS)
  await clock.advance(600 * MINUTE_MS)
  expect(status()).toMatchObject({ health: 'Progressing', reason: 'Running' })
  await say(JOB, HANGS)
  await clock.advance(9 * MINUTE_MS)
  expect(status()).toMatchObject({ health: 'Progressing', reason: 'NoPodRuns' })
  await clock.advance(2 * MINUTE_MS)
  expect(status()).toMatchObject({ health: 'Degraded', reason: 'DeadlineExceeded' })
})

test('HE21 a restart forgets no deadline: neither one that runs nor one that has passed', async () => {
  const { begin, say, clock, status, kit, run } = site()
  await begin(job)
  await say(JOB, HANGS)
  await clock.advance(7 * MINUTE_MS)
  await kit.stop()
  await run()
  await clock.advance(3 * MINUTE_MS)
  const late = status()
  expect(late).toMatchObject({ health: 'Degraded', reason: 'DeadlineExceeded' })
  await kit.stop()
  await clock.advance(MINUTE_MS)
  await run()
  expect(status()).toEqual(late)
})

test('HE21 what is taken over while it hangs has its deadline from then on', async () => {
  const { cluster, kit, run, clock, status, say } = site()
  cluster.applyAs('helm', { ...job, metadata: { ...job.metadata, labels: { 'app.kubernetes.io/managed-by': 'Helm' } } })
  await say(JOB, HANGS)
  await clock.advance(600 * MINUTE_MS)
  kit.desire([job], { sync: { takeover: true } })
  await run()
  expect(status()).toMatchObject({ sync: 'Synced', health: 'Progressing' })
  await clock.advance(9 * MINUTE_MS)
  expect(status()?.health).toBe('Progressing')
  await clock.advance(2 * MINUTE_MS)
  expect(status()).toMatchObject({ health: 'Degraded', reason: 'DeadlineExceeded' })
})

test('HE8 HE21 a service whose hook hangs says why', async () => {
  const { begin, say, pod, clock, kit } = site()
  const hook = { ...job, metadata: { ...job.metadata, annotations: { 'skerry.dev/hook': 'pre-sync' } } }
  await begin(hook, { apiVersion: 'v1', kind: 'ConfigMap', metadata: metadata('a') } as unknown as K8sObject)
  await say(JOB, HANGS)
  pod(JOB, 'work-a', { phase: 'Pending', conditions: [UNSCHEDULABLE] })
  await clock.advance(11 * MINUTE_MS)
  expect(kit.service()).toMatchObject({
    health: 'Degraded',
    reason: 'WaitingForHook',
    message: expect.stringContaining('Insufficient cpu'),
  })
  await say(JOB, { ...RUNS, ready: 0, active: 0, conditions: [{ type: 'Complete', status: 'True' }] })
  expect(kit.service()?.reason).toBe('Synced')
})

test('HE8 Pods that quota refuses are explained by the warning about their workload', async () => {
  const { begin, clock, cluster, status } = site()
  const spec = { replicas: 1, selector: { matchLabels: { app: 'db' } }, template: { metadata: { labels: { app: 'db' } }, ...template } }
  await begin({ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: metadata('db'), spec } as unknown as K8sObject)
  const { uid } = cluster.object({ group: 'apps', kind: 'StatefulSet', ...metadata('db') })?.metadata ?? {}
  const warn = (name: string, reason: string, message: string, lastTimestamp: string) =>
    cluster.editAs('statefulset-controller', { group: '', kind: 'Event', ...metadata(name) }, (event) =>
      Object.assign(event, { involvedObject: { uid }, type: 'Warning', reason, message, lastTimestamp }),
    )
  warn(
    'db.1',
    'FailedCreate',
    'create Pod db-0 in StatefulSet db failed: pods "db-0" is forbidden: exceeded quota: small',
    '2026-01-01T00:01:00Z',
  )
  warn('db.2', 'FailedCreate', 'an older one', '2026-01-01T00:00:00Z')
  warn('db.3', 'Rescheduled', 'names no cause', '2026-01-01T00:02:00Z')
  await clock.advance(5 * MINUTE_MS)
  expect(status(SET_KEY)?.message).toEndWith(
    '; FailedCreate: create Pod db-0 in StatefulSet db failed: pods "db-0" is forbidden: exceeded quota: small',
  )
})

test('HE8 what nothing could be found of at half of the deadline is looked at again when it has passed', async () => {
  const { begin, say, pod, clock, status } = site()
  await begin(job)
  await say(JOB, HANGS)
  await clock.advance(6 * MINUTE_MS)
  pod(JOB, 'work-a', { phase: 'Pending', conditions: [UNSCHEDULABLE] })
  await clock.advance(5 * MINUTE_MS)
  expect(status()).toMatchObject({ health: 'Degraded', message: expect.stringContaining('Insufficient cpu') })
})

const DUE = '2023-11-14T22:14:00Z'
const RUN_NAME = `nightly-${Date.parse(DUE) / 60_000}`
const runOfCron: ObjectRef = { ...JOB, name: RUN_NAME }
const makeRun = (cluster: ReturnType<typeof site>['cluster'], status: Record<string, unknown>) => {
  cluster.editAs('cronjob-controller', runOfCron, (object) => Object.assign(object, { spec: { selector: selector(RUN_NAME), template } }))
  cluster.setStatus(runOfCron, status)
}

test('HE23 a CronJob whose last run failed is Degraded, with the reason of its Pod', async () => {
  const { begin, say, pod, cluster, clock, status } = site()
  await begin(cronJob)
  makeRun(cluster, { conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', message: 'too often' }] })
  pod(runOfCron, 'nightly-a', { phase: 'Failed', containerStatuses: [{ name: 'app', state: { terminated: { exitCode: 3 } } }] })
  await say(CRON, { lastScheduleTime: DUE })
  expect(status(CRON_KEY)?.health).toBe('Healthy')
  await clock.advance(10_000)
  expect(status(CRON_KEY)).toMatchObject({
    health: 'Degraded',
    reason: 'LastRunFailed',
    message: expect.stringContaining(`Job ${RUN_NAME}: Pod default/nightly-a: container app exited with code 3`),
  })
})

test('HE23 a run of a CronJob that hangs past the deadline is told until its Pod runs, over a restart too', async () => {
  const { begin, say, pod, cluster, clock, status, kit, run } = site()
  await begin(cronJob)
  makeRun(cluster, HANGS)
  pod(runOfCron, 'nightly-a', { phase: 'Pending', conditions: [UNSCHEDULABLE] })
  await say(CRON, { lastScheduleTime: DUE, active: [{ kind: 'Job', name: RUN_NAME }] })
  await clock.advance(10 * MINUTE_MS)
  expect(status(CRON_KEY)?.health).toBe('Healthy')
  await clock.advance(MINUTE_MS)
  const hanging = status(CRON_KEY)
  expect(hanging).toMatchObject({ health: 'Degraded', reason: 'RunStuck', message: expect.stringContaining('Insufficient cpu') })
  await kit.stop()
  await run()
  expect(status(CRON_KEY)).toEqual(hanging)
  cluster.setStatus(runOfCron, RUNS)
  await clock.advance(11 * MINUTE_MS)
  expect(status(CRON_KEY)).toMatchObject({ health: 'Healthy', message: '' })
})

test('HE23 a run of a CronJob that lasts is read once in a deadline, and not before it', async () => {
  const { begin, say, cluster, clock, status } = site()
  await begin(cronJob)
  makeRun(cluster, RUNS)
  await say(CRON, { lastScheduleTime: DUE, active: [{ kind: 'Job', name: RUN_NAME }] })
  requests(cluster)
  await clock.advance(10 * MINUTE_MS)
  const jobs = () => requests(cluster).filter((line) => line === `get Job ${RUN_NAME}`).length
  expect(jobs()).toBe(0)
  await clock.advance(21 * MINUTE_MS)
  expect([jobs(), status(CRON_KEY)?.health]).toEqual([3, 'Healthy'])
})

test('HE30 a Deployment whose container crashes again and again is Degraded after its deadline, though it is ready for moments', async () => {
  const web: ObjectRef = { group: 'apps', kind: 'Deployment', namespace: 'default', name: 'web' }
  const { begin, say, clock, kit, cluster } = site()
  const deployment = (image: string) =>
    ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: metadata('web'),
      spec: { replicas: 1, selector: selector('web'), template: { spec: { containers: [{ name: 'app', image }] } } },
    }) as unknown as K8sObject
  const counts = (ready: number) => ({
    observedGeneration: cluster.object(web)?.metadata.generation,
    replicas: 1,
    updatedReplicas: 1,
    ...(ready === 0 ? { unavailableReplicas: 1 } : { readyReplicas: 1, availableReplicas: 1 }),
    conditions: [{ type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable' }],
  })
  await begin(deployment('x'))
  const crashFor = async (minutes: number) => {
    for (let minute = 0; minute < minutes; minute += 5) {
      await say(web, counts(1))
      await clock.advance(5_000)
      await say(web, counts(0))
      await clock.advance(5 * MINUTE_MS)
    }
  }
  await crashFor(15)
  expect(kit.object('apps/Deployment/default/web')).toMatchObject({ health: 'Degraded', reason: 'DeadlineExceeded' })
  // Another revision has the whole deadline.
  kit.desire([deployment('y')])
  await clock.advance(5_000)
  await say(web, counts(1))
  await say(web, counts(0))
  await clock.advance(MINUTE_MS)
  expect(kit.object('apps/Deployment/default/web')).toMatchObject({ health: 'Progressing' })
  // Well for a minute: its time is over.
  await say(web, counts(1))
  await clock.advance(2 * MINUTE_MS)
  await say(web, counts(0))
  await clock.advance(9 * MINUTE_MS)
  expect(kit.object('apps/Deployment/default/web')).toMatchObject({ health: 'Progressing' })
})
