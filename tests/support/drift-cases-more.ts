// Drift corpus: what was sent empty and is taken by others, subresources of custom kinds, other versions, roll-outs,
// and a fight.
import { crd, thing } from './drift-cases-others.ts'
import { configMapYaml, deployment } from './drift-cases-values.ts'
import type { DriftCase } from './drift-site.ts'

const SETTINGS = 'ConfigMap/settings'
const THING = 'Thing.$NS.example.com/one'
const WEB = 'Deployment/web'
const APP = '.spec.template.spec.containers[{"name":"app"}]'
const PORTS = `
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { selector: { app: web }, ports: [{ name: http, port: 80 }, { name: https, port: 443 }] }`

export const MORE_CASES: readonly DriftCase[] = [
  {
    name: 'an empty strategy gets a default, which somebody changes',
    manifest: deployment('strategy: {}'),
    deed: ({ as }) => as('tuner').strategic(WEB, { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } }),
    drift: null,
    writes: 0,
  },
  {
    name: 'an empty strategy gets a default, of which somebody changes a part',
    manifest: deployment('strategy: {}'),
    deed: ({ as }) => as('tuner').merge(WEB, { spec: { strategy: { rollingUpdate: { maxSurge: 3 } } } }),
    drift: null,
    writes: 0,
  },
  {
    name: 'a policy for everybody is changed to one for somebody',
    manifest: `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: closed }
spec: { podSelector: {}, policyTypes: [Ingress] }`,
    deed: ({ as }) => as('editor').merge('NetworkPolicy/closed', { spec: { podSelector: { matchLabels: { app: 'only-this' } } } }),
    drift: { target: 'NetworkPolicy/closed', paths: ['.spec.podSelector'], manager: 'editor' },
    writes: 1,
    live: { 'NetworkPolicy/closed': { spec: { podSelector: {} } } },
  },
  {
    name: 'an empty volume is changed to a folder of the node: what the editor put beside it is refused, and the message says so',
    manifest: deployment('', 'volumeMounts: [{ name: tmp, mountPath: /tmp }]').replace(
      'containers:',
      'volumes: [{ name: tmp, emptyDir: {} }]\n      containers:',
    ),
    deed: ({ as }) =>
      as('editor').strategic(WEB, {
        spec: { template: { spec: { volumes: [{ name: 'tmp', emptyDir: null, hostPath: { path: '/' } }] } } },
      }),
    // The field that is ours was removed, of which the API server keeps no name.
    drift: { target: WEB, paths: ['.spec.template.spec.volumes[{"name":"tmp"}].emptyDir'], manager: '', action: 'failed' },
    writes: 1,
    same: false,
  },
  {
    name: 'a port is added to a Service of ours',
    manifest: PORTS,
    deed: ({ as }) => as('mesh').strategic('Service/web', { spec: { ports: [{ name: 'mesh', port: 15_000, protocol: 'TCP' }] } }),
    drift: null,
    writes: 0,
  },
  {
    name: 'a port of a Service of ours is removed',
    manifest: PORTS,
    deed: ({ as }) => as('editor').strategic('Service/web', { spec: { ports: [{ port: 443, $patch: 'delete' }] } }),
    drift: { target: 'Service/web', paths: ['.spec.ports[{"name":"https"}]'], manager: '' },
    writes: 1,
  },
  {
    name: 'kubectl scale on a custom resource',
    manifest:
      crd(
        '{ spec: { type: object, properties: { size: { type: integer } } }, status: { type: object, x-kubernetes-preserve-unknown-fields: true } }',
      ).replace(
        'subresources: { status: {} }',
        'subresources: { status: {}, scale: { specReplicasPath: .spec.size, statusReplicasPath: .status.size } }',
      ) + thing('{ size: 1 }'),
    deed: ({ as }) => as('scaler').merge(THING, { spec: { replicas: 5 } }, 'scale'),
    drift: { target: 'Thing/one', paths: ['.spec.size'], manager: 'scaler (scale)' },
    writes: 1,
  },
  {
    name: 'an autoscaler is written through an older version',
    manifest: `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: { name: web }
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: nobody }
  maxReplicas: 4
  metrics: [{ type: Resource, resource: { name: cpu, target: { type: Utilization, averageUtilization: 80 } } }]`,
    deed: ({ as }) =>
      as('old-tool').update(
        'HorizontalPodAutoscaler/web',
        ({ metadata }) => void Object.assign(metadata, { labels: { ...metadata.labels, old: 'tool' } }),
        'v1',
      ),
    drift: null,
    writes: 0,
  },
  {
    name: 'a roll-out is paused by hand, where Git says nothing of it',
    manifest: deployment(),
    deed: ({ kubectl }) => kubectl(['rollout', 'pause', 'deployment/web']),
    drift: null,
    writes: 0,
    live: { [WEB]: { spec: { paused: true } } },
  },
  {
    name: 'a roll-out is undone by hand',
    manifest: deployment(),
    async deed({ kubectl, revise }) {
      await revise(deployment().replace('app:1', 'app:2'))
      await kubectl(['wait', '--for=jsonpath={.status.observedGeneration}=2', 'deployment/web', '--timeout=20s'])
      await kubectl(['rollout', 'undo', 'deployment/web', '--to-revision=1'])
    },
    // The undo brings back the annotations of the old ReplicaSet, too.
    drift: {
      target: WEB,
      paths: [`${APP}.image`, '.metadata.annotations["skerry.dev/commit"]', '.metadata.annotations["skerry.dev/revision"]'],
    },
    // The new revision, and the correction.
    writes: 2,
    live: { [WEB]: { spec: { replicas: 1 } } },
  },
  {
    name: 'kubectl autoscale, and then the autoscaler scales',
    manifest: deployment(),
    async deed({ as, kubectl, seen }) {
      await kubectl(['autoscale', 'deployment', 'web', '--min=2', '--max=5'])
      await seen(WEB)
      await as('kube-controller-manager').merge(WEB, { spec: { replicas: 2 } }, 'scale')
    },
    drift: null,
    writes: 0,
    same: false,
  },
  {
    name: 'our owner is taken off',
    manifest: `${configMapYaml('a: "1"', 'owner')}---${configMapYaml()}`,
    async deed({ as, get, revise }) {
      const uid = (await get('ConfigMap/owner'))?.metadata.uid
      const owned = configMapYaml().replace(
        '{ name: settings }',
        `{ name: settings, ownerReferences: [{ apiVersion: v1, kind: ConfigMap, name: owner, uid: ${uid} }] }`,
      )
      await revise(`${configMapYaml('a: "1"', 'owner')}---${owned}`)
      await as('editor').merge(SETTINGS, { metadata: { ownerReferences: null } })
    },
    drift: { target: SETTINGS, paths: ['.metadata.ownerReferences'], manager: '' },
    writes: 2,
    same: false,
  },
  {
    name: 'a rival who writes after every correction: five corrections, then a wait that says who it is',
    manifest: configMapYaml(),
    async deed({ as, seen }) {
      for (let n = 0; n < 6; n += 1) {
        await as('rival').merge(SETTINGS, { data: { a: `x${n}` } })
        await seen(SETTINGS)
      }
    },
    drift: { target: SETTINGS, paths: ['.data.a'], manager: 'rival', action: 'contested', count: 6 },
    writes: 5,
    same: false,
    live: { [SETTINGS]: { data: { a: 'x5' } } },
  },
]
