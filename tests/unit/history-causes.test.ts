// Causes of changes: which commit or event explains a row of a history.
import { expect, test } from 'bun:test'
import { ofEvent, seenEntry, withCauses } from '../../server/fleet/history/causes.ts'
import type { FleetEvent, HistoryEntry } from '../../server/fleet/records.ts'

const MIN = 60_000
const row = (atMs: number, health: HistoryEntry['health'], commit: string | null = 'c1', reason: string = health): HistoryEntry => ({
  ...{ atMs, sync: 'Synced', health, reason, commit },
})
let id = 0
const event = (atMs: number, reason: string, message = ''): FleetEvent => ({
  ...{ id: ++id, atMs, type: 'Normal', reason, message, cluster: 'a', project: 'p', service: 'web', object: null },
})
const note = () => ({ author: 'Ana', subject: 'fix the port' })
const kinds = (rows: HistoryEntry[], events: FleetEvent[], before: HistoryEntry | null = null) =>
  withCauses(rows, before, events, note).map(({ atMs, cause }) => [atMs / MIN, cause?.kind ?? null])

test('HI6 another commit is the cause, and of what follows from its rollout', () => {
  const rows = [row(12 * MIN, 'Healthy', 'c2'), row(10 * MIN, 'Progressing', 'c2')]
  const caused = withCauses(rows, row(1, 'Healthy'), [], note)
  expect(caused.map(({ cause }) => [cause?.text, cause?.by])).toEqual([
    ['commit c2: fix the port (Ana)', 'Ana'],
    ['commit c2: fix the port (Ana)', 'Ana'],
  ])
})

test.each([
  ['person', 'Suspended', 'by ana: night shift', 'ana'],
  ['person', 'Confirmed', 'by user ana@example.com', 'ana@example.com'],
  ['drift', 'Drifted', 'Deployment shop/web: changed by kubectl-edit', 'kubectl-edit'],
  ['hook', 'HookFailed', 'Job shop/migrate', null],
  ['removal', 'RemovalOrdered', 'prune in a, by ana: targets', 'ana'],
  ['relabel', 'ClusterRelabelled', 'env: test to prod, by ana', 'ana'],
  ['gate', 'PruneBlocked', 'the guard holds 9 deletions', null],
  ['cluster', 'ClusterOnline', 'back after 2h', null],
] as const)('HI6 an event of kind %s (%s) near the change is its cause', (kind, reason, message, by) => {
  const [first] = withCauses([row(20 * MIN, 'Degraded')], row(1, 'Healthy'), [event(19 * MIN, reason, message)], note)
  expect(first?.cause).toMatchObject({ kind, by })
})

test('HI6 the event with the reason of the state comes first, then the nearest one before the change', () => {
  const rows = [row(20 * MIN, 'Suspended', 'c1', 'Suspended')]
  const events = [event(15 * MIN, 'Suspended', 'by ana'), event(19 * MIN, 'DriftHealed')]
  expect(kinds(rows, events, row(1, 'Healthy'))).toEqual([[20, 'person'], [19, 'drift']]) // biome-ignore format: a table
  expect(kinds([row(20 * MIN, 'Degraded')], [event(0, 'Held'), event(20.5 * MIN, 'HookFailed')], row(1, 'Healthy'))).toEqual([[20, 'hook']])
})

test('HI6 a drift that was corrected at once is an entry with the state of that time', () => {
  const [drift, last] = withCauses([row(5 * MIN, 'Healthy')], null, [event(30 * MIN, 'DriftHealed', 'by kubectl')], note)
  expect(drift).toMatchObject({ atMs: 30 * MIN, health: 'Healthy', commit: 'c1', cause: { kind: 'drift' } })
  expect(last?.cause?.kind).toBe('commit')
})

test('HI6 without a fact the objects themselves are the cause, and nothing is made up', () => {
  expect(kinds([row(20 * MIN, 'Degraded', 'c1', 'CrashLoop')], [], row(1, 'Healthy'))).toEqual([[20, 'workload']])
  expect(kinds([row(20 * MIN, 'Healthy', 'c1', 'OutsideWindow')], [], row(1, 'Healthy'))).toEqual([[20, 'gate']])
  expect(kinds([row(20 * MIN, 'Healthy', 'c1', 'Synced')], [], row(1, 'Healthy'))).toEqual([[20, null]])
})

test('HI9 a kept cause needs no event, takes its event out of the list, and is seen by whoever may read that event', () => {
  const offline = { ...event(20 * MIN, 'ClusterOnline', 'back after 2h'), project: null, service: null }
  const kept = ofEvent(offline)
  const rows = [{ ...row(20 * MIN, 'Healthy'), kept }]
  for (const events of [[], [offline]]) {
    const entries = withCauses(rows, row(1, 'Healthy'), events, note)
    expect(entries.map(({ cause }) => [cause?.kind, cause?.of])).toEqual([['cluster', 'cluster']])
    const [entry] = entries
    expect(entry && seenEntry(entry, () => true).cause).toEqual({
      kind: 'cluster',
      text: kept.text,
      by: kept.by,
      atMs: 20 * MIN,
      object: null,
    })
    expect(entry && seenEntry(entry, (of) => of === 'placement').cause).toBeNull()
  }
})
