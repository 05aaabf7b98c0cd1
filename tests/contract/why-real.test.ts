// The causes of `skerry why` for services that a real agent applies to a real API server with its controllers and scheduler.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { explain, type WhyObject } from '../../server/fleet/why/explain.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { type RealCluster, startRealAgent } from '../support/real-cluster.ts'
import type { ReconcileKit } from '../support/reconcile-kit.ts'

let real: RealCluster
let kit: ReconcileKit
beforeAll(async () => {
  const started = await startRealAgent({ name: 'why', controllers: true, userAgent: 'why-agent' }, {})
  ;[real, kit] = [started, started.kit]
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => real?.stop())

const object = (apiVersion: string, kind: string, name: string, rest: object = {}): K8sObject =>
  ({ apiVersion, kind, metadata: { name }, ...rest }) as unknown as K8sObject
const workload = (podSpec: object = {}, container: object = {}): K8sObject =>
  object('apps/v1', 'Deployment', 'web', {
    spec: {
      ...{ replicas: 1, progressDeadlineSeconds: 1, selector: { matchLabels: { app: 'web' } } },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'app', image: 'app:1', ...container }], ...podSpec } },
    },
  })
const volume = (claimName: string) => ({ volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] })
const namespace = (name: string, labels: object): K8sObject =>
  ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } }) as unknown as K8sObject

interface Broken {
  cause: string
  objects: K8sObject[]
  /** Default: the Deployment. */
  key?: string
}
const CASES: Readonly<Record<string, Broken>> = {
  'no-label': { cause: 'NodeSelectorMismatch', objects: [workload({ nodeSelector: { nobody: 'has-this' } })] },
  'too-large': { cause: 'InsufficientResources', objects: [workload({}, { resources: { requests: { cpu: '9000' } } })] },
  quota: { cause: 'QuotaExceeded', objects: [object('v1', 'ResourceQuota', 'none', { spec: { hard: { pods: '0' } } }), workload()] },
  range: {
    cause: 'LimitRangeViolated',
    objects: [
      object('v1', 'LimitRange', 'small', { spec: { limits: [{ type: 'Container', max: { memory: '8Mi' } }] } }),
      workload({}, { resources: { limits: { memory: '1Gi' } } }),
    ],
  },
  secured: {
    cause: 'PodSecurity',
    objects: [namespace('secured', { 'pod-security.kubernetes.io/enforce': 'restricted' }), workload()],
  },
  account: { cause: 'ServiceAccountMissing', objects: [workload({ serviceAccountName: 'nobody' })] },
  priority: { cause: 'PriorityClassMissing', objects: [workload({ priorityClassName: 'nothing' })] },
  'no-claim': { cause: 'VolumeClaimMissing', objects: [workload(volume('nowhere'))] },
  'no-crd': { cause: 'CrdMissing', key: 'nowhere.example/Widget//w', objects: [object('nowhere.example/v1', 'Widget', 'w')] },
  invalid: {
    cause: 'InvalidManifest',
    key: '/Service/invalid/web',
    objects: [object('v1', 'Service', 'web', { spec: { ports: [{ port: 99_999 }] } })],
  },
}

test('WY1 on a real API server the true cause of a broken service is first', async () => {
  for (const [name, { objects }] of Object.entries(CASES)) kit.desire(objects, { namespace: name }, { project: 'web', service: name })
  const wrong: string[] = []
  for (const [name, { cause, key = `apps/Deployment/${name}/web` }] of Object.entries(CASES)) {
    let last = 'nothing is reported'
    const firstCause = () => {
      const found = kit.object(key, { project: 'web', service: name })
      if (found === undefined || found === null) return undefined
      const { sync, health, reason, message } = found
      last = `${sync}, ${health}, ${reason}: ${message}`
      const seen: WhyObject = { cluster: 'c', name: key, sync, health, reason, message, sinceMs: null, driftBy: null }
      const state = { sync, health, reason, message, next: '', sinceMs: null }
      const [first] = explain({ service: state, placements: [], objects: [seen], clusterCount: 1, dependencies: [] })
      last += ` → ${first?.cause}`
      return first?.cause === cause ? first : undefined
    }
    await eventually(name, async () => firstCause()).catch(() => wrong.push(`${name}: ${cause} expected, ${last}`))
  }
  expect(wrong).toEqual([])
}, 180_000)
