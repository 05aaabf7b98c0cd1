// A service without hooks and waves has no phases: nothing of its turns finds, keeps or asks for a position in an
// order.
import { afterEach, expect, spyOn, test } from 'bun:test'
import * as phaseRounds from '../../agent/reconcile/apply/phase-rounds.ts'
import * as phases from '../../agent/reconcile/plan/order/phases.ts'
import { HookBook } from '../../agent/reconcile/snapshot/hooks.ts'
import { waved } from '../support/hook-fixtures.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, SHOP } from '../support/reconcile-kit.ts'

function watchOrder() {
  const spies = [
    spyOn(phaseRounds, 'phaseRounds'),
    spyOn(phaseRounds, 'removalHookRounds'),
    spyOn(phases, 'positionOf'),
    spyOn(phases, 'orderGate'),
    spyOn(HookBook.prototype, 'setRun'),
  ]
  const calls = (): number => spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0)
  return { calls, restore: () => void spies.map((spy) => spy.mockRestore()) }
}
let order: ReturnType<typeof watchOrder>
afterEach(() => {
  order.restore()
  return stopAll()
})

test('OR3 a service without hooks and waves is applied, changed, healed, pruned and removed without an order', async () => {
  order = watchOrder()
  const { cluster, kit, run, settle } = setup()
  kit.desire([configMap('a'), configMap('b')])
  await run()
  await settle()
  kit.desire([configMap('a', { a: '2' })])
  await settle()
  cluster.deleteAs('kubectl', { group: '', kind: 'ConfigMap', namespace: 'default', name: 'a' })
  await settle()
  kit.remove('prune')
  await settle()
  expect(order.calls()).toBe(0)
  expect(kit.state.facts(SHOP, 'hook/').size).toBe(0)
})

test('OR3 a service whose waves went is in no order from the revision on that has none', async () => {
  order = watchOrder()
  const { kit, run, settle } = setup()
  kit.desire([configMap('a'), waved(configMap('b'), 1)])
  await run()
  await settle()
  expect(order.calls()).toBeGreaterThan(0)
  kit.desire([configMap('a'), configMap('b')])
  await settle()
  order.restore()
  order = watchOrder()
  kit.desire([configMap('a', { a: '3' }), configMap('b')])
  await settle()
  expect(order.calls()).toBe(0)
})
