// What is read of the index of a Helm repository, however it is written; hostile and broken ones.
import { expect, test } from 'bun:test'
import { type ChartIndex, indexText, readIndex } from '../../server/sources/helm/chart-index.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { naming } from '../support/naming.ts'

const never = async () => {}
const read = (text: string): Promise<ChartIndex> => readIndex(text, never)
const refusal = (text: string): Promise<string> =>
  read(text).then(
    (index) => `read: ${Object.keys(index).join()}`,
    (error: unknown) => (error instanceof AppError && error.code === 'source_refused' ? String(error.data.detail) : `thrown: ${error}`),
  )
const DIGEST = 'ab'.repeat(32)
const entry = (version: string, more = '') =>
  `  - apiVersion: v2\n    description: |\n      version: 6.6.6\n      - name: x\n    digest: ${DIGEST}\n${more}    name: shop\n    urls:\n    - shop-${version}.tgz\n    version: ${version}\n`
const indexOf = (...entries: string[]) => `apiVersion: v1\nentries:\n  shop:\n${entries.join('')}generated: "2024-01-01T00:00:00Z"\n`
const shop = (version: string, change: object = {}) => ({ version, urls: [`shop-${version}.tgz`], digest: DIGEST, ...change })

test.each([
  ['as helm writes it', indexOf(entry('1.0.0'), entry('1.1.0')), { shop: [shop('1.0.0'), shop('1.1.0')] }],
  ['in another order', indexOf(entry('1.1.0'), entry('1.0.0')), { shop: [shop('1.0.0'), shop('1.1.0')] }],
  ['with Windows line ends', indexOf(entry('1.0.0')).replaceAll('\n', '\r\n'), { shop: [shop('1.0.0')] }],
  [
    'with a mark at its begin and comments',
    `\ufeff# by hand\n---\n${indexOf(entry('1.0.0', '    # a comment\n'))}`,
    { shop: [shop('1.0.0')] },
  ],
  [
    'with quoted keys',
    indexOf(entry('1.0.0')).replace('  shop:', '  "shop":').replace('    version:', "    'version':"),
    { shop: [shop('1.0.0')] },
  ],
  ['with lists further in', indexOf(entry('1.0.0').replace('    - shop-1', '      - shop-1')), { shop: [shop('1.0.0')] }],
  [
    'with a short list of URLs',
    indexOf(entry('1.0.0').replace('    urls:\n    - shop-1.0.0.tgz', '    urls: [a.tgz, "b.tgz"]')),
    { shop: [shop('1.0.0', { urls: ['a.tgz', 'b.tgz'] })] },
  ],
  ['with the name of the algorithm', indexOf(entry('1.0.0').replace('digest: ', 'digest: sha256:')), { shop: [shop('1.0.0')] }],
  ['without a digest', indexOf(entry('1.0.0').replace(/ *digest: .*\n/, '')), { shop: [shop('1.0.0', { digest: null })] }],
  ['a version twice: the first', indexOf(entry('1.0.0'), entry('1.0.0').replace('shop-1.0.0.tgz', 'other.tgz')), { shop: [shop('1.0.0')] }],
  ['a version that is a number is passed over, as by helm', indexOf(entry('1.0'), entry('1.0.1')), { shop: [shop('1.0.1')] }],
  ['an entry without URLs is passed over', indexOf(entry('1.0.0').replace(/ *urls:\n.*\n/, ''), entry('1.0.1')), { shop: [shop('1.0.1')] }],
  [
    'a broken entry does not accept the others away',
    indexOf(entry('1.0.0').replace('digest: ', 'digest: "'), entry('1.0.1')),
    { shop: [shop('1.0.1')] },
  ],
  ['no charts', 'apiVersion: v1\nentries: {}\n', {}],
  ['a chart without versions', 'entries:\n  shop: []\n  other:\n', {}],
  ['JSON', JSON.stringify({ apiVersion: 'v1', entries: { shop: [{ name: 'shop', ...shop('1.0.0') }] } }), { shop: [shop('1.0.0')] }],
  ['flow style', `entries: {shop: [{version: 1.0.0, urls: [shop-1.0.0.tgz], digest: ${DIGEST}}]}`, { shop: [shop('1.0.0')] }],
  [
    'items in flow style',
    `entries:\n  shop:\n  - {version: 1.0.0, urls: [shop-1.0.0.tgz], digest: ${DIGEST}}\n`,
    { shop: [shop('1.0.0')] },
  ],
] as const)('SO12 an index %s', async (_, text, expected) => {
  const index = await read(text)
  expect(Object.fromEntries(Object.entries(index).filter(([, versions]) => versions.length > 0))).toEqual(expected as unknown as ChartIndex)
})

const BOMB = `a: &a [x,x,x,x,x,x,x,x,x]\n${[...'bcdefghi'].map((name, n) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[n]}`).join()}]`).join('\n')}\n`
test.each([
  ['a page of a web server', '<!DOCTYPE html>\n<html><body>Sign in</body></html>', /^the index /],
  ['nothing', '', /^the index .*no entries/],
  ['no entries', 'apiVersion: v1\n', /^the index .*no entries/],
  ['cut JSON', '{"entries": {', /^the index .*JSON/],
  ['JSON of another form', '{"entries": 7}', /^the index .*no entries/],
  ['an alias bomb', `${BOMB}entries: {shop: [*i]}\n`, /^the index /],
  [
    'an alias bomb between entries',
    indexOf(`  - urls: &a [x,x]\n    version: 1.0.0\n`, '  - urls: *a\n    version: 1.0.1\n'),
    /^read: shop/,
  ],
  [
    'another form that is large',
    `entries:\n  shop:\n${'  - {version: 1.0.0, urls: [x]}\n'.repeat(70_000)}`,
    /^the index .*`helm repo index`.* 2 MiB/,
  ],
  ['two documents', `${indexOf(entry('1.0.0'))}---\n${indexOf(entry('1.0.0'))}`, /^read: shop/],
] as const)('SO12 refused or read: %s', async (_, text, expected) => expect(await refusal(text)).toMatch(expected))

test('SO12 more than 100,000 versions are refused', async () => {
  const items = (count: number) => Array.from({ length: count }, (_, n) => `  - version: 1.0.${n}\n    urls: [x]\n`).join('')
  expect(await refusal(`entries:\n  shop:\n${items(100_000)}`)).toBe('read: shop')
  expect(await refusal(`entries:\n  shop:\n${items(100_001)}`)).toContain('more than 100000 versions')
})

test('SO12 names of charts are only names', async () => {
  const index = await read(`entries:\n  __proto__:\n${entry('1.0.0')}  constructor:\n${entry('1.0.0')}`)
  expect(Object.keys(index).sort()).toEqual(['__proto__', 'constructor'].filter((name) => Object.hasOwn(index, name)))
  expect(({} as Record<string, unknown>)['version']).toBeUndefined()
})

test('SO12 the order and the words of an index change nothing of its text', async () => {
  const [one, two] = await Promise.all([
    read(indexOf(entry('1.0.0'), entry('1.1.0'))),
    read(indexOf(entry('1.1.0'), entry('1.0.0', '    home: x\n'))),
  ])
  expect(indexText(one)).toBe(indexText(two))
})

test('SO12 others get their turn while a large index is read', async () => {
  let turns = 0
  const text = indexOf(...Array.from({ length: 5_000 }, (_, n) => entry(`1.0.${n}`)))
  const index = await readIndex(text, async () => {
    turns++
  })
  expect(index['shop']?.length).toBe(5_000)
  expect(turns).toBeGreaterThan(3)
})

test('SO12 fuzz: of indexes with lines moved, cut and changed nothing but charts or a refusal comes', async () => {
  const random = seededRandom(7)
  const pick = (below: number) => Math.floor(random() * below)
  const base = indexOf(entry('1.0.0'), entry('1.1.0'), entry('2.0.0-rc.1'))
  const bits = [
    '\t',
    '  ',
    '- ',
    '"',
    "'",
    ':',
    '{',
    '[',
    '&a ',
    '*a',
    '!!binary ',
    '|',
    '>',
    '#',
    '%',
    '---\n',
    '\u0000',
    '\ud800',
    '🦊',
    '<<: ',
  ]
  for (let round = 0; round < 3_000; round++) {
    let text = base
    for (let changes = 1 + pick(4); changes > 0; changes--) {
      const at = pick(text.length)
      const bit = bits[pick(bits.length)] ?? ''
      text = pick(3) === 0 ? text.slice(0, at) + text.slice(at + pick(60)) : text.slice(0, at) + bit + text.slice(at)
    }
    expect(await refusal(text)).toMatch(/^(read: |the index is refused: )/)
  }
})

test('SO12 an index that is written to take long, or much memory, takes neither', async () => {
  const spaces = ' '.repeat(2_000_000)
  const urls = '    - a.tgz\n'.repeat(1_000_000)
  const startMs = performance.now()
  expect(await refusal(`entries: a${spaces}b\n`)).toEqual(naming('no entries'))
  expect(await refusal(`entries:\n  x: a${spaces}b\n`)).toStartWith('read: ')
  expect(await refusal(`entries:\n  x:\n  - version: 1.0.0\n    urls:\n${urls}`)).toEqual(naming('version of x', '64 KiB'))
  expect(await refusal(`{"entries":{"a":[${'[],'.repeat(3_000_000)}1]}}`)).toEqual(naming('JSON', '8 MiB'))
  expect(performance.now() - startMs).toBeLessThan(2_000)
})
