import { expect, test } from 'bun:test'
import { beginSync, HALTING_CODES, inContact, type SyncEvent, stepSync, turnOf } from '../../agent/sync/sync-state.ts'
import type { ErrorCode } from '../../shared/runtime/error.ts'
import { ERRORS } from '../../shared/runtime/error-table.ts'
import { buckets, EVENTS, failure, follow, STATES, shown, shownTask, unproven } from '../support/sync-states.ts'

// Every cell: what the state becomes, then what is done. `same` is the very same state. A missing cell does not
// compile.
const TABLE: Record<keyof typeof STATES, Record<SyncEvent['kind'], string>> = {
  joining: {
    joined: 'bare buckets, drop_parts',
    page_applied: 'same, back_off',
    page_discarded: 'same, back_off',
    page_refused: 'same, back_off',
    nothing_new: 'same, back_off',
    must_refetch: 'same, back_off',
    transfer_began: 'same, back_off',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'same',
    restore_pending: 'same, back_off',
    failed: 'offline joining, back_off',
    refused: 'halted joining, rest',
  },
  buckets: {
    joined: 'bare buckets, drop_parts',
    page_applied: 'unproven, tell',
    page_discarded: 'same, back_off',
    page_refused: 'whole',
    nothing_new: 'same, back_off',
    must_refetch: 'same, back_off',
    transfer_began: 'parts of buckets',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'bare buckets',
    restore_pending: 'pending buckets, back_off',
    failed: 'offline buckets, back_off',
    refused: 'halted buckets, rest',
  },
  bare: {
    joined: 'bare buckets, drop_parts',
    page_applied: 'unproven, tell',
    page_discarded: 'same, back_off',
    page_refused: 'bare whole',
    nothing_new: 'same, back_off',
    must_refetch: 'same, back_off',
    transfer_began: 'parts of bare buckets',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'bare buckets',
    restore_pending: 'pending bare buckets, back_off',
    failed: 'offline bare buckets, back_off',
    refused: 'halted bare buckets, rest',
  },
  whole: {
    joined: 'bare buckets, drop_parts',
    page_applied: 'unproven, tell',
    page_discarded: 'same, back_off',
    page_refused: 'whole, back_off',
    nothing_new: 'same, back_off',
    must_refetch: 'same, back_off',
    transfer_began: 'parts of whole',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'bare whole',
    restore_pending: 'pending whole, back_off',
    failed: 'offline whole, back_off',
    refused: 'halted whole, rest',
  },
  following: {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, tell',
    page_discarded: 'same, back_off',
    page_refused: 'buckets, back_off',
    nothing_new: 'following, sleep 7',
    must_refetch: 'buckets',
    transfer_began: 'parts of following',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'bare buckets',
    restore_pending: 'pending following, back_off',
    failed: 'offline following, back_off',
    refused: 'halted following, rest',
  },
  unproven: {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, tell',
    page_discarded: 'same, back_off',
    page_refused: 'buckets, rest',
    nothing_new: 'following, sleep 7',
    must_refetch: 'buckets, rest',
    transfer_began: 'parts of unproven',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'bare buckets, rest',
    restore_pending: 'pending unproven, back_off',
    failed: 'offline unproven, back_off',
    refused: 'halted unproven, rest',
  },
  again: {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, tell',
    page_discarded: 'same, back_off',
    page_refused: 'buckets, back_off',
    nothing_new: 'following, sleep 7',
    must_refetch: 'buckets',
    transfer_began: 'parts of following again',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'bare buckets',
    restore_pending: 'pending following again, back_off',
    failed: 'offline following again, back_off',
    refused: 'halted following again, rest',
  },
  'parts of buckets': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'unproven, drop_parts, tell',
    page_discarded: 'buckets, drop_parts, back_off',
    page_refused: 'whole, drop_parts',
    nothing_new: 'same, back_off',
    must_refetch: 'same, back_off',
    transfer_began: 'same, back_off',
    part_staged: 'parts of buckets',
    transfer_gone: 'buckets again, drop_parts',
    replica_damaged: 'parts of bare buckets',
    restore_pending: 'pending parts of buckets, back_off',
    failed: 'offline parts of buckets, back_off',
    refused: 'halted parts of buckets, rest',
  },
  'parts of whole': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'unproven, drop_parts, tell',
    page_discarded: 'whole, drop_parts, back_off',
    page_refused: 'whole, drop_parts, rest',
    nothing_new: 'same, back_off',
    must_refetch: 'same, back_off',
    transfer_began: 'same, back_off',
    part_staged: 'parts of whole',
    transfer_gone: 'whole again, drop_parts',
    replica_damaged: 'parts of bare whole',
    restore_pending: 'pending parts of whole, back_off',
    failed: 'offline parts of whole, back_off',
    refused: 'halted parts of whole, rest',
  },
  'parts of following': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, drop_parts, tell',
    page_discarded: 'following, drop_parts, back_off',
    page_refused: 'buckets, drop_parts, back_off',
    nothing_new: 'same, back_off',
    must_refetch: 'buckets, drop_parts',
    transfer_began: 'same, back_off',
    part_staged: 'parts of following',
    transfer_gone: 'following again, drop_parts',
    replica_damaged: 'bare buckets, drop_parts',
    restore_pending: 'pending parts of following, back_off',
    failed: 'offline parts of following, back_off',
    refused: 'halted parts of following, rest',
  },
  'parts of unproven': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, drop_parts, tell',
    page_discarded: 'unproven, drop_parts, back_off',
    page_refused: 'buckets, drop_parts, rest',
    nothing_new: 'same, back_off',
    must_refetch: 'buckets, drop_parts, rest',
    transfer_began: 'same, back_off',
    part_staged: 'parts of unproven',
    transfer_gone: 'unproven again, drop_parts',
    replica_damaged: 'bare buckets, drop_parts, rest',
    restore_pending: 'pending parts of unproven, back_off',
    failed: 'offline parts of unproven, back_off',
    refused: 'halted parts of unproven, rest',
  },
  'parts of again': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, drop_parts, tell',
    page_discarded: 'following again, drop_parts, back_off',
    page_refused: 'buckets, drop_parts, back_off',
    nothing_new: 'same, back_off',
    must_refetch: 'buckets, drop_parts',
    transfer_began: 'same, back_off',
    part_staged: 'parts of following again',
    transfer_gone: 'following again, drop_parts, rest',
    replica_damaged: 'bare buckets, drop_parts',
    restore_pending: 'pending parts of following again, back_off',
    failed: 'offline parts of following again, back_off',
    refused: 'halted parts of following again, rest',
  },
  'offline joining': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'same, back_off',
    page_discarded: 'same, back_off',
    page_refused: 'same, back_off',
    nothing_new: 'same, back_off',
    must_refetch: 'same, back_off',
    transfer_began: 'same, back_off',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'same',
    restore_pending: 'same, back_off',
    failed: 'offline joining, back_off',
    refused: 'halted joining, rest',
  },
  'offline buckets': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'unproven, tell',
    page_discarded: 'same, back_off',
    page_refused: 'whole',
    nothing_new: 'same, back_off',
    must_refetch: 'same, back_off',
    transfer_began: 'parts of buckets',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'offline bare buckets',
    restore_pending: 'pending buckets, back_off',
    failed: 'offline buckets, back_off',
    refused: 'halted buckets, rest',
  },
  'offline following': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, tell',
    page_discarded: 'same, back_off',
    page_refused: 'buckets, back_off',
    nothing_new: 'following, sleep 7',
    must_refetch: 'buckets',
    transfer_began: 'parts of following',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'offline bare buckets',
    restore_pending: 'pending following, back_off',
    failed: 'offline following, back_off',
    refused: 'halted following, rest',
  },
  'offline parts of following': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, drop_parts, tell',
    page_discarded: 'following, drop_parts, back_off',
    page_refused: 'buckets, drop_parts, back_off',
    nothing_new: 'same, back_off',
    must_refetch: 'buckets, drop_parts',
    transfer_began: 'same, back_off',
    part_staged: 'parts of following',
    transfer_gone: 'following again, drop_parts',
    replica_damaged: 'offline bare buckets, drop_parts',
    restore_pending: 'pending parts of following, back_off',
    failed: 'offline parts of following, back_off',
    refused: 'halted parts of following, rest',
  },
  'halted joining': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'same, back_off',
    page_discarded: 'same, back_off',
    page_refused: 'same, back_off',
    nothing_new: 'same, back_off',
    must_refetch: 'same, back_off',
    transfer_began: 'same, back_off',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'same',
    restore_pending: 'same, back_off',
    failed: 'offline joining, back_off',
    refused: 'halted joining, rest',
  },
  'halted buckets': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'unproven, tell',
    page_discarded: 'same, back_off',
    page_refused: 'whole',
    nothing_new: 'same, back_off',
    must_refetch: 'same, back_off',
    transfer_began: 'parts of buckets',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'halted bare buckets',
    restore_pending: 'pending buckets, back_off',
    failed: 'offline buckets, back_off',
    refused: 'halted buckets, rest',
  },
  'halted following': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, tell',
    page_discarded: 'same, back_off',
    page_refused: 'buckets, back_off',
    nothing_new: 'following, sleep 7',
    must_refetch: 'buckets',
    transfer_began: 'parts of following',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'halted bare buckets',
    restore_pending: 'pending following, back_off',
    failed: 'offline following, back_off',
    refused: 'halted following, rest',
  },
  'halted parts of following': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, drop_parts, tell',
    page_discarded: 'following, drop_parts, back_off',
    page_refused: 'buckets, drop_parts, back_off',
    nothing_new: 'same, back_off',
    must_refetch: 'buckets, drop_parts',
    transfer_began: 'same, back_off',
    part_staged: 'parts of following',
    transfer_gone: 'following again, drop_parts',
    replica_damaged: 'halted bare buckets, drop_parts',
    restore_pending: 'pending parts of following, back_off',
    failed: 'offline parts of following, back_off',
    refused: 'halted parts of following, rest',
  },
  'pending buckets': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'unproven, tell',
    page_discarded: 'same, back_off',
    page_refused: 'whole',
    nothing_new: 'same, back_off',
    must_refetch: 'same, back_off',
    transfer_began: 'parts of buckets',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'pending bare buckets',
    restore_pending: 'pending buckets, back_off',
    failed: 'offline buckets, back_off',
    refused: 'halted buckets, rest',
  },
  'pending following': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, tell',
    page_discarded: 'same, back_off',
    page_refused: 'buckets, back_off',
    nothing_new: 'following, sleep 7',
    must_refetch: 'buckets',
    transfer_began: 'parts of following',
    part_staged: 'same, back_off',
    transfer_gone: 'same, back_off',
    replica_damaged: 'pending bare buckets',
    restore_pending: 'pending following, back_off',
    failed: 'offline following, back_off',
    refused: 'halted following, rest',
  },
  'pending parts of following': {
    joined: 'bare buckets, drop_parts',
    page_applied: 'following, drop_parts, tell',
    page_discarded: 'following, drop_parts, back_off',
    page_refused: 'buckets, drop_parts, back_off',
    nothing_new: 'same, back_off',
    must_refetch: 'buckets, drop_parts',
    transfer_began: 'same, back_off',
    part_staged: 'parts of following',
    transfer_gone: 'following again, drop_parts',
    replica_damaged: 'pending bare buckets, drop_parts',
    restore_pending: 'pending parts of following, back_off',
    failed: 'offline parts of following, back_off',
    refused: 'halted parts of following, rest',
  },
}

const cases = Object.entries(TABLE).flatMap(([state, row]) =>
  Object.entries(row).map(([event, expected]) => [state as keyof typeof STATES, event as SyncEvent['kind'], expected] as const),
)
test.each(cases)('SY1 %s, %s → %s', (stateName, eventName, expected) => {
  expect(shown(STATES[stateName], EVENTS[eventName])).toBe(expected)
})

test.each(cases)('SY1 a state says since when it holds: %s, %s', (stateName, eventName) => {
  const before = STATES[stateName]
  const { state, effects } = stepSync(before, EVENTS[eventName], 50)
  expect(state.sinceMs).toBe(state.kind === before.kind ? 1 : 50)
  expect(effects.some((effect) => effect.kind === 'log' && effect.message === 'sync changed')).toBe(state.kind !== before.kind)
})

test('SY1 a table for every state that can be written down', () => {
  expect(Object.keys(TABLE)).toEqual(Object.keys(STATES))
  expect(new Set(Object.values(STATES).map(({ kind }) => kind)).size).toBe(7)
})

test('SY1 nothing waits between a step and the next but where the table says so, and nothing waits twice', () => {
  for (const before of Object.values(STATES))
    for (const event of Object.values(EVENTS)) {
      const waits = stepSync(before, event, 50).effects.filter(({ kind }) => kind === 'back_off' || kind === 'rest' || kind === 'sleep')
      expect(waits.length).toBeLessThanOrEqual(1)
    }
})

test('SY1 PR7 a poll that something on the way ended proves nothing', () => {
  const { state, effects } = stepSync(STATES.unproven, { kind: 'nothing_new', pauseMs: 7, heard: false }, 50)
  expect([shownTask(state.task), effects]).toEqual(['unproven', [{ kind: 'sleep', ms: 7 }]])
})

test('SY1 success forgets the failure', () => {
  expect(stepSync({ ...STATES['offline following'], failure }, EVENTS.nothing_new, 50).state.failure).toBeNull()
  expect(stepSync({ ...STATES['halted following'], failure }, EVENTS.page_applied, 50).state.failure).toBeNull()
  expect(stepSync({ ...STATES['pending buckets'], failure }, EVENTS.page_applied, 50).state.failure).toBeNull()
})

test.each([
  ['joining', { kind: 'join' }],
  ['buckets', { kind: 'refetch', sums: true }],
  ['whole', { kind: 'refetch', sums: false }],
  ['following', { kind: 'follow', patient: true }],
  ['offline following', { kind: 'follow', patient: false }],
  ['pending following', { kind: 'follow', patient: false }],
  ['offline parts of following', { kind: 'fetch_part', of: follow }],
  ['halted buckets', { kind: 'refetch', sums: true }],
] as const)('SY1 the next turn of %s', (state, turn) => expect(turnOf(STATES[state])).toEqual(turn))

test.each([
  ['never joined', { joined: false, verified: false, staged: null }, 'joining joining'],
  ['with a whole replica', { joined: true, verified: true, staged: null }, 'following following'],
  ['without a replica', { joined: true, verified: false, staged: null }, 'refetching bare buckets'],
  ['in the middle of a page', { joined: true, verified: true, staged: buckets }, 'fetching_parts parts of buckets'],
  ['with parts of another life', { joined: false, verified: false, staged: buckets }, 'joining joining'],
  ['with a replica that lost its end', { joined: true, verified: true, behind: true, staged: null }, 'refetching buckets'],
  ['with a replica that lost its end amid a page', { joined: true, verified: true, behind: true, staged: follow }, 'refetching buckets'],
] as const)('SY1 RP8 a start %s', (_, beginning, expected) => {
  const { kind, task } = beginSync({ behind: false, ...beginning }, 5)
  expect(`${kind} ${shownTask(task)}`).toBe(expected)
})

test('SY1 a join with a replica that is still whole follows it', () => {
  expect(stepSync(STATES.joining, { kind: 'joined', verified: true }, 50).state.task).toEqual(unproven)
})

test('SY2 RP2 status goes up while the server answers, also while it waits for a person', () => {
  const talking = Object.entries(STATES).filter(([, state]) => inContact(state))
  expect(talking.map(([name]) => name).filter((name) => /offline|halted|joining/.test(name))).toEqual([])
  expect(talking.filter(([name]) => name.startsWith('pending'))).toHaveLength(3)
})

test('RP4 a site without space for a page still tells what there is to tell', () => {
  const full = { ...failure, code: 'disk_full' } as const
  expect(inContact(stepSync(STATES.following, { kind: 'failed', failure: full }, 50).state)).toBe(true)
})

test('SY2 only codes that a person must act on halt, and none of them is retryable', () => {
  for (const code of HALTING_CODES) expect([code, code === 'protocol_unsupported' || !ERRORS[code].retryable]).toEqual([code, true])
  for (const code of [
    'unavailable',
    'internal',
    'session_required',
    'must_refetch',
    'restore_pending',
    'transfer_gone',
    'server_unreachable',
    'disk_full',
  ] satisfies ErrorCode[]) {
    expect(HALTING_CODES.has(code)).toBe(false)
  }
})
