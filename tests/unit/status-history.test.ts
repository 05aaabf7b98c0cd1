// What a change of words does to the history of a service in a cluster.
import { describe, expect, test } from 'bun:test'
import { FLAP_MS, type HistoryStep, historyNotes, historyStep } from '../../server/store/status/status-history.ts'

const commit_id = 'c1'
const healthy = { sync: 'Synced', health: 'Healthy', reason: 'Synced', commit_id } as const
const degraded = { sync: 'Synced', health: 'Degraded', reason: 'CrashLoop', commit_id } as const
const unknown = { sync: 'Unknown', health: 'Unknown', reason: '', commit_id } as const
const next = { ...healthy, commit_id: 'c2' }
const at = <T>(words: T, at_ms: number) => ({ ...words, at_ms })

describe('HI2 one row for each change', () => {
  const cases: Array<[what: string, args: Parameters<typeof historyStep>, expected: HistoryStep]> = [
    ['the first words', [undefined, undefined, healthy, 5], { kind: 'add', atMs: 5 }],
    ['the same words', [at(healthy, 5), degraded, healthy, 90_000], { kind: 'nothing' }],
    ['the same words soon after', [at(healthy, 5), degraded, healthy, 6], { kind: 'nothing' }],
    ['other words', [at(healthy, 5), undefined, degraded, 5 + FLAP_MS], { kind: 'add', atMs: 5 + FLAP_MS }],
    ['other words a moment too soon', [at(healthy, 5), undefined, degraded, 4 + FLAP_MS], { kind: 'replace' }],
    ['back again within moments', [at(degraded, 5), healthy, healthy, 6], { kind: 'take back' }],
    ['back again after that', [at(degraded, 5), healthy, healthy, 5 + FLAP_MS], { kind: 'add', atMs: 5 + FLAP_MS }],
    ['a third word within moments', [at(degraded, 5), healthy, unknown, 6], { kind: 'replace' }],
    ['only another reason', [at(healthy, 5), undefined, { ...healthy, reason: 'x' }, 90_000], { kind: 'add', atMs: 90_000 }],
    ['the same words with another commit', [at(healthy, 5), undefined, next, 90_000], { kind: 'add', atMs: 90_000 }],
    ['another commit within moments', [at(degraded, 5), healthy, next, 6], { kind: 'add', atMs: 6 }],
    ['another commit in the same millisecond', [at(degraded, 5), healthy, next, 5], { kind: 'add', atMs: 6 }],
    ['words of another commit are not taken back', [at({ ...degraded, commit_id: 'c2' }, 5), healthy, next, 6], { kind: 'replace' }],
    ['a clock that was set back', [at(healthy, 90_000), undefined, degraded, 5], { kind: 'add', atMs: 90_001 }],
  ]
  test.each(cases)('HI2 %s', (_, args, expected) => expect(historyStep(...args)).toEqual(expected))
})

test('HI2 only services have a history, and only while they say something that can be read', () => {
  const { commit_id: _, ...words } = healthy
  const doc = { ...words, message: '', sinceMs: 1, objectCount: 1, healthyCount: 1 }
  const point = (commit: string) => ({ commit, digest: 'd', atMs: 1 })
  const rows = [
    { kind: 'service', key: 'p/a', doc: { ...doc, received: point('new'), applied: point('old') } },
    { kind: 'service', key: 'p/b', doc: { ...doc, received: point('new') } },
    { kind: 'service', key: 'p/c', doc },
    { kind: 'service', key: 'p/gone', doc: null },
    { kind: 'service', key: 'p/strange', doc: { health: 'Healthy' } },
    { kind: 'object', key: 'p/a//ConfigMap/n/x', doc },
  ]
  expect(historyNotes(rows)).toEqual([
    { project: 'p', service: 'a', ...healthy, commit_id: 'old' },
    { project: 'p', service: 'b', ...healthy, commit_id: 'new' },
    { project: 'p', service: 'c', ...healthy, commit_id: null },
  ])
})
