// What was let go stays let go, also when the answer to that never came.
import { afterEach, expect, test } from 'bun:test'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { stopAll, track } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef, createReconcileKit } from '../support/reconcile-kit.ts'
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
