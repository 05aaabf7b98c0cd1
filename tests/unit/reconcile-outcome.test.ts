import { describe, expect, test } from 'bun:test'
import { objectText } from '../../agent/messages/object-messages.ts'
import { serviceText } from '../../agent/messages/service-messages.ts'
import { objectStatus, type ServiceFacts, serviceStatus } from '../../agent/reconcile/report/outcome.ts'
import type { Problem } from '../../agent/reconcile/snapshot/situation.ts'
import { isRelevantChange } from '../../agent/reconcile/snapshot/watch/live-object.ts'
import { HEALTHY } from '../../shared/kube/health.ts'
import type { ObjectStatus } from '../../shared/model/status.ts'
import { configMapRef } from '../support/reconcile-kit.ts'

const present = {
  kind: 'present',
  live: {
    uid: 'u',
    resourceVersion: '1',
    ownedHash: 'h',
    health: HEALTHY,
    deleting: null,
    keep: null,
    owner: { kind: 'none' },
    images: null,
  },
} as const
const failed: Problem = {
  kind: 'failed',
  failure: { kind: 'immutable', status: 422, reason: 'Invalid', message: 'spec.selector: field is immutable' },
  attempt: 0,
  retryAtMs: null,
  sent: 'x',
}
const facts = (problem: Problem | null, view: Parameters<typeof objectStatus>[0]['view'] = present) => ({
  view,
  problem,
  progressingSinceMs: null,
  deadlineMs: 600_000,
})

test.each([
  ['as wanted', facts(null), ['Synced', 'Healthy', 'Healthy', '']],
  [
    'refused',
    facts(failed),
    ['OutOfSync', 'Healthy', 'Immutable', objectText('Immutable', { failure: 'spec.selector: field is immutable' })],
  ],
  ['not there', facts({ kind: 'waiting', on: 'x', message: 'w' }, { kind: 'absent' }), ['OutOfSync', 'Missing', 'Waiting', 'w']],
  ['not watched', facts({ kind: 'unknown' }, { kind: 'unknown' }), ['Unknown', 'Unknown', 'NotWatched', objectText('NotWatched')]],
  [
    'contested',
    facts({ kind: 'contested', drift: '.spec.replicas changed by hpa', untilMs: 1 }),
    ['OutOfSync', 'Healthy', 'Contested', objectText('Contested', { drift: '.spec.replicas changed by hpa' })],
  ],
] as const)('RC13 an object that is %s', (_, input, expected) => {
  const { sync, health, reason, message } = objectStatus(input, null, 5)
  expect([sync, health, reason, message]).toEqual([...expected])
})

test('RC13 an object of another owner is there: its health is Unknown and not Missing, unless it is going', () => {
  const owned = (going?: string) =>
    facts(
      { kind: 'owned', owner: 'service web/shop', attempt: 0, retryAtMs: 0, ...(going === undefined ? {} : { going }) },
      { kind: 'absent' },
    )
  expect(objectStatus(owned(), null, 5)).toMatchObject({ sync: 'OutOfSync', health: 'Unknown', reason: 'OwnedByOther' })
  expect(objectStatus(owned('a finalizer keeps it'), null, 5)).toMatchObject({ health: 'Missing', reason: 'Waiting' })
})

test('RC13 of what is to go nobody says that it is missing', () => {
  const absent = { ...facts(null, { kind: 'absent' }), leaves: true }
  expect(objectStatus(absent, null, 5)).toMatchObject({ health: 'Progressing', reason: 'Removing' })
  expect(objectStatus({ ...absent, leaves: false }, null, 5)).toMatchObject({ sync: 'OutOfSync', health: 'Missing', reason: 'Missing' })
})

test('RC13 the time of a state is kept as long as sync, health and reason are the same', () => {
  const first = objectStatus(facts(null), null, 5)
  expect(objectStatus(facts(null), first, 9).sinceMs).toBe(5)
  expect(objectStatus(facts(failed), first, 9).sinceMs).toBe(9)
})

test('RC18 what is there names its images, what is gone or not watched names none', () => {
  const running = { ...present, live: { ...present.live, images: ['app:1', 'web:2'] } }
  expect(objectStatus(facts(null, running), null, 5).images).toEqual(['app:1', 'web:2'])
  for (const view of [present, { kind: 'absent' }, { kind: 'unknown' }] as const)
    expect(objectStatus(facts(null, view), null, 5)).not.toHaveProperty('images')
})

test('RC18 another image is news, and no other state', () => {
  const of = (...images: string[]) => ({ ...present, live: { ...present.live, images } })
  const [before, now] = [of('app:1'), of('app:2')]
  expect(isRelevantChange(before.live, now.live)).toBe(true)
  expect(isRelevantChange(before.live, of('app:1').live)).toBe(false)
  expect(objectStatus(facts(null, now), objectStatus(facts(null, before), null, 5), 9)).toMatchObject({ images: ['app:2'], sinceMs: 5 })
})

const ok: ObjectStatus = { sync: 'Synced', health: 'Healthy', reason: 'Healthy', message: '', sinceMs: 0 }
const bad: ObjectStatus = { ...ok, sync: 'OutOfSync', reason: 'Invalid', message: 'no' }
const slow: ObjectStatus = { ...ok, health: 'Progressing', reason: 'LessReplicas', message: '1 of 2' }
const gone: ObjectStatus = { ...ok, sync: 'OutOfSync', health: 'Progressing', reason: 'Removing', message: 'it is gone' }
const objects = (...statuses: ObjectStatus[]) => statuses.map((status, i) => ({ ref: configMapRef(`m${9 - i}`), status, desired: true }))
const service = (change: Partial<ServiceFacts>): ServiceFacts => ({
  revision: { kind: 'complete', commit: 'c', digest: 'd', count: 2 },
  objects: objects(ok, ok),
  leaving: null,
  refusal: null,
  received: null,
  state: { applied: null, healthy: null },
  removal: { kind: 'none' },
  ...change,
})
const refusal = { digest: 'd', names: ['a', 'b', 'c', 'd', 'e', 'f'], count: 6, ownedCount: 6, why: 'too many' }

describe('HE3 a service is as well as its worst object', () => {
  test.each([
    ['all well', {}, 'Synced', 'Healthy', 'Synced', ''],
    [
      'two of three wrong: the first by name speaks for both',
      { objects: objects(ok, bad, bad) },
      'OutOfSync',
      'Healthy',
      'Invalid',
      'ConfigMap default/m7: no (and 1 more)',
    ],
    ['one on its way', { objects: objects(ok, slow) }, 'Synced', 'Progressing', 'LessReplicas', 'ConfigMap default/m8: 1 of 2'],
    [
      'out of sync speaks before health',
      { objects: objects(slow, bad) },
      'OutOfSync',
      'Progressing',
      'Invalid',
      'ConfigMap default/m8: no',
    ],
    [
      'a refused prune speaks before objects',
      { refusal, objects: objects(bad) },
      'OutOfSync',
      'Healthy',
      'PruneBlocked',
      serviceText('PruneBlocked', { why: 'too many', names: 'a, b, c, d, e and 1 more' }),
    ],
    ['a prune that waits', { leaving: { count: 1, why: 'w' } }, 'OutOfSync', 'Healthy', 'PrunePending', 'w'],
    ['removed', { removal: { kind: 'done', orderMs: 5 }, objects: [] }, 'Synced', 'Healthy', 'Removed', ''],
    [
      'being removed: what is left, not what is missing',
      { removal: { kind: 'running' }, leaving: { count: 2, why: 'being deleted: Namespace web' }, objects: objects(gone) },
      'OutOfSync',
      'Progressing',
      'Removing',
      'being deleted: Namespace web',
    ],
    [
      'being removed: what keeps an object is said',
      { removal: { kind: 'running' }, leaving: { count: 1, why: 'w' }, objects: objects(bad) },
      'OutOfSync',
      'Healthy',
      'Removing',
      'ConfigMap default/m9: no',
    ],
    ['no row', { revision: { kind: 'unclaimed' } }, 'Unknown', 'Healthy', 'Unclaimed', serviceText('Unclaimed')],
  ] as const)('HE3 %s', (_, change, sync, health, reason, message) => {
    expect(serviceStatus(service(change as Partial<ServiceFacts>), null, 7)).toMatchObject({ sync, health, reason, message })
  })
  test('RC13 the order in which objects are met changes nothing', () => {
    const some = objects(bad, slow, ok, bad)
    expect(serviceStatus(service({ objects: some }), null, 7)).toEqual(serviceStatus(service({ objects: [...some].reverse() }), null, 7))
  })
})
