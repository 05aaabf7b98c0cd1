// The pure parts of the Helm renderer: .helmignore, values, errors, output, capabilities.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { API_VERSIONS_BYTES_MAX, apiVersionArguments, withoutServed } from '../../server/render/helm/capabilities.ts'
import { helmErrors } from '../../server/render/helm/errors.ts'
import { helmIgnore, IGNORE_LENGTH_MAX, IGNORE_RULES_MAX } from '../../server/render/helm/ignore.ts'
import { splitHelmOutput } from '../../server/render/helm/output.ts'
import { scanChart } from '../../server/render/helm/scan.ts'
import { hasValueAt, isValues, mapTexts, mergeValues, readValues, type Values, valueAt } from '../../server/render/helm/values.ts'
import { useWarnings } from '../../server/render/helm/warnings.ts'
import { naming } from '../support/naming.ts'
import { processorMs } from '../support/processor-time.ts'

describe('HM3 .helmignore', () => {
  const rows: ReadonlyArray<readonly [string, string, boolean]> = [
    ['', 'a', false],
    ['', 'templates/.a.yaml', true],
    ['', 'templates/x/.a.yaml', false],
    ['*.bak', 'a.bak', true],
    ['*.bak', 'x/y/a.bak', true],
    ['# *.bak', 'a.bak', false],
    ['/a', 'a', true],
    ['/a', 'x/a', false],
    ['x/*.txt', 'x/a.txt', true],
    ['x/*.txt', 'x/y/a.txt', false],
    ['docs/', 'docs/a', true],
    ['docs/', 'x/docs/a', true],
    ['docs/', 'docs', false],
    ['docs/', 'docs/', true],
    ['[ab]?', 'ac', true],
    ['[^ab]?', 'ac', false],
    ['a\\*', 'a*', true],
    ['a\\*', 'ab', false],
    ['!keep', 'keep', false],
    ['!keep', 'other', true],
    ['**/a', 'x/a', false],
    ['[', '[', false],
    ['\ufeffa', 'a', true],
    ['a.b', 'aXb', false],
    ['[a-c]x', 'bx', true],
    ['[a-c]x', 'dx', false],
    ['*a*b*', 'xaxxbx', true],
    ['*a*b*', 'xbxa', false],
    ['*.tar.*', 'x.tar.tar.gz', true],
    ['a?', 'ü', false],
    ['?', 'ü', true],
    ['*/b', 'a/b', true],
    ['*/b', 'x/a/b', false],
    ['a*', 'x/ab/c', true],
    ['a\\', 'a', false],
  ]
  test.each(rows.map(([rules, path, hidden]) => [rules, path, hidden] as const))('%j %s → %s', (rules, path, hidden) => {
    expect(helmIgnore(rules)?.hides(path)).toBe(hidden)
  })
})

test('HM10 HM3 many stars are no trouble, and too many rules are refused', () => {
  const stars = helmIgnore(`${'*a'.repeat(200)}b`)
  expect(stars?.hides('a'.repeat(1_000))).toBe(false)
  const rules = (count: number) => Array.from({ length: count }, (_, number) => `x${number}`).join('\n')
  expect(helmIgnore(rules(IGNORE_RULES_MAX - 1))?.hides('x1')).toBe(true)
  expect(helmIgnore(rules(IGNORE_RULES_MAX))).toBeNull() // one rule is helm's own
  expect(helmIgnore('#'.repeat(IGNORE_LENGTH_MAX))).not.toBeNull()
  expect(helmIgnore('#'.repeat(IGNORE_LENGTH_MAX + 1))).toBeNull()
})

/** Milliseconds, far above what is needed on a busy machine and far below what each of these took. */
const QUICK = 2_000

test('HM10 rules of stars have a bound for all files together, and a name that is in many folders counts once', async () => {
  const costly = Array.from({ length: 480 }, (_, at) => `*${'a'.repeat(120)}${String.fromCharCode(98 + (at % 20))}`).join('\n')
  const ignore = helmIgnore(costly)
  const name = 'a'.repeat(240)
  expect(await processorMs(() => Array.from({ length: 10_000 }, (_, at) => ignore?.hides(`files/${name}${at}`)))).toBeLessThan(QUICK)
  expect([ignore?.tookTooMany(), ignore?.hides('other')]).toEqual([true, true])
  const same = helmIgnore(costly)
  Array.from({ length: 1_000 }, (_, at) => same?.hides(`${at}/${name}`))
  expect([same?.tookTooMany(), same?.hides('other')]).toEqual([false, false])
  const set = helmIgnore(`*[${'bc'.repeat(30_000)}]`)
  expect(await processorMs(() => Array.from({ length: 10_000 }, (_, at) => set?.hides(`${name}${at}`)))).toBeLessThan(QUICK)
  expect(set?.tookTooMany()).toBe(true)
})

test('HM6 nothing that helm says takes the square of its length', async () => {
  const executed = 'Error: a:1:1\n  executing "a" at <b>:\n    '
  const said = {
    'empty lines': `Error: x${'\n'.repeat(64 * 1024)}x`,
    spaces: `${executed}x${' '.repeat(60 * 1024)}x`,
    'spaces and lines': `${executed}x${' \n'.repeat(30 * 1024)}${' '.repeat(1024)}x`,
    'a chain': 'Error: template: '.concat('template: a:1:1: executing "a" at <'.repeat(1_800)),
  }
  for (const [name, text] of Object.entries(said))
    expect([name, (await processorMs(() => helmErrors(text))) < QUICK / 10]).toEqual([name, true])
})

test('HM4 HM7 a chart of 160 KB with as many uses, includes, definitions or looks as fit is scanned at once', async () => {
  const texts = {
    uses: '{{now}}\n'.repeat(23_000),
    includes: '{{include $x .}}\n'.repeat(10_000),
    'in one action': `{{${' include $x'.repeat(15_000)} }}`,
    definitions: '{{define "a"}}{{include $x .}}{{include "a" .}}{{end}}'.repeat(3_000),
  }
  for (const [name, text] of Object.entries(texts))
    expect([name, (await processorMs(() => useWarnings(scanChart([{ path: 'a', text, kind: 'template' }]), () => ({ path: 'a', lineText: () => '' })))) < QUICK]).toEqual([name, true]) // biome-ignore format: one case a line
  const { uses } = scanChart([{ path: 'a', text: `${texts.uses}\n  {{ now }}`, kind: 'template' }])
  expect([uses[1], uses.at(-1)]).toMatchObject([
    { line: 2, column: 3 },
    { line: 23_002, column: 6 },
  ])
  const looks = '{{ .Capabilities.APIVersions.Has "x/v1" }}\n'.repeat(20_000)
  const { apis } = scanChart([{ path: 'a', text: looks, kind: 'template' }])
  expect(await processorMs(() => withoutServed(looks, apis))).toBeLessThan(QUICK)
  expect(withoutServed(looks, apis)).toBe(`{{ false${' '.repeat(31)} }}\n`.repeat(20_000))
})

const leaf = fc.oneof(fc.constant(null), fc.integer(), fc.string({ maxLength: 3 }), fc.boolean(), fc.array(fc.integer(), { maxLength: 2 }))
const valuesArbitrary = fc.letrec<{ values: Values; value: unknown }>((tie) => ({
  values: fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor'), tie('value'), { maxKeys: 4 }) as fc.Arbitrary<Values>,
  value: fc.oneof({ depthSize: 'small', withCrossShrink: true }, leaf, tie('values')),
})).values

describe('HM2 merging', () => {
  test('what is above wins at every place that it names, mappings are merged, and all else stays', () => {
    const check = (merged: Values, below: Values, above: Values) => {
      const names = new Set([...Object.keys(below), ...Object.keys(above)])
      expect(new Set(Object.keys(merged))).toEqual(names)
      for (const name of names) {
        const of = (values: Values) => (Object.hasOwn(values, name) ? values[name] : undefined)
        const [low, high] = [of(below), of(above)]
        if (isValues(low) && isValues(high)) check(of(merged) as Values, low, high)
        else expect(of(merged)).toEqual(Object.hasOwn(above, name) ? high : low)
      }
    }
    fc.assert(fc.property(valuesArbitrary, valuesArbitrary, (below, above) => check(mergeValues(below, above), below, above)))
  })
  test('merging with nothing, and with itself, changes nothing; neither side is changed', () => {
    fc.assert(
      fc.property(valuesArbitrary, valuesArbitrary, (one, other) => {
        const before = JSON.stringify([one, other])
        expect(mergeValues(one, {})).toEqual(one)
        expect(mergeValues({}, one)).toEqual(one)
        expect(mergeValues(one, one)).toEqual(one)
        mergeValues(one, other)
        expect(JSON.stringify([one, other])).toBe(before)
      }),
    )
  })
  test.each([
    ['a', { a: 1 }],
    ['a.b', { a: { b: 1 } }],
    ['a\\.b.c', { 'a.b': { c: 1 } }],
    ['a..b', null],
    ['', null],
    ['a[0]', null],
  ])('HM2 a single value at %s', (at, expected) => expect(valueAt(at, 1)).toEqual(expected))
  test('several documents are merged; what is no mapping is refused with its line', () => {
    expect(readValues('a: {b: 1}\n---\na: {c: 2}\n', 'v.yaml')).toEqual({ kind: 'values', values: { a: { b: 1, c: 2 } } })
    expect(readValues('# nothing\n', 'v.yaml')).toEqual({ kind: 'values', values: {} })
    expect(readValues('a: 1\n---\n- x\n', 'v.yaml')).toEqual({
      kind: 'refused',
      problems: [{ path: 'v.yaml:3', message: naming('mapping') }],
    })
  })
  test('every text is visited with its place, and what it becomes keeps its type', () => {
    const places: string[] = []
    const mapped = mapTexts({ a: 'x', b: [{ c: 'y' }, 3], d: null }, (text, place) => {
      places.push(place)
      return text === 'y' ? { z: 1 } : text
    })
    expect(mapped).toEqual({ a: 'x', b: [{ c: { z: 1 } }, 3], d: null })
    expect(places).toEqual(['a', 'b.0.c'])
  })
  test('whether there is a value at a place', () => {
    const values = { a: { b: [null] } }
    expect([['a'], ['a', 'b', '0'], ['a', 'b', '1'], ['a', 'c'], ['x']].map((names) => hasValueAt(values, names))).toEqual([
      true,
      true,
      false,
      false,
      false,
    ])
  })
})

const place = (file: string | null, line: number | null, column: number | null) => ({ file, line, column })
describe('HM6 what helm says', () => {
  const rows: ReadonlyArray<readonly [string, string, ReturnType<typeof place>, string]> = [
    [
      'required',
      'Error: execution error at (c/templates/x.yaml:1:6): say "who"\n\nUse --debug flag to render out invalid YAML\n',
      place('c/templates/x.yaml', 1, 6),
      'say "who"',
    ],
    [
      'parse',
      'Error: parse error at (c/templates/x.yaml:7): missing value for if\n',
      place('c/templates/x.yaml', 7, null),
      'missing value for if',
    ],
    [
      'env',
      'Error: parse error at (c/templates/x.yaml:7): function "env" not defined\n',
      place('c/templates/x.yaml', 7, null),
      naming('function env'),
    ],
    [
      'helm 3, through a helper',
      'Error: template: c/templates/x.yaml:5:5: executing "c/templates/x.yaml" at <include "h" .>: error calling include: template: c/templates/_h.tpl:2:13: executing "h" at <.Values.no.such>: nil pointer evaluating interface {}.such\n',
      place('c/templates/_h.tpl', 2, 13),
      '<.Values.no.such>: nil pointer evaluating interface {}.such (rendering c/templates/x.yaml:5)',
    ],
    [
      'helm 4, through a helper',
      'Error: c/templates/x.yaml:5:5\n  executing "c/templates/x.yaml" at <include "h" .>:\n    error calling include:\nc/templates/_h.tpl:2:13\n  executing "h" at <.Values.no.such>:\n    nil pointer evaluating interface {}.such\n\nUse --debug flag to render out invalid YAML\n',
      place('c/templates/_h.tpl', 2, 13),
      '<.Values.no.such>: nil pointer evaluating interface {}.such (rendering c/templates/x.yaml:5)',
    ],
    [
      'a value that a function quotes',
      'Error: c/templates/x.yaml:1:6\n  executing "c/templates/x.yaml" at <mustToDate "2006" .Values.password>:\n    error calling mustToDate: parsing time "hunter2" as "2006": cannot parse "hunter2" as "2006"\n',
      place('c/templates/x.yaml', 1, 6),
      '<mustToDate "2006" .Values.password>: error calling mustToDate: parsing time …',
    ],
    [
      'a template in a value',
      'Error: template: c/templates/x.yaml:2:6: executing "c/templates/x.yaml" at <tpl .Values.a .>: error calling tpl: cannot parse template "secret: {{ .Values.a.b.c": template: gotpl:1: unclosed action\n',
      place('c/templates/x.yaml', 2, 6),
      '<tpl .Values.a .>: error calling tpl: cannot parse template …: template: gotpl:1: unclosed action',
    ],
    [
      'a missing template',
      'Error: c/templates/x.yaml:1:6\n  executing "c/templates/x.yaml" at <include "nope" .>:\n    error calling include:\ntemplate: no template "nope" associated with template "gotpl"\n',
      place('c/templates/x.yaml', 1, 6),
      '<include "nope" .>: error calling include: template: no template "nope" associated with template "gotpl"',
    ],
    [
      'YAML',
      'Error: YAML parse error on c/templates/x.yaml: error converting YAML to JSON: yaml: line 7: found unexpected end of stream\n',
      place('c/templates/x.yaml', null, null),
      naming('line 7', 'YAML: found unexpected end of stream'),
    ],
    [
      'a value in a YAML error',
      'Error: YAML parse error on c/templates/x.yaml: error unmarshaling JSON: cannot unmarshal !!str `hunter2` into map\n',
      place('c/templates/x.yaml', null, null),
      expect.stringMatching(/YAML: .* !!str … into map$/),
    ],
    [
      'values.yaml',
      'Error: cannot load values.yaml: cannot unmarshal yaml document: error converting YAML to JSON: yaml: line 1: did not find expected node content\n',
      place('/values.yaml', 1, null),
      'did not find expected node content',
    ],
    [
      'anything else',
      'WARNING: x\nError: chart requires kubeVersion: >=2 which is incompatible with Kubernetes v1.36.3\n',
      place(null, null, null),
      'chart requires kubeVersion: >=2 which is incompatible with Kubernetes v1.36.3',
    ],
  ]
  test.each(rows.map((row) => [row[0], row] as const))('%s', (_, [, stderr, expected, message]) => {
    const [error, ...others] = helmErrors(stderr)
    expect(others).toEqual([])
    expect({ file: error?.file ?? null, line: error?.line ?? null, column: error?.column ?? null, message: error?.message }).toEqual({
      ...expected,
      message,
    })
  })
  test.each([
    ['range .Values.pw', "range can't iterate over hunter2", "range can't iterate over this value"],
    ['include .Values.pw .', 'error calling include: template: no template "hunter2" associated with template "gotpl"', null],
    ['include "c.x" .', 'error calling include: template: no template "c.x" associated with template "gotpl"', 'c.x'],
  ])('a value of <%s> is not told: %s', (at, reason, expected) => {
    const [error] = helmErrors(`Error: c/templates/a.yaml:1:2\n  executing "c/templates/a.yaml" at <${at}>:\n    ${reason}\n`)
    expect(error?.message).toContain(expected ?? 'no template …')
    expect(error?.message).not.toContain('hunter2')
  })
  test('all errors of a schema, of both versions, without values', () => {
    const head = "Error: values don't meet the specifications of the schema(s) in the following chart(s):\n"
    const four = helmErrors(
      `${head}c:\n- at '': missing property 'need'\n- at '/a/b~1c': 'hunter2' does not match pattern '^x'\nsub:\n- at '/e': value must be one of 'p', 'q'\n`,
    )
    expect(JSON.stringify(four)).not.toContain('hunter2')
    expect(four.map(({ values, message }) => [values?.chart, values?.at.join(' '), message])).toEqual([
      ['c', '', naming("'need'")],
      ['c', 'a b/c', naming('a.b/c:', "'^x'")],
      ['sub', 'e', naming('e:', "'p', 'q'")],
    ])
    const three = helmErrors(`${head}c:\n- (root): need is required\n- a.b: Invalid type. Expected: string, given: integer\n`)
    expect(three.map(({ values, message }) => [values?.at, message])).toEqual([
      [[], naming('need is required')],
      [['a', 'b'], naming('a.b:', 'string', 'integer')],
    ])
  })
  test('nothing that is no error', () => expect(helmErrors('level=INFO msg="skipping"\n')).toEqual([]))
})

describe('HM5 output', () => {
  const names = (text: string) =>
    Object.fromEntries([...splitHelmOutput(text)].map(([name, bytes]) => [name, new TextDecoder().decode(bytes)]))
  test('documents of one template are one file, in helm’s order', () => {
    const text =
      '---\n# Source: c/templates/a.yaml\na: 1\n---\n# Source: c/templates/b.yaml\nb: 1\n---\n# Source: c/templates/a.yaml\na: 2\n'
    expect(names(text)).toEqual({ 'c/templates/a.yaml': 'a: 1\n---\na: 2\n', 'c/templates/b.yaml': 'b: 1\n' })
  })
  test('names are fit to be read as manifests', () => {
    const of = (name: string) => Object.keys(names(`---\n# Source: ${name}\na: 1\n`))[0]
    expect(['c/templates/a.txt', 'c/templates/x/.a.yaml', 'c/crds/kustomization.yaml', 'c/a.JSON', '../../etc/x.yaml'].map(of)).toEqual([
      'c/templates/a.txt.yaml',
      'c/templates/x/_.a.yaml',
      'c/crds/kustomization.yaml.yaml',
      'c/a.JSON',
      '_../_../etc/x.yaml',
    ])
  })
  test('nothing is nothing', () => expect(names('\n')).toEqual({}))
})

describe('HM4 capabilities', () => {
  test('names go in arguments below the limit of one; too many of them are refused at their limit', () => {
    const name = 'x'.repeat(99)
    const many = Array.from({ length: API_VERSIONS_BYTES_MAX / 100 }, () => name)
    const groups = apiVersionArguments(many) ?? []
    expect(groups.flatMap((group) => group.slice('--api-versions='.length).split(','))).toEqual(many)
    expect(Math.max(...groups.map((group) => group.length))).toBeLessThan(128 * 1024)
    expect(apiVersionArguments(many.concat('y'.repeat(99)))).toBeNull()
    expect(apiVersionArguments([])).toEqual([])
  })
  test('a look for what is not served is false, and no line or column moves', () => {
    const text = '{{ if .Capabilities.APIVersions.Has\n "a/v1" }}x{{ end }}'
    const at = text.indexOf('.Cap')
    const changed = withoutServed(text, [{ api: 'a/v1', file: 'x', at, end: text.indexOf(' }}x') }])
    expect(changed.replace(/ +/g, ' ')).toBe('{{ if false \n }}x{{ end }}')
    expect(changed.length).toBe(text.length)
  })
})
