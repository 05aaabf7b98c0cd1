// Every state that sync can be in, by name, an event of each kind, and both in words: what the table of
// tests/unit/sync-state.test.ts is written with.
import { type PageTask, type SyncEvent, type SyncState, stepSync, syncFailure, type Task } from '../../agent/sync/sync-state.ts'

export const failure = syncFailure('unavailable', 'm', 9)
const old = { sinceMs: 1, failure: null }
const join: Task = { kind: 'join' }
export const buckets = { kind: 'refetch', scope: 'buckets', held: true, restarted: false } as const
const whole = { ...buckets, scope: 'whole' } as const
const bare = { ...buckets, held: false } as const
export const follow = { kind: 'follow', proven: true, restarted: false } as const
export const unproven = { ...follow, proven: false } as const
const again = { ...follow, restarted: true } as const
const parts = (of: PageTask) => ({ kind: 'parts', of }) as const

export const STATES = {
  joining: { kind: 'joining', task: { kind: 'join' }, ...old },
  buckets: { kind: 'refetching', task: buckets, ...old },
  bare: { kind: 'refetching', task: bare, ...old },
  whole: { kind: 'refetching', task: whole, ...old },
  following: { kind: 'following', task: follow, ...old },
  unproven: { kind: 'following', task: unproven, ...old },
  again: { kind: 'following', task: again, ...old },
  'parts of buckets': { kind: 'fetching_parts', task: parts(buckets), ...old },
  'parts of whole': { kind: 'fetching_parts', task: parts(whole), ...old },
  'parts of following': { kind: 'fetching_parts', task: parts(follow), ...old },
  'parts of unproven': { kind: 'fetching_parts', task: parts(unproven), ...old },
  'parts of again': { kind: 'fetching_parts', task: parts(again), ...old },
  'offline joining': { kind: 'offline', task: join, ...old },
  'offline buckets': { kind: 'offline', task: buckets, ...old },
  'offline following': { kind: 'offline', task: follow, ...old },
  'offline parts of following': { kind: 'offline', task: parts(follow), ...old },
  'halted joining': { kind: 'halted', task: join, ...old },
  'halted buckets': { kind: 'halted', task: buckets, ...old },
  'halted following': { kind: 'halted', task: follow, ...old },
  'halted parts of following': { kind: 'halted', task: parts(follow), ...old },
  'pending buckets': { kind: 'restore_pending', task: buckets, ...old },
  'pending following': { kind: 'restore_pending', task: follow, ...old },
  'pending parts of following': { kind: 'restore_pending', task: parts(follow), ...old },
} as const satisfies Record<string, SyncState>

const WEB = { project: 'shop', service: 'web' }
export const EVENTS: { [K in SyncEvent['kind']]: Extract<SyncEvent, { kind: K }> } = {
  joined: { kind: 'joined', verified: false },
  page_applied: { kind: 'page_applied', services: [WEB] },
  page_discarded: { kind: 'page_discarded' },
  page_refused: { kind: 'page_refused', failure },
  nothing_new: { kind: 'nothing_new', pauseMs: 7, heard: true },
  must_refetch: { kind: 'must_refetch', reason: 'unknown' },
  transfer_began: { kind: 'transfer_began' },
  part_staged: { kind: 'part_staged' },
  transfer_gone: { kind: 'transfer_gone' },
  replica_damaged: { kind: 'replica_damaged' },
  restore_pending: { kind: 'restore_pending', failure },
  failed: { kind: 'failed', failure },
  refused: { kind: 'refused', failure },
}

export function shownTask(task: Task): string {
  switch (task.kind) {
    case 'join':
      return 'joining'
    case 'refetch':
      return `${task.held ? '' : 'bare '}${task.scope}${task.restarted ? ' again' : ''}`
    case 'follow':
      return `${task.proven ? 'following' : 'unproven'}${task.restarted ? ' again' : ''}`
    case 'parts':
      return `parts of ${shownTask(task.of)}`
  }
}
const FOOTING = { offline: 'offline ', halted: 'halted ', restore_pending: 'pending ' } as Record<string, string>

export function shown(before: SyncState, event: SyncEvent): string {
  const { state, effects } = stepSync(before, event, 50)
  const what = state === before ? 'same' : `${FOOTING[state.kind] ?? ''}${shownTask(state.task)}`
  const todo = effects.filter(({ kind }) => kind !== 'log').map((effect) => (effect.kind === 'sleep' ? `sleep ${effect.ms}` : effect.kind))
  return [what, ...todo].join(', ')
}
