// Events of a service that stops being well and is well again.
import { afterEach, expect, test } from 'bun:test'
import { news } from '../../agent/messages/event-messages.ts'
import { healthTurn } from '../../agent/reconcile/report/health-events.ts'
import type { HealthWord } from '../../shared/kube/health-object.ts'
import type { ObjectStatus, ServiceStatus } from '../../shared/model/status.ts'
import { deployment, deploymentRef, ready } from '../support/hook-fixtures.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMapRef, type ReconcileKit } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const service = (health: HealthWord): ServiceStatus => ({
  sync: 'Synced',
  health,
  reason: 'R',
  message: 'what the service says',
  sinceMs: 0,
  objectCount: 1,
  healthyCount: 0,
})
const object = (name: string, health: HealthWord, message: string) => ({
  ref: configMapRef(name),
  status: { sync: 'Synced', health, reason: 'X', message, sinceMs: 0 } as ObjectStatus,
})
const ILL = [object('c', 'Degraded', 'third'), object('b', 'Degraded', 'second'), object('a', 'Healthy', 'first')]

test.each<[string, boolean, HealthWord | null, HealthWord, ReturnType<typeof object>[], boolean, string | null]>([
  ['begins', false, 'Progressing', 'Degraded', ILL, true, 'Degraded: ConfigMap default/b: second (and 1 more)'],
  ['begins at once', false, null, 'Degraded', ILL.slice(0, 1), true, 'Degraded: ConfigMap default/c: third'],
  ['begins with a hook that left no object', false, 'Healthy', 'Degraded', [], true, 'Degraded: what the service says'],
  ['lasts', true, 'Degraded', 'Degraded', ILL, true, null],
  ['was told before a kill, or by an agent before this one', false, 'Degraded', 'Degraded', ILL, true, null],
  ['is on its way', true, 'Degraded', 'Progressing', [], true, null],
  ['falls back', true, 'Progressing', 'Degraded', ILL, true, null],
  ['cannot be seen', true, 'Degraded', 'Unknown', [], true, null],
  ['ends', true, 'Progressing', 'Healthy', [], false, `Healthy: ${news('Healthy').message}`],
  ['ends suspended', true, 'Degraded', 'Suspended', [], false, `Healthy: ${news('Healthy').message}`],
  ['had ended before a kill', true, 'Healthy', 'Healthy', [], false, null],
  ['never was', false, 'Progressing', 'Healthy', [], false, null],
])('HE11 what %s', (_, wasDegraded, before, now, objects, isDegraded, said) => {
  const previous = before === null ? null : service(before)
  const turn = healthTurn({ wasDegraded, previous, now: service(now), objects })
  expect(turn.isDegraded).toBe(isDegraded)
  expect(turn.event === null ? null : `${turn.event.reason}: ${turn.event.message}`).toBe(said)
})

const told = (kit: ReconcileKit) =>
  kit.events().flatMap(({ type, reason, service }) => (['Degraded', 'Healthy'].includes(reason) ? [`${type} ${reason} ${service}`] : []))

test('HE11 a rollout that hangs is told once, also after a restart, and so is its end', async () => {
  const { cluster, kit, run, settle, clock } = setup()
  kit.desire([deployment('web')], { sync: { healthDeadline: '2m' } })
  await run()
  expect(told(kit)).toEqual([])
  await clock.advance(121_000)
  expect(kit.service()?.health).toBe('Degraded')
  expect(told(kit)).toEqual(['Warning Degraded web/shop'])
  await kit.stop()
  kit.start()
  await clock.advance(10_000)
  expect(told(kit)).toEqual(['Warning Degraded web/shop'])
  cluster.setStatus(deploymentRef('web'), { observedGeneration: 1, replicas: 1 })
  await settle()
  await kit.stop()
  ready(cluster, 'web')
  kit.start()
  await clock.advance(10_000)
  expect(kit.service()?.health).toBe('Healthy')
  expect(told(kit)).toEqual(['Warning Degraded web/shop', 'Normal Healthy web/shop'])
})
