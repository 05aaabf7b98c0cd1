// HE24: a CronJob whose controller starts no run any more.
import { afterEach, expect, test } from 'bun:test'
import { healthOf } from '../../shared/kube/health.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { requests, setup, stopAll } from '../support/reconcile-fixtures.ts'

afterEach(stopAll)

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

interface Case {
  spec: Record<string, unknown>
  last?: string
  succeeded?: string
  active?: unknown[]
  created?: string
  changed?: string
}

const cronJob = ({ spec, last, succeeded = last, active, created = '2026-01-01T00:00:00Z', changed }: Case): K8sObject =>
  ({
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: {
      name: 'nightly',
      namespace: 'default',
      creationTimestamp: created,
      ...(changed === undefined ? {} : { managedFields: [{ manager: 'skerry', operation: 'Apply', time: changed }] }),
    },
    spec,
    status: { lastScheduleTime: last, lastSuccessfulTime: succeeded, active },
  }) as unknown as K8sObject

test.each<[string, Case, string]>([
  ['every five minutes', { spec: { schedule: '*/5 * * * *' }, last: '2026-03-10T12:00:00Z' }, '2026-03-10T12:15:00Z'],
  ['a macro', { spec: { schedule: '@hourly' }, last: '2026-03-10T12:00:00Z' }, '2026-03-10T13:10:00Z'],
  [
    'a time zone, over the hour that is skipped',
    { spec: { schedule: '30 3 * * *', timeZone: 'Europe/Berlin' }, last: '2026-03-28T02:30:00Z' },
    '2026-03-29T01:40:00Z',
  ],
  [
    'no time zone: that of the last run, with an hour for its summer time',
    { spec: { schedule: '0 2 * * *' }, last: '2026-03-10T07:00:00Z' },
    '2026-03-11T08:10:00Z',
  ],
  [
    'no time zone and no run: the last zone to reach it',
    { spec: { schedule: '0 2 * * *' }, created: '2026-03-10T12:00:00Z' },
    '2026-03-11T13:10:00Z',
  ],
  [
    'a starting deadline that is longer',
    { spec: { schedule: '0 * * * *', startingDeadlineSeconds: 1_800 }, last: '2026-03-10T12:00:00Z' },
    '2026-03-10T13:30:00Z',
  ],
  [
    'a long run: from its end',
    { spec: { schedule: '0 * * * *' }, last: '2026-03-10T12:00:00Z', succeeded: '2026-03-10T15:20:00Z' },
    '2026-03-10T16:10:00Z',
  ],
  [
    'a schedule that was changed, or resumed',
    { spec: { schedule: '0 * * * *' }, last: '2026-03-01T12:00:00Z', changed: '2026-03-10T12:30:00Z' },
    '2026-03-10T13:10:00Z',
  ],
])('HE24 %s', (_, given, missedAt) => {
  const object = cronJob(given)
  const missedMs = Date.parse(missedAt)
  const before = healthOf(object, missedMs - 1_000)
  const after = healthOf(object, missedMs)
  expect(after).toMatchObject({ word: 'Degraded', reason: 'ScheduleMissed' })
  expect(before).toEqual({ word: 'Healthy', reason: 'Healthy', message: '', settles: { atMs: missedMs, health: after } })
})

test.each<[string, Case, string]>([
  ['suspended', { spec: { schedule: '0 * * * *', suspend: true }, last: '2026-03-01T12:00:00Z' }, 'Suspended'],
  ['with an active run', { spec: { schedule: '0 * * * *' }, last: '2026-03-01T12:00:00Z', active: [{ name: 'x' }] }, 'Healthy'],
  ['with a schedule of another form', { spec: { schedule: '@every 1h' }, last: '2026-03-01T12:00:00Z' }, 'Healthy'],
  ['with an unknown time zone', { spec: { schedule: '0 * * * *', timeZone: 'Mars/Base' }, last: '2026-03-01T12:00:00Z' }, 'Healthy'],
  ['that never comes', { spec: { schedule: '0 0 30 2 *' }, last: '2026-03-01T12:00:00Z' }, 'Healthy'],
])('HE24 a CronJob %s misses nothing', (_, given, word) => {
  const health = healthOf(cronJob(given), Date.parse('2026-05-01T00:00:00Z'))
  expect([health.word, health.settles]).toEqual([word as typeof health.word, undefined])
})

test('HE24 the agent says it without an event, after hours, and takes it back with the next run', async () => {
  const ref: ObjectRef = { group: 'batch', kind: 'CronJob', namespace: 'default', name: 'nightly' }
  const { cluster, clock, kit, run, settle } = setup()
  const at = (ms: number) => new Date(ms).toISOString()
  const { status: _, ...object } = cronJob({ spec: { schedule: '0 * * * *' }, created: at(clock.nowMs()) }) as K8sObject & {
    status: unknown
  }
  kit.desire([object as K8sObject])
  await run()
  const first = Math.ceil(clock.nowMs() / HOUR_MS) * HOUR_MS
  await clock.advance(first - clock.nowMs())
  cluster.setStatus(ref, { lastScheduleTime: at(first), lastSuccessfulTime: at(first) })
  await settle()
  requests(cluster)
  await clock.advance(HOUR_MS + 9 * MINUTE_MS)
  expect(kit.object('batch/CronJob/default/nightly')?.health).toBe('Healthy')
  expect(requests(cluster)).toEqual([])
  await clock.advance(MINUTE_MS)
  expect(kit.object('batch/CronJob/default/nightly')).toMatchObject({ health: 'Degraded', reason: 'ScheduleMissed' })
  const second = first + HOUR_MS
  cluster.setStatus(ref, { lastScheduleTime: at(second), lastSuccessfulTime: at(second + 11 * MINUTE_MS) })
  await settle()
  expect(kit.object('batch/CronJob/default/nightly')?.health).toBe('Healthy')
})
