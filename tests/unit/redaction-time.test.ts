// Texts of others are as long as others make them: what it costs to redact one grows with its length, and not with its
// square.
import { expect, test } from 'bun:test'
import { safeLog, safeText } from '../../agent/cluster/redact/safe-text.ts'
import { processorMs } from '../support/processor-time.ts'

/** Each is repeated up to the length. */
const TEXTS = {
  words: 'lorem ipsum ',
  'a word without an end': 'a',
  dots: 'a.',
  dashes: 'a-',
  'schemes without an address': 'a+',
  'addresses in brackets': 'http://a(',
  'a run of punctuation': '.',
  'names of headers': 'eyJ-',
  'key words': 'password is ',
  'key words with quotes': 'token "',
  'keys below each other': '\n  password:',
  'quotes that end': "'",
  'quotes that never end': '\u2018',
  backslashes: '\\\\"',
  'known values': 'hunter-hunter-hunter.',
  patterns: 'should match ^',
}
const [SHORT, LONG] = [20_000, 60_000]
const textOf = (part: string, chars: number): string => `a${part.repeat(Math.ceil(chars / part.length)).slice(0, chars)}a`

const DOCUMENTS = [
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, stringData: { a: 'hunter-hunter-hunter' } },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b' }, data: { a: 'a'.repeat(50_000), b: 'lorem ipsum '.repeat(4_000) } },
]

/** The least of three runs: what the compiler and the collector of garbage add is left out. */
async function leastMs(work: () => unknown): Promise<number> {
  const runs = [await processorMs(work), await processorMs(work), await processorMs(work)]
  return Math.min(...runs)
}

const cases = Object.entries(TEXTS).flatMap(([name, part]) => [
  [`a log line of ${name}`, part, (text: string) => safeLog(text, { documents: DOCUMENTS })] as const,
  [`a message of ${name}`, part, (text: string) => safeText(text, { documents: DOCUMENTS })] as const,
])

test.each(cases)('KA56 %s', async (_, part, redact) => {
  const [short, long] = [textOf(part, SHORT), textOf(part, LONG)]
  // Linear is three times as much, square is nine times.
  const shortMs = await leastMs(() => redact(short))
  expect(await leastMs(() => redact(long))).toBeLessThan(5 * shortMs + 100)
})

test('KA56 of a longer text the beginning is read, and of a log the end', () => {
  const text = `first ${'word '.repeat(20_000)}last`
  expect(safeText(text)).toStartWith('first word word')
  const log = safeLog(text)
  expect(log).toHaveLength(64 * 1024)
  expect(log).toEndWith('word last')
})
