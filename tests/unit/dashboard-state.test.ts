// The state of the dashboard without a browser: marks, windows of long lists, pages of a list that changes, and the events of a stream in pieces.
import { expect, test } from 'bun:test'
import { EventReader } from '../../client/events.ts'
import { byUrgency, MARKS, markOfCluster, markOfWords } from '../../server/dashboard/ui/state/mark-of.ts'
import { AROUND, windowOf } from '../../server/dashboard/ui/state/window-of.ts'
import type { ChartCluster } from '../../shared/model/chart.ts'

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
  ['OutOfSync', 'Healthy', 'PruneRefused', 'bad'],
  ['OutOfSync', 'Missing', 'NotReceived', 'changing'],
  ['OutOfSync', 'Missing', 'Missing', 'bad'],
  ['OutOfSync', 'Healthy', 'Drifted', 'drift'],
  ['OutOfSync', 'Healthy', 'NotReceived', 'changing'],
  ['Synced', 'Healthy', 'Suspended', 'suspended'],
  ['Unknown', 'Unknown', '', 'unknown'],
] as const)('the mark of words: %s, %s, %s', (sync, health, reason, mark) => {
  expect(markOfWords({ sync, health }, reason)).toBe(mark)
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
