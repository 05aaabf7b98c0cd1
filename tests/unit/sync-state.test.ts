import { expect, test } from 'bun:test'
import {
  HALTING_CODES,
  type Pause,
  type SyncEvent,
  type SyncFailure,
  type SyncState,
  stepSync,
  taskOf,
} from '../../agent/sync/sync-state.ts'
import { ERRORS, type ErrorCode } from '../../shared/protocol/error.ts'

const failure: SyncFailure = { code: 'unavailable', message: 'm', remedy: 'r', atMs: 9 }
const old = { sinceMs: 1, failure: null }
const STATES = {
  joining: { kind: 'joining', ...old },
  bootstrapping: { kind: 'bootstrapping', ...old },
  unproven: { kind: 'following', proven: false, ...old },
  following: { kind: 'following', proven: true, ...old },
  offline_join: { kind: 'offline', task: 'join', ...old },
  offline_bootstrap: { kind: 'offline', task: 'bootstrap', ...old },
  offline: { kind: 'offline', task: 'follow', ...old },
  halted_join: { kind: 'halted', task: 'join', ...old },
  halted_bootstrap: { kind: 'halted', task: 'bootstrap', ...old },
  halted: { kind: 'halted', task: 'follow', ...old },
} as const satisfies Record<string, SyncState>

const EVENTS: { [K in SyncEvent['kind']]: Extract<SyncEvent, { kind: K }> } = {
  joined: { kind: 'joined' },
  page_applied: { kind: 'page_applied' },
  page_discarded: { kind: 'page_discarded' },
  page_refused: { kind: 'page_refused', failure },
  nothing_new: { kind: 'nothing_new' },
  must_refetch: { kind: 'must_refetch' },
  replica_damaged: { kind: 'replica_damaged' },
  failed: { kind: 'failed', failure },
  refused: { kind: 'refused', failure },
}

type Expected = `${SyncState['kind'] | 'unproven' | 'same'} ${Pause}`
const JOIN = {
  joined: 'bootstrapping none',
  page_applied: 'same back_off',
  page_discarded: 'same back_off',
  page_refused: 'same back_off',
  nothing_new: 'same back_off',
  must_refetch: 'same back_off',
  replica_damaged: 'same none',
  failed: 'offline back_off',
  refused: 'halted rest',
} as const
const BOOTSTRAP = {
  joined: 'bootstrapping none',
  page_applied: 'unproven none',
  page_discarded: 'same back_off',
  page_refused: 'bootstrapping back_off',
  nothing_new: 'same back_off',
  must_refetch: 'same back_off',
  replica_damaged: 'bootstrapping none',
  failed: 'offline back_off',
  refused: 'halted rest',
} as const
const FOLLOW = {
  joined: 'bootstrapping none',
  page_applied: 'following none',
  page_discarded: 'same back_off',
  page_refused: 'bootstrapping back_off',
  nothing_new: 'following none',
  must_refetch: 'bootstrapping none',
  replica_damaged: 'bootstrapping none',
  failed: 'offline back_off',
  refused: 'halted rest',
} as const
const TABLE: Record<keyof typeof STATES, Record<SyncEvent['kind'], Expected>> = {
  joining: JOIN,
  bootstrapping: BOOTSTRAP,
  unproven: { ...FOLLOW, must_refetch: 'bootstrapping rest', page_refused: 'bootstrapping rest' }, // a refetch of a refetch: one of both sides is broken
  following: FOLLOW,
  offline_join: JOIN,
  offline_bootstrap: BOOTSTRAP,
  offline: FOLLOW,
  halted_join: JOIN,
  halted_bootstrap: BOOTSTRAP,
  halted: FOLLOW,
}

const cases = Object.entries(TABLE).flatMap(([state, row]) =>
  Object.entries(row).map(([event, expected]) => [state, event, expected] as const),
)
test.each(cases)('SY1 %s, %s → %s', (stateName, eventName, expected) => {
  const before = STATES[stateName as keyof typeof STATES]
  const { state, pause } = stepSync(before, EVENTS[eventName as SyncEvent['kind']], 50)
  const shown = state === before ? 'same' : state.kind === 'following' && !state.proven ? 'unproven' : state.kind
  expect(`${shown} ${pause}`).toBe(expected)
})

test.each(cases)('SY1 a state says since when it holds: %s, %s', (stateName, eventName) => {
  const before = STATES[stateName as keyof typeof STATES]
  const { state } = stepSync(before, EVENTS[eventName as SyncEvent['kind']], 50)
  expect(state.sinceMs).toBe(state.kind === before.kind ? 1 : 50)
})

test.each([
  ['failed', 'offline'],
  ['refused', 'halted'],
] as const)('SY1 %s keeps the task, so that it goes on where it was', (event, kind) => {
  for (const before of Object.values(STATES)) {
    const { state } = stepSync(before, EVENTS[event], 50)
    expect([state.kind, taskOf(state), state.failure]).toEqual([kind, taskOf(before), failure])
  }
})

test('SY1 success forgets the failure', () => {
  expect(stepSync({ ...STATES.offline, failure }, { kind: 'nothing_new' }, 50).state.failure).toBeNull()
  expect(stepSync({ ...STATES.halted, failure }, { kind: 'page_applied' }, 50).state.failure).toBeNull()
})

test('SY2 only codes that a person must act on halt, and none of them is retryable', () => {
  for (const code of HALTING_CODES) expect([code, code === 'protocol_unsupported' || !ERRORS[code].retryable]).toEqual([code, true])
  for (const code of [
    'unavailable',
    'internal',
    'session_required',
    'must_refetch',
    'server_unreachable',
    'disk_full',
  ] satisfies ErrorCode[]) {
    expect(HALTING_CODES.has(code)).toBe(false)
  }
})
