import { describe, expect, test } from 'bun:test'
import { judgeClaim } from '../../agent/reconcile/claim/claim.ts'
import { judgeContest, NO_CONTEST } from '../../agent/reconcile/fields/contest.ts'
import { guardPrune, type PruneCounts } from '../../agent/reconcile/prune/prune-guard.ts'
import { type ObjectRef, refKey } from '../../shared/kube/object.ts'

const maps = (count: number): ObjectRef[] =>
  Array.from({ length: count }, (_, i) => ({ group: '', kind: 'ConfigMap', namespace: 'web', name: `m${i}` }))
const one = (group: string, kind: string): ObjectRef[] => [{ group, kind, namespace: '', name: 'x' }]
const counts = (change: Partial<PruneCounts>): PruneCounts => ({
  prune: [],
  desiredCount: 10,
  ownedCount: 20,
  digest: 'd',
  pruneConfirmed: undefined,
  protect: false,
  maxPrunePercent: 50,
  restored: false,
  factsOnly: false,
  ...change,
})

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
  ] as const)('%s', (_, change, expected) => expect(guardPrune(counts(change)) === null ? 'kept' : 'refused').toBe(expected))

  test('PR5 the refusal names every object, in the order in which they would go', () => {
    const prune = [...one('', 'Namespace'), ...maps(2), ...one('example.com', 'Thing')]
    expect(guardPrune(counts({ prune }))).toEqual({
      digest: 'd',
      names: ['Thing x', 'ConfigMap web/m0', 'ConfigMap web/m1', 'Namespace x'],
      count: 4,
      ownedCount: 20,
      why: '1 of 4 hold other objects or data (Namespace); the annotation skerry.dev/prune: allowed lets one go without asking',
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
  test.each([
    ['CM1 none yet', null, true, 'write'],
    ['CM1 none any more', null, false, 'write'],
    ['CM1 our own', { agent: 'a-1', incarnation: 2, instance: 'x' }, true, 'held'],
    ['CM1 our own of an earlier life', { agent: 'a-1', incarnation: 1, instance: 'x' }, true, 'write'],
    ['CM3 our own of an earlier start', { agent: 'a-1', incarnation: 2, instance: 'w' }, true, 'write'],
    ['CM3 a copy of ourselves that started later', { agent: 'a-1', incarnation: 2, instance: 'y' }, false, 'superseded'],
    ['CM2 our key in a later life', { agent: 'a-1', incarnation: 3, instance: 'x' }, false, 'superseded'],
    ['CM2 another agent of a higher incarnation', { agent: 'a-2', incarnation: 3, instance: 'x' }, true, 'superseded'],
    ['CM2 another agent of a lower one', { agent: 'a-2', incarnation: 1, instance: 'x' }, false, 'write'],
    ['CM3 another agent of the same one, met at the start', { agent: 'a-2', incarnation: 2, instance: 'x' }, true, 'write'],
    ['CM3 another agent of the same one, met later', { agent: 'a-2', incarnation: 2, instance: 'x' }, false, 'superseded'],
  ] as const)('%s', (_, live, first, verdict) => expect(judgeClaim(live, own, first)).toBe(verdict))
})
