// At the start of an agent the autoscalers are not known yet: what somebody scaled waits for that moment, and is not
// set back to what Git says.
import { afterEach, expect, test } from 'bun:test'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { denied, setup, stopAll, writes } from '../support/reconcile-fixtures.ts'

afterEach(stopAll)

const WEB: ObjectRef = { group: 'apps', kind: 'Deployment', namespace: 'default', name: 'web' }
const HPA: ObjectRef = { group: 'autoscaling', kind: 'HorizontalPodAutoscaler', namespace: 'default', name: 'auto' }
const web = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'web:1' }] } },
  },
} as K8sObject
const replicasOf = (object: K8sObject | null) => (object?.['spec'] as { replicas?: number } | undefined)?.replicas

async function site(isScaled: boolean) {
  const found = setup()
  found.kit.desire([web])
  await found.run()
  const { cluster, settle } = found
  const scale = async (manager: string, replicas: number) => {
    cluster.editAs(manager, WEB, (object) => Object.assign(object['spec'] as object, { replicas }), { subresource: 'scale' })
    await settle()
  }
  if (isScaled) {
    const spec = { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' } }
    cluster.editAs('somebody', HPA, (object) => Object.assign(object, { spec }))
    await settle()
    await scale('kube-controller-manager', 3)
  }
  return { ...found, scale }
}

test('DR10 what a person scaled of an autoscaled workload stays as it is over a restart', async () => {
  const { cluster, kit, clock, run, settle, scale } = await site(true)
  await scale('kubectl', 5)
  await clock.advance(60_000)
  const before = [kit.service(), kit.object('apps/Deployment/default/web')]
  await kit.stop()
  writes(cluster)
  await run()
  await settle()
  expect(writes(cluster)).toEqual([])
  expect(replicasOf(cluster.object(WEB))).toBe(5)
  expect([kit.service(), kit.object('apps/Deployment/default/web')]).toEqual(before)
})

test('DR10 without an autoscaler it is set back once the autoscalers are known', async () => {
  const { cluster, kit, run, settle, scale } = await site(false)
  await kit.stop()
  await scale('kubectl', 5)
  writes(cluster)
  await run()
  await settle()
  expect(writes(cluster)).toEqual(['apply Deployment web'])
  expect(replicasOf(cluster.object(WEB))).toBe(1)
})

test('DR10 an agent that may not watch autoscalers goes by the entries that they left', async () => {
  const { cluster, kit, run, settle, scale } = await site(false)
  await kit.stop()
  cluster.fail(({ kind }) => (kind === 'HorizontalPodAutoscaler' ? denied : null))
  await scale('kubectl', 5)
  writes(cluster)
  await run()
  await settle()
  expect(writes(cluster)).toEqual(['apply Deployment web'])
})
