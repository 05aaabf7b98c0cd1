// What an agent says, taken apart and put together again.
import { expect, test } from 'bun:test'
import { byteOrder } from '../../server/store/byte-order.ts'
import { nameParts, type RowKind, type StateParts, stateText, statusColumns, statusDoc } from '../../server/store/status/status-columns.ts'
import { isStorable, mayBeUnstorable, storable, storableDoc } from '../../server/store/status/storable-text.ts'

const object = { sync: 'Synced', health: 'Healthy', reason: 'Applied', message: 'm', sinceMs: 7 }

test.each<[string, RowKind, unknown, 'state' | 'state and doc' | 'doc' | 'nothing']>([
  ['an object', 'object', object, 'state'],
  ['an object with images', 'object', { ...object, images: ['a:1', 'b@sha256:0'] }, 'state'],
  ['an object without images, said so', 'object', { ...object, images: [] }, 'state'],
  ['an object of a newer version', 'object', { ...object, next: 1 }, 'state and doc'],
  ['an object of unknown words', 'object', { ...object, health: 'Splendid' }, 'state and doc'],
  ['an object that lacks a member', 'object', { sync: 'Synced' }, 'state and doc'],
  ['an object that says nothing', 'object', {}, 'state and doc'],
  ['a service', 'service', { ...object, objectCount: 1, healthyCount: 1 }, 'state and doc'],
  ['a drift', 'drift', { action: 'healed', detectedMs: 3, paths: ['.a'], manager: 'x', count: 1 }, 'state and doc'],
  ['a cluster', 'cluster', { agentVersion: '1' }, 'doc'],
  ['what is gone', 'object', null, 'nothing'],
])('PU2 %s comes back as it was written', (_, kind, doc, kept) => {
  const columns = statusColumns(kind, doc)
  expect(statusDoc(columns)).toEqual(doc)
  const held = [columns.state === null ? [] : ['state'], columns.doc === null ? [] : ['doc']].flat().join(' and ')
  expect(held).toBe(kept === 'nothing' ? '' : kept)
})

test.each<[RowKind, string, string[]]>([
  ['object', 'p/s/apps/Deployment/ns/web', ['p', 's', 'apps', 'Deployment', 'ns', 'web']],
  ['object', 'p/s//ConfigMap//a', ['p', 's', '', 'ConfigMap', '', 'a']],
  ['object', 'p/s/g/K/n/a/b', ['p', 's', 'g', 'K', 'n', 'a/b']],
  ['service', 'p/s', ['p', 's', '', '', '', '']],
  ['cluster', 'cluster', ['', '', '', '', '', 'cluster']],
])('PU2 the parts of the key of a %s: %s', (kind, key, parts) => {
  const { project, service, api_group, object_kind, namespace, name } = nameParts(kind, key)
  expect([project, service, api_group, object_kind, namespace, name]).toEqual(parts)
})

test('PU2 states that differ in where a text ends are different states', () => {
  const state = (reason: string, message: string): StateParts => ({ sync: 'Synced', health: 'Healthy', reason, message, images: null })
  const texts = [state('a', 'b c'), state('a b', 'c'), state('a', 'b c1'), state('', 'a b c')].map(stateText)
  expect(new Set(texts).size).toBe(texts.length)
})

test('ST15 text is compared by its bytes', () => {
  const texts = ['', 'a', 'ab', 'b', 'é', '\uffee', '\u{1f600}', '\u{1f600}a', '\u{10ffff}']
  const bytes = (text: string) => Buffer.from(text).toString('hex')
  for (const a of texts)
    for (const b of texts) expect(Math.sign(byteOrder(a, b))).toBe(bytes(a) < bytes(b) ? -1 : bytes(a) > bytes(b) ? 1 : 0)
})

test('PU3 what a database cannot hold is replaced wherever it stands, and everything else is left', () => {
  expect(storableDoc({ a: ['x\0y', { b: 'half \ud83d' }], n: 1, t: true, z: null })).toEqual({
    a: ['x\ufffdy', { b: 'half \ufffd' }],
    n: 1,
    t: true,
    z: null,
  })
  for (const text of ['\0', '\ud800', 'a\udfff']) expect([isStorable(text), mayBeUnstorable(JSON.stringify(text))]).toEqual([false, true])
  for (const text of ['', 'é\n\t', '\u{1f600}']) expect([storable(text), mayBeUnstorable(JSON.stringify(text))]).toEqual([text, false])
})
