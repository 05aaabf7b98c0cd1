// Whatever is wrong with an object is said with what to do about it, or with what ends it by itself.
import { expect, test } from 'bun:test'
import { type ApiFailure, TERMINAL_FAILURES } from '../../agent/cluster/cluster.ts'
import { OBJECT, objectText } from '../../agent/messages/object-messages.ts'
import { describeProblem } from '../../agent/reconcile/plan/problem-text.ts'
import { objectStatus } from '../../agent/reconcile/report/outcome.ts'
import type { Problem } from '../../agent/reconcile/snapshot/situation.ts'
import { unservedText } from '../../agent/reconcile/snapshot/wanted.ts'
import { SOME, said } from '../support/said.ts'

const FAILURES: Record<ApiFailure['kind'], keyof typeof OBJECT> = {
  unreachable: 'Unreachable',
  throttled: 'Throttled',
  server_error: 'ServerError',
  unauthorized: 'Unauthorized',
  forbidden: 'Forbidden',
  not_found: 'NotFound',
  namespace_missing: 'NamespaceMissing',
  namespace_terminating: 'NamespaceTerminating',
  conflict: 'Conflict',
  immutable: 'Immutable',
  taken: 'AlreadyTaken',
  invalid: 'Invalid',
  webhook: 'WebhookUnavailable',
}
const failure = (kind: ApiFailure['kind']): ApiFailure => ({ kind, status: 0, reason: 'Why', message: 'in the server’s words' })
const failed = (kind: ApiFailure['kind']): Problem => ({ kind: 'failed', failure: failure(kind), attempt: 0, retryAtMs: null, sent: null })

test.each(Object.entries(FAILURES) as Array<[ApiFailure['kind'], 'Invalid']>)('HE10 a request that failed as %s', (kind, code) => {
  const { reason, message } = describeProblem(failed(kind))
  expect({ reason, message }).toEqual({ reason: code, message: objectText(code, { failure: 'in the server’s words' }) })
  expect(OBJECT[code].next.length).toBeGreaterThan(0)
  // A person must act on a failure that is not retried.
  expect(/retrying|waiting until/.test(message)).toBe(!TERMINAL_FAILURES.has(kind))
})

const again = { attempt: 0, retryAtMs: 0 }
const PROBLEMS: Record<Exclude<Problem['kind'], 'failed' | 'gated' | 'waiting' | 'unreadable'>, Array<[Problem, string]>> = {
  unserved: [
    [
      { kind: 'unserved', message: unservedText('a/v1', 'B', { kind: 'stale' }), ...again },
      objectText('UnknownKind.silent', { apiVersion: 'a/v1' }),
    ],
    [
      { kind: 'unserved', message: unservedText('a/v1', 'B', { kind: 'unserved', versions: [] }), ...again },
      objectText('UnknownKind', { apiVersion: 'a/v1', kind: 'B' }),
    ],
    [
      { kind: 'unserved', message: unservedText('a/v1', 'B', { kind: 'unserved', versions: ['a/v2'] }), ...again },
      objectText('UnknownKind.otherVersion', { apiVersion: 'a/v1', kind: 'B', versions: 'a/v2' }),
    ],
  ],
  owned: [
    [{ kind: 'owned', owner: 'Argo CD', ...again }, objectText('OwnedByOther', { owner: 'Argo CD' })],
    [{ kind: 'owned', owner: 'nobody', going: 'w', ...again }, objectText('Waiting.namesake', { deleting: 'w' })],
  ],
  unknown: [
    [{ kind: 'unknown' }, objectText('NotWatched')],
    [{ kind: 'unknown', failure: failure('forbidden') }, objectText('NotWatched.failed', { failure: SOME, next: OBJECT.Forbidden.next })],
    [{ kind: 'unknown', failure: failure('not_found') }, objectText('NotWatched.failed', { failure: SOME, next: OBJECT.NotFound.next })],
  ],
  kept: [
    [{ kind: 'kept', what: 'w', asks: true, attempt: 0, retryAtMs: null }, objectText('ConfirmationPending', { lost: 'w' })],
    [{ kind: 'kept', what: 'w', asks: false, ...again }, 'w'],
  ],
  contested: [[{ kind: 'contested', drift: '.a', untilMs: 0 }, objectText('Contested', { drift: '.a' })]],
  drifted: [
    [{ kind: 'drifted', drift: '.a' }, objectText('Drifted', { drift: '.a' })],
    [{ kind: 'drifted', drift: '.a', deleted: true }, objectText('Drifted.deleted', { drift: '.a' })],
  ],
}

const CASES = Object.values(PROBLEMS)
  .flat()
  .map(([problem, text]) => [problem.kind, text, problem] as const)

test.each(CASES)('HE10 %s: %s', (_, text, problem) => {
  const { reason, message } = describeProblem(problem)
  expect(message).toMatch(said(text))
  expect(reason).toMatch(/^[A-Z][A-Za-z]+$/)
})

const status = (view: Parameters<typeof objectStatus>[0]['view']) =>
  objectStatus({ view, problem: null, progressingSinceMs: 0, deadlineMs: 600_000 }, null, 600_000)

test('HE10 what is missing, not known, and late', () => {
  expect(status({ kind: 'absent' }).message).toBe(objectText('Missing'))
  expect(status({ kind: 'unknown' }).message).toBe(objectText('NotWatched'))
  const live = { uid: '', resourceVersion: '', ownedHash: '', deleting: null, keep: null, owner: { kind: 'none' }, images: null } as const
  const health = { word: 'Progressing', reason: 'LessReady', message: '1 of 2 replicas are ready' } as const
  expect(status({ kind: 'present', live: { ...live, health } })).toMatchObject({
    reason: 'DeadlineExceeded',
    message: '1 of 2 replicas are ready; not healthy within 600 s (sync.healthDeadline)',
  })
})
