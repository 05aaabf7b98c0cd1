// The catalogue of the server: the form of its entries, and the texts that depend on their arguments. The page
// docs/reference/server-messages.md prints every entry once; reference-pages.test.ts fails when one of them changes.
import { describe, expect, test } from 'bun:test'
import { SERVER_CATALOGUE } from '../../scripts/docs-pages/server-messages.ts'
import { news, warning } from '../../server/messages/event-messages.ts'
import { clusterSays, placementSays, repositorySays, serviceSays, statusPart } from '../../server/messages/status-messages.ts'
import { wordsOf } from '../../shared/runtime/messages.ts'

const MARK = new Proxy({}, { get: () => '…' })
const entries = Object.entries(SERVER_CATALOGUE).flatMap(([title, table]) =>
  Object.entries(table).map(([code, { text, next }]) => ({
    ...{ title, code, text: wordsOf(text, MARK) },
    next: next === undefined ? null : wordsOf(next, MARK),
  })),
)
const isStep = (title: string) => title.includes('ext steps')
const revision = { objects: 2, hooks: 0, variants: 1, revision: 'commit 3f2c', written: '', clusters: 'a' }
const sealed = { by: '', secrets: 2, configs: 1, masterKey: 'skerry' }
const asked = { kind: 'prune', clusters: null, names: 'Service web/a', by: 'ana' }

describe('AP11 the catalogue of the server', () => {
  test('is not empty, and has a text in each entry', () => {
    expect(entries.length).toBeGreaterThan(100)
    expect(entries.filter(({ code, text, next }) => (text === '' && code !== 'Fetched') || next === '')).toEqual([])
  })

  test('has a reason, or a code in snake_case, with a variant after a dot', () => {
    expect(entries.filter(({ code }) => !/^([A-Z]\w+|[a-z]+(_[a-z]+)*)(\.[a-zA-Z_]+)?$/.test(code))).toEqual([])
  })

  test('has texts without a full stop, and next steps in sentences', () => {
    expect(entries.filter(({ title, text }) => !isStep(title) && /\.$|\. [A-Z]/.test(text))).toEqual([])
    const steps = entries.flatMap(({ title, code, text, next }) => (isStep(title) ? [{ code, step: text }] : [{ code, step: next }]))
    const ofStatus = steps.filter(({ code }) => !['shard_behind', 'ConfirmationNeeded'].includes(code))
    expect(ofStatus.filter(({ step }) => step !== null && step !== '…' && !/^[A-Z`].*\.$/.test(step))).toEqual([])
  })

  test('gives the reason, the text and the next step of a status apart, and the type of an event', () => {
    expect(serviceSays('CountsChanging.many', { bad: 1, all: 3 })).toEqual({
      reason: 'CountsChanging',
      message: '1 of 3: changing now',
      next: 'Ask again.',
    })
    expect(repositorySays('Fetched')).toEqual({ reason: 'Fetched', message: '', next: '' })
    expect(clusterSays('NoServices').next).toBe('')
    expect(warning('ConfirmationNeeded', { why: 'why', confirmation: 'c-1' })).toEqual({
      type: 'Warning',
      reason: 'ConfirmationNeeded',
      message: 'why; run `skerry confirm c-1` to see the names and confirm',
    })
  })

  test.each([
    [news('RevisionPublished', revision).message, '2 objects of commit 3f2c to a'],
    [news('RevisionPublished', { ...revision, objects: 1, hooks: 1 }).message, '1 object and 1 hook of commit 3f2c to a'],
    [news('RevisionPublished', { ...revision, hooks: 2, variants: 3, written: ' (by Ana)' }).message, '2 objects and 2 hooks at most, in 3 variants, of commit 3f2c (by Ana) to a'],
    [news('RevisionPublished.waits', { ...revision, service: 'web', project: 'p' }).message, '2 objects of commit 3f2c to a; it waits for `skerry sync web -p p`'],
    [news('Confirmed', asked).message, 'prune confirmed by ana: Service web/a'],
    [news('Confirmed.data', { ...asked, clusters: 3, data: 'x' }).message, 'prune in 3 clusters confirmed by ana: Service web/a; with the data of x'],
    [news('SignedIn', { session: 's', name: 'bob', provider: 'dex', from: '', kind: 'cli' }).message, 'bob (dex) signed in: session s, cli'],
    [news('SignedIn', { session: 's', name: 'bob', provider: 'dex', from: 'here', kind: 'cli' }).message, 'bob (dex) signed in from here: session s, cli'],
    [news('SecretKeyRotated', sealed).message, '2 secrets of 1 Configs are sealed under new data keys, wrapped by skerry'],
    [warning('SecretKeyRotated.unopened', { ...sealed, by: 'ana', unopened: 1 }).message, 'by ana: 2 secrets of 1 Configs are sealed under new data keys, wrapped by skerry; 1 do not open with the keys of this server'],
    [warning('ConfirmationNeeded.deletions', { count: 1, cluster: 'a', confirmation: 'c-1' }).message, '1 deletion in a waits for confirmation: run `skerry confirm c-1`'],
    [serviceSays('Deleting', { count: 0, clusters: '', project: 'p', service: 'web' }).message, 'the removal is almost complete'],
    [serviceSays('Deleting', { count: 1, clusters: 'a', project: 'p', service: 'web' }).message, '1 cluster still has it: a'],
    [serviceSays('Deleting', { count: 2, clusters: 'a, b', project: 'p', service: 'web' }).message, '2 clusters still have it: a, b'],
    [serviceSays('WaitingForFacts', { count: 1, clusters: 'a' }).message, 'cluster a just joined and has not reported the served kinds yet; the render follows within 60 s'],
    [placementSays('NotReceived.first', { revision: 'commit 3f2c', away: '' }).message, 'commit 3f2c has not arrived there, it has no revision yet'],
    [placementSays('NotReceived.first', { revision: 'commit 3f2c', away: 'x' }).message, 'commit 3f2c has not arrived there, it has no revision yet; x'],
    [statusPart('more_problems', { count: 1 }), '(and 1 more problem)'],
  ])('writes %s', (text, expected) => expect(text).toBe(expected)) // biome-ignore format: a line for each text
})
