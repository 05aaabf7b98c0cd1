// What was let go stays let go, also when the answer to that never came.
import { afterEach, expect, test } from 'bun:test'
import { markObject } from '../../shared/kube/clean.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { stopAll, track } from '../support/reconcile-fixtures.ts'
import { CLUSTER_ID, configMap, configMapRef, createReconcileKit } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

afterEach(stopAll)

test('IV4 what was let go is not deleted when the answer to that was lost and the keep mark goes', async () => {
  const clock = createVirtualClock()
  const cluster = createFakeCluster({ clock })
  let lost = 0
  const mergePatch = cluster.mergePatch.bind(cluster)
  cluster.mergePatch = async (...request) => {
    const answer = await mergePatch(...request)
    if (request[1].name !== 'kept') return answer
    lost += 1
    return { kind: 'failed', failure: { kind: 'unreachable', status: 0, reason: '', message: 'connection reset' } }
  }
  const kit = createReconcileKit({ cluster, clock })
  track(kit)
  kit.desire([configMap('own'), configMap('kept')])
  kit.start()
  await clock.advance(50)
  const mark = 'argocd.argoproj.io/tracking-id'
  cluster.editAs('argocd', configMapRef('kept'), ({ metadata }) =>
    Object.assign(metadata, { annotations: { ...metadata.annotations, [mark]: 'shop:/ConfigMap:default/kept' } }),
  )
  kit.desire([configMap('own')])
  await clock.advance(50)
  expect(lost).toBe(1)
  cluster.editAs('argocd', configMapRef('kept'), ({ metadata }) => Reflect.deleteProperty(metadata.annotations ?? {}, mark))
  await clock.advance(600_000)
  expect(cluster.object(configMapRef('kept'))).not.toBeNull()
  expect(kit.service()).toMatchObject({ reason: 'Synced' })
})

test('RC3, RC12 what another service takes in the moment in which it is let go keeps the mark of that service', async () => {
  const clock = createVirtualClock()
  const cluster = createFakeCluster({ clock })
  const kit = createReconcileKit({ cluster, clock })
  track(kit)
  kit.desire([configMap('own')])
  kit.start()
  await clock.advance(50)
  const get = cluster.get.bind(cluster)
  const other = markObject(configMap('own'), CLUSTER_ID, { project: 'web', service: 'other' }).metadata
  cluster.get = (resource, ref) => {
    if (ref.name === 'own') {
      cluster.get = get
      cluster.editAs('other-agent', configMapRef('own'), ({ metadata }) =>
        Object.assign(metadata, { labels: other.labels, annotations: other.annotations }),
      )
    }
    return get(resource, ref)
  }
  cluster.requests.splice(0)
  kit.remove('orphan')
  await clock.advance(600_000)
  expect(cluster.object(configMapRef('own'))?.metadata).toMatchObject({ labels: other.labels, annotations: other.annotations })
  expect(cluster.requests.filter(({ verb }) => verb === 'patch')).toEqual([])
  expect(kit.state.inventory({ project: 'web', service: 'shop' })).toEqual([])
})
