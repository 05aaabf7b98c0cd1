// Whatever is wrong with an object is said with what to do about it, or with what ends it by itself.
import { expect, test } from 'bun:test'
import { type ApiFailure, TERMINAL_FAILURES } from '../../agent/cluster/cluster.ts'
import { describeProblem } from '../../agent/reconcile/plan/problem-text.ts'
import { objectStatus } from '../../agent/reconcile/report/outcome.ts'
import type { Problem } from '../../agent/reconcile/snapshot/situation.ts'
import { unservedText } from '../../agent/reconcile/snapshot/wanted.ts'

/** By itself, or by whom. */
const FAILURES: Record<ApiFailure['kind'], string> = {
  unreachable: 'check that the API server runs and that the agent can reach it; it is tried again',
  throttled: 'the API server has too much to do; it is tried again',
  server_error: 'look at the API server’s own log if this stays; it is tried again',
  unauthorized: 'check the credentials of the agent; it is tried again',
  forbidden: 'allow it by RBAC, quota or admission; it is tried again',
  not_found: 'bring its API back (a CRD, an APIService), or take it out of Git; it is tried again',
  namespace_missing: 'create the namespace or set sync.createNamespace; it is tried again',
  namespace_terminating: 'it is tried again when the namespace is gone',
  conflict: 'let the other manager go, or set sync.force; it is tried again',
  immutable: 'undo the change, delete the object so that it is made again, or annotate it with skerry.dev/sync-options: Force',
  taken: 'give it another port or address; if what has it leaves with this revision, set sync.pruneWhen: applied; it is tried again',
  invalid: 'correct the manifest',
  webhook: 'start the webhook’s backend, or take its configuration away; it is tried again',
}
const failure = (kind: ApiFailure['kind']): ApiFailure => ({ kind, status: 0, reason: 'Why', message: 'in the server’s words' })
const failed = (kind: ApiFailure['kind']): Problem => ({ kind: 'failed', failure: failure(kind), attempt: 0, retryAtMs: null, sent: null })

test.each(Object.entries(FAILURES) as Array<[ApiFailure['kind'], string]>)('HE10 a request that failed as %s', (kind, next) => {
  const { reason, message } = describeProblem(failed(kind))
  expect(message).toBe(`in the server’s words; ${next}`)
  expect(reason).toMatch(/^[A-Z][A-Za-z]+$/)
  // What is not tried again has to be done by somebody.
  expect(message.includes('tried again')).toBe(!TERMINAL_FAILURES.has(kind))
})

const again = { attempt: 0, retryAtMs: 0 }
const PROBLEMS: Record<Exclude<Problem['kind'], 'failed' | 'gated' | 'waiting' | 'unreadable'>, Array<[Problem, string]>> = {
  unserved: [
    [
      { kind: 'unserved', message: unservedText('a/v1', 'B', { kind: 'stale' }), ...again },
      'start its server, or delete its APIService; it is applied as soon as it answers',
    ],
    [
      { kind: 'unserved', message: unservedText('a/v1', 'B', { kind: 'unserved', versions: [] }), ...again },
      'it is applied as soon as one does',
    ],
    [{ kind: 'unserved', message: unservedText('a/v1', 'B', { kind: 'unserved', versions: ['a/v2'] }), ...again }, 'change its apiVersion'],
  ],
  owned: [
    [{ kind: 'owned', owner: 'Argo CD', ...again }, 'rename it, remove it there, or set sync.takeover'],
    [{ kind: 'owned', owner: 'nobody', going: 'it is being deleted', ...again }, 'this one is made when that is gone'],
  ],
  unknown: [
    [{ kind: 'unknown' }, 'it is looked at again by itself'],
    [{ kind: 'unknown', failure: failure('forbidden') }, 'allow it by RBAC'],
    [{ kind: 'unknown', failure: failure('not_found') }, 'take it out of Git'],
  ],
  kept: [
    [{ kind: 'kept', what: 'its data will be lost', asks: true, attempt: 0, retryAtMs: null }, '`skerry confirm`'],
    [{ kind: 'kept', what: 'it still holds objects of web/b, which is being removed', asks: false, ...again }, 'being removed'],
  ],
  contested: [[{ kind: 'contested', drift: '.a changed by x', untilMs: 0 }, 'stop that manager, or remove the field from Git']],
  drifted: [
    [{ kind: 'drifted', drift: '.a changed by x' }, 'restore it, commit the change, or set sync.drift to correct'],
    [{ kind: 'drifted', drift: 'deleted outside Git', deleted: true }, 'create it again, remove it from Git, or set sync.drift to correct'],
  ],
}

const CASES = Object.values(PROBLEMS)
  .flat()
  .map(([problem, next]) => [problem.kind, next, problem] as const)

test.each(CASES)('HE10 %s: %s', (_, next, problem) => {
  const { reason, message } = describeProblem(problem)
  expect(message).toContain(next)
  expect(reason).toMatch(/^[A-Z][A-Za-z]+$/)
})

const status = (view: Parameters<typeof objectStatus>[0]['view']) =>
  objectStatus({ view, problem: null, progressingSinceMs: 0, deadlineMs: 600_000 }, null, 600_000)

test('HE10 what is missing, not known, and late', () => {
  expect(status({ kind: 'absent' }).message).toContain('it is made as soon as')
  expect(status({ kind: 'unknown' }).message).toContain('by itself')
  const live = { uid: '', resourceVersion: '', ownedHash: '', deleting: null, keep: null, owner: { kind: 'none' }, images: null } as const
  const health = { word: 'Progressing', reason: 'LessReady', message: '1 of 2 replicas are ready' } as const
  expect(status({ kind: 'present', live: { ...live, health } })).toMatchObject({
    reason: 'DeadlineExceeded',
    message: '1 of 2 replicas are ready; not healthy within 600 s (sync.healthDeadline)',
  })
})
