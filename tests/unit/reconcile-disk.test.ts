// A state that cannot be written for a while: what the file says is what counts, and nothing is stuck when there is
// space again.
import { afterEach, expect, test } from 'bun:test'
import type { AgentState } from '../../agent/state/agent-state.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, configMaps } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const [A, Z]: [ServiceId, ServiceId] = [
  { project: 'web', service: 'a' },
  { project: 'web', service: 'z' },
]

/** The next call finds no space. Says whether there was one. */
function failOnce(state: AgentState, method: 'recordApplied' | 'narrowInventory' | 'widenInventory' | 'report'): () => boolean {
  let failed = false
  const original = state[method].bind(state) as (...args: unknown[]) => never
  Object.assign(state, {
    [method]: () => {
      failed = true
      Object.assign(state, { [method]: original })
      throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
    },
  })
  return () => failed
}

test('RP4 IV1 what was applied and could not be written down is written down later', async () => {
  const { kit, run, clock } = setup()
  kit.desire(configMaps(250), {}, A)
  const failed = failOnce(kit.state, 'recordApplied')
  await run()
  await clock.advance(120_000)
  expect(failed()).toBe(true)
  expect(kit.state.inventory(A).every(({ appliedDoc }) => appliedDoc !== null)).toBe(true)
  expect(kit.service(A)).toMatchObject({ sync: 'Synced', health: 'Healthy' })
})

test('RP4 IV2 what was pruned and could not be written down is free for another service', async () => {
  const { cluster, kit, run, clock } = setup()
  kit.desire([configMap('x'), configMap('own')], {}, A)
  kit.desire([configMap('other')], {}, Z)
  await run()
  failOnce(kit.state, 'narrowInventory')
  kit.desire([configMap('own')], {}, A)
  await clock.advance(5_000)
  kit.desire([configMap('other'), configMap('x')], {}, Z)
  await clock.advance(120_000)
  expect(kit.state.inventory(A)).toHaveLength(1)
  expect(kit.object(configMapKey('x'), Z)).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  expect(writes(cluster).filter((line) => line === 'delete ConfigMap x')).toHaveLength(1)
})

test.each(['widenInventory', 'report'] as const)('RP4 a %s that found no space is made up for', async (method) => {
  const { kit, run, clock } = setup()
  kit.desire([configMap('x')], {}, A)
  await run()
  failOnce(kit.state, method)
  kit.desire([configMap('x', { v: '2' }), configMap('y')], {}, A)
  await clock.advance(120_000)
  expect(kit.service(A)).toMatchObject({ sync: 'Synced', health: 'Healthy', objectCount: 2 })
  expect(kit.object(configMapKey('y'), A)).toMatchObject({ sync: 'Synced' })
})

test('RP4 DR9 a note of what others took that found no space ends no watch', async () => {
  const { cluster, kit, run, settle, clock } = setup()
  kit.desire([configMap('x', { tuned: '1', b: '1' })], { ignore: [{ kind: 'ConfigMap', jsonPointers: ['/data/tuned'] }] }, A)
  await run()
  const failed = failOnce(kit.state, 'recordApplied')
  cluster.patchAs('tuner', configMapRef('x'), { data: { tuned: '2' } })
  await settle()
  expect(failed()).toBe(true)
  await clock.advance(120_000)
  cluster.patchAs('somebody', configMapRef('x'), { data: { b: '2' } })
  await settle()
  expect(cluster.object(configMapRef('x'))?.['data']).toEqual({ tuned: '2', b: '1' })
  expect(kit.service(A)).toMatchObject({ sync: 'Synced', health: 'Healthy' })
})
