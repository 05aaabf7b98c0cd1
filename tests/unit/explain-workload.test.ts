import { expect, test } from 'bun:test'
import { logText, PodFindings, podSelector } from '../../agent/reconcile/report/explain-workload.ts'
import type { K8sObject } from '../../shared/kube/object.ts'

type Part = Record<string, unknown>
const workload = (kind = 'StatefulSet', selector: Part = {}): K8sObject =>
  ({ apiVersion: 'apps/v1', kind, metadata: { name: 'web', namespace: 'shop', uid: 'u-1' }, spec: { selector } }) as K8sObject
const pod = (name: string, status: Part, metadata: Part = {}): K8sObject =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', ownerReferences: [{ kind: 'StatefulSet', name: 'web', uid: 'u-1' }], ...metadata },
    status,
  }) as K8sObject
const container = (state: Part, lastState: Part = {}, ready = false): Part => ({
  containerStatuses: [{ name: 'app', state, lastState, ready }],
})
const terminated = (exitCode: number, others: Part = {}): Part => ({
  terminated: { exitCode, reason: 'Error', message: 'SECRET=1', ...others },
})
const waiting = (reason: string, message = ''): Part => ({ waiting: { reason, message } })
const condition = (type: string, status: string, reason: string, message = ''): Part => ({
  conditions: [{ type, status, reason, message }],
})

const explain = (pods: K8sObject[], of = workload()) => {
  const findings = new PodFindings(of)
  for (const one of pods) findings.add(one)
  return findings.explain()
}

test.each([
  [
    'a crash loop',
    container(waiting('CrashLoopBackOff', 'back-off 2m40s restarting failed container'), terminated(137, { reason: 'OOMKilled' })),
    'container app CrashLoopBackOff: exited with code 137 (OOMKilled)',
  ],
  ['a crash loop without a past', container(waiting('CrashLoopBackOff', 'back-off 10s')), 'container app CrashLoopBackOff'],
  [
    'an image that does not come',
    container(waiting('ImagePullBackOff', 'Back-off pulling image "nope:1"')),
    'container app ImagePullBackOff: Back-off pulling image "nope:1"',
  ],
  [
    'a missing key',
    container(waiting('CreateContainerConfigError', 'secret "db" not found')),
    'container app CreateContainerConfigError: secret "db" not found',
  ],
  ['ended badly', container(terminated(2)), 'container app exited with code 2'],
  ['killed', container(terminated(143, { signal: 15 })), 'container app exited with code 143 by signal 15'],
  ['started again', container({ running: {} }, terminated(1)), 'container app exited with code 1 and was restarted'],
  ['not ready', container({ running: {} }), 'container app is running but not ready'],
  [
    'an init container',
    { initContainerStatuses: [{ name: 'migrate', state: terminated(3) }], ...container(waiting('PodInitializing')) },
    'init container migrate exited with code 3',
  ],
  [
    'not scheduled',
    { phase: 'Pending', ...condition('PodScheduled', 'False', 'Unschedulable', '0/3 nodes are available') },
    'Unschedulable: 0/3 nodes are available',
  ],
  ['evicted', { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource' }, 'Evicted: The node was low on resource'],
  ['pending', { phase: 'Pending', ...container(waiting('ContainerCreating')) }, 'phase Pending'],
])('HE8 the Pod that is worst off speaks: %s', (_, status, said) => {
  const explanation = explain([pod('web-0', status)])
  expect(explanation?.text).toBe(`Pod shop/web-0: ${said}`)
  expect(explanation?.text).not.toContain('SECRET')
})

test.each([
  ['of a container that waits', container(waiting('password=hunter')), 'container app password=<redacted>'],
  [
    'of a container that ended',
    container(terminated(2, { reason: 'password=hunter' })),
    'container app exited with code 2 (password=<redacted>)',
  ],
  ['of a Pod', { phase: 'Failed', reason: 'password=hunter' }, 'password=<redacted>'],
  ['of scheduling', { phase: 'Pending', ...condition('PodScheduled', 'False', 'password=hunter') }, 'password=<redacted>'],
  ['of readiness', { phase: 'Running', ...condition('Ready', 'False', 'password=hunter') }, 'password=<redacted>'],
])('KA31 a reason that is no single word is a text of others: %s', (_, status, said) => {
  expect(explain([pod('web-0', status)])?.text).toBe(`Pod shop/web-0: ${said}`)
})

test('HE8 Pods that are well, done, going, or not of this workload say nothing', () => {
  const broken = container(terminated(2))
  const pods = [
    pod('well', { phase: 'Running', ...condition('Ready', 'True', ''), ...container({ running: {} }, terminated(1), true) } as Part),
    pod('done', { phase: 'Succeeded', ...container(terminated(0)) }),
    pod('going', broken, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    pod('foreign', broken, { ownerReferences: [{ kind: 'StatefulSet', name: 'web', uid: 'u-2' }] }),
    pod('nobodys', broken, { ownerReferences: [] }),
  ]
  expect(explain(pods)).toBeNull()
})

test('HE8 a Deployment is explained by Pods of its ReplicaSets', () => {
  const owned = (name: string) => ({ ownerReferences: [{ kind: 'ReplicaSet', name, uid: 'r' }] })
  const broken = container(terminated(2))
  expect(explain([pod('web-7d9-a', broken, owned('web-7d9'))], workload('Deployment'))?.text).toContain('web-7d9-a')
  expect(explain([pod('webshop-7d9-a', broken, owned('webshop-7d9'))], workload('Deployment'))).toBeNull()
})

test('HE8 of several the one that says most speaks, then the newest, then the first by name, in whatever order they come', () => {
  const late = pod('web-0', container({ running: {} }), { creationTimestamp: '2026-01-03T00:00:00Z' })
  const [older, b, a] = ['web-1', 'web-3', 'web-2'].map((name, n) =>
    pod(name, container(terminated(n + 1)), { creationTimestamp: n === 0 ? '2026-01-01T00:00:00Z' : '2026-01-02T00:00:00Z' }),
  ) as [K8sObject, K8sObject, K8sObject]
  const orders = [
    [late, older, b, a],
    [a, b, older, late],
    [b, late, a, older],
  ]
  for (const order of orders) {
    expect(explain(order)?.text).toBe('4 of 4 Pods are not healthy, such as Pod shop/web-2: container app exited with code 3')
  }
})

test('HE8 whose log says more', () => {
  expect(explain([pod('web-0', container(waiting('CrashLoopBackOff'), terminated(1)))])?.log).toMatchObject({
    container: 'app',
    previous: true,
  })
  expect(explain([pod('web-0', container(terminated(1)))])?.log).toMatchObject({ container: 'app', previous: false })
  expect(explain([pod('web-0', container(waiting('ImagePullBackOff')))])?.log).toBeNull()
})

test('HE8 the selector, as it is asked for', () => {
  expect(podSelector(workload('Deployment', { matchLabels: { b: '2', a: '1' } }))).toBe('a=1,b=2')
  const matchExpressions = [
    { key: 'tier', operator: 'In', values: ['web', 'api'] },
    { key: 'x', operator: 'DoesNotExist' },
    { key: 'y', operator: 'Exists' },
    { key: 'z', operator: 'NotIn', values: ['q'] },
  ]
  expect(podSelector(workload('Deployment', { matchExpressions }))).toBe('!x,tier in (web,api),y,z notin (q)')
  expect(podSelector(workload('Deployment', {}))).toBeNull()
  expect(podSelector(workload('Deployment', { matchExpressions: [{ key: 'a', operator: 'Gt' }] }))).toBeNull()
})

test('HE8 log lines lose what does not print and what is too much', () => {
  const ESC = String.fromCharCode(27)
  expect(logText(`one\n\ntwo\n${ESC}[31mthree${ESC}[0m\u0007\ttab\u202e\n`, 2)).toBe('two | three tab')
  expect(logText('x'.repeat(500), 5)).toHaveLength(200)
  expect(logText('', 5)).toBe('')
})
