import { expect, test } from 'bun:test'
import { maskSecrets } from '../../server/render/mask-secrets.ts'

const mark = (text: string) => `<${text.length}>`
const masked = (object: unknown, secrets: readonly string[] = ['hunter2', 'a']) => maskSecrets([JSON.stringify(object)], secrets, mark)[0]

test.each<[string, unknown, unknown]>([
  [
    'data of a Secret, by the value and not its base64',
    { kind: 'Secret', data: { p: btoa('literal') } },
    { kind: 'Secret', data: { p: '<7>' } },
  ],
  [
    'stringData',
    { kind: 'Secret', stringData: { p: 'literal' }, type: 'Opaque' },
    { kind: 'Secret', stringData: { p: '<7>' }, type: 'Opaque' },
  ],
  ['data of anything else stays', { kind: 'ConfigMap', data: { p: 'literal' } }, { kind: 'ConfigMap', data: { p: 'literal' } }],
  ['a Config’s secret inside of a text', { url: 'https://x:hunter2@db/hunter2' }, { url: 'https://x:<7>@db/<7>' }],
  ['as base64', { auth: btoa('hunter2') }, { auth: '<7>' }],
  [
    'deep, in lists and as a name',
    { spec: [{ env: [{ value: 'hunter2' }] }, { hunter2: 1 }] },
    { spec: [{ env: [{ value: '<7>' }] }, { '<7>': 1 }] },
  ],
  ['a short one only as a whole text', { a1: 'banana', b: 'a' }, { a1: 'banana', b: '<1>' }],
  ['what kubectl applied of a Secret', { kind: 'Secret', metadata: { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":1}', b: 'c' } } }, { kind: 'Secret', metadata: { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '<10>', b: 'c' } } }], // biome-ignore format: short
])('RH2 %s', (_, object, expected) => expect<unknown>(masked(object)).toEqual(expected))

test('RH2 the longer of two secrets first, and an empty one masks nothing', () => {
  expect<unknown>(masked({ a: 'hunter22', b: 'hunter2' }, ['hunter2', 'hunter22', ''])).toEqual({ a: '<8>', b: '<7>' })
})

const LONG = 'Tr0ub4dor&3-correct'
test.each<[string, string]>([
  ['in capitals', `url=${LONG.toUpperCase()}`],
  ['a slice of it', LONG.slice(3, 14)],
  ['in the middle of something that was encoded as base64', btoa(`user:${LONG}`)],
  ['as hexadecimal', Buffer.from(LONG).toString('hex').toUpperCase()],
  ['in a URL', `https://u:${encodeURIComponent(LONG)}@db`],
])('RH2 a secret of a Config %s is masked, too', (_, text) => {
  expect<unknown>(masked({ a: text, b: 'https://example.com' }, [LONG, 'https://db'])).toEqual({
    a: `<${text.length}>`,
    b: 'https://example.com',
  })
})
