// The catalogue of the agent: the form of its entries, and the texts that depend on their arguments. The page
// docs/reference/agent-messages.md prints every entry once, and reference-pages.test.ts fails when one of them changes.
import { describe, expect, test } from 'bun:test'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { news } from '../../agent/messages/event-messages.ts'
import { explanation } from '../../agent/messages/explanation-messages.ts'
import { objectStatus, objectText } from '../../agent/messages/object-messages.ts'
import { questionRefusal } from '../../agent/messages/question-messages.ts'
import { servicePart, serviceText } from '../../agent/messages/service-messages.ts'
import { sitePart } from '../../agent/messages/site-messages.ts'
import { SOPS_KEYS_LABEL, SOPS_KEYS_NAMESPACE, SOPS_PROJECTS_ANNOTATION } from '../../agent/sops/site-keys.ts'
import { AGENT_CATALOGUE } from '../../scripts/docs-pages/agent-messages.ts'
import { andMore, objectCount, reasonOf, textsOf, wordsOf } from '../../shared/runtime/messages.ts'

const MARK = new Proxy({}, { get: () => '…' })
const entries = Object.entries(AGENT_CATALOGUE).flatMap(([title, table]) =>
  Object.entries(table).map(([code, { text, next }]) => ({
    ...{ title, code, text: wordsOf(text, MARK) },
    next: next === undefined ? null : wordsOf(next, MARK),
  })),
)

describe('AP11 the catalogue of the agent', () => {
  test('is not empty, and has a text in each entry', () => {
    expect(entries.length).toBeGreaterThan(200)
    expect(entries.filter(({ text, next }) => text === '' || next === '')).toEqual([])
  })

  test('has a reason, or a code in snake_case, with a variant after a dot', () => {
    expect(entries.filter(({ code }) => !/^([A-Z]\w+|[a-z]+(_[a-z]+)*)(\.[a-zA-Z_]+)?$/.test(code))).toEqual([])
  })

  test('has no text that ends with a full stop, or consists of two sentences', () => {
    expect(entries.filter(({ code, text }) => !code.startsWith('no_services.') && /\.$|\. [A-Z]/.test(text))).toEqual([])
  })

  test('gives the reason of a code, and its next step after a semicolon', () => {
    expect(reasonOf('OwnedByOther.unwatched')).toBe('OwnedByOther')
    expect(objectStatus('AlreadyExists')).toEqual({
      reason: 'AlreadyExists',
      message: 'an object of this name exists that this hook did not create; delete it, or rename the hook',
    })
    const say = textsOf({ a: { text: ({ n }: { n: number }) => `${n} left`, next: ({ who }: { who: string }) => `ask ${who}` } })
    expect(say('a', { n: 2, who: 'ola' })).toBe('2 left; ask ola')
  })

  test('gives a refusal of a question its remedy apart', () => {
    expect(questionRefusal('question_failed.paused', { object: 'Deployment web/a' })).toEqual({
      code: 'question_failed',
      message: 'Deployment web/a is paused',
      remedy: 'Set spec.paused to false first.',
    })
    expect(questionRefusal('agent_forbidden.no_logs')).toEqual({ code: 'agent_forbidden', message: 'this agent reads no logs' })
  })

  test('names the label, the namespace and the annotation of age keys as they are', () => {
    const sealed = { recipients: 'age1x', own: '', problems: '' }
    expect(objectText('SopsKeyMissing', sealed)).toContain(`label ${SOPS_KEYS_LABEL} in namespace ${SOPS_KEYS_NAMESPACE}`)
    expect(objectText('SopsKeyMissing.otherProjects', { ...sealed, from: 'a', project: 'b' })).toContain(SOPS_PROJECTS_ANNOTATION)
  })

  test.each([
    [andMore(['a', 'b'], 2), 'a, b'],
    [andMore(['a', 'b'], 4), 'a, b and 2 more'],
    [objectCount(1), '1 object'],
    [objectCount(2), '2 objects'],
    [objectText('JobFailed', { cause: '' }), 'failed; removed by its TTL; correct its manifest, a changed manifest runs it again'],
    [objectText('SopsKeyRotated', { recipients: 'age1x', own: '', problems: '; y', former: 'age1z' }), 'it is encrypted by SOPS to age1x, and this site has no age key for it; age1z was removed from this site; y; run `sops updatekeys` with a recipient of this site, or restore that key'],
    [serviceText('BlockedBy.absent', { service: 'a', more: 0 }), 'waiting for a, which is not in this cluster; add this cluster to its targets, or remove it from spec.dependsOn'],
    [serviceText('BlockedBy.absent', { service: 'a', more: 2 }), 'waiting for a, which is not in this cluster (and for 2 more); add this cluster to its targets, or remove it from spec.dependsOn'],
    [serviceText('Held', { by: 'ola', since: '1', until: '', why: 'w', scope: '--all' }), 'held by ola since 1: w; `skerry-agent unhold --all` ends the hold'],
    [serviceText('Held', { by: 'ola', since: '1', until: '2', why: 'w', scope: '--all' }), 'held by ola since 1 until 2: w; `skerry-agent unhold --all` ends the hold'],
    [servicePart('first_of', { object: 'o', message: 'm', more: 0 }), 'o: m'],
    [servicePart('first_of', { object: 'o', message: 'm', more: 3 }), 'o: m (and 3 more)'],
    [deletionText('others_inside', { count: 1, isMore: false, names: 'a' }), '1 object not of this service is deleted with it: a'],
    [deletionText('others_inside', { count: 9, isMore: true, names: 'a' }), 'at least 9 objects not of this service are deleted with it: a'],
    [deletionText('dependents_first', { first: 'a', count: 3 }), 'waiting for the removal of a and 2 more, which depends on it'],
    [news('Released.butFor', { what: 'all', by: 'ola', held: 'a', count: 1 }).message, 'all goes on but for a, held by a hold of its own; lifted by ola'],
    [news('Released.butFor', { what: 'all', by: 'ola', held: 'a, b', count: 2 }).message, 'all goes on but for a, b, held by holds of their own; lifted by ola'],
    [sitePart('claimant', { agent: 'a-1', cluster: '', server: '' }), 'agent a-1'],
    [sitePart('claimant', { agent: 'a-1', cluster: 'c-1', server: 's' }), 'agent a-1 of the registration c-1 at s'],
    [explanation('exited', { exitCode: 1, signal: '', reason: '' }), 'exited with code 1'],
    [explanation('exited', { exitCode: 137, signal: '9', reason: 'OOMKilled' }), 'exited with code 137 by signal 9 (OOMKilled)'],
    [explanation('pod_phase', { phase: '' }), 'phase not set'],
    [explanation('container_not_ready', { isInit: true, name: 'a' }), 'init container a is running but not ready'],
    [explanation('taint', { key: 'a', count: 1 }), 'a on 1 node'],
  ])('writes %s', (text, expected) => expect(text).toBe(expected)) // biome-ignore format: a line for each text
})
