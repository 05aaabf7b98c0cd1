import { expect, test } from 'bun:test'
import { healthOf, pastDeadline } from '../../shared/kube/health.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { naming } from '../support/naming.ts'

const NOW_MS = Date.parse('2026-01-01T00:01:00Z')
type Part = Record<string, unknown>
const object = (apiVersion: string, kind: string, spec: Part = {}, status: Part = {}, metadata: Part = {}): K8sObject =>
  ({ apiVersion, kind, metadata: { name: 'x', ...metadata }, spec, status }) as K8sObject
const conditions = (...entries: Array<[type: string, status: string, reason?: string, message?: string, at?: string]>): Part => ({
  conditions: entries.map(([type, status, reason, message, lastTransitionTime]) => ({ type, status, reason, message, lastTransitionTime })),
})
const done = { observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3 }
const deployment = (spec: Part, status: Part, metadata: Part = { generation: 1 }) => object('apps/v1', 'Deployment', spec, status, metadata)
const stateful = (spec: Part, status: Part) =>
  object('apps/v1', 'StatefulSet', spec, { currentRevision: 'a', updateRevision: 'a', ...status }, { generation: 1 })
const daemon = (status: Part, spec: Part = {}) =>
  object('apps/v1', 'DaemonSet', spec, { observedGeneration: 1, ...status }, { generation: 1 })
const pod = (status: Part) => object('v1', 'Pod', {}, status)
const waiting = (reason: string) => ({ containerStatuses: [{ name: 'app', state: { waiting: { reason, message: 'because' } } }] })

test.each([
  ['deployment complete', deployment({ replicas: 3 }, done), 'Healthy', 'Healthy'],
  ['deployment just created', deployment({ replicas: 3 }, {}), 'Progressing', 'NotObserved'],
  ['deployment, older generation seen', deployment({ replicas: 3 }, done, { generation: 2 }), 'Progressing', 'GenerationNotObserved'],
  [
    'deployment, replicas default to 1',
    deployment({}, { ...done, replicas: 1, updatedReplicas: 1, availableReplicas: 1 }),
    'Healthy',
    'Healthy',
  ],
  ['deployment of 0', deployment({ replicas: 0 }, { observedGeneration: 1 }), 'Healthy', 'Healthy'],
  ['deployment, two of three exist', deployment({ replicas: 3 }, { ...done, replicas: 2 }), 'Progressing', 'LessReplicas'],
  ['deployment, two of three updated', deployment({ replicas: 3 }, { ...done, updatedReplicas: 2 }), 'Progressing', 'LessUpdated'],
  ['deployment, one old left', deployment({ replicas: 3 }, { ...done, replicas: 4 }), 'Progressing', 'ExtraReplicas'],
  ['deployment, one not available', deployment({ replicas: 3 }, { ...done, availableReplicas: 2 }), 'Progressing', 'LessAvailable'],
  [
    'deployment out of time',
    deployment({ replicas: 3 }, { ...done, ...conditions(['Progressing', 'False', 'ProgressDeadlineExceeded', 'late']) }),
    'Degraded',
    'ProgressDeadlineExceeded',
  ],
  ['deployment paused', deployment({ replicas: 3, paused: true }, done), 'Suspended', 'Suspended'],
  [
    'deployment that may not make Pods',
    deployment({ replicas: 3 }, { ...done, ...conditions(['ReplicaFailure', 'True', 'FailedCreate', 'quota']) }),
    'Progressing',
    'FailedCreate',
  ],
  ['stateful set complete', stateful({ replicas: 3 }, done), 'Healthy', 'Healthy'],
  ['stateful set, one not ready', stateful({ replicas: 3 }, { ...done, readyReplicas: 2 }), 'Progressing', 'LessReady'],
  ['stateful set, revision not current', stateful({ replicas: 3 }, { ...done, currentRevision: 'b' }), 'Progressing', 'RevisionsDiffer'],
  [
    'stateful set, partition met',
    stateful({ replicas: 3, updateStrategy: { rollingUpdate: { partition: 2 } } }, { ...done, updatedReplicas: 1, currentRevision: 'b' }),
    'Healthy',
    'Healthy',
  ],
  [
    'stateful set, OnDelete waits for people',
    stateful({ replicas: 3, updateStrategy: { type: 'OnDelete' } }, { ...done, updatedReplicas: 0, currentRevision: 'b' }),
    'Healthy',
    'Healthy',
  ],
  ['daemon set of no node', daemon({ desiredNumberScheduled: 0 }), 'Healthy', 'Healthy'],
  [
    'daemon set, one not available',
    daemon({ desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1 }),
    'Progressing',
    'LessAvailable',
  ],
  [
    'daemon set, one old',
    daemon({ desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2 }),
    'Progressing',
    'LessUpdated',
  ],
  ['replica set complete', object('apps/v1', 'ReplicaSet', { replicas: 1 }, { replicas: 1, availableReplicas: 1 }), 'Healthy', 'Healthy'],
  [
    'replica set, one too many',
    object('apps/v1', 'ReplicaSet', { replicas: 1 }, { replicas: 2, availableReplicas: 2 }),
    'Progressing',
    'ExtraReplicas',
  ],
  ['pod ready', pod({ phase: 'Running', ...conditions(['Ready', 'True']) }), 'Healthy', 'Healthy'],
  ['pod done', pod({ phase: 'Succeeded' }), 'Healthy', 'Healthy'],
  ['pod failed', pod({ phase: 'Failed', reason: 'Evicted', message: 'disk' }), 'Degraded', 'Evicted'],
  ['pod in a crash loop', pod({ phase: 'Running', ...waiting('CrashLoopBackOff') }), 'Degraded', 'CrashLoopBackOff'],
  ['pod whose image does not come', pod({ phase: 'Pending', ...waiting('ImagePullBackOff') }), 'Progressing', 'ImagePullBackOff'],
  [
    'pod unschedulable for 14.999 s',
    pod({ phase: 'Pending', ...conditions(['PodScheduled', 'False', 'Unschedulable', 'no', '2026-01-01T00:00:45.001Z']) }),
    'Progressing',
    'Unschedulable',
  ],
  [
    'pod unschedulable for 15 s',
    pod({ phase: 'Pending', ...conditions(['PodScheduled', 'False', 'Unschedulable', 'no', '2026-01-01T00:00:45Z']) }),
    'Degraded',
    'Unschedulable',
  ],
  ['job done', object('batch/v1', 'Job', {}, conditions(['Complete', 'True'])), 'Healthy', 'Healthy'],
  ['job running', object('batch/v1', 'Job', {}, { active: 1 }), 'Progressing', 'Running'],
  [
    'job failed',
    object('batch/v1', 'Job', {}, conditions(['Failed', 'True', 'BackoffLimitExceeded', 'no'])),
    'Degraded',
    'BackoffLimitExceeded',
  ],
  ['job suspended', object('batch/v1', 'Job', { suspend: true }), 'Suspended', 'Suspended'],
  ['cron job', object('batch/v1', 'CronJob', {}), 'Healthy', 'Healthy'],
  ['cron job suspended', object('batch/v1', 'CronJob', { suspend: true }), 'Suspended', 'Suspended'],
  ['claim bound', object('v1', 'PersistentVolumeClaim', {}, { phase: 'Bound' }), 'Healthy', 'Healthy'],
  ['claim pending', object('v1', 'PersistentVolumeClaim', {}, { phase: 'Pending' }), 'Progressing', 'NotBound'],
  ['claim lost', object('v1', 'PersistentVolumeClaim', {}, { phase: 'Lost' }), 'Degraded', 'Lost'],
  ['load balancer without an address', object('v1', 'Service', { type: 'LoadBalancer' }), 'Healthy', 'Healthy'],
  ['ingress without an address', object('networking.k8s.io/v1', 'Ingress'), 'Healthy', 'Healthy'],
  [
    'autoscaler without metrics',
    object(
      'autoscaling/v2',
      'HorizontalPodAutoscaler',
      {},
      conditions(['ScalingActive', 'False', 'FailedGetResourceMetric', 'no metrics']),
    ),
    'Healthy',
    'FailedGetResourceMetric',
  ],
  [
    'autoscaler of a workload without replicas',
    object('autoscaling/v2', 'HorizontalPodAutoscaler', {}, conditions(['ScalingActive', 'False', 'ScalingDisabled'])),
    'Healthy',
    'Healthy',
  ],
  [
    'autoscaler without its target',
    object('autoscaling/v2', 'HorizontalPodAutoscaler', {}, conditions(['AbleToScale', 'False', 'FailedGetScale', 'not found'])),
    'Degraded',
    'FailedGetScale',
  ],
  [
    'autoscaler with an ambiguous selector',
    object('autoscaling/v2', 'HorizontalPodAutoscaler', {}, conditions(['ScalingActive', 'False', 'AmbiguousSelector', 'two'])),
    'Degraded',
    'AmbiguousSelector',
  ],
  [
    'budget met',
    object('policy/v1', 'PodDisruptionBudget', {}, { observedGeneration: 1, currentHealthy: 2, desiredHealthy: 2 }),
    'Healthy',
    'Healthy',
  ],
  [
    'budget not met',
    object('policy/v1', 'PodDisruptionBudget', {}, { observedGeneration: 1, currentHealthy: 1, desiredHealthy: 2 }),
    'Progressing',
    'BudgetNotMet',
  ],
  [
    'budget whose Pods cannot be counted',
    object(
      'policy/v1',
      'PodDisruptionBudget',
      {},
      { observedGeneration: 1, ...conditions(['DisruptionAllowed', 'False', 'SyncFailed', 'no scale']) },
    ),
    'Degraded',
    'SyncFailed',
  ],
  [
    'definition established',
    object('apiextensions.k8s.io/v1', 'CustomResourceDefinition', {}, conditions(['Established', 'True'])),
    'Healthy',
    'Healthy',
  ],
  [
    'definition installing',
    object('apiextensions.k8s.io/v1', 'CustomResourceDefinition', {}, conditions(['Established', 'False', 'Installing'])),
    'Progressing',
    'Installing',
  ],
  [
    'definition with a taken name',
    object('apiextensions.k8s.io/v1', 'CustomResourceDefinition', {}, conditions(['NamesAccepted', 'False', 'Conflict'])),
    'Degraded',
    'Conflict',
  ],
  ['namespace active', object('v1', 'Namespace', {}, { phase: 'Active' }), 'Healthy', 'Healthy'],
  ['config map', object('v1', 'ConfigMap'), 'Healthy', 'Healthy'],
  ['custom, ready', object('example.com/v1', 'Thing', {}, conditions(['Ready', 'True'])), 'Healthy', 'Healthy'],
  [
    'custom, not ready',
    object('example.com/v1', 'Thing', {}, conditions(['Ready', 'False', 'Waiting', 'for it'])),
    'Progressing',
    'Waiting',
  ],
  [
    'custom, stalled',
    object('example.com/v1', 'Thing', {}, conditions(['Stalled', 'True', 'Broken'], ['Ready', 'True'])),
    'Degraded',
    'Broken',
  ],
  [
    'custom, reconciling',
    object('example.com/v1', 'Thing', {}, conditions(['Reconciling', 'True', 'Busy'], ['Ready', 'True'])),
    'Progressing',
    'Busy',
  ],
  ['custom, no status', object('example.com/v1', 'Thing'), 'Progressing', 'NotReported'],
  [
    'anything being deleted',
    object('v1', 'ConfigMap', {}, {}, { deletionTimestamp: 'now', finalizers: ['b', 'a'] }),
    'Progressing',
    'Deleting',
  ],
] as const)('HE1 %s', (_, input, word, reason) => {
  const health = healthOf(input, NOW_MS)
  expect([health.word, health.reason]).toEqual([word, reason])
})

test('HE1 the finalizers that hold an object are named, sorted', () => {
  const held = object('v1', 'ConfigMap', {}, {}, { deletionTimestamp: 'now', finalizers: ['b', 'a'] })
  expect(healthOf(held, NOW_MS).message).toEqual(naming('deleted', 'finalizers a, b'))
})

test.each([
  ['one ms before', 599_999, 'Progressing'],
  ['exactly at', 600_000, 'Degraded'],
] as const)('HE2 Progressing %s its deadline', (_, ageMs, word) => {
  expect(pastDeadline({ word: 'Progressing', reason: 'r', message: 'm' }, 1_000, 600_000, 1_000 + ageMs).word).toBe(word)
})
