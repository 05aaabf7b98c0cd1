// The state of the dashboard without a browser: marks, windows of long lists, pages of a list that changes, and the
// events of a stream in pieces.
import { expect, test } from 'bun:test'
import { EventReader } from '../../client/events.ts'
import { spokenOf } from '../../server/dashboard/ui/state/actions.ts'
import { filterClusters, groupClusters, sortClusters } from '../../server/dashboard/ui/state/cluster-list.ts'
import { byUrgency, MARKS, markOfCluster, markOfEvent, markOfWords, seenOf, serviceSeen } from '../../server/dashboard/ui/state/mark-of.ts'
import { newestLines } from '../../server/dashboard/ui/state/newest-lines.ts'
import { groupsOfObjects, mayOwn, objectSeen, saidOf } from '../../server/dashboard/ui/state/object-tree.ts'
import { AROUND, windowOf } from '../../server/dashboard/ui/state/window-of.ts'
import type { ChartCluster } from '../../shared/model/chart.ts'
import type { ObjectView } from '../../shared/model/views.ts'
import type { AnswerLine } from '../../shared/protocol/ask.ts'

const cluster = (change: Partial<ChartCluster>): ChartCluster => ({
  ...{ id: 'c-1', name: 'oslo', group: null, liveness: { word: 'Online', lastSeenMs: 1 }, sync: 'Synced', health: 'Healthy' },
  ...{ services: 3, bad: 0, drifts: 0, suspended: false, held: false },
  ...change,
})
const away = (word: 'Offline' | 'Revoked' | 'NeverSeen') => ({ liveness: { word, lastSeenMs: 1 } })

test.each([
  ['as Git says', {}, 'ok'],
  ['without services', { sync: null, health: null, services: 0 }, 'ok'],
  ['a service is degraded', { health: 'Degraded', drifts: 2 }, 'bad'],
  ['objects drifted', { sync: 'OutOfSync', drifts: 1 }, 'drift'],
  ['a revision is on its way', { sync: 'OutOfSync' }, 'changing'],
  ['a rollout', { health: 'Progressing' }, 'changing'],
  ['suspended, whatever is wrong there', { health: 'Degraded', suspended: true }, 'suspended'],
  ['held at the site', { held: true, suspended: true }, 'held'],
  ['offline is neither green nor red', { ...away('Offline'), health: 'Degraded' }, 'offline'],
  ['offline is neither green nor red when it was well', away('Offline'), 'offline'],
  ['never seen', away('NeverSeen'), 'unknown'],
  ['revoked', away('Revoked'), 'unknown'],
] as const)('the mark of a cluster: %s', (_, change, mark) => {
  expect(markOfCluster(cluster(change as Partial<ChartCluster>))).toBe(mark)
})

test.each([
  ['Synced', 'Healthy', '', 'ok'],
  ['Synced', 'Suspended', '', 'ok'],
  ['Synced', 'Degraded', 'CrashLoopBackOff', 'bad'],
  ['OutOfSync', 'Healthy', 'PruneBlocked', 'bad'],
  ['OutOfSync', 'Missing', 'NotReceived', 'changing'],
  ['OutOfSync', 'Missing', 'Missing', 'bad'],
  ['OutOfSync', 'Healthy', 'Drifted', 'drift'],
  ['OutOfSync', 'Healthy', 'NotReceived', 'changing'],
  ['Synced', 'Healthy', 'Suspended', 'suspended'],
  ['Unknown', 'Unknown', '', 'unknown'],
] as const)('the mark of words: %s, %s, %s', (sync, health, reason, mark) => {
  expect(markOfWords({ sync, health }, reason)).toBe(mark)
})

test.each([
  ['Normal', 'Applied', 'ok'],
  ['Normal', 'Suspended', 'suspended'],
  ['Normal', 'Held', 'held'],
  ['Warning', 'Drifted', 'drift'],
  ['Warning', 'Degraded', 'bad'],
  ['Warning', 'ClusterOffline', 'offline'],
] as const)('the mark of an event: %s, %s', (type, reason, mark) => {
  expect(markOfEvent({ type, reason })).toBe(mark)
})

const reported = (word: string, change: object = {}) => ({
  ...{ sync: 'Synced', health: 'Healthy', reason: '', liveness: { word } },
  ...change,
})
test.each([
  ['online', reported('Online'), { mark: 'ok', was: null }],
  ['offline, and well before', reported('Offline'), { mark: 'offline', was: 'ok' }],
  ['offline, and bad before', reported('Offline', { health: 'Degraded' }), { mark: 'offline', was: 'bad' }],
  ['never in contact', reported('NeverSeen', { health: 'Degraded' }), { mark: 'unknown', was: null }],
  ['revoked', reported('Revoked'), { mark: 'unknown', was: null }],
] as const)('what a cluster reported is of now only while it is in contact: %s', (_, item, seen) => {
  expect(seenOf(item)).toEqual(seen)
})

const over = (reason: string, total: number, offline: number, health = 'Healthy') => ({
  status: { sync: 'Synced', health, reason, clusters: { total, offline } },
})
test.each([
  ['in clusters that are all offline', over('LastKnown', 2, 2), 'offline', 'ok'],
  ['degraded when its clusters went offline', over('CrashLoopBackOff', 1, 1, 'Degraded'), 'offline', 'bad'],
  ['offline in some clusters', over('LastKnown', 3, 2), 'ok', null],
  ['in no cluster', over('NoTargets', 0, 0), 'ok', null],
  ['that cannot be rendered, which the server knows by itself', over('RenderFailed', 1, 1), 'bad', null],
  ['suspended, which the server knows by itself', over('Suspended', 1, 1), 'suspended', null],
] as const)('the mark of a service %s', (_, service, mark, was) => {
  expect(serviceSeen(service)).toEqual({ mark, was })
})

const object = (change: Partial<ObjectView>): ObjectView =>
  ({
    ...{
      project: 'p',
      service: 's',
      cluster: 'c',
      group: '',
      kind: 'ConfigMap',
      namespace: 'n',
      name: 'x',
      liveness: { word: 'Online', lastSeenMs: 1 },
    },
    ...{ sync: 'Synced', health: 'Healthy', reason: '', message: '', next: '', sinceMs: 1, drift: null },
    ...change,
  }) as ObjectView

test('an object of an offline cluster is neither green nor red, and shows what it was', () => {
  const drift = { action: 'reported', manager: 'm', paths: ['.a'], detectedMs: 1 } as unknown as NonNullable<ObjectView['drift']>
  expect(objectSeen(object({ drift }))).toEqual({ mark: 'drift', was: null })
  expect(objectSeen(object({ drift, liveness: { word: 'Offline', lastSeenMs: 1 } }))).toEqual({ mark: 'offline', was: 'drift' })
})

test('objects go by phase and wave, worst first in each; without an order they are one group', () => {
  const all = [
    object({ name: 'a' }),
    object({ name: 'b', health: 'Degraded' }),
    object({ name: 'job', group: 'batch', kind: 'Job' }),
    object({ name: 'late' }),
  ]
  const order = [
    { ...all[3], group: '', kind: 'ConfigMap', namespace: 'n', name: 'late', wave: 5 },
    { group: 'batch', kind: 'Job', namespace: 'n', name: 'job', wave: 0, phases: ['pre-sync' as const] },
  ]
  const shown = groupsOfObjects(all, order).map(({ phase, wave, items }) => [phase, wave, items.map(({ name }) => name)])
  expect(shown).toEqual([
    ['pre-sync', 0, ['job']],
    [null, 0, ['b', 'a']],
    [null, 5, ['late']],
  ])
  expect(groupsOfObjects(all, []).map(({ items }) => items.map(({ name }) => name))).toEqual([['b', 'job', 'a', 'late']])
})

test.each([
  ['apps', 'Deployment', 'n', true],
  ['cert-manager.io', 'Certificate', 'n', true],
  ['', 'ConfigMap', 'n', false],
  ['', 'Pod', 'n', false],
  ['', 'Namespace', '', false],
] as const)('whether an object may have children: %s %s', (_, kind, namespace, may) => {
  expect(mayOwn({ kind, namespace })).toBe(may)
})

const log = (text: string): AnswerLine => ({ t: 'log', pod: 'p', container: 'c', text })
test.each([
  ['Deployment', 'shop', 'web', 'Deployment shop/web: 1 of 2 Pods is ready', '1 of 2 Pods is ready'],
  ['Namespace', '', 'shop', 'Namespace shop: terminating', 'terminating'],
  ['Deployment', 'shop', 'web', 'Deployment shop/web-2: not ready', 'Deployment shop/web-2: not ready'],
])('a row does not repeat the name of its object: %s %s/%s', (kind, namespace, name, message, shown) => {
  expect(saidOf({ group: '', kind, namespace, name }, message)).toBe(shown)
})

test('of a log only the newest lines and characters are kept, however long a piece is', () => {
  const whole = log('3\n4\n')
  const lines = (kept: AnswerLine[]) => kept.map((one) => (one.t === 'log' ? one.text : one.t))
  expect(lines(newestLines([log('1\n2\n'), whole], { lines: 3, chars: 100 }))).toEqual(['2\n', '3\n4\n'])
  expect(newestLines([log('1\n2\n'), whole], { lines: 3, chars: 100 })[1]).toBe(whole)
  expect(lines(newestLines([log('1\n2\n'), whole], { lines: 2, chars: 100 }))).toEqual(['3\n4\n'])
  expect(lines(newestLines([log('x'.repeat(50))], { lines: 9, chars: 5 }))).toEqual(['xxxx\n'])
  expect(newestLines(Array.from({ length: 100 }, () => log('a\n'.repeat(1_000))))).toHaveLength(5)
})

test.each([
  ['web', { verbs: [], name: 'web' }],
  ['suspend oslo', { verbs: ['suspend'], name: 'oslo' }],
  ['re api', { verbs: ['resume', 'restart'], name: 'api' }],
  ['Sync  shop/web', { verbs: ['sync'], name: 'shop/web' }],
  ['s web', { verbs: [], name: 's web' }],
  ['sync', { verbs: ['sync'], name: '' }],
] as const)('a command of the palette: %s', (typed, spoken) => {
  const words = { sync: ['sync'], suspend: ['suspend', 'pause'], resume: ['resume'], restart: ['restart'] }
  expect<unknown>(spokenOf(typed, words)).toEqual(spoken)
})

test('clusters are filtered, sorted and grouped; those without the label come last', () => {
  const all = [
    cluster({ id: '1', name: 'b', group: 'eu', bad: 1, liveness: { word: 'Online', lastSeenMs: 3 }, health: 'Degraded' }),
    cluster({ id: '2', name: 'a', group: null, liveness: { word: 'Online', lastSeenMs: 2 } }),
    cluster({ id: '3', name: 'c', group: 'as', liveness: { word: 'Online', lastSeenMs: 1 } }),
  ]
  const order = (key: string, isDown = false) => sortClusters(all, { key, isDown }).map(({ name }) => name)
  expect([order('state'), order('name'), order('name', true), order('seen'), order('services')]).toEqual([
    ['b', 'a', 'c'],
    ['a', 'b', 'c'],
    ['c', 'b', 'a'],
    ['c', 'a', 'b'],
    ['b', 'a', 'c'],
  ])
  expect(groupClusters(all).map(({ name }) => name)).toEqual(['c', 'b', 'a'])
  expect(filterClusters(all, { q: '', state: 'bad', ids: null }).map(({ name }) => name)).toEqual(['b'])
  expect(filterClusters(all, { q: 'A', state: '', ids: new Set(['1', '2']) }).map(({ name }) => name)).toEqual(['a'])
})

test('lists begin with what is worst', () => {
  expect([...MARKS].sort(byUrgency).slice(0, 3)).toEqual(['bad', 'drift', 'changing'])
  expect([...MARKS].sort(byUrgency).at(-1)).toBe('ok')
})

test.each([
  ['at the top', 0, 100_000, { from: 0, to: 25 + AROUND }],
  ['below the fold', 900, 100_000, { from: 0, to: AROUND }],
  ['scrolled far', -32_000, 100_000, { from: 1_000 - AROUND, to: 1_025 + AROUND }],
  ['at the end', -3_200, 110, { from: 100 - AROUND, to: 110 }],
  ['shorter than the scroll position', -32_000, 10, { from: 10, to: 10 }],
  ['empty', 0, 0, { from: 0, to: 0 }],
] as const)('the window of a long list: %s', (_, top, count, range) => {
  expect(windowOf({ top, viewHeight: 800, rowHeight: 32, count })).toEqual(range)
})

test('events of a stream are read whole, wherever it is cut', () => {
  const text = 'retry: 2000\nid: 7\nevent: ready\ndata: {"position":7}\n\n:\nid: 9\n\nid: 10\nevent: status\ndata: {"id":10}\n\n'
  const whole = new EventReader().take(text)
  expect(whole).toEqual([
    { id: '7', event: 'ready', data: '{"position":7}' },
    { id: '9', event: '', data: '' },
    { id: '10', event: 'status', data: '{"id":10}' },
  ])
  for (let cut = 0; cut <= text.length; cut++) {
    const reader = new EventReader()
    expect([...reader.take(text.slice(0, cut)), ...reader.take(text.slice(cut))]).toEqual(whole)
  }
})
