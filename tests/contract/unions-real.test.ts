// Manifests that choose another member of a union, on real API servers: the defaults of the former member stay beside
// it without an owner.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sendApply } from '../../agent/reconcile/apply/send-apply.ts'
import type { StepOf } from '../../agent/reconcile/plan/step.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { type K8sObject, refKey, refOf } from '../../shared/kube/object.ts'
import { KUBERNETES_MINORS } from '../support/extent.ts'
import { CLUSTER_START_TIMEOUT_MS } from '../support/kube-cluster.ts'
import { type RealCluster, resourceNamed, startRealCluster } from '../support/real-cluster.ts'

const workload = (kind: string, spec: object, container: object = {}): K8sObject => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    ...(kind === 'StatefulSet' ? { serviceName: 'web' } : {}),
    ...spec,
    template: {
      metadata: { labels: { app: 'web' } },
      spec: { containers: [{ name: 'web', image: 'web:1', ...container }] },
    },
  },
})
const service = (type: string, spec: object = { ports: [{ port: 80 }] }): K8sObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'default' },
  spec: { type, ...spec },
})
const probe = (handler: object) => workload('Deployment', {}, { livenessProbe: handler })

const PARTITION = { updateStrategy: { rollingUpdate: { partition: 1 } } }
const CHANGES: ReadonlyArray<readonly [string, K8sObject, K8sObject, object]> = [
  [
    'Recreate',
    workload('Deployment', {}),
    workload('Deployment', { strategy: { type: 'Recreate' } }),
    { strategy: { rollingUpdate: { maxSurge: 2 } } },
  ],
  ['OnDelete', workload('StatefulSet', {}), workload('StatefulSet', { updateStrategy: { type: 'OnDelete' } }), PARTITION],
]
/** Members that the manifest named, and those that the API server takes out itself. */
const PLAIN: ReadonlyArray<readonly [string, K8sObject, K8sObject]> = [
  ['OnDelete of a DaemonSet', workload('DaemonSet', {}), workload('DaemonSet', { updateStrategy: { type: 'OnDelete' } })],
  ['another handler of a probe', probe({ httpGet: { path: '/', port: 80 } }), probe({ exec: { command: ['true'] } })],
  ['a Service without ports of nodes', service('LoadBalancer'), service('ClusterIP')],
  ['a Service of a name', service('LoadBalancer'), service('ExternalName', { externalName: 'a.example' })],
]

describe.each(KUBERNETES_MINORS.map((minor) => [minor] as const))('on the %s Kubernetes', (kubernetes) => {
  let real: RealCluster
  beforeAll(async () => {
    real = await startRealCluster({ name: `unions-${kubernetes}`, ...(kubernetes === 'older' ? { kubernetes } : {}) })
  }, CLUSTER_START_TIMEOUT_MS)
  afterAll(() => real?.stop())

  const apply = async (object: K8sObject) => {
    const answer = await real.cluster.apply(resourceNamed(real.resources, object.kind), object, { force: false })
    return answer.kind === 'failed' ? answer.failure : answer.kind
  }
  function stepOf(object: K8sObject) {
    const ref = refOf(object)
    const resource = resourceNamed(real.resources, object.kind)
    const step = {
      kind: 'apply',
      key: refKey(ref),
      ref,
      resource,
      doc: canonicalJson(object),
      commit: null,
      revision: null,
    } as StepOf<'apply'>
    return { ref, resource, step }
  }
  async function remove(object: K8sObject): Promise<void> {
    const resource = resourceNamed(real.resources, object.kind)
    const found = await real.cluster.get(resource, refOf(object))
    if (found.kind === 'found') await real.cluster.delete(resource, refOf(object), found.object.metadata.uid ?? '')
  }

  test.each(CHANGES)(
    'RC35 %s is refused beside defaults, applied without them, and taken from others by force alone',
    async (_, before, after, changed) => {
      expect(await apply(before)).toBe('applied')
      try {
        expect(await apply(after)).toMatchObject({ kind: 'invalid' })
        const { step, resource, ref } = stepOf(after)
        expect(await sendApply(real.cluster, step, false)).toMatchObject({ kind: 'applied' })
        expect([await apply(after), await apply(before)]).toEqual(['applied', 'applied'])
        await real.cluster.mergePatch(resource, ref, { spec: changed })
        expect(await sendApply(real.cluster, step, false)).toMatchObject({ failure: { kind: 'invalid' } })
        expect(await sendApply(real.cluster, step, true)).toMatchObject({ kind: 'applied' })
      } finally {
        await remove(before)
      }
    },
  )

  test.each(PLAIN)('RC35 %s needs nothing of this', async (_, before, after) => {
    expect([await apply(before), await apply(after)]).toEqual(['applied', 'applied'])
    await remove(before)
  })
})
