// Deadlines that fail something for good, under a clock that somebody sets: only time that passed in this process
// counts.
import { afterEach, describe, expect, test } from 'bun:test'
import { orderText } from '../../agent/messages/service-messages.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { deployment, hook, hooked, ready } from '../support/hook-fixtures.ts'
import { stopAll, track, writes } from '../support/reconcile-fixtures.ts'
import { configMap, createReconcileKit } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

afterEach(stopAll)

const TEN_YEARS_MS = 315_576_000_000
const MINUTE_MS = 60_000

/** A process whose date can be set, beside the time that passes. */
function setupSite() {
  const world = createVirtualClock()
  const clock = world.process(0)
  const cluster = createFakeCluster({ clock })
  const kit = createReconcileKit({ cluster, clock })
  track(kit)
  const settle = () => world.advance(50)
  const run = async () => {
    kit.start()
    await settle()
  }
  /** Something of the service changes, so that it has a turn under the new date. */
  const poke = async () => {
    kit.reconciler.revisionsChanged([{ project: 'web', service: 'shop' }])
    await settle()
  }
  return { world, clock, cluster, kit, settle, run, poke }
}

const SYNC = { sync: { healthDeadline: '10m' } }
const preSync = () => [hooked(deployment('gate'), 'pre-sync'), configMap('a')]

describe.each([
  ['forward', TEN_YEARS_MS],
  ['back', -TEN_YEARS_MS],
])('a clock that is set %s by ten years', (_, byMs) => {
  test('RC17, HK4 fails no hook that has a deadline, and the hook is late when that time has passed', async () => {
    const { world, clock, cluster, kit, run, poke, settle } = setupSite()
    kit.desire(preSync(), SYNC)
    await run()
    expect(writes(cluster)).toEqual(['apply Deployment gate'])
    clock.setBy(byMs)
    await poke()
    await world.advance(9 * MINUTE_MS)
    expect(kit.service()?.reason).toBe('WaitingForHook')
    ready(cluster, 'gate')
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
  })

  test('RC17, HK4 a hook that never gets well is late after its deadline, and not later', async () => {
    const { world, clock, kit, run, poke } = setupSite()
    kit.desire(preSync(), SYNC)
    await run()
    clock.setBy(byMs)
    await poke()
    await world.advance(10 * MINUTE_MS)
    expect(kit.service()).toMatchObject({ reason: 'HookFailed', health: 'Degraded' })
    expect(kit.service()?.message).toMatch(said(orderText('run_overdue', { why: SOME })))
  })

  test('RC17, HK4 over a restart a hook has a minute at least, and its deadline at most', async () => {
    const { world, clock, kit, run } = setupSite()
    kit.desire(preSync(), SYNC)
    await run()
    await kit.stop()
    clock.setBy(byMs)
    await run()
    await world.advance(MINUTE_MS - 1_000)
    expect(kit.service()?.reason).toBe('WaitingForHook')
    await world.advance(10 * MINUTE_MS)
    expect(kit.service()?.reason).toBe('HookFailed')
  })

  test('RC17, HK4 starts no sync-fail hook for an object before its deadline has passed', async () => {
    const { world, clock, cluster, kit, run, poke, settle } = setupSite()
    kit.desire([hook('rescue', 'sync-fail'), deployment('web')], SYNC)
    await run()
    clock.setBy(byMs)
    await poke()
    await world.advance(9 * MINUTE_MS)
    expect(writes(cluster)).toEqual(['apply Deployment web'])
    await world.advance(2 * MINUTE_MS)
    expect(writes(cluster)).toEqual(['apply Job rescue'])
    await settle()
  })

  test('RC17, HK4 over a restart no sync-fail hook starts at once', async () => {
    const { world, clock, cluster, kit, run } = setupSite()
    kit.desire([hook('rescue', 'sync-fail'), deployment('web')], SYNC)
    await run()
    await kit.stop()
    clock.setBy(byMs)
    await run()
    await world.advance(MINUTE_MS - 1_000)
    expect(writes(cluster)).toEqual(['apply Deployment web'])
    await world.advance(10 * MINUTE_MS)
    expect(writes(cluster)).toEqual(['apply Job rescue'])
  })
})
