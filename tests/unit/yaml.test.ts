import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseYamlDocuments, toYaml, YAML_ALIASES_MAX } from '../../shared/adapters/yaml.ts'
import { naming } from '../support/naming.ts'

const parse = (text: string) => parseYamlDocuments(text, { file: 'a.yaml' })
const values = (text: string) => parse(text).documents.map((document) => document.value)

describe('documents', () => {
  test('YM4 documents carry the line of their first node; empty and comment-only ones are skipped', () => {
    const parsed = parse('# licence\n---\n# about\na: 1\n---\n# nothing\n---\n---\nnull\n--- {b: 2}\n...\n')
    expect(parsed.documents).toEqual([
      { value: { a: 1 }, line: 4 },
      { value: { b: 2 }, line: 10 },
    ])
    expect(parsed.problems).toEqual([])
  })
  test('YM4 a mapping inside a document knows its line', () => {
    const parsed = parse('kind: List\nitems:\n- a: 1\n- \n  b: 2\n')
    const { items } = (parsed.documents[0]?.value ?? {}) as { items?: object[] }
    expect(items?.map((item) => parsed.lineOf(item))).toEqual([3, 5])
  })
  test('YM4 byte order mark and CRLF are no content', () => {
    expect(values('\ufeffa: b\r\nc: d\r\n---\r\ne: f\r\n')).toEqual([{ a: 'b', c: 'd' }, { e: 'f' }])
  })
})

describe('refusals', () => {
  test.each([
    ['a: 1\nkind: [', '2:7', ['[', 'never closed']],
    ['a: 1\nkind: [\n\n', '2:7', ['[', 'never closed']],
    ['a: {b: [1, {c: "]"}\n', '1:4', ['{', 'never closed']],
    ['a: {b: "x}\n', '1:8', ['"', 'never closed']],
    ['a: ["y", \'x [ "z"\n', '1:10', ["'", 'never closed']],
    ["a: x [y\nb: |\n  [\nc: 'it''s\n", '4:4', ["'", 'never closed']],
    ['a: [1]\nb: "x\nc: d\n', '3:1', ['"', 'line 2', 'not closed']],
    ['a: [\n]\n', '2:1', ['[', 'line 1', 'not closed']],
    ['a: 1\nb\n\n', '2:2', ['multiline key']],
  ])('YM7 what is not closed is told where it opens, nothing after the last line with text: %j', (text, place, values) => {
    expect(parse(text).problems).toEqual([{ path: `a.yaml:${place}`, message: naming(...values) }])
  })
  test.each([
    ['YM3 duplicate key', 'a: 1\nb: 2\na: 3\n', 'a.yaml:3:1', ['key "a"', 'twice']],
    ['YM3 duplicate after conversion', '1: a\n"1": b\n', 'a.yaml:2:2', ['key "1"', 'twice']],
    ['YM3 null key', 'x:\n  ~: 1\n', 'a.yaml:2:3', ['key', 'null']],
    ['YM3 list key', '? [a]\n: 1\n', 'a.yaml:1:3', ['key', 'list']],
    ['YM3 float key that Go would rewrite', '1e6: 1\n', 'a.yaml:1:1', ['key 1e6', 'number']],
    ['YM3 __proto__', '__proto__: {a: 1}\n', 'a.yaml:1:1', ['key "__proto__"']],
    ['YM3 infinity', 'a: .inf\n', 'a.yaml:1:4', ['.inf', 'JSON']],
    ['YM3 an integer that would lose digits', 'a: 9007199254740993\n', 'a.yaml:1:4', ['9007199254740993', '2^53']],
    ['YM3 unknown tag', 'a: !Ref b\n', 'a.yaml:1:9', ['tag !Ref']],
    ['YM3 unknown anchor', 'a: *b\n', 'a.yaml:1:5', ['*b', 'anchor']],
    ['YM3 a late merge', 'x: &x {r: 1}\ny:\n  r: 2\n  <<: *x\n', 'a.yaml:4:3', ['<<', 'key "r"', 'first']],
  ])('%s', (_, text, path, values) => expect(parse(text).problems).toEqual([{ path, message: naming(...values) }]))

  test('YM3 a syntax error leaves no document', () => {
    const parsed = parse('a: 1\n---\nb: [1,\nc: }\n')
    expect(parsed.documents).toEqual([])
    expect(parsed.problems).toHaveLength(1)
    expect(parsed.problems[0]?.path).toMatch(/^a\.yaml:4:/)
  })
  test('YM5 an alias bomb is refused before anything is built from it', () => {
    const levels = Array.from({ length: 9 }, (_, n) => `l${n + 1}: &l${n + 1} [${Array(9).fill(`*l${n}`).join(', ')}]\n`).join('')
    const problems = parse(`l0: &l0 x\n${levels}`).problems
    expect(problems[0]?.message).toEqual(naming('nodes'))
  })
  test('YM5 << copies no more members than a document may have nodes', () => {
    const keys = Array.from({ length: 20_000 }, (_, n) => `k${n}: 1`).join(', ') // 20 million copies, were it not for the limit
    const users = Array.from({ length: YAML_ALIASES_MAX }, (_, n) => `b${n}: {<<: *a}\n`).join('')
    expect(parse(`a: &a {${keys}}\n${users}`).problems).not.toEqual([])
  })
  test('YM5 aliases, depth and bytes have limits', () => {
    expect(parse(`a: &a 1\nb: [${Array(YAML_ALIASES_MAX).fill('*a').join(', ')}]\n`).problems).toEqual([])
    expect(
      parse(
        `a: &a 1\nb: [${Array(YAML_ALIASES_MAX + 1)
          .fill('*a')
          .join(', ')}]\n`,
      ).problems,
    ).toHaveLength(1)
    expect(parse(`${'['.repeat(99)}${']'.repeat(99)}`).problems).toEqual([])
    expect(parse(`${'['.repeat(200)}${']'.repeat(200)}`).problems).toHaveLength(1)
    expect(parse(`a: ${'x'.repeat(17 * 1024 * 1024)}`).problems[0]?.message).toContain('16 MiB')
  })
})

test('YM2 keys that are read as something else are warned about, with their line', () => {
  const parsed = parse('a: 1\non: push\nb:\n  n: x\n  "y": z\n')
  expect(parsed.documents[0]?.value).toEqual({ a: 1, true: 'push', b: { false: 'x', y: 'z' } })
  expect(parsed.warnings.map((warning) => warning.path)).toEqual(['a.yaml:2:1', 'a.yaml:4:3'])
})

test('YM6 what toYaml writes is read back the same', () => {
  const text = fc.oneof(
    fc.string(),
    fc.constantFrom(
      'yes',
      'n',
      'on',
      '0644',
      '08',
      '0o14',
      '1_000',
      '.5',
      '1e3',
      '~',
      '',
      ' ',
      '<<',
      '=',
      '- a',
      '#',
      '2001-01-01',
      'a: b',
      '.inf',
      '\n',
      'x\n',
    ),
  )
  const value = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      text,
      fc.boolean(),
      fc.constant(null),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e15, max: 1e15 }).map((number) => number + 0),
      fc.array(tie('node'), { maxLength: 4 }),
      fc.dictionary(
        text.filter((key) => key !== '__proto__'),
        tie('node'),
        { maxKeys: 4 },
      ),
    ),
  })).node
  fc.assert(
    fc.property(value, (node) => {
      const input = JSON.parse(JSON.stringify({ node }))
      const parsed = parse(toYaml(input))
      expect(parsed.problems).toEqual([])
      expect(parsed.documents.map((document) => document.value)).toEqual([input])
    }),
    { numRuns: 300 },
  )
})

describe('RH4 the place of a part', () => {
  const text =
    '# first\n\nkind: List\nitems:\n- kind: A\n  metadata: {labels: {a: b, "c": 1}}\n  "quoted": [x, {y: z}]\n- &m\n  kind: B\n- <<: *m\n  name: c\n'
  const { documents, placeOf } = parse(text)
  test.each([
    [[], 'a.yaml:3:1'],
    [['kind'], 'a.yaml:3:1'],
    [['items'], 'a.yaml:4:1'],
    [['items', 0], 'a.yaml:5:3'],
    [['items', 0, 'metadata'], 'a.yaml:6:3'],
    [['items', 0, 'metadata', 'labels', 'a'], 'a.yaml:6:23'],
    [['items', 0, 'metadata', 'labels', 'c'], 'a.yaml:6:30'],
    [['items', 0, 'metadata', 'name'], 'a.yaml:6:3'],
    [['items', 0, 'quoted', 0], 'a.yaml:7:4'],
    [['items', 0, 'quoted', 1, 'y'], 'a.yaml:7:18'],
    [['items', 1, 'kind'], 'a.yaml:9:3'],
    [['items', 2, 'name'], 'a.yaml:11:3'],
    [['items', 2, 'kind'], 'a.yaml:10:3'],
    [['nothing', 'here'], 'a.yaml:3:1'],
  ] as const)('%j', (path, place) => expect(placeOf(documents[0]?.value, path)).toBe(place))
})
