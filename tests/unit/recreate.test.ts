// When an object whose field is immutable may be deleted and made again.
import { describe, expect, test } from 'bun:test'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import type { Permit } from '../../agent/reconcile/plan/prune/deletion.ts'
import { documentId, permitAgain, RECREATES_MAX, type RecreateCase } from '../../agent/reconcile/plan/recreate.ts'
import type { LiveObject } from '../../agent/reconcile/snapshot/watch/live-object.ts'
import { configMapRef } from '../support/reconcile-kit.ts'

describe('AO5 what may be made again', () => {
  const there = { uid: 'u2', keep: null } as LiveObject
  const DOC = '{"metadata":{}}'
  const allowing = '{"metadata":{"annotations":{"skerry.dev/prune":"allowed"}}}'
  const gone = { sent: documentId(DOC), uid: 'u1', count: RECREATES_MAX }
  const claim = { group: '', kind: 'PersistentVolumeClaim', namespace: 'n', name: 'x' }
  const space = { group: '', kind: 'Namespace', namespace: '', name: 'x' }
  const set = { group: 'apps', kind: 'StatefulSet', namespace: 'n', name: 'x' }
  test.each<[string, Partial<RecreateCase>, string | null]>([
    ['AO4 our own word', {}, null],
    ['AO4 another tool’s', { recreate: 'foreign' }, null],
    ['AO4 nobody’s', { recreate: 'never' }, 'unasked'],
    [
      'AO5 a claim by another tool’s word',
      { recreate: 'foreign', ref: claim },
      deletionText('not_by_other_option', { kind: 'PersistentVolumeClaim' }),
    ],
    [
      'AO5 a StatefulSet by another tool’s word',
      { recreate: 'foreign', ref: set },
      deletionText('not_by_other_option', { kind: 'StatefulSet' }),
    ],
    ['AO5 a claim by ours', { ref: claim }, deletionText('recreated_after_confirmation', { lost: 'its data will be lost' })],
    ['AO5 a claim by ours, confirmed by name', { ref: claim, confirmed: new Set(['PersistentVolumeClaim n/x']) }, null],
    [
      'AO5 a claim by ours, in a confirmation without names',
      { ref: claim, confirmed: 'all' },
      deletionText('recreated_after_confirmation', { lost: 'its data will be lost' }),
    ],
    ['AO5 a claim by ours, allowed by the new manifest', { ref: claim, sent: allowing }, null],
    [
      'AO5 a volume that is kept when its object goes',
      { ref: { ...space, kind: 'PersistentVolume' }, live: { ...there, takes: 'nothing' } },
      null,
    ],
    ['PR14 an older disk', { hold: { why: 'older', asks: false } }, 'older'],
    ['PR14 a restored server', { ref: claim, sent: allowing, hold: { why: 'restored', asks: true } }, 'restored'],
    ['AO5 a StatefulSet by ours', { ref: set }, null],
    [
      'AO5 a StatefulSet that takes its claims along',
      { ref: set, live: { ...there, takes: 'claims' } },
      deletionText('recreated_after_confirmation', { lost: 'its PersistentVolumeClaims are deleted' }),
    ],
    ['AO5 the same, allowed by the new manifest', { ref: set, live: { ...there, takes: 'claims' }, sent: allowing }, null],
    ['AO5 a Namespace by ours', { ref: space }, deletionText('recreated_after_confirmation', { lost: 'everything in it' })],
    ['AO5 a Namespace by ours, allowed on the live object', { ref: space, live: { ...there, pruneAllowed: true } }, null],
    ['AO5 not there, or not watched', { live: null, isOurs: false }, deletionText('not_managed')],
    ['AO5 not ours', { isOurs: false }, deletionText('not_managed')],
    ['AO5 of a protected service', { protect: true }, deletionText('not_of_protected')],
    ['AO5 kept', { live: { ...there, keep: 'helm.sh/resource-policy' } }, deletionText('not_marked', { mark: 'helm.sh/resource-policy' })],
    ['AO5 one more than may go', { before: gone }, deletionText('raced', { count: RECREATES_MAX })],
    ['AO5 the last of those, asked for again', { before: { ...gone, uid: 'u2' } }, null],
    ['AO5 one before the last', { before: { ...gone, count: RECREATES_MAX - 1 } }, null],
    ['AO5 as many, for another document', { before: { ...gone, sent: 'other' } }, null],
    ['AO5 refused before', { before: { ...gone, count: 1, refused: 'too long' } }, deletionText('refused_again', { failure: 'too long' })],
    ['AO5 refused before, for another document', { before: { ...gone, sent: 'other', refused: 'too long' } }, null],
  ])('%s', (_, change, expected) => {
    const permit = permitAgain({
      ref: configMapRef('a'),
      recreate: 'own',
      sent: DOC,
      live: there,
      isOurs: true,
      protect: false,
      hold: null,
      confirmed: new Set(),
      before: undefined,
      ...change,
    })
    if (expected === null) expect(permit).toEqual({ cause: 'recreate' } as Permit)
    else if (expected === 'unasked') expect(permit).toBeNull()
    else expect(permit !== null && 'why' in permit ? permit.why : '').toContain(expected)
  })
})
