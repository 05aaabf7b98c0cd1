// Texts that break readers of YAML, and texts changed by chance: what we take, kubectl takes and reads the same;
// nothing throws, nothing runs long.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { readManifests } from '../../server/render/manifests.ts'
import { parseYamlDocuments, YAML_BYTES_MAX } from '../../shared/adapters/yaml.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { findKubectl } from '../support/kubectl.ts'
import { naming } from '../support/naming.ts'

const SEED = 20_262
const HEAD = 'apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n'
const MS_MAX = 8_000

const kubectl = findKubectl()
if (kubectl === null) process.stderr.write('SKIPPED: no kubectl (scripts/setup --cluster makes one): YAML was not compared with it\n')
let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'skerry-yaml-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

type Answer = { kind: 'read'; objects: string[] } | { kind: 'refused' }

/** Many texts by one process: a List has no borders that a broken member could move. */
function byKubectl(texts: readonly Uint8Array[]): Answer[] {
  return texts.map((bytes) => {
    const file = join(folder, 'manifest.yaml')
    writeFileSync(file, bytes)
    const run = Bun.spawnSync([kubectl ?? '', 'patch', '--local', '-f', file, '--type', 'merge', '-p', '{}', '-o', 'json'], {
      env: { HOME: folder },
    })
    if (!run.success) return { kind: 'refused' }
    const [object] = [JSON.parse(run.stdout.toString())]
    return { kind: 'read', objects: [canonicalJson(object)] }
  })
}

function ours(bytes: Uint8Array): Answer {
  const start = process.hrtime.bigint()
  const { found, problems } = readManifests(new Map([['a.yaml', bytes]]))
  const ms = Number(process.hrtime.bigint() - start) / 1e6
  if (ms > MS_MAX) throw new Error(`${ms} ms`)
  for (const { path } of problems) expect(path).toMatch(/^a\.yaml(:\d+)*$/)
  return problems.length > 0 ? { kind: 'refused' } : { kind: 'read', objects: found.map(({ object }) => canonicalJson(object)) }
}
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

const laughs = (levels: number, width: number): string => {
  const lines = ['a0: &a0 [lol]']
  for (let level = 1; level < levels; level++)
    lines.push(
      `a${level}: &a${level} [${Array(width)
        .fill(`*a${level - 1}`)
        .join(', ')}]`,
    )
  return lines.join('\n')
}

/** What kubectl refuses although YAML has it, and nothing could be read in two ways: directives, and lines of nothing
 *  but tabs in a block of text. */
const LOOSER = new Set(['a directive', 'an unknown directive', 'a tab after a block'])

/** `ours`: what we say of it; we may be stricter than kubectl. */
const HOSTILE: ReadonlyArray<readonly [name: string, text: string | Uint8Array, ours: 'read' | 'refused']> = [
  ['a billion laughs', `${HEAD}${laughs(10, 9)}\n`, 'refused'],
  ['a small laugh', `${HEAD}${laughs(3, 3)}\n`, 'read'],
  ['an alias of itself', `${HEAD}a: &a [*a]\n`, 'refused'],
  ['an alias of nothing', `${HEAD}a: *b\n`, 'refused'],
  ['aliases beyond their number', `${HEAD}a: &a x\nb: [${Array(1_001).fill('*a').join(', ')}]\n`, 'refused'],
  ['an anchor of the document before', `${HEAD}a: &a x\n---\n${HEAD}b: *a\n`, 'refused'],
  ['deep lists', `${HEAD}a: ${'['.repeat(50_000)}${']'.repeat(50_000)}\n`, 'refused'],
  ['deep mappings', `${HEAD}a: ${'{a: '.repeat(20_000)}1${'}'.repeat(20_000)}\n`, 'refused'],
  ['deep blocks', `${HEAD}${Array.from({ length: 3_000 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n')}\n`, 'refused'],
  ['deep dashes', `${HEAD}a:\n${'- '.repeat(10_000)}x\n`, 'refused'],
  ['a long text', `${HEAD}a: "${'x'.repeat(2_000_000)}"\n`, 'read'],
  ['many keys', `${HEAD}a: {${Array.from({ length: 100_000 }, (_, i) => `k${i}: ${i}`).join(', ')}}\n`, 'read'],
  ['too many nodes', `${HEAD}a: [${Array(500_001).fill('1').join(',')}]\n`, 'refused'],
  ['a tab as indent', `${HEAD}a:\n\tb: 1\n`, 'refused'],
  ['a tab between', `${HEAD}a:\tb\n`, 'read'],
  ['a byte order mark', `\ufeff${HEAD}`, 'read'],
  ['a byte order mark in the midst', `${HEAD}a: "\ufeff"\n`, 'read'],
  ['CRLF', `${HEAD}a: |\n  one\n  two\nb: [1,\n 2]\n`.replaceAll('\n', '\r\n'), 'read'],
  ['NUL', `${HEAD}a: "x\0y"\n`, 'refused'],
  ['an escape character', `${HEAD}a: "x\u001by"\n`, 'refused'],
  ['invalid UTF-8', new Uint8Array([...bytesOf(`${HEAD}a: "`), 0xc3, 0x28, ...bytesOf('"\n')]), 'refused'],
  ['half a surrogate', new Uint8Array([...bytesOf(`${HEAD}a: "`), 0xed, 0xa0, 0x80, ...bytesOf('"\n')]), 'refused'],
  ['UTF-16', new Uint8Array(Buffer.from(`\ufeff${HEAD}`, 'utf16le')), 'refused'],
  ['a key twice', `${HEAD}a: 1\na: 2\n`, 'refused'],
  ['a key twice after reading', `${HEAD}k: {on: 1, "true": 2}\n`, 'refused'],
  ['merge', `${HEAD}a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\n`, 'read'],
  ['merge of a list', `${HEAD}a: &a {x: 1}\nb: &b {x: 2, z: 3}\nc: {<<: [*a, *b]}\n`, 'read'],
  ['merge of a text', `${HEAD}b: {<<: x}\n`, 'refused'],
  ['a quoted merge key', `${HEAD}b: {"<<": x}\n`, 'read'],
  ['the tag of JavaScript', `${HEAD}a: !!js/function "function(){}"\n`, 'refused'],
  ['the tag of Python', `${HEAD}a: !!python/object/apply:os.system ["id"]\n`, 'refused'],
  ['a tag of somebody', `${HEAD}a: !mine {b: 1}\n`, 'refused'],
  ['binary', `${HEAD}a: !!binary aGVsbG8=\n`, 'refused'],
  ['a set', `${HEAD}a: !!set {b, c}\n`, 'refused'],
  ['a timestamp', `${HEAD}a: 2001-01-01\n`, 'read'],
  ['a complex key', `${HEAD}a: {? {b: 1} : 2}\n`, 'refused'],
  ['a prototype', `${HEAD}__proto__: {polluted: true}\n`, 'refused'],
  ['a constructor', `${HEAD}constructor: {prototype: {polluted: true}}\n`, 'read'],
  ['a directive', `%YAML 1.1\n---\n${HEAD}`, 'read'],
  ['an unknown directive', `%FOO bar\n---\n${HEAD}`, 'read'],
  ['a huge number', `${HEAD}a: ${'9'.repeat(400)}\n`, 'read'],
  ['a tab after a block', `${HEAD}a: |\n  x\n\t\nb: 1\n`, 'read'],
  ['only comments', '# nothing\n---\n# here\n', 'read'],
  ['nothing', '', 'read'],
  ['a text alone', 'hello\n', 'refused'],
  ['a list alone', '- 1\n', 'refused'],
]

describe('YM3 YM5 hostile texts', () => {
  test.each(HOSTILE)('%s', (_, text, expected) => {
    const bytes = typeof text === 'string' ? bytesOf(text) : text
    expect(ours(bytes).kind).toBe(expected)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })
  test('larger than a file may be', () => {
    const text = `${HEAD}a: "${'x'.repeat(YAML_BYTES_MAX)}"\n`
    expect(parseYamlDocuments(text, { file: 'a.yaml' }).problems.map(({ message }) => message)).toEqual([naming('16 MiB')])
  })
  test.skipIf(kubectl === null)(
    'what we take of them, kubectl reads the same',
    () => {
      const taken = HOSTILE.map(([name, text]) => [name, typeof text === 'string' ? bytesOf(text) : text] as const)
        .map(([name, bytes]) => ({ name, bytes, answer: ours(bytes) }))
        .filter(({ name, answer }) => !LOOSER.has(name) && answer.kind === 'read' && answer.objects.length > 0)
      const theirs = byKubectl(taken.map(({ bytes }) => bytes))
      expect(taken.map(({ name, answer }) => [name, answer])).toEqual(taken.map(({ name }, index) => [name, theirs[index] as Answer]))
    },
    60_000,
  )
})

const scalar = fc.oneof(
  fc.constantFrom(
    'yes',
    'off',
    '~',
    'null',
    '0644',
    '1e3',
    '0x1f',
    '1_000',
    '.5',
    '2001-01-01',
    '1:30',
    '"q"',
    "'s'",
    '<<',
    '=',
    '-',
    '[]',
    '{}',
    '&a 1',
    '*a',
    '!!str 1',
    '! x',
    '# c',
    '? x',
    '|',
    '>-',
    '@',
    '`',
    '%x',
    ',',
    ': x',
    'a: b',
    'x #y',
    'é',
    '😀',
    '\\',
    '"\\x41\\u00e9"',
  ),
  fc.string({ maxLength: 8 }),
)
const { node } = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small' },
    scalar,
    fc.array(tie('node'), { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
    fc
      .array(fc.tuple(scalar, tie('node')), { maxLength: 3 })
      .map((members) => `{${members.map(([key, value]) => `${key}: ${value}`).join(', ')}}`),
    fc.string({ maxLength: 12 }).map((text) => `"${text.replace(/["\\]/g, '')}"`),
  ),
}))
const block = fc
  .array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'on', '"d"', 'e-f'), fc.nat(2), node), { maxLength: 5 })
  .map((members) => members.map(([key, depth, value]) => `${'  '.repeat(depth)}${key}: ${value}`).join('\n'))
const text = fc.oneof(
  block.map((inside) => `${HEAD}${inside}\n`),
  fc
    .tuple(
      fc.constantFrom('|', '>', '|-', '>+', '|2', '>1-'),
      fc.array(fc.constantFrom('  x', '   y', '', ' ', '  x\ty', '  z: 1', '# c'), { maxLength: 6 }),
    )
    .map(([style, lines]) => `${HEAD}a: ${style}\n${lines.join('\n')}\nb: 1\n`),
)

test('YM5 by chance: nothing throws, nothing runs long', () => {
  fc.assert(
    fc.property(text, (one) => void ours(bytesOf(one))),
    { seed: SEED, numRuns: 4_000 },
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void ours(bytes)),
    { seed: SEED, numRuns: 2_000 },
  )
}, 60_000)

describe.skipIf(kubectl === null)('kubectl as oracle', () => {
  test('YM1 what we take by chance, kubectl takes and reads the same', () => {
    const taken = fc
      .sample(text, { seed: SEED, numRuns: 3_000 })
      .map(bytesOf)
      .map((bytes) => ({ bytes, answer: ours(bytes) }))
      .filter(({ answer }) => answer.kind === 'read')
      .slice(0, 120)
    expect(taken.length).toBe(120)
    const theirs = byKubectl(taken.map(({ bytes }) => bytes))
    const different = taken.flatMap(({ bytes, answer }, index) =>
      JSON.stringify(theirs[index]) === JSON.stringify(answer)
        ? []
        : [{ text: new TextDecoder().decode(bytes), answer, theirs: theirs[index] }],
    )
    expect(different).toEqual([])
  }, 120_000)
})
