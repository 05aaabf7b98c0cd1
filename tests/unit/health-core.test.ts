// The documents that kstatus tests itself with (kubernetes-sigs/cli-utils pkg/kstatus/status/status_compute_test.go),
// as facts, and what is said here of each: where the two differ on purpose, the row says why.
import { expect, test } from 'bun:test'
import { type HealthOptions, healthOf } from '../../shared/kube/health.ts'
import type { K8sObject } from '../../shared/kube/object.ts'

type Part = Record<string, unknown>
const NOW_MS = Date.parse('2026-01-01T00:10:00Z')
const at = (seconds: number) => new Date(NOW_MS - seconds * 1000).toISOString()
const objectOf = (kind: string, { metadata = {}, ...parts }: { metadata?: Part; spec?: Part; status?: Part }): K8sObject => {
  const slash = kind.lastIndexOf('/')
  return {
    apiVersion: kind.slice(0, slash),
    kind: kind.slice(slash + 1),
    metadata: { name: 'test', generation: 1, ...metadata },
    ...parts,
  } as K8sObject
}
const condition = (type: string, status: string, reason = '', lastTransitionTime = at(60)) => ({
  type,
  status,
  reason,
  message: `${type} is ${status}`,
  lastTransitionTime,
})
const KSTATUS = { Current: 'Healthy', InProgress: 'Progressing', Failed: 'Degraded' } as const
type Row = [
  name: string,
  kind: string,
  parts: { metadata?: Part; spec?: Part; status?: Part },
  kstatus: keyof typeof KSTATUS,
  ours?: string,
  why?: string,
]

const full = { observedGeneration: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, replicas: 1 }
const four = {
  observedGeneration: 1,
  currentReplicas: 4,
  updatedReplicas: 4,
  readyReplicas: 4,
  replicas: 4,
  availableReplicas: 4,
  fullyLabeledReplicas: 4,
}
const nodes = {
  desiredNumberScheduled: 4,
  currentNumberScheduled: 4,
  updatedNumberScheduled: 4,
  numberAvailable: 4,
  numberReady: 4,
  observedGeneration: 1,
}
const available = [condition('Progressing', 'True', 'NewReplicaSetAvailable'), condition('Available', 'True')]
const unschedulable = (seconds: number) => ({
  phase: 'Pending',
  conditions: [condition('PodScheduled', 'False', 'Unschedulable', at(seconds))],
})

const ROWS: Row[] = [
  ['pod without a status', 'v1/Pod', {}, 'InProgress'],
  ['pod ready', 'v1/Pod', { status: { phase: 'Running', conditions: [condition('Ready', 'True')] } }, 'Current'],
  ['pod completed', 'v1/Pod', { status: { phase: 'Succeeded', conditions: [condition('Ready', 'False', 'PodCompleted')] } }, 'Current'],
  ['pod failed', 'v1/Pod', { status: { phase: 'Failed' } }, 'Current', 'Degraded', 'nothing about it will change, and it did not work'],
  ['pod being scheduled', 'v1/Pod', { status: unschedulable(1) }, 'InProgress'],
  ['pod unschedulable', 'v1/Pod', { status: unschedulable(16) }, 'Failed'],
  ['pod pending', 'v1/Pod', { status: { phase: 'Pending' } }, 'InProgress'],
  ['pod running and not ready', 'v1/Pod', { status: { phase: 'Running' } }, 'InProgress'],
  [
    'pod in a crash loop',
    'v1/Pod',
    { status: { phase: 'Running', containerStatuses: [{ name: 'nginx', state: { waiting: { reason: 'CrashLoopBackOff' } } }] } },
    'Failed',
  ],

  ['claim without a status', 'v1/PersistentVolumeClaim', {}, 'InProgress'],
  ['claim bound', 'v1/PersistentVolumeClaim', { status: { phase: 'Bound' } }, 'Current'],
  ['claim lost', 'v1/PersistentVolumeClaim', { status: { phase: 'Lost' } }, 'InProgress', 'Degraded', 'the data is gone'],

  ['stateful set without a status', 'apps/v1/StatefulSet', {}, 'InProgress'],
  ['stateful set that exists on paper', 'apps/v1/StatefulSet', { status: { observedGeneration: 1, currentReplicas: 1 } }, 'InProgress'],
  ['stateful set complete', 'apps/v1/StatefulSet', { spec: { replicas: 4 }, status: four }, 'Current'],
  ['stateful set, two ready', 'apps/v1/StatefulSet', { spec: { replicas: 4 }, status: { ...four, readyReplicas: 2 } }, 'InProgress'],
  [
    'stateful set, two updated',
    'apps/v1/StatefulSet',
    { spec: { replicas: 4 }, status: { ...four, currentReplicas: 2, updatedReplicas: 2 } },
    'InProgress',
  ],
  ['stateful set, four too many', 'apps/v1/StatefulSet', { spec: { replicas: 4 }, status: { ...four, replicas: 8 } }, 'InProgress'],
  [
    'stateful set, OnDelete',
    'apps/v1/StatefulSet',
    { spec: { replicas: 4, updateStrategy: { type: 'OnDelete' } }, status: { ...four, updatedReplicas: 0 } },
    'Current',
  ],
  [
    'stateful set, OnDelete, none ready',
    'apps/v1/StatefulSet',
    { spec: { replicas: 4, updateStrategy: { type: 'OnDelete' } }, status: { ...four, readyReplicas: 0 } },
    'Current',
    'Progressing',
    'old or new, they are not ready',
  ],
  [
    'stateful set, partition',
    'apps/v1/StatefulSet',
    {
      spec: { replicas: 4, updateStrategy: { rollingUpdate: { partition: 3 } } },
      status: { ...four, updatedReplicas: 1, currentRevision: 'a', updateRevision: 'b' },
    },
    'Current',
  ],
  [
    'stateful set, partition not reached',
    'apps/v1/StatefulSet',
    { spec: { replicas: 4, updateStrategy: { rollingUpdate: { partition: 2 } } }, status: { ...four, updatedReplicas: 1 } },
    'InProgress',
  ],
  [
    'stateful set, revisions differ',
    'apps/v1/StatefulSet',
    { spec: { replicas: 4 }, status: { ...four, currentRevision: 'a', updateRevision: 'b' } },
    'InProgress',
  ],

  ['daemon set without a status', 'apps/v1/DaemonSet', {}, 'InProgress'],
  ['daemon set without a number', 'apps/v1/DaemonSet', { status: { observedGeneration: 1 } }, 'InProgress'],
  ['daemon set complete', 'apps/v1/DaemonSet', { status: nodes }, 'Current'],
  ['daemon set, older generation', 'apps/v1/DaemonSet', { metadata: { generation: 2 }, status: nodes }, 'InProgress'],
  ['daemon set, two ready', 'apps/v1/DaemonSet', { status: { ...nodes, numberReady: 2 } }, 'InProgress'],
  ['daemon set, two available', 'apps/v1/DaemonSet', { status: { ...nodes, numberAvailable: 2 } }, 'InProgress'],
  ['daemon set, two scheduled', 'apps/v1/DaemonSet', { status: { ...nodes, currentNumberScheduled: 2 } }, 'InProgress'],
  ['daemon set, two updated', 'apps/v1/DaemonSet', { status: { ...nodes, updatedNumberScheduled: 2 } }, 'InProgress'],

  ['deployment without a status', 'apps/v1/Deployment', {}, 'InProgress'],
  ['deployment complete', 'apps/v1/Deployment', { status: { ...full, conditions: available } }, 'Current'],
  [
    'deployment that does not progress',
    'apps/v1/Deployment',
    {
      spec: { progressDeadlineSeconds: 45 },
      status: { ...full, conditions: [condition('Progressing', 'False', 'Some'), condition('Available', 'True')] },
    },
    'InProgress',
  ],
  ['deployment without a deadline', 'apps/v1/Deployment', { status: { ...full, conditions: [condition('Available', 'True')] } }, 'Current'],
  [
    'deployment with the deadline that means none',
    'apps/v1/Deployment',
    { spec: { progressDeadlineSeconds: 2147483647 }, status: { ...full, conditions: [condition('Available', 'True')] } },
    'Current',
  ],
  [
    'deployment not available',
    'apps/v1/Deployment',
    { status: { ...full, conditions: [condition('Progressing', 'True', 'NewReplicaSetAvailable'), condition('Available', 'False')] } },
    'InProgress',
  ],
  [
    'deployment out of time',
    'apps/v1/Deployment',
    { status: { ...full, conditions: [condition('Progressing', 'False', 'ProgressDeadlineExceeded')] } },
    'Failed',
  ],
  ['deployment, none ready', 'apps/v1/Deployment', { status: { ...full, readyReplicas: 0, conditions: available } }, 'InProgress'],
  ['deployment, one old left', 'apps/v1/Deployment', { status: { ...full, replicas: 2, conditions: available } }, 'InProgress'],

  ['replica set without a status', 'apps/v1/ReplicaSet', {}, 'InProgress'],
  [
    'replica set complete',
    'apps/v1/ReplicaSet',
    { spec: { replicas: 4 }, status: { ...four, conditions: [condition('ReplicaFailure', 'False')] } },
    'Current',
  ],
  ['replica set, two ready', 'apps/v1/ReplicaSet', { spec: { replicas: 4 }, status: { ...four, readyReplicas: 2 } }, 'InProgress'],
  ['replica set, two available', 'apps/v1/ReplicaSet', { spec: { replicas: 4 }, status: { ...four, availableReplicas: 2 } }, 'InProgress'],
  [
    'replica set that may not make Pods',
    'apps/v1/ReplicaSet',
    { spec: { replicas: 4 }, status: { ...four, conditions: [condition('ReplicaFailure', 'True')] } },
    'InProgress',
  ],
  ['replication controller complete', 'v1/ReplicationController', { spec: { replicas: 4 }, status: four }, 'Current'],
  [
    'replication controller, two ready',
    'v1/ReplicationController',
    { spec: { replicas: 4 }, status: { ...four, readyReplicas: 2 } },
    'InProgress',
  ],

  [
    'budget not observed',
    'policy/v1/PodDisruptionBudget',
    { metadata: { generation: 2 }, status: { observedGeneration: 1 } },
    'InProgress',
  ],
  ['budget observed', 'policy/v1/PodDisruptionBudget', { status: { observedGeneration: 1 } }, 'Current'],
  [
    'budget not met',
    'policy/v1/PodDisruptionBudget',
    { status: { observedGeneration: 1, expectedPods: 2, currentHealthy: 1, desiredHealthy: 2 } },
    'Current',
    'Progressing',
    'Pods are away',
  ],
  [
    'budget of a workload at zero replicas',
    'policy/v1/PodDisruptionBudget',
    { status: { observedGeneration: 1, expectedPods: 0, currentHealthy: 0, desiredHealthy: 1 } },
    'Current',
  ],

  ['job without a status', 'batch/v1/Job', {}, 'InProgress'],
  ['job complete', 'batch/v1/Job', { status: { succeeded: 1, conditions: [condition('Complete', 'True')] } }, 'Current'],
  ['job failed', 'batch/v1/Job', { status: { failed: 1, conditions: [condition('Failed', 'True', 'JobFailed')] } }, 'Failed'],
  [
    'job about to fail',
    'batch/v1/Job',
    { status: { conditions: [condition('FailureTarget', 'True', 'PodFailurePolicy')] } },
    'InProgress',
    'Degraded',
    'its controller has given up and only waits for Pods to end',
  ],
  [
    'job running',
    'batch/v1/Job',
    { status: { startTime: at(9), active: 2, conditions: [condition('Failed', 'False'), condition('Complete', 'False')] } },
    'Current',
    'Progressing',
    'what comes after it relies on its work',
  ],
  [
    'job suspended',
    'batch/v1/Job',
    { spec: { suspend: true }, status: { conditions: [condition('Suspended', 'True')] } },
    'Current',
    'Suspended',
    'a word of its own',
  ],
  ['cron job without a status', 'batch/v1/CronJob', {}, 'Current'],
  [
    'cron job whose last run succeeded',
    'batch/v1/CronJob',
    { status: { lastScheduleTime: at(600), lastSuccessfulTime: at(590) } },
    'Current',
  ],
  [
    'cron job that runs, after a run that failed',
    'batch/v1/CronJob',
    { status: { lastScheduleTime: at(60), lastSuccessfulTime: at(900), active: [{ kind: 'Job', name: 'test-1' }] } },
    'Current',
  ],
  [
    'cron job whose last run failed',
    'batch/v1/CronJob',
    { status: { lastScheduleTime: at(600), lastSuccessfulTime: at(900) } },
    'Current',
    'Degraded',
    'it was due after the last one that succeeded, and runs no more',
  ],
  [
    'cron job whose first run failed',
    'batch/v1/CronJob',
    { status: { lastScheduleTime: at(600) } },
    'Current',
    'Degraded',
    'no run succeeded',
  ],

  ['service', 'v1/Service', {}, 'Current'],
  ['service of node ports', 'v1/Service', { spec: { type: 'NodePort' } }, 'Current'],
  ['load balancer', 'v1/Service', { spec: { type: 'LoadBalancer', clusterIP: '1.2.3.4' } }, 'Current'],

  ['definition without conditions', 'apiextensions.k8s.io/v1/CustomResourceDefinition', {}, 'InProgress'],
  [
    'definition installing',
    'apiextensions.k8s.io/v1/CustomResourceDefinition',
    { status: { conditions: [condition('NamesAccepted', 'True'), condition('Established', 'False', 'Installing')] } },
    'InProgress',
  ],
  [
    'definition not established for another reason',
    'apiextensions.k8s.io/v1/CustomResourceDefinition',
    { status: { conditions: [condition('Established', 'False', 'NotAccepted')] } },
    'Failed',
  ],
  [
    'definition whose names are taken',
    'apiextensions.k8s.io/v1/CustomResourceDefinition',
    { status: { conditions: [condition('NamesAccepted', 'False', 'SomeReason')] } },
    'Failed',
  ],
  [
    'definition with a schema that is not structural',
    'apiextensions.k8s.io/v1/CustomResourceDefinition',
    { status: { conditions: [condition('Established', 'True'), condition('NonStructuralSchema', 'True', 'Violations')] } },
    'Failed',
  ],
  [
    'definition established',
    'apiextensions.k8s.io/v1/CustomResourceDefinition',
    { status: { conditions: [condition('Established', 'True')] } },
    'Current',
  ],

  [
    'custom without a status',
    'something/v1/MyCR',
    {},
    'Current',
    'Progressing',
    'its controller has not processed it yet: HE17 gives it a grace time where discovery knows of a status subresource',
  ],
  ['custom, older generation', 'something/v1/MyCR', { metadata: { generation: 2 }, status: { observedGeneration: 1 } }, 'InProgress'],
  ['custom ready', 'something/v1/MyCR', { status: { conditions: [condition('Ready', 'True', 'AllOk')] } }, 'Current'],
  [
    'custom not ready',
    'something/v1/MyCR',
    { status: { observedGeneration: 1, conditions: [condition('Ready', 'False', 'NotReadyYet')] } },
    'InProgress',
  ],
  [
    'custom with another condition',
    'something/v1/MyCR',
    { status: { conditions: [condition('SomeCondition', 'False')] } },
    'Current',
    'Progressing',
    'it tells nothing that can be understood: HE17 gives it a grace time where discovery knows of a status subresource',
  ],
  ['config map', 'v1/ConfigMap', {}, 'Current'],
  ['secret', 'v1/Secret', {}, 'Current'],
]

test.each(ROWS.map((row) => [row[0], row] as const))(
  'HE1 as kstatus has it, or with a reason: %s',
  (_, [, kind, parts, kstatus, ours, why]) => {
    expect<string>(healthOf(objectOf(kind, parts), NOW_MS).word).toBe(ours ?? KSTATUS[kstatus])
    expect(ours === undefined || why !== undefined).toBe(true)
  },
)

test.each([
  ['node ready', 'v1/Node', { status: { conditions: [condition('Ready', 'True')] } }, 'Healthy'],
  ['node not ready', 'v1/Node', { status: { conditions: [condition('Ready', 'Unknown', 'NodeStatusUnknown')] } }, 'Progressing'],
  ['node that nobody has seen', 'v1/Node', {}, 'Progressing'],
  ['node cordoned', 'v1/Node', { spec: { unschedulable: true }, status: { conditions: [condition('Ready', 'True')] } }, 'Suspended'],
  ['volume bound', 'v1/PersistentVolume', { status: { phase: 'Bound' } }, 'Healthy'],
  ['volume pending', 'v1/PersistentVolume', {}, 'Progressing'],
  ['volume failed', 'v1/PersistentVolume', { status: { phase: 'Failed', message: 'no' } }, 'Degraded'],
  ['API served', 'apiregistration.k8s.io/v1/APIService', { status: { conditions: [condition('Available', 'True')] } }, 'Healthy'],
  [
    'API whose backend is away',
    'apiregistration.k8s.io/v1/APIService',
    { status: { conditions: [condition('Available', 'False', 'MissingEndpoints')] } },
    'Progressing',
  ],
  ['request signed', 'certificates.k8s.io/v1/CertificateSigningRequest', { status: { certificate: 'x' } }, 'Healthy'],
  ['request waiting', 'certificates.k8s.io/v1/CertificateSigningRequest', {}, 'Progressing'],
  [
    'request denied',
    'certificates.k8s.io/v1/CertificateSigningRequest',
    { status: { conditions: [condition('Denied', 'True')] } },
    'Degraded',
  ],
] as const)('HE1 ours: %s', (_, kind, parts, word) => {
  expect(healthOf(objectOf(kind, parts), NOW_MS).word).toBe(word)
})

const STRICT: HealthOptions = { waitForAddress: true, rules: [] }
const address = { loadBalancer: { ingress: [{ ip: '10.0.0.1' }] } }
test.each([
  ['load balancer', 'v1/Service', { type: 'LoadBalancer' }],
  ['ingress', 'networking.k8s.io/v1/Ingress', {}],
] as const)('HE5 a %s waits for its address only where its service asks for it', (_, kind, spec) => {
  expect(healthOf(objectOf(kind, { spec }), NOW_MS).word).toBe('Healthy')
  expect(healthOf(objectOf(kind, { spec }), NOW_MS, STRICT)).toMatchObject({ word: 'Progressing', reason: 'NoAddress' })
  expect(healthOf(objectOf(kind, { spec, status: address }), NOW_MS, STRICT).word).toBe('Healthy')
  expect(healthOf(objectOf(kind, { spec, status: { loadBalancer: { ingress: [{}] } } }), NOW_MS, STRICT).word).toBe('Progressing')
})

test('HE5 a Service of another type has no address to wait for, a Gateway has', () => {
  expect(healthOf(objectOf('v1/Service', { spec: { type: 'ClusterIP' } }), NOW_MS, STRICT).word).toBe('Healthy')
  const conditions = [condition('Accepted', 'True'), condition('Programmed', 'False', 'AddressNotAssigned')]
  const gateway = objectOf('gateway.networking.k8s.io/v1/Gateway', { status: { conditions } })
  expect([healthOf(gateway, NOW_MS).word, healthOf(gateway, NOW_MS, STRICT).word]).toEqual(['Healthy', 'Progressing'])
})

test('HE23 a run that ended a moment ago has not failed yet: before 1.31 its success is written after its end', () => {
  const statusOf = (seconds: number) => ({
    managedFields: [{ manager: 'kcm', operation: 'Update', subresource: 'status', time: at(seconds) }],
  })
  const ended = { lastScheduleTime: at(60), lastSuccessfulTime: at(900) }
  const cronJob = (seconds: number) => objectOf('batch/v1/CronJob', { metadata: statusOf(seconds), status: ended })
  const failed = healthOf(cronJob(10), NOW_MS)
  expect(failed).toMatchObject({ word: 'Degraded', reason: 'LastRunFailed' })
  expect(healthOf(cronJob(9), NOW_MS)).toMatchObject({ word: 'Healthy', settles: { atMs: NOW_MS + 1_000, health: failed } })
  // Written by a server whose clock is ahead.
  expect(healthOf(cronJob(-900), NOW_MS)).toMatchObject({ word: 'Healthy', settles: { atMs: NOW_MS + 10_000 } })
})
