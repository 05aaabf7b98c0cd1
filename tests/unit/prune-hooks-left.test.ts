// A revision of which only hooks are left is as empty as one without any: the guard counts what is kept in the cluster.
import { afterEach, expect, test } from 'bun:test'
import type { K8sObject } from '../../shared/kube/object.ts'
import { hook, hooked, succeed } from '../support/hook-fixtures.ts'
import { setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef } from '../support/reconcile-kit.ts'

afterEach(stopAll)

test('PR2 a revision that names hooks alone prunes nothing without a person', async () => {
  const { cluster, kit, run, settle } = setup()
  kit.desire([hook('migrate', 'pre-sync'), configMap('a')])
  await run()
  succeed(cluster, 'migrate')
  await settle()
  expect(cluster.object(configMapRef('a'))).not.toBeNull()
  writes(cluster)
  const digest = kit.desire([hook('migrate', 'pre-sync')])
  await settle()
  succeed(cluster, 'migrate')
  await settle()
  expect(cluster.object(configMapRef('a'))).not.toBeNull()
  expect(kit.service()).toMatchObject({ reason: 'PruneBlocked', refusal: { digest, names: ['ConfigMap default/a'] } })
  kit.desire([hook('migrate', 'pre-sync')], { pruneConfirmed: digest })
  await settle()
  expect(cluster.object(configMapRef('a'))).toBeNull()
})

test('PR1 hooks that are still there do not lessen the share of what goes', async () => {
  const { cluster, kit, run, settle } = setup()
  const maps = (count: number) => Array.from({ length: count }, (_, n) => configMap(`m${n}`))
  const hooks = ['a', 'b', 'c'].map((name) => hook(name, 'pre-sync'))
  kit.desire([...hooks, ...maps(11)])
  await run()
  for (const name of ['a', 'b', 'c']) succeed(cluster, name)
  await settle()
  kit.desire([...hooks, ...maps(5)])
  await settle()
  for (const name of ['a', 'b', 'c']) succeed(cluster, name)
  await settle()
  // 6 of 11, not 6 of 14.
  expect(kit.service()?.refusal).toMatchObject({ count: 6, ownedCount: 11 })
})

test('HK7 what becomes a hook that cannot be read is not pruned', async () => {
  const { cluster, kit, run, clock } = setup()
  const { namespace: _namespace, ...metadata } = configMap('b').metadata
  const bare: K8sObject = { ...configMap('b'), metadata }
  kit.desire([configMap('a'), bare], { namespace: 'default' })
  await run()
  kit.desire([configMap('a'), hooked(bare, 'post-sync', { 'skerry.dev/sync-options': 'Typo' })], { namespace: 'default' })
  await clock.advance(60_000)
  expect(cluster.object(configMapRef('b'))).not.toBeNull()
})
