// Long messages in tables, and selectors as people type them.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type LabelSelector, matchesSelector, parseSelectorText, selectorText } from '../../shared/model/labels.ts'
import { cutText, cutTexts } from '../../shared/runtime/cut-text.ts'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const LONG = 'a '.repeat(39)

test.each([
  ['short', 'short'],
  [`${LONG}bc`, `${LONG}bc`],
  [`${LONG}bcd`, `${LONG}b…`],
  ['船'.repeat(41), `${'船'.repeat(39)}…`],
])('CL1 a cell of %p', (text, cell) => {
  expect(cutText(text)).toBe(cell)
})

test('CL1 what was cut is said once, and not what is said already', () => {
  const [x, y] = ['x'.repeat(90), 'y'.repeat(90)]
  expect(cutTexts([x, x, 'short', y, `web: ${x}`], `1 of 2: ${y}`)).toEqual([`web: ${x}`])
})

test('CL1 describe cuts messages in its tables and says each in full once', async () => {
  const id = await joinCluster(admin.store, 'a')
  const message = `Deployment web/web: ${'it is not well '.repeat(10)}the end`
  for (const [rev, key] of ['1', '2'].entries()) {
    const doc = { atMs: rev + 1, type: 'Warning', reason: 'Degraded', message }
    await admin.store.upsertStatus(id, [{ kind: 'event', key, rev: rev + 1, doc }], { complete: false, nowMs: 1 })
  }
  const { out } = await runTestCli(admin, ['describe', 'cluster', 'cluster-a'])
  expect(out.split(message)).toHaveLength(2)
  expect(out).toEndWith(`Messages in full:\n  ${message}\n`)
  expect(out.match(/Deployment web\/web: .*…/g)).toHaveLength(2)
})

const SAMPLES = [{}, { env: 'prod', a: 'b' }, { env: 'a' }, { env: 'b' }, { x: 'y', e: '1' }, { x: 'y', e: '1', f: '1' }]
const matchesBoth = (selector: LabelSelector) => SAMPLES.map((labels) => matchesSelector(labels, selector))

test.each<[LabelSelector, string]>([
  [{ matchLabels: { env: 'prod', a: 'b' } }, 'a=b,env=prod'],
  [{ matchExpressions: [{ key: 'env', operator: 'In', values: ['a', 'b'] }] }, 'env in (a,b)'],
  [{ matchExpressions: [{ key: 'env', operator: 'NotIn', values: ['a'] }] }, 'env notin (a)'],
  [
    {
      matchLabels: { x: 'y' },
      matchExpressions: [
        { key: 'e', operator: 'Exists' },
        { key: 'f', operator: 'DoesNotExist' },
      ],
    },
    'x=y,e,!f',
  ],
  [{}, ''],
])('CL1 the selector %j is shown as it would be typed', (selector, text) => {
  expect(selectorText(selector)).toBe(text)
  if (text !== '') expect(matchesBoth(parseSelectorText(text) ?? {})).toEqual(matchesBoth(selector))
})
