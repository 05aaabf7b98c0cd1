// What a person's yes and an annotation's word let be deleted, and how long they last.
import { afterEach, describe, expect, test } from 'bun:test'
import type { K8sObject } from '../../shared/kube/object.ts'
import { namespace, namespaceRef, setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const MINUTE = 60_000
const maps = (count: number) => Array.from({ length: count }, (_, i) => configMap(`m${i}`))
const allowed = (object: K8sObject): K8sObject => ({
  ...object,
  metadata: { ...object.metadata, annotations: { 'skerry.dev/prune': 'allowed' } },
})

describe('a confirmation at the site', () => {
  test.each([[false], [true]])(
    'EC1 is of the list that was shown, not of a later one of the same revision (restart: %p)',
    async (restarts) => {
      const { kit, cluster, run, settle, clock } = setup()
      const left = () => cluster.objects().filter(({ metadata }) => /^m\d+$/.test(metadata.name ?? '')).length
      kit.desire(maps(8))
      await run()
      kit.desire(maps(1))
      await settle()
      kit.confirm()
      await settle()
      expect(left()).toBe(1)
      kit.desire(maps(30))
      await settle()
      if (restarts) {
        await kit.stop()
        kit.start()
        await settle()
      }
      kit.desire(maps(1))
      await clock.advance(MINUTE)
      expect(left()).toBe(30)
      expect(kit.service()).toMatchObject({ reason: 'PruneBlocked' })
    },
  )
})

describe('the namespace of a service', () => {
  test.each([
    ['a keep mark', { 'helm.sh/resource-policy': 'keep' }],
    ['a keep mark for removals', { 'argocd.argoproj.io/sync-options': 'Delete=false' }],
    ['another tool’s mark', { 'argocd.argoproj.io/tracking-id': 'x:/Namespace:mine/mine' }],
  ])('NS2 IV4 stays when %s is on it', async (_, annotations) => {
    const { kit, cluster, run, settle } = setup()
    const options = { namespace: 'mine', sync: { deleteNamespace: true } }
    kit.desire([configMap('a', {}, 'mine')], options)
    await run()
    cluster.editAs('kubectl-annotate', namespaceRef('mine'), ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, ...annotations }
    })
    await settle()
    kit.remove('prune', undefined, 1, options)
    await settle()
    expect(kit.service()?.reason).toBe('Removed')
    expect(cluster.object(namespaceRef('mine'))).not.toBeNull()
  })
})

test('NS2 OR5 it goes last of all, after every wave', async () => {
  const { kit, cluster, run, settle } = setup()
  const options = { namespace: 'mine', sync: { deleteNamespace: true } }
  const first = configMap('first', {}, 'mine')
  kit.desire([configMap('a', {}, 'mine'), { ...first, metadata: { ...first.metadata, annotations: { 'skerry.dev/wave': '-1' } } }], options)
  await run()
  writes(cluster)
  kit.remove('prune', undefined, 1, options)
  await settle()
  expect(writes(cluster)).toEqual(['delete ConfigMap a', 'delete ConfigMap first', 'delete Namespace mine'])
})

describe('what is kept in the namespace of a service', () => {
  test.each([
    ['with the service', false, false],
    ['with the service, and the agent starts again', false, true],
    ['with an earlier revision', true, false],
  ])('NS2 IV4 was let go %s: the namespace stays, and it does', async (_, early, restarts) => {
    const { kit, cluster, run, settle } = setup()
    const options = { namespace: 'mine', sync: { deleteNamespace: true } }
    const data = configMap('data', {}, 'mine')
    const kept = { ...data, metadata: { ...data.metadata, annotations: { 'skerry.dev/prune': 'disabled' } } }
    kit.desire([configMap('a', {}, 'mine'), kept], options)
    await run()
    if (early) kit.desire([configMap('a', {}, 'mine')], options)
    await settle()
    if (restarts) {
      cluster.fail(({ verb, ref }) =>
        verb === 'delete' && ref?.name === 'a' ? { kind: 'server_error', status: 500, reason: 'X', message: 'later' } : null,
      )
    }
    kit.remove('prune', undefined, 1, options)
    await settle()
    if (restarts) {
      await kit.stop()
      cluster.fail(() => null)
      kit.start()
      await settle()
    }
    expect(kit.service()?.reason).toBe('Removed')
    expect(cluster.object(configMapRef('a', 'mine'))).toBeNull()
    expect(cluster.object(configMapRef('data', 'mine'))).not.toBeNull()
    expect(cluster.object(namespaceRef('mine'))?.metadata.deletionTimestamp).toBeUndefined()
  })
})

describe('what an annotation allows', () => {
  test('PR3 is not asked about while it goes', async () => {
    const { kit, cluster, run, clock } = setup()
    const held = (object: K8sObject) => ({ ...object, metadata: { ...object.metadata, finalizers: ['example.com/hold'] } })
    kit.desire([allowed(held(namespace('one'))), configMap('a')])
    await run()
    kit.desire([configMap('a')])
    await clock.advance(MINUTE)
    expect(cluster.object(namespaceRef('one'))?.metadata.deletionTimestamp).toBeDefined()
    expect(kit.service()?.reason).not.toBe('PruneBlocked')
    expect(kit.events().map(({ reason }) => reason)).not.toContain('PruneBlocked')
  })
})
