// JB1, JB2: Jobs with a TTL on an agent and a fake API server. The TTL controller is the test's own hand.
import { afterEach, describe, expect, test } from 'bun:test'
import { jobEndIn, ttlJobEnd } from '../../agent/reconcile/snapshot/live-run.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { fail, hooked, job, jobKey, jobRef, jobs, succeed, waved } from '../support/hook-fixtures.ts'
import { setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey } from '../support/reconcile-kit.ts'

afterEach(stopAll)

type Site = ReturnType<typeof setup>
const ttlJob = (name: string, image = 'a'): K8sObject => {
  const object = job(name, {})
  const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image }] } }
  return { ...object, spec: { ttlSecondsAfterFinished: 100, template } }
}
async function running(objects: readonly K8sObject[] = [ttlJob('load')], sync = {}): Promise<Site> {
  const site = setup()
  site.kit.desire(objects, { sync })
  await site.run()
  writes(site.cluster)
  return site
}
const remove = async ({ cluster, settle }: Site, name = 'load') => {
  cluster.deleteAs('ttl-after-finished-controller', jobRef(name))
  await settle()
}
/** As the Job controller writes it. */
const event = ({ cluster }: Site, type: string, reason: string, message = '') => {
  const uid = cluster.object(jobRef('load'))?.metadata.uid
  const object = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `load.${reason.toLowerCase()}`, namespace: 'default' },
    type,
    reason,
    message,
  }
  cluster.applyAs('job-controller', { ...object, involvedObject: { kind: 'Job', name: 'load', uid } } as K8sObject)
}

describe('how a Job has ended', () => {
  const withConditions = (...types: string[]) => ({
    ...ttlJob('j'),
    status: { conditions: types.map((type) => ({ type, status: 'True' })) },
  })
  test.each<[string, K8sObject, ReturnType<typeof ttlJobEnd>]>([
    ['it runs', ttlJob('j'), 'no'],
    ['it is complete', withConditions('SuccessCriteriaMet', 'Complete'), 'well'],
    ['it failed', withConditions('FailureTarget', 'Failed'), 'ill'],
    ['its Pods are still being stopped', withConditions('FailureTarget'), 'no'],
    ['it has no TTL', { ...job('j', {}), status: { conditions: [{ type: 'Complete', status: 'True' }] } } as K8sObject, null],
    ['it is no Job', configMap('j'), null],
  ])('JB1 %s', (_, object, expected) => expect(ttlJobEnd(object)).toBe(expected))

  test.each([
    ['Normal', 'Completed', 'Job completed', { outcome: 'succeeded', message: '' }],
    ['Warning', 'DeadlineExceeded', '', { outcome: 'failed', message: 'Job was active longer than specified deadline' }],
    ['Normal', 'SuccessfulCreate', 'Created pod: x', null],
    ['Warning', 'FailedCreate', 'exceeded quota', null],
    ['Normal', 'Suspended', 'Job suspended', null],
  ] as const)('JB2 the Event %s %s', (type, reason, message, expected) =>
    expect(jobEndIn({ apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, type, reason, message } as K8sObject)).toEqual(expected),
  )
})

test.each([
  ['DB_PASSWORD=hunter', ''],
  ['Container main for pod shop/hunter failed with exit code 42 matching FailJob rule at index 0', ' (exit code 42)'],
])('JB2, KA31 of an Event that tells the end of a Job nothing but its reason and an exit code is repeated: %s', (message, told) => {
  const event = (reason: string) =>
    ({ apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, type: 'Warning', reason, message }) as K8sObject
  const end = jobEndIn(event('PodFailurePolicy'))
  expect(end).toEqual({ outcome: 'failed', message: `a Pod failed in a way for which podFailurePolicy ends the Job${told}` })
  expect(jobEndIn(event('BackoffLimitExceeded'))?.message).not.toContain('hunter')
})

test('JB1 a finished Job that its TTL removed is done, over restarts, until its manifest changes', async () => {
  const site = await running()
  const { cluster, kit, settle, clock } = site
  succeed(cluster, 'load')
  await settle()
  await remove(site)
  await clock.advance(3_600_000)
  expect([writes(cluster), jobs(cluster)]).toEqual([[], []])
  expect(kit.object(jobKey('load'))).toMatchObject({ sync: 'Synced', health: 'Healthy', reason: 'Finished' })
  expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', healthyCount: 1, objectCount: 1 })
  await kit.stop()
  kit.start()
  await settle()
  expect([writes(cluster), kit.service()?.health]).toEqual([[], 'Healthy'])
  expect(kit.drift(jobKey('load'))).toBeNull()
  kit.desire([ttlJob('load', 'b')])
  await settle()
  expect(writes(cluster)).toEqual(['apply Job load'])
  succeed(cluster, 'load')
  await settle()
  await remove(site)
  expect(writes(cluster)).toEqual([])
})

test('JB1 one that failed is shown with why, and not run again', async () => {
  const site = await running()
  fail(site.cluster, 'load')
  await site.settle()
  await remove(site)
  expect(writes(site.cluster)).toEqual([])
  expect(site.kit.object(jobKey('load'))).toMatchObject({
    sync: 'Synced',
    health: 'Degraded',
    reason: 'JobFailed',
    message: expect.stringContaining('it has no database'),
  })
  expect(site.kit.service()?.health).toBe('Degraded')
})

test('JB1 one that is deleted before it ended is created again, as is a Job without a TTL', async () => {
  const site = await running([ttlJob('load'), job('plain', {})])
  await remove(site)
  expect(writes(site.cluster)).toEqual(['apply Job load'])
  succeed(site.cluster, 'plain')
  await site.settle()
  await remove(site, 'plain')
  expect(writes(site.cluster)).toEqual(['apply Job plain'])
})

test('JB1 DR6 while its next manifest waits, the one that ended is not run again', async () => {
  const site = await running()
  succeed(site.cluster, 'load')
  await site.settle()
  await remove(site)
  site.kit.desire([ttlJob('load', 'b')], { sync: { mode: 'manual' } })
  await site.settle()
  expect([writes(site.cluster), site.kit.service()?.reason]).toEqual([[], 'ManualSync'])
})

test('JB1 OR4 PR6 waves and prunes go on after it', async () => {
  const site = await running([ttlJob('load'), waved(configMap('after'), 1), configMap('old')])
  const { cluster, kit, settle } = site
  expect(kit.object(configMapKey('after'))?.reason).toBe('WaitingForWave')
  succeed(cluster, 'load')
  await settle()
  await remove(site)
  expect(writes(cluster)).toEqual(['apply ConfigMap after'])
  kit.desire([ttlJob('load'), waved(configMap('after', { a: '2' }), 1)])
  await settle()
  expect(writes(cluster)).toEqual(['apply ConfigMap after', 'delete ConfigMap old'])
})

test('JB1 it leaves Git while it is gone: nothing is left of it, and it runs when it comes back', async () => {
  const site = await running([ttlJob('load'), configMap('a')])
  const { cluster, kit, settle } = site
  succeed(cluster, 'load')
  await settle()
  await remove(site)
  kit.desire([configMap('a')])
  await settle()
  expect([writes(cluster), kit.object(jobKey('load'))]).toEqual([[], null])
  kit.desire([ttlJob('load'), configMap('a')])
  await settle()
  expect(writes(cluster)).toEqual(['apply Job load'])
})

describe('JB1 a policy of the cluster gives a Job its TTL', () => {
  const mutated = async () => {
    const site = await running([job('load', {})])
    site.cluster.editAs('policy', jobRef('load'), (live) => Object.assign(live['spec'] as object, { ttlSecondsAfterFinished: 100 }))
    await site.settle()
    return site
  }
  test('JB1 it runs once', async () => {
    const site = await mutated()
    succeed(site.cluster, 'load')
    await site.settle()
    await remove(site)
    expect([writes(site.cluster), site.kit.object(jobKey('load'))?.reason]).toEqual([[], 'Finished'])
  })
  test('JB2 it runs once, also when it ends and goes while the agent does not run', async () => {
    const site = await mutated()
    await site.kit.stop()
    event(site, 'Normal', 'Completed', 'Job completed')
    site.cluster.deleteAs('ttl-after-finished-controller', jobRef('load'))
    site.kit.start()
    await site.settle()
    expect([writes(site.cluster), site.kit.service()?.health]).toEqual([[], 'Healthy'])
  })
  test('JB1 it runs once, also when the agent finds it finished at its start', async () => {
    const site = await running([job('load', {})])
    await site.kit.stop()
    site.cluster.editAs('policy', jobRef('load'), (live) => Object.assign(live['spec'] as object, { ttlSecondsAfterFinished: 100 }))
    succeed(site.cluster, 'load')
    site.kit.start()
    await site.settle()
    await remove(site)
    expect([writes(site.cluster), site.kit.service()?.health]).toEqual([[], 'Healthy'])
  })
  test('JB1 it is created again when a person deletes it before its end', async () => {
    const site = await mutated()
    await remove(site)
    expect(writes(site.cluster)).toEqual(['apply Job load'])
  })
})

describe('JB2 a Job that went while the agent did not run', () => {
  const away = async (during: (site: Site) => void) => {
    const site = await running()
    await site.kit.stop()
    during(site)
    site.cluster.deleteAs('ttl-after-finished-controller', jobRef('load'))
    site.kit.start()
    await site.settle()
    return site
  }
  test('JB2 is done when an Event says that it completed', async () => {
    const site = await away((at) => event(at, 'Normal', 'Completed', 'Job completed'))
    expect([writes(site.cluster), site.kit.service()?.health]).toEqual([[], 'Healthy'])
  })
  test('JB2 has failed when an Event says so', async () => {
    const site = await away((at) => event(at, 'Warning', 'BackoffLimitExceeded', 'DB_PASSWORD=hunter'))
    expect([writes(site.cluster), site.kit.object(jobKey('load'))?.message]).toEqual([[], expect.stringContaining('backoff limit')])
  })
  test('JB2 runs once more when nobody knows, and then no more', async () => {
    const site = await away(() => {})
    expect(writes(site.cluster)).toEqual(['apply Job load'])
    succeed(site.cluster, 'load')
    await site.settle()
    await remove(site)
    expect(writes(site.cluster)).toEqual([])
  })
  test('JB1 is done when the agent finds it finished at its start', async () => {
    const site = await running()
    await site.kit.stop()
    succeed(site.cluster, 'load')
    site.kit.start()
    await site.settle()
    await remove(site)
    expect([writes(site.cluster), site.kit.service()?.health]).toEqual([[], 'Healthy'])
  })
})

test.each([
  ['Normal', 'Completed', 'Synced', 'Healthy'],
  ['Warning', 'DeadlineExceeded', 'OutOfSync', 'Degraded'],
] as const)(
  'JB2 HK4 a hook Job that its TTL removed while the agent did not run, and that ended %s %s',
  async (type, reason, sync, health) => {
    const site = await running([hooked(ttlJob('load'), 'pre-sync'), configMap('a')])
    await site.kit.stop()
    event(site, type, reason, 'as the controller says')
    site.cluster.deleteAs('ttl-after-finished-controller', jobRef('load'))
    site.kit.start()
    await site.settle()
    expect(site.kit.service()).toMatchObject({ sync, health })
    expect(jobs(site.cluster)).toEqual([])
  },
)
