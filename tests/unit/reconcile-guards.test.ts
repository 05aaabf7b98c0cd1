import { describe, expect, test } from 'bun:test'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { judgeClaim, readClaim } from '../../agent/reconcile/claim/claim.ts'
import { type Candidate, type DeletionRequest, decideDeletions, holdingOf } from '../../agent/reconcile/plan/prune/deletion.ts'
import type { GuardCounts } from '../../agent/reconcile/plan/prune/prune-guard.ts'
import { judgeContest, NO_CONTEST } from '../../agent/reconcile/snapshot/fields/contest.ts'
import { type K8sObject, type ObjectRef, refKey } from '../../shared/kube/object.ts'
import { comparePrune } from '../../shared/kube/order.ts'

const maps = (count: number): ObjectRef[] =>
  Array.from({ length: count }, (_, i) => ({ group: '', kind: 'ConfigMap', namespace: 'web', name: `m${i}` }))
const one = (group: string, kind: string): ObjectRef[] => [{ group, kind, namespace: '', name: 'x' }]
interface Change extends Partial<Omit<GuardCounts, 'precious'>> {
  /** The digest that a person confirmed. */
  pruneConfirmed?: string
  /** Keys of objects that an annotation allows. */
  allowed?: ReadonlySet<string>
}
/** A prune of revision d. */
function guarded({ prune = [], pruneConfirmed, allowed, ...change }: Change): DeletionRequest {
  const guard = { desiredCount: 10, ownedCount: 20, protect: false, maxPrunePercent: 50, restored: false, factsOnly: false, ...change }
  const candidates = prune.map(
    (ref): Candidate => ({ ref, holding: holdingOf('prune', ref, {}, null), allowed: allowed?.has(refKey(ref)) === true }),
  )
  const isConfirmed = pruneConfirmed === 'd'
  return {
    cause: 'prune',
    candidates,
    doomed: [...prune].sort(comparePrune),
    undecided: [],
    unreachable: [],
    guard,
    token: 'd',
    ownedCount: guard.ownedCount,
    isConfirmed,
    confirmed: isConfirmed ? 'all' : new Set(),
    before: () => undefined,
    nowMs: 0,
  }
}

describe('the prune guard', () => {
  test.each([
    ['PR1 five of six: a small number is never too many', { prune: maps(5), desiredCount: 1, ownedCount: 6 }, 'kept'],
    ['PR1 six of eleven is more than half', { prune: maps(6), desiredCount: 5, ownedCount: 11 }, 'refused'],
    ['PR1 exactly the allowed part', { prune: maps(10) }, 'kept'],
    ['PR1 one more than allowed', { prune: maps(11), desiredCount: 9 }, 'refused'],
    ['PR1 a renamed single object is not everything', { prune: maps(1), desiredCount: 1, ownedCount: 1 }, 'kept'],
    ['PR1 100 percent allowed', { prune: maps(19), desiredCount: 1, ownedCount: 20, maxPrunePercent: 100 }, 'kept'],
    ['PR2 nothing is desired any more', { prune: maps(1), desiredCount: 0, ownedCount: 1 }, 'refused'],
    ['PR2 nothing desired and nothing owned', { desiredCount: 0, ownedCount: 0 }, 'kept'],
    ['PR3 a Namespace', { prune: one('', 'Namespace') }, 'refused'],
    ['PR3 a CRD', { prune: one('apiextensions.k8s.io', 'CustomResourceDefinition') }, 'refused'],
    ['PR3 a PVC', { prune: one('', 'PersistentVolumeClaim') }, 'refused'],
    ['PR3 a PV', { prune: one('', 'PersistentVolume') }, 'refused'],
    ['PR3 a StorageClass', { prune: one('storage.k8s.io', 'StorageClass') }, 'refused'],
    ['PR3 a Namespace that its annotation allows', { prune: one('', 'Namespace'), allowed: new Set(['/Namespace//x']) }, 'kept'],
    [
      'PR3 one of two is allowed',
      { prune: [...one('', 'Namespace'), ...one('', 'PersistentVolumeClaim')], allowed: new Set(['/Namespace//x']) },
      'refused',
    ],
    ['PR1 what is allowed counts all the same', { prune: maps(11), desiredCount: 9, allowed: new Set(maps(11).map(refKey)) }, 'refused'],
    ['PR3 a kind of the same name in another group', { prune: one('example.com', 'Namespace') }, 'kept'],
    ['PR3 a protected service', { prune: maps(1), protect: true }, 'refused'],
    [
      'PR4 a person confirmed this very revision',
      { prune: one('', 'Namespace'), protect: true, desiredCount: 0, pruneConfirmed: 'd' },
      'kept',
    ],
    ['RP2 one object of a restored server’s revision', { prune: maps(1), restored: true }, 'refused'],
    ['RP2 nothing to prune in it', { restored: true }, 'kept'],
    ['RP2 PR4 a person confirmed the restored revision', { prune: maps(1), restored: true, pruneConfirmed: 'd' }, 'kept'],
    ['RP2 PR4 a person confirmed the one before the restore', { prune: maps(1), restored: true, pruneConfirmed: 'old' }, 'refused'],
    ['RL5 one object of a render that only the cluster’s own facts changed', { prune: maps(1), factsOnly: true }, 'refused'],
    ['RL5 a person confirmed it', { prune: maps(1), factsOnly: true, pruneConfirmed: 'd' }, 'kept'],
    ['PR4 a person confirmed another one', { prune: one('', 'Namespace'), pruneConfirmed: 'other' }, 'refused'],
  ] as const)('%s', (_, change, expected) => expect(decideDeletions(guarded(change)).isShut ? 'refused' : 'kept').toBe(expected))

  test('PR5 the refusal names every object: what can be lost first, then in the order in which they would go', () => {
    const prune = [...one('', 'Namespace'), ...maps(2), ...one('example.com', 'Thing')]
    expect(decideDeletions(guarded({ prune })).refusal).toEqual({
      digest: 'd',
      names: ['Namespace x', 'Thing.example.com x', 'ConfigMap web/m0', 'ConfigMap web/m1'],
      list: expect.stringMatching(/^[0-9a-f]{16}$/),
      count: 4,
      ownedCount: 20,
      why: deletionText('precious', { precious: 1, count: 4, kinds: 'Namespace' }),
    })
  })
})

describe('DR4 a fight over one object', () => {
  function play(times: readonly number[]): string {
    let contest = NO_CONTEST
    return times
      .map((atMs) => {
        const verdict = judgeContest(contest, atMs)
        contest = verdict.contest
        return verdict.kind === 'correct' ? 'c' : '-'
      })
      .join('')
  }
  test.each([
    ['five in a minute are corrected', [1, 2, 3, 4, 5], 'ccccc'],
    ['the sixth is not', [1, 2, 3, 4, 5, 6], 'ccccc-'],
    ['the sixth, a minute after the first, is', [1, 2, 3, 4, 5, 60_001], 'cccccc'],
    [
      'after the first wait of 10 s one correction, then a longer wait',
      [1, 2, 3, 4, 5, 6, 10_005, 10_006, 10_007, 30_006, 30_007],
      'ccccc--c--c',
    ],
    ['ten calm minutes end it', [1, 2, 3, 4, 5, 6, 600_005, 600_006, 600_007], 'ccccc-ccc'],
  ] as const)('DR4 %s', (_, times, expected) => expect(play(times)).toBe(expected))
})

describe('the claim', () => {
  const own = { agent: 'a-1', incarnation: 2, instance: 'x' }
  const UNREADABLE = { agent: '', incarnation: 0, instance: '5' }
  test.each([
    ['CM1 none yet', null, {}, 'write'],
    ['CM1 none any more', null, { hasHeld: true }, 'write'],
    ['CM1 our own', { agent: 'a-1', incarnation: 2, instance: 'x' }, { mayTake: true }, 'held'],
    ['CM1 our own of an earlier life', { agent: 'a-1', incarnation: 1, instance: 'x' }, { mayTake: true }, 'write'],
    ['CM3 our own of an earlier start', { agent: 'a-1', incarnation: 2, instance: 'w' }, { mayTake: true }, 'write'],
    ['CM3 a copy of ourselves that started later', { agent: 'a-1', incarnation: 2, instance: 'y' }, { hasHeld: true }, 'superseded'],
    ['CM2 our key in a later life', { agent: 'a-1', incarnation: 3, instance: 'x' }, { mayTake: true }, 'superseded'],
    ['CM6 a stranger, whatever its incarnation', { agent: 'a-2', incarnation: 1, instance: 'x' }, {}, 'challenge'],
    ['CM6 a stranger of a higher incarnation', { agent: 'a-2', incarnation: 3, instance: 'x' }, {}, 'challenge'],
    ['CM6 a stranger that gave no answer', { agent: 'a-2', incarnation: 3, instance: 'x' }, { mayTake: true }, 'write'],
    ['CM2 a stranger that took the claim from us', { agent: 'a-2', incarnation: 1, instance: 'x' }, { hasHeld: true }, 'superseded'],
    [
      'CM3 a stranger that a cluster out of a backup brings back',
      { agent: 'a-2', incarnation: 1, instance: 'x' },
      { mayTake: true, hasHeld: true },
      'write',
    ],
    ['CM2 our key in the latest life that a server gives', { agent: 'a-1', incarnation: 102, instance: 'y' }, {}, 'superseded'],
    ['CM13 our key in a life that no server gives', { agent: 'a-1', incarnation: 103, instance: 'y' }, { isHolder: true }, 'unclear'],
    ['CM13 the same, and a person decided', { agent: 'a-1', incarnation: 103, instance: 'y' }, { mayTake: true }, 'write'],
    ['CM13 an unreadable claim', UNREADABLE, { hasHeld: true }, 'unclear'],
    ['CM13 an unreadable claim in place of our own', UNREADABLE, { isHolder: true }, 'write'],
    ['CM13 an unreadable claim, and a person decided', UNREADABLE, { mayTake: true }, 'write'],
  ] as const)('%s', (_, live, standing, verdict) =>
    expect(judgeClaim(live, own, { mayTake: false, hasHeld: false, isHolder: false, ...standing })).toBe(verdict),
  )

  test.each<[string, unknown, boolean]>([
    ['a claim', { agent: 'a-1', incarnation: '7' }, true],
    ['no data', undefined, false],
    ['empty data', {}, false],
    ['no agent', { incarnation: '7' }, false],
    ['no incarnation', { agent: 'a-1' }, false],
    ['an empty incarnation', { agent: 'a-1', incarnation: '' }, false],
    ['a negative incarnation', { agent: 'a-1', incarnation: '-1' }, false],
    ['an incarnation that is no whole number', { agent: 'a-1', incarnation: '1e3' }, false],
    ['an incarnation past all numbers', { agent: 'a-1', incarnation: '9'.repeat(400) }, false],
  ])('CM13 %s', (_, data, isReadable) => {
    const claim = readClaim({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'c', resourceVersion: '5' },
      data,
    } as unknown as K8sObject)
    expect(claim?.agent === 'a-1').toBe(isReadable)
    expect(claim).toMatchObject(isReadable ? { incarnation: 7, instance: '' } : UNREADABLE)
  })
})
