// Annotations of four tools as one order.
import { describe, expect, test } from 'bun:test'
import { type Order, orderOf, waveOfDocument } from '../../shared/kube/waves.ts'
import { naming } from '../support/naming.ts'

const S = 'skerry.dev/'
const A = 'argocd.argoproj.io/'
const P = 'deployment.plural.sh/'
const H = 'helm.sh/'
const hook = (phases: string[], wave = 0, policies: string[] = ['before-hook-creation']) =>
  ({ kind: 'hook', wave, phases, policies }) as unknown as Order
const ordinary = (wave: number): Order => ({ kind: 'ordinary', wave })
const SKIPPED: Order = { kind: 'skipped' }

describe('waves', () => {
  test.each<[string, Record<string, string> | undefined, Order]>([
    ['OR3 no annotations', undefined, ordinary(0)],
    ['OR3 others only', { a: 'b' }, ordinary(0)],
    ['OR3 ours', { [`${S}wave`]: '3' }, ordinary(3)],
    ['OR3 negative', { [`${S}wave`]: '-12' }, ordinary(-12)],
    ['OR3 with a plus and blanks, as Go reads it', { [`${A}sync-wave`]: ' +5 ' }, ordinary(5)],
    ['OR3 minus nothing is nothing', { [`${A}sync-wave`]: '-0' }, ordinary(0)],
    ['OR3 Argo', { [`${A}sync-wave`]: '7' }, ordinary(7)],
    ['OR3 Plural', { [`${P}sync-wave`]: '8' }, ordinary(8)],
    ['OR3 Helm weight', { [`${H}hook-weight`]: '9' }, ordinary(9)],
    ['OR3 ours before Plural', { [`${P}sync-wave`]: '1', [`${S}wave`]: '2' }, ordinary(2)],
    ['OR3 Plural before Argo', { [`${A}sync-wave`]: '1', [`${P}sync-wave`]: '2' }, ordinary(2)],
    ['OR3 Argo before Helm', { [`${H}hook-weight`]: '1', [`${A}sync-wave`]: '2' }, ordinary(2)],
  ])('%s', (_, annotations, expected) => expect(orderOf(annotations)).toEqual(expected))

  test.each(['', 'first', '1.5', '1e3', '0x1', '12345678901', '--1'])('OR3 the wave %j is an error of its object', (text) => {
    expect(orderOf({ [`${A}sync-wave`]: text })).toEqual({
      kind: 'malformed',
      message: naming('argocd.argoproj.io/sync-wave', JSON.stringify(text)),
    })
  })

  test('OR5 the wave of what was applied', () => {
    expect(waveOfDocument(null)).toBe(0)
    expect(waveOfDocument('{"metadata":{"name":"a"}}')).toBe(0)
    expect(waveOfDocument(JSON.stringify({ metadata: { annotations: { [`${A}sync-wave`]: '4' } } }))).toBe(4)
    expect(waveOfDocument(JSON.stringify({ metadata: { annotations: { [`${A}sync-wave`]: 'four' } } }))).toBe(0)
    expect(waveOfDocument(JSON.stringify({ metadata: {}, data: { [`${A}sync-wave`]: '4' } }))).toBe(0)
  })
})

describe('phases', () => {
  test.each<[string, Record<string, string>, Order]>([
    ['HK1 ours', { [`${S}hook`]: 'pre-sync' }, hook(['pre-sync'])],
    ['HK1 ours, several words in any order', { [`${S}hook`]: 'post-sync , pre-sync' }, hook(['pre-sync', 'post-sync'])],
    ['HK1 ours, sync', { [`${S}hook`]: 'sync' }, hook(['sync'])],
    ['HK1 Argo', { [`${A}hook`]: 'PreSync' }, hook(['pre-sync'])],
    ['HK1 Argo, Sync is a hook', { [`${A}hook`]: 'Sync' }, hook(['sync'])],
    [
      'HK1 Argo, all',
      { [`${A}hook`]: 'PreSync,PostSync,SyncFail,PreDelete,PostDelete' },
      hook(['pre-sync', 'post-sync', 'sync-fail', 'pre-delete', 'post-delete']),
    ],
    ['HK1 Argo, Skip', { [`${A}hook`]: 'Skip' }, SKIPPED],
    ['HK1 Argo, Skip outweighs', { [`${A}hook`]: 'PreSync,Skip' }, SKIPPED],
    ['HK1 Plural', { [`${P}sync-hook`]: 'sync-fail' }, hook(['sync-fail'])],
    ['HK1 Plural, sync is ordinary', { [`${P}sync-hook`]: 'sync', [`${P}sync-wave`]: '2' }, ordinary(2)],
    ['HK1 Plural, ordinary and a hook', { [`${P}sync-hook`]: 'pre-sync,sync' }, hook(['pre-sync', 'sync'])],
    ['HK1 Plural, skip', { [`${P}sync-hook`]: 'skip' }, SKIPPED],
    ['HK1 Helm, install and upgrade are one', { [`${H}hook`]: 'pre-install,pre-upgrade' }, hook(['pre-sync'])],
    ['HK1 Helm, after', { [`${H}hook`]: 'post-install, post-upgrade', [`${H}hook-weight`]: '-5' }, hook(['post-sync'], -5)],
    ['HK1 Helm, delete', { [`${H}hook`]: 'pre-delete,post-delete' }, hook(['pre-delete', 'post-delete'])],
    ['HK1 Helm, rollback has no meaning here', { [`${H}hook`]: 'pre-rollback,pre-upgrade' }, hook(['pre-sync'])],
    ['HK1 Helm, only rollback', { [`${H}hook`]: 'post-rollback' }, SKIPPED],
    ['HK1 Helm, tests', { [`${H}hook`]: 'test' }, SKIPPED],
    ['HK1 Helm, old tests', { [`${H}hook`]: 'test-success' }, SKIPPED],
    ['HK1 Helm, crd-install', { [`${H}hook`]: 'crd-install' }, ordinary(0)],
    ['HK1 ours before Argo', { [`${S}hook`]: 'pre-sync', [`${A}hook`]: 'PostSync' }, hook(['pre-sync'])],
    ['HK1 Argo before Plural', { [`${A}hook`]: 'PostSync', [`${P}sync-hook`]: 'pre-sync' }, hook(['post-sync'])],
    ['HK1 Argo before Helm', { [`${A}hook`]: 'Sync', [`${H}hook`]: 'test' }, hook(['sync'])],
    ['HK1 Plural before Helm', { [`${P}sync-hook`]: 'sync', [`${H}hook`]: 'pre-install' }, ordinary(0)],
  ])('%s', (_, annotations, expected) => expect(orderOf(annotations)).toEqual(expected))

  test.each<[string, string, string]>([
    ['HK1 a word of another tool', `${A}hook`, 'pre-sync'],
    ['HK1 no word', `${S}hook`, ''],
    ['HK1 a word of the prototype', `${S}hook`, 'constructor'],
    ['HK1 one wrong among right ones', `${H}hook`, 'pre-install,during-install'],
  ])('%s', (_, key, text) => {
    const order = orderOf({ [key]: text })
    expect(order.kind === 'malformed' && order.message).toContain(`its annotation ${key} says `)
    expect(order.kind === 'malformed' && order.message).toContain('; expected some of ')
  })
})

describe('delete policies', () => {
  const job = { [`${S}hook`]: 'sync' }
  test.each<[string, Record<string, string>, string[]]>([
    ['HK6 none', {}, ['before-hook-creation']],
    ['HK6 empty', { [`${S}hook-delete-policy`]: '' }, ['before-hook-creation']],
    ['HK6 ours', { [`${S}hook-delete-policy`]: 'hook-failed, hook-succeeded' }, ['hook-succeeded', 'hook-failed']],
    ['HK6 Argo', { [`${A}hook-delete-policy`]: 'BeforeHookCreation,HookSucceeded' }, ['before-hook-creation', 'hook-succeeded']],
    ['HK6 Plural', { [`${P}sync-hook-delete-policy`]: 'hook-failed' }, ['hook-failed']],
    ['HK6 Plural, short', { [`${P}sync-hook-delete-policy`]: 'succeeded' }, ['hook-succeeded']],
    ['HK6 Helm', { [`${H}hook-delete-policy`]: 'before-hook-creation,hook-succeeded' }, ['before-hook-creation', 'hook-succeeded']],
    [
      'HK6 ours before Argo',
      { [`${A}hook-delete-policy`]: 'HookFailed', [`${S}hook-delete-policy`]: 'hook-succeeded' },
      ['hook-succeeded'],
    ],
  ])('%s', (_, annotations, policies) => expect(orderOf({ ...job, ...annotations })).toEqual(hook(['sync'], 0, policies)))

  test('HK6 an unknown word is an error of its object', () => {
    expect(orderOf({ ...job, [`${A}hook-delete-policy`]: 'hook-succeeded' })).toEqual({
      kind: 'malformed',
      message: naming('argocd.argoproj.io/hook-delete-policy', '"hook-succeeded"', 'BeforeHookCreation, HookSucceeded, HookFailed'),
    })
  })
})
