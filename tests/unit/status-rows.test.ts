// PU3: the short way for rows of objects takes exactly what the schema takes as it is.
import { expect, test } from 'bun:test'
import { sortStatusRows } from '../../server/http/status-rows.ts'
import { objectStatusSchema } from '../../shared/model/status.ts'
import { REV_INCARNATION, statusRowSchema } from '../../shared/protocol/status.ts'

const REV = REV_INCARNATION + 1
const KEY = 'shop/web/apps/Deployment/shop/web'
const DOC = { sync: 'Synced', health: 'Healthy', reason: 'Healthy', message: '', sinceMs: 1 }

test.each<[string, unknown]>([
  ['five members', DOC],
  ['images', { ...DOC, images: ['registry.example/web:1.0.0', 'web'] }],
  ['no images', { ...DOC, images: [] }],
  ['the longest texts', { ...DOC, reason: 'x'.repeat(128), message: '\u0001'.repeat(4_096) }],
  ['a reason that is too long', { ...DOC, reason: 'x'.repeat(129) }],
  ['a message that is too long', { ...DOC, message: 'x'.repeat(4_097) }],
  ['a word that only a newer agent knows', { ...DOC, health: 'Sleeping' }],
  ['a member that only a newer agent knows', { ...DOC, mood: 'good' }],
  ['warnings', { ...DOC, warnings: ['deprecated'] }],
  ['a member less', { sync: 'Synced', health: 'Healthy', reason: '', message: '' }],
  ['another member in place of one', { sync: 'Synced', health: 'Healthy', reason: '', message: '', mood: 1 }],
  ['a time before 1970', { ...DOC, sinceMs: -1 }],
  ['a time that is no whole number', { ...DOC, sinceMs: 1.5 }],
  ['a time above 2^53', { ...DOC, sinceMs: 2 ** 53 }],
  ['a time as text', { ...DOC, sinceMs: '1' }],
  ['images that are no list', { ...DOC, images: 'web' }],
  ['an image that is no text', { ...DOC, images: [1] }],
  ['too many images', { ...DOC, images: Array.from({ length: 21 }, (_, n) => `web:${n}`) }],
  ['a list', [DOC]],
  ['a text', 'Healthy'],
])('a document with %s is taken or refused as the schema says', (_, doc) => {
  const expected = objectStatusSchema.safeParse(doc)
  const { taken, reject } = sortStatusRows([{ kind: 'object', key: KEY, rev: REV, doc }], 1)
  expect(taken.map((row) => row.doc)).toEqual(expected.success ? [expected.data] : [])
  expect(reject).toEqual(expected.success ? [] : [{ key: KEY, code: 'bad_document' }])
})

test.each<[string, unknown, unknown]>([
  ['NUL', { ...DOC, message: 'a\0b' }, { ...DOC, message: 'a\ufffdb' }],
  ['half of a surrogate pair', { ...DOC, reason: '\ud800' }, { ...DOC, reason: '\ufffd' }],
  ['an image that no node could pull', { ...DOC, images: ['a b', 'web'] }, { ...DOC, images: ['web'] }],
])('%s is replaced or left out', (_, doc, stored) => {
  expect(sortStatusRows([{ kind: 'object', key: KEY, rev: REV, doc }], 1).taken.map((row) => row.doc)).toEqual([stored])
})

test.each<[string, unknown]>([
  ['nothing', null],
  ['a list', []],
  ['no kind', { key: KEY, rev: REV, doc: DOC }],
  ['a kind that is too long', { kind: 'x'.repeat(33), key: KEY, rev: REV, doc: DOC }],
  ['an empty key', { kind: 'object', key: '', rev: REV, doc: DOC }],
  ['a key that is too long', { kind: 'object', key: `shop/web/${'x'.repeat(1_016)}`, rev: REV, doc: DOC }],
  ['a rev of 0', { kind: 'object', key: KEY, rev: 0, doc: DOC }],
  ['a rev that is no whole number', { kind: 'object', key: KEY, rev: REV + 0.5, doc: DOC }],
  ['a rev above 2^53', { kind: 'object', key: KEY, rev: 2 ** 53, doc: DOC }],
  ['a rev as text', { kind: 'object', key: KEY, rev: String(REV), doc: DOC }],
])('a row of %s is refused, as its schema does', (_, row) => {
  expect(statusRowSchema.safeParse(row).success).toBe(false)
  const { taken, reject } = sortStatusRows([row], 1)
  expect(taken).toEqual([])
  expect(reject.map(({ code }) => code)).toEqual(['bad_document'])
})
