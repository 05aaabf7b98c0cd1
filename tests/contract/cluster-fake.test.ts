import { expect, test } from 'bun:test'
import { refOf } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { configMap } from '../support/contract-kit.ts'
import { FakeCluster } from '../support/fake-cluster.ts'
import { until, WatchProbe } from '../support/watch-probe.ts'
import { clusterContract } from './cluster.contract.ts'

clusterContract(
  'fake',
  async () => {
    const cluster = new FakeCluster({ clock: systemClock })
    return {
      cluster,
      patchAs: async (manager, ref, body) => void cluster.patchAs(manager, ref, body),
      deny: async (namespace, message) =>
        cluster.admit(({ kind, metadata }) =>
          kind === 'ConfigMap' && metadata.namespace === namespace && metadata.labels?.['denied'] !== undefined ? message : null,
        ),
      applyAs: async (manager, object) => void cluster.applyAs(manager, object),
      permit: async (user, namespace) =>
        cluster.permit((asked, { ref }) => asked === user && ref?.kind === 'ConfigMap' && ref.namespace === namespace),
      stop: async () => {},
    }
  },
  5_000,
)

test('KA22 a cut watch of the fake resumes without a reset; one that the server forgot starts over', async () => {
  const cluster = new FakeCluster({ clock: systemClock })
  const { resources } = await cluster.discover()
  const kind = resources.find((resource) => resource.kind === 'ConfigMap')
  if (kind === undefined) throw new Error('no ConfigMap')
  const watch = new WatchProbe(cluster, kind)
  await watch.seen('synced')
  cluster.cutWatches()
  await cluster.apply(kind, configMap('default', 'a', {}), { force: true })
  await watch.seen('changed:a')
  cluster.cutWatches({ forget: true })
  await watch.seen('present:a')
  await until('synced', () => watch.story() === 'reset synced changed:a reset present:a synced')
  await watch.stop()
})

test('KA25 an injected failure reaches watch and request, and nothing is changed by it', async () => {
  const cluster = new FakeCluster({ clock: systemClock })
  const { resources } = await cluster.discover()
  const kind = resources.find((resource) => resource.kind === 'ConfigMap')
  if (kind === undefined) throw new Error('no ConfigMap')
  const down = { kind: 'unreachable' as const, status: 0, reason: '', message: 'down' }
  const watch = new WatchProbe(cluster, kind)
  await watch.seen('synced')
  cluster.fail(() => down)
  cluster.cutWatches()
  const object = configMap('default', 'a', {})
  expect(await cluster.apply(kind, object, { force: true })).toEqual({ kind: 'failed', failure: down })
  expect(cluster.object(refOf(object))).toBeNull()
  await watch.seen('failed:unreachable')
  cluster.fail(() => null)
  await until('synced again', () => watch.story() === 'reset synced failed:unreachable synced')
  await watch.stop()
})
