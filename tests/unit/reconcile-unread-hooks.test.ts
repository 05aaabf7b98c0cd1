// Hooks that cannot be run yet: what they hold up, and what is remembered of them meanwhile.
import { afterEach, describe, expect, test } from 'bun:test'
import { objectText } from '../../agent/messages/object-messages.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { deployment, hook, hooked, ready, waved } from '../support/hook-fixtures.ts'
import { crd, setup, stopAll, thing, writes } from '../support/reconcile-fixtures.ts'
import { configMap } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'

afterEach(stopAll)

describe('hooks whose kind is not served', () => {
  const CRD = { group: 'apiextensions.k8s.io', kind: 'CustomResourceDefinition', namespace: '', name: 'things.example.com' }
  const MINUTES = 10 * 60_000

  test('HK3 a pre-sync hook of such a kind holds its revision back and says so, until it can be run', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([hooked(thing('before'), 'pre-sync'), configMap('a')])
    await run()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', reason: 'WaitingForHook' })
    expect(kit.service()?.message).toMatch(said(objectText('UnknownKind', { apiVersion: SOME, kind: 'Thing' })))
    cluster.applyAs('kubectl', crd)
    await clock.advance(MINUTES)
    expect(writes(cluster)).toEqual(['apply Thing before', 'apply ConfigMap a'])
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test('HK3 a post-sync hook whose kind comes with a later wave holds up no wave', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([hooked(thing('after'), 'post-sync'), configMap('a'), waved(crd, 1)])
    await run()
    await clock.advance(MINUTES)
    expect(writes(cluster)).toEqual(['apply ConfigMap a', 'apply CustomResourceDefinition things.example.com', 'apply Thing after'])
    expect(kit.service()?.healthy).toBeDefined()
  })

  test('HK2 one that has run does not run again because its kind was away for a while', async () => {
    const { cluster, kit, run, clock, settle } = setup()
    cluster.applyAs('kubectl', crd)
    await settle()
    const objects = [hooked(thing('before'), 'pre-sync'), deployment('web')]
    kit.desire(objects)
    await run()
    expect(writes(cluster)).toEqual(['apply Thing before', 'apply Deployment web'])
    cluster.deleteAs('kubectl', CRD)
    await clock.advance(60_000)
    await kit.stop()
    await run()
    kit.desire(objects, { sync: { healthDeadline: '20m' } })
    await clock.advance(60_000)
    cluster.applyAs('kubectl', crd)
    await clock.advance(MINUTES)
    ready(cluster, 'web')
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })
})

test('HK3 a hook that cannot be applied as it is holds its phase back, too', async () => {
  const { cluster, kit, run } = setup()
  const nowhere = {
    ...hook('before', 'pre-sync'),
    metadata: { name: 'before', annotations: { 'skerry.dev/hook': 'pre-sync' } },
  } as K8sObject
  kit.desire([nowhere, configMap('a')])
  await run()
  expect(writes(cluster)).toEqual([])
  expect(kit.service()?.message).toContain(objectText('Unreadable.noNamespace'))
})
