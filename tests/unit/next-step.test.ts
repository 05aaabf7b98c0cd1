// Whatever is wrong with an object is said with what to do about it, or with what ends it by itself.
import { expect, test } from 'bun:test'
import { type ApiFailure, TERMINAL_FAILURES } from '../../agent/cluster/cluster.ts'
import { describeProblem } from '../../agent/reconcile/plan/problem-text.ts'
import { objectStatus } from '../../agent/reconcile/report/outcome.ts'
import type { Problem } from '../../agent/reconcile/snapshot/situation.ts'
import { unservedText } from '../../agent/reconcile/snapshot/wanted.ts'

/** By itself, or by whom. */
const FAILURES: Record<ApiFailure['kind'], string> = {
  unreachable: 'check that the API server runs and that the agent can reach it; retrying',
  throttled: 'the API server is overloaded; retrying',
  server_error: 'if this persists, read the log of the API server; retrying',
  unauthorized: 'check the credentials of the agent; retrying',
  forbidden: 'change the RBAC rule, quota or admission policy that forbids it; retrying',
  not_found: 'install the CRD or APIService, or remove the object from Git; retrying',
  namespace_missing: 'create the namespace or set sync.createNamespace; retrying',
  namespace_terminating: 'waiting until the namespace is deleted',
  conflict: 'remove the other field manager, or set sync.force; retrying',
  immutable: 'undo the change, delete the object so that it is created again, or annotate it with skerry.dev/sync-options: Force',
  taken: 'choose another port or address, or set sync.pruneWhen: applied if this revision removes its current owner; retrying',
  invalid: 'correct the manifest',
  webhook: 'start the backend of the webhook, or delete the webhook configuration; retrying',
}
const failure = (kind: ApiFailure['kind']): ApiFailure => ({ kind, status: 0, reason: 'Why', message: 'in the server’s words' })
const failed = (kind: ApiFailure['kind']): Problem => ({ kind: 'failed', failure: failure(kind), attempt: 0, retryAtMs: null, sent: null })

test.each(Object.entries(FAILURES) as Array<[ApiFailure['kind'], string]>)('HE10 a request that failed as %s', (kind, next) => {
  const { reason, message } = describeProblem(failed(kind))
  expect(message).toBe(`in the server’s words; ${next}`)
  expect(reason).toMatch(/^[A-Z][A-Za-z]+$/)
  // A person must act on a failure that is not retried.
  expect(/retrying|waiting until/.test(message)).toBe(!TERMINAL_FAILURES.has(kind))
})

const again = { attempt: 0, retryAtMs: 0 }
const PROBLEMS: Record<Exclude<Problem['kind'], 'failed' | 'gated' | 'waiting' | 'unreadable'>, Array<[Problem, string]>> = {
  unserved: [
    [
      { kind: 'unserved', message: unservedText('a/v1', 'B', { kind: 'stale' }), ...again },
      'start its server, or delete its APIService; retrying',
    ],
    [
      { kind: 'unserved', message: unservedText('a/v1', 'B', { kind: 'unserved', versions: [] }), ...again },
      'install its CRD or operator; retrying',
    ],
    [{ kind: 'unserved', message: unservedText('a/v1', 'B', { kind: 'unserved', versions: ['a/v2'] }), ...again }, 'change its apiVersion'],
  ],
  owned: [
    [{ kind: 'owned', owner: 'Argo CD', ...again }, 'rename the object, remove it there, or set sync.takeover'],
    [{ kind: 'owned', owner: 'nobody', going: 'it is being deleted', ...again }, 'until the existing object of this name is deleted'],
  ],
  unknown: [
    [{ kind: 'unknown' }, 'retrying'],
    [{ kind: 'unknown', failure: failure('forbidden') }, 'change the RBAC rule'],
    [{ kind: 'unknown', failure: failure('not_found') }, 'remove the object from Git'],
  ],
  kept: [
    [{ kind: 'kept', what: 'its data will be lost', asks: true, attempt: 0, retryAtMs: null }, '`skerry confirm`'],
    [{ kind: 'kept', what: 'it contains objects of web/b, which is being removed', asks: false, ...again }, 'being removed'],
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
  expect(status({ kind: 'absent' }).message).toContain('will be created when')
  expect(status({ kind: 'unknown' }).message).toContain('retrying')
  const live = { uid: '', resourceVersion: '', ownedHash: '', deleting: null, keep: null, owner: { kind: 'none' }, images: null } as const
  const health = { word: 'Progressing', reason: 'LessReady', message: '1 of 2 replicas are ready' } as const
  expect(status({ kind: 'present', live: { ...live, health } })).toMatchObject({
    reason: 'DeadlineExceeded',
    message: '1 of 2 replicas are ready; not healthy within 600 s (sync.healthDeadline)',
  })
})
