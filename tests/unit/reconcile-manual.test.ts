// sync.mode: manual in the agent: what waits for a person, what is healed meanwhile, and what opens the gate.
import { afterEach, describe, expect, test } from 'bun:test'
import { serviceStatus } from '../../agent/messages/service-messages.ts'
import { manualGate } from '../../agent/reconcile/plan/gates/gates.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, SHOP } from '../support/reconcile-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

afterEach(stopAll)

const MANUAL = { sync: { mode: 'manual' } } as const

test.each([
  ['auto', { sync: {} }, true],
  ['auto, whatever was allowed', { sync: { mode: 'auto' }, synced: 'other' }, true],
  ['manual, nothing was approved', { sync: { mode: 'manual' } }, false],
  ['manual, another revision was allowed', { sync: { mode: 'manual' }, synced: 'other' }, false],
  ['manual, this one was', { sync: { mode: 'manual' }, synced: 'digest' }, true],
  ['a mode that this version does not know', { sync: { mode: 'window' } }, false],
])('SM1 %s', (_, row, open) => {
  const gate = manualGate(SHOP, serviceRowSchema.parse({ commit: 'abc', digest: 'digest', count: 1, ...row }))
  expect(gate === null).toBe(open)
  if (gate !== null)
    expect(gate).toEqual({
      kind: 'gated',
      ...serviceStatus('ManualSync', { digest: 'digest', commit: 'abc', service: 'shop', project: 'web' }),
    })
})

describe('a service that is synced by hand', () => {
  test('SM1 a first revision waits, and nothing of it is made, its namespace neither', async () => {
    const { cluster, kit, run, clock } = setup()
    const digest = kit.desire([configMap('a')], { ...MANUAL, namespace: 'shop' })
    await run()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', health: 'Missing', reason: 'ManualSync' })
    expect(kit.object(configMapKey('a'))?.reason).toBe('ManualSync')
    kit.desire([configMap('a')], { ...MANUAL, namespace: 'shop', synced: digest })
    await clock.settle()
    expect(writes(cluster)).toEqual(['apply Namespace shop', 'apply ConfigMap a'])
    expect(kit.service()).toMatchObject({ sync: 'Synced', reason: 'Synced', applied: { digest } })
  })

  test('SM1 DE3 a next one changes and prunes nothing before the yes, and drift is healed to the one before', async () => {
    const { cluster, kit, run, clock } = setup()
    const first = kit.desire([configMap('a'), configMap('old')])
    await run()
    writes(cluster)
    const next = kit.desire([configMap('a', { a: '2' }), configMap('new')], { ...MANUAL, synced: first })
    await clock.settle()
    cluster.editAs('kubectl', configMapRef('a'), (object) => void Object.assign(object, { data: { a: 'x' } }))
    cluster.deleteAs('kubectl', configMapRef('old'))
    await clock.settle()
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap a', 'apply ConfigMap old'])
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ a: '1' })
    expect(kit.service()).toMatchObject({ reason: 'ManualSync', applied: { digest: first } })
    kit.desire([configMap('a', { a: '2' }), configMap('new')], { ...MANUAL, synced: next })
    await clock.settle()
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap a', 'apply ConfigMap new', 'delete ConfigMap old'])
    expect(kit.service()).toMatchObject({ reason: 'Synced', applied: { digest: next } })
  })

  test('SM1 DR6 what was healed meanwhile is changed after the yes, also when the answer comes before its event', async () => {
    const { cluster, kit, run, clock } = setup()
    const first = kit.desire([configMap('a'), configMap('old')])
    await run()
    cluster.lagWatches(() => 5)
    const next = kit.desire([configMap('a', { a: '2' })], { ...MANUAL, synced: first })
    await clock.settle()
    cluster.editAs('kubectl', configMapRef('a'), (object) => void Object.assign(object, { data: { a: 'x' } }))
    await clock.advance(50)
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ a: '1' })
    expect(kit.service()).toMatchObject({ reason: 'ManualSync', applied: { digest: first } })
    expect(kit.object(configMapKey('a'))?.reason).toBe('ManualSync')
    writes(cluster)
    kit.desire([configMap('a', { a: '2' })], { ...MANUAL, synced: next })
    await clock.advance(50)
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap a', 'delete ConfigMap old'])
    expect(kit.service()).toMatchObject({ reason: 'Synced', applied: { digest: next } })
  })

  test('SM1 a revision that only drops objects drops them after the yes', async () => {
    const { cluster, kit, run, clock } = setup()
    const first = kit.desire([configMap('a'), configMap('old')])
    await run()
    writes(cluster)
    const next = kit.desire([configMap('a')], { ...MANUAL, synced: first })
    await clock.settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', reason: 'ManualSync', applied: { digest: first } })
    kit.desire([configMap('a')], { ...MANUAL, synced: next })
    await clock.settle()
    expect(writes(cluster)).toEqual(['delete ConfigMap old'])
  })

  test('SM1 back from a revision that got half way waits for a person, too', async () => {
    const { cluster, kit, run, clock } = setup()
    const one = [configMap('a'), configMap('b')]
    const two = [configMap('a', { a: '2' }), configMap('bad')]
    const first = kit.desire(one)
    await run()
    cluster.fail(({ verb, ref }) =>
      verb === 'apply' && ref?.name === 'bad' ? { kind: 'invalid', status: 422, reason: 'Invalid', message: 'no' } : null,
    )
    const synced = kit.desire(two)
    kit.desire(two, { ...MANUAL, synced })
    await clock.settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ a: '2' })
    kit.desire(one, { ...MANUAL, synced })
    await clock.settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ a: '2' })
    expect(kit.service()?.reason).toBe('ManualSync')
    kit.desire(one, { ...MANUAL, synced: first })
    await clock.settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ a: '1' })
    expect(kit.service()).toMatchObject({ reason: 'Synced', applied: { digest: first } })
  })

  test('SM1 it begins when the mode is auto again', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('a')], MANUAL)
    await run()
    kit.desire([configMap('a')])
    await clock.settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
  })

  test('SM1 what is applied goes on over a switch to manual, and a restart neither writes nor asks', async () => {
    const { cluster, kit, run, clock } = setup({ statePath: `${tempDir()}/state.db` })
    kit.desire([configMap('a')])
    await run()
    kit.desire([configMap('a')], MANUAL)
    await clock.settle()
    expect(kit.service()).toMatchObject({ sync: 'Synced', reason: 'Synced' })
    const waiting = kit.desire([configMap('a', { a: '2' })], MANUAL)
    await clock.settle()
    const before = kit.service()
    writes(cluster)
    await kit.stop()
    kit.start()
    await clock.advance(1_000)
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toEqual(before)
    expect(before).toMatchObject({ reason: 'ManualSync', received: { digest: waiting } })
  })

  test('SM1 a removal order waits for nobody', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('a')])
    await run()
    kit.desire([configMap('a', { a: '2' })], MANUAL)
    await clock.settle()
    writes(cluster)
    kit.remove('prune')
    await clock.settle()
    expect(writes(cluster)).toEqual(['delete ConfigMap a'])
  })
})
