// HE8: the taints that keep a Pod from the nodes that it may use, and Events that are no warnings.
import { expect, test } from 'bun:test'
import { EventFindings } from '../../agent/reconcile/report/explain-events.ts'
import { isByTaints, TaintFindings } from '../../agent/reconcile/report/node-taints.ts'
import type { K8sObject } from '../../shared/kube/object.ts'

const pod = (spec: object = {}): K8sObject => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web-0' }, spec }) as unknown as K8sObject
const node = (taints: object[], labels: Record<string, string> = {}): K8sObject =>
  ({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n', labels }, spec: { taints } }) as unknown as K8sObject
const taint = (key: string, effect = 'NoSchedule', value = '') => ({ key, effect, value })
const toleration = (one: object) => ({ tolerations: [one] })

const said = (of: K8sObject, ...nodes: K8sObject[]): string => {
  const findings = new TaintFindings(of)
  for (const one of nodes) findings.add(one)
  return findings.explain()
}
const GPU = node([taint('dedicated', 'NoSchedule', 'gpu')])

test.each<[string, object, string]>([
  ['a toleration of nothing', {}, 'untolerated taints: dedicated on 1 node'],
  ['a toleration of its value', toleration({ key: 'dedicated', value: 'gpu' }), ''],
  [
    'a toleration of another value',
    toleration({ key: 'dedicated', operator: 'Equal', value: 'db' }),
    'untolerated taints: dedicated on 1 node',
  ],
  ['a toleration of any value', toleration({ key: 'dedicated', operator: 'Exists' }), ''],
  ['a toleration of every taint', toleration({ operator: 'Exists' }), ''],
  ['a toleration of another effect', toleration({ operator: 'Exists', effect: 'NoExecute' }), 'untolerated taints: dedicated on 1 node'],
  ['an operator of a later version', toleration({ key: 'dedicated', operator: 'Lt', value: '1' }), ''],
  ['a node selector that the node does not have', { nodeSelector: { pool: 'web' } }, ''],
  [
    'a required affinity to nodes',
    { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
    '',
  ],
])('HE8 taints of a node for a Pod with %s', (_, spec, expected) => {
  expect(said(pod(spec), GPU)).toBe(expected)
})

test('HE8 taints are counted by node, the most frequent first, and at most five are named', () => {
  const full = taint('node.kubernetes.io/disk-pressure')
  const labels = { pool: 'web' }
  const nodes = [node([taint('a'), full], labels), node([full, taint('soft', 'PreferNoSchedule')], labels), node([taint('elsewhere')])]
  expect(said(pod({ nodeSelector: labels }), ...nodes)).toBe('untolerated taints: node.kubernetes.io/disk-pressure on 2 nodes, a on 1 node')
  const many = node(['a', 'b', 'c', 'd', 'e', 'f', 'not a key'].map((key) => taint(key, 'NoExecute')))
  expect(said(pod(), many)).toBe('untolerated taints: a on 1 node, b on 1 node, c on 1 node, d on 1 node, e on 1 node and others')
})

test.each([
  ['0/3 nodes are available: 3 node(s) had untolerated taint(s).', true],
  ['0/3 nodes are available: 3 node(s) had untolerated taint {dedicated: gpu}.', true],
  ['0/3 nodes are available: 3 node(s) were unschedulable.', true],
  ['0/3 nodes are available: 3 Insufficient cpu.', false],
])('HE8 nodes are read for %p: %p', (text, expected) => expect(isByTaints(text)).toBe(expected))

const event = (type: string, reason: string, at: string): K8sObject =>
  ({ apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, type, reason, message: at, lastTimestamp: at }) as unknown as K8sObject
const causeOf = (kind: string, events: K8sObject[]): string => {
  const findings = new EventFindings({ apiVersion: 'v1', kind, metadata: { name: 'data' } } as K8sObject)
  for (const one of events) findings.add(one)
  return findings.explain()
}

test('HE8 a Pod that could not be created explains nothing once a later one was', () => {
  const [refused, created] = [event('Warning', 'FailedCreate', '2026-01-01T00:00:05Z'), '2026-01-01T00:00:06Z']
  expect(causeOf('Job', [refused, event('Normal', 'SuccessfulCreate', created)])).toBe('')
  expect(causeOf('Job', [event('Normal', 'SuccessfulCreate', created), refused])).toBe('')
  for (const at of ['2026-01-01T00:00:04Z', '2026-01-01T00:00:05Z'])
    expect(causeOf('ReplicaSet', [refused, event('Normal', 'SuccessfulCreate', at)])).toStartWith('FailedCreate: ')
})

test('HE8 a claim that nobody serves is explained by Events that are no warnings, if there are no warnings', () => {
  const normal = event('Normal', 'ExternalProvisioning', '2026-01-02T00:00:00Z')
  const later = event('Normal', 'FailedBinding', '2026-01-03T00:00:00Z')
  const warning = event('Warning', 'ProvisioningFailed', '2026-01-01T00:00:00Z')
  expect(causeOf('PersistentVolumeClaim', [later, normal])).toStartWith('FailedBinding: ')
  for (const events of [
    [warning, normal, later],
    [later, normal, warning],
  ])
    expect(causeOf('PersistentVolumeClaim', events)).toStartWith('ProvisioningFailed: ')
  expect(causeOf('PersistentVolumeClaim', [event('Normal', 'WaitForFirstConsumer', '2026-01-01T00:00:00Z')])).toBe('')
  expect(causeOf('Deployment', [later])).toBe('')
})
