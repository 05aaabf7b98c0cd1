// Templates that nobody means well with: by a grammar, by changes to good ones, and by hand. None throws, none runs
// long, none tells a value.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { RenderInputs } from '../../server/render/inputs.ts'
import { evaluate, renderText } from '../../server/render/liquid/engine.ts'
import { LIQUID_FILTERS, OWN_FILTERS } from '../../server/render/liquid/filters.ts'
import { recordedInputs } from '../../server/render/record/inputs.ts'

const SEED = 20_261
const INPUTS: RenderInputs = recordedInputs(
  {
    cluster: { name: 'edge-1', labels: { region: 'eu' }, facts: { kubernetesVersion: 'v1.36.3', apiVersions: { v1: true } as const } },
    config: {
      text: 'hello',
      list: [1, 'b', { c: [null] }],
      map: { a: { b: 1 } },
      on: true,
      none: null,
      secret: 'hunter2',
      big: 1e21,
      deep: '['.repeat(500),
    },
    service: { name: 'web', project: 'shop', namespace: null },
    source: { version: 'abc' },
  },
  () => {},
)
const PLACE = { file: 'f.liquid' }
/** Generous: the machine may be busy. A template that escapes its limits takes minutes, or all memory. */
const MS_MAX = 8_000

function check(text: string): 'rendered' | 'failed' {
  const start = process.hrtime.bigint()
  const result = renderText(text, PLACE, INPUTS)
  const ms = Number(process.hrtime.bigint() - start) / 1e6
  if (ms > MS_MAX) throw new Error(`${ms} ms`)
  if (result.kind === 'rendered') return 'rendered'
  if (result.problems.length === 0) throw new Error('failed without a problem')
  for (const { path, message, excerpt } of result.problems) {
    if (!/^f\.liquid:\d+:\d+$/.test(path)) throw new Error(`place ${path}`)
    if (`${message}${excerpt}`.includes('hunter2')) throw new Error('tells a value')
  }
  return 'failed'
}

const NAMES = [
  'config',
  'cluster',
  'service',
  'text',
  'list',
  'map',
  'secret',
  'a',
  'b',
  'i',
  'x',
  'forloop',
  'size',
  'first',
  '__proto__',
  'constructor',
  'nope',
]
const name = fc.constantFrom(...NAMES)
const literal = fc.constantFrom(
  '1',
  '-5',
  '0.5',
  '99999999999',
  '"s"',
  "'%Y'",
  'nil',
  'true',
  'empty',
  'blank',
  '""',
  '(1..3)',
  '(1..100000000)',
  '(1..config.big)',
)
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join('.'))
const indexed = fc.tuple(path, path).map(([a, b]) => `${a}[${b}]`)
const value = fc.oneof(path, literal, indexed, fc.constantFrom('config.secret', 'config.list', 'config.map', 'config.deep', 'config'))
const filter = fc
  .tuple(
    fc.constantFrom(...LIQUID_FILTERS, ...Object.keys(OWN_FILTERS), 'required', 'semverCompare', 'date', 'nope'),
    fc.array(value, { maxLength: 3 }),
  )
  .map(([filterName, args]) => ` | ${filterName}${args.length === 0 ? '' : `: ${args.join(', ')}`}`)
const filtered = fc.tuple(value, fc.array(filter, { maxLength: 4 })).map(([first, filters]) => first + filters.join(''))
const condition = fc.tuple(value, fc.constantFrom('==', '!=', '<', '>=', 'contains', 'and', 'or'), value).map((parts) => parts.join(' '))
const { template } = fc.letrec<{ template: string; node: string }>((tie) => ({
  template: fc.array(tie('node'), { maxLength: 5 }).map((nodes) => nodes.join('')),
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(
      'text ',
      '\n',
      '{{',
      '%}',
      '{%- raw -%}{{ x }}{% endraw %}',
      '{% comment %}x{% endcomment %}',
      '{% break %}',
      '{% cycle 1, 2 %}',
      "{% render 'x' %}",
      '{% increment a %}',
    ),
    filtered.map((inside) => `{{ ${inside} }}`),
    filtered.map((inside) => `{% assign x = ${inside} %}`),
    fc.tuple(condition, tie('template')).map(([test_, body]) => `{% if ${test_} %}${body}{% else %}n{% endif %}`),
    fc.tuple(value, tie('template')).map(([list, body]) => `{% for i in ${list} limit: 50 %}${body}{% endfor %}`),
    tie('template').map((body) => `{% capture b %}${body}{% endcapture %}`),
    fc.tuple(value, value, tie('template')).map(([what, when, body]) => `{% case ${what} %}{% when ${when} %}${body}{% endcase %}`),
  ),
}))

test('LQ4 LQ5 LQ6 templates of the grammar: limits hold, nothing is thrown, no value is told', () => {
  const kinds = new Set<string>()
  fc.assert(
    fc.property(template, (text) => {
      kinds.add(check(text))
    }),
    { seed: SEED, numRuns: 1_500 },
  )
  expect([...kinds].sort()).toEqual(['failed', 'rendered'])
}, 240_000)

const GOOD = [
  'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ service.name | append: "-x" | trunc: 20 }}\n{% if config.on %}data:\n  a: {{ config.map | toYaml | nindent: 4 }}{% endif %}\n',
  '{% for pair in config.map %}{{ pair[0] | quote }}: {{ pair[1] | toJson }}\n{% endfor %}',
  '{% assign x = config.list | first | default: 1 %}{% case x %}{% when 1 %}one{% else %}more{% endcase %}{% capture y %}{{ x }}{% endcapture %}{{ y | b64enc }}',
]

test('LQ4 LQ6 good templates, changed a little', () => {
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.nat(8),
    insert: fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom('{{', '}}', '{%', '%}', '|', '[', '"', '\0', '\u2028')),
  })
  fc.assert(
    fc.property(fc.constantFrom(...GOOD), fc.array(change, { minLength: 1, maxLength: 6 }), (good, changes) => {
      let text = good
      for (const { at, length, insert } of changes) {
        const from = Math.floor(at * text.length)
        text = text.slice(0, from) + insert + text.slice(from + length)
      }
      check(text)
    }),
    { seed: SEED, numRuns: 3_000 },
  )
}, 120_000)

test('LQ8 values are templates too: none throws', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        template,
        filtered.map((inside) => `{{ ${inside} }}`),
      ),
      (text) => {
        const result = evaluate(text, { file: 'values.a', line: null }, INPUTS)
        if (result.kind === 'failed') expect(result.problems.length).toBeGreaterThan(0)
      },
    ),
    { seed: SEED, numRuns: 500 },
  )
}, 120_000)

const long = (length: number) =>
  `{% assign s = "a" %}{% for i in (1..${Math.ceil(Math.log2(length))}) %}{% assign s = s | append: s %}{% endfor %}`
test.each([
  ['1e8 turns', '{% for i in (1..100000000) %}{{ i }}{% endfor %}'],
  ['turns in turns', '{% for i in (1..9999) %}{% for j in (1..9999) %}{% for k in (1..9999) %}x{% endfor %}{% endfor %}{% endfor %}'],
  ['an endless range', '{% for i in (1..config.big) %}{% endfor %}'],
  ['a range of ranges', '{% assign r = (1..1000000) %}{% for i in r %}{% assign q = r | reverse | sort | join: "," %}{% endfor %}'],
  ['doubling', `${long(2 ** 40)}{{ s }}`],
  [
    'a needle in a long text',
    `${long(2 ** 20)}{% assign n = s | slice: 0, 500000 | append: "b" %}{% for i in (1..100000) %}{% if s contains n %}x{% endif %}{% endfor %}`,
  ],
  [
    'replacing in a long text',
    `${long(2 ** 20)}{% assign n = s | slice: 0, 500000 | append: "b" %}{% for i in (1..1000) %}{% assign t = s | replace: n, s %}{% endfor %}`,
  ],
  [
    'comparing long texts',
    `${long(2 ** 20)}{% assign t = s | append: "" %}{% for i in (1..1000000) %}{% if s == t %}{% endif %}{% endfor %}`,
  ],
  [
    'many branches of a case',
    `${long(2 ** 20)}{% assign t = s | append: "" | append: "x" %}{% for i in (1..1000000) %}{% case s %}{% when ${Array(2_000).fill('t').join(', ')} %}{% endcase %}{% endfor %}`,
  ],
  ['splitting into letters', `${long(2 ** 22)}{% for i in (1..100) %}{% assign l = s | split: "" %}{% endfor %}`],
  ['lists within lists', '{% assign l = config.list %}{% for i in (1..64) %}{% assign l = l | concat: l %}{% endfor %}'],
  ['deep JSON', '{{ config.deep | fromJson | toJson }}'],
  ['deep brackets', `{{ ${'a['.repeat(100_000)}1${']'.repeat(100_000)} }}`],
  ['deep blocks', '{% if true %}'.repeat(70_000)],
  ['deep captures', `${'{% capture a %}'.repeat(5_000)}${'{% endcapture %}'.repeat(5_000)}`],
  ['an error in every turn', '{% for i in (1..100000) %}{{ config.nope }}{{ config.list | toYaml | fromYaml | int }}{% endfor %}'],
  ['an error on every line', '{{ a.b.c | d: e }}\n'.repeat(50_000)],
  ['padding', '{{ "a" | indent: 99999999 }}{{ "x" | trunc: 99999999 }}'],
  ['unknown tags', '{%x%}'.repeat(200_000)],
  ['unknown tags after many lines', '\n'.repeat(700_000) + '{%x%}'.repeat(50_000)],
  ['unknown names among many', Array.from({ length: 6_000 }, (_, n) => `{%assign a${n}=1%}{{zqwxzqwx${n}}}`).join('')],
  ['unknown filters', '{{1|x}}'.repeat(35_000)],
  ['two long names', `{% assign ${'a'.repeat(100_000)} = 1 %}{{ ${'b'.repeat(100_000)} }}`],
  ['open brackets', '{{'.repeat(500_000)],
  ['open tags', '{% '.repeat(300_000)],
  ['many filters', `{{ 1${' | plus: 1'.repeat(90_000)} }}`],
] as const)(
  'LQ4 %s',
  (_, text) => {
    check(text)
  },
  30_000,
)

test('LQ4 the same template fails in the same way, each time', () => {
  for (const text of [`${long(2 ** 40)}{{ s }}`, '{% for i in (1..9999) %}{% for j in (1..9999) %}x{% endfor %}{% endfor %}']) {
    expect(renderText(text, PLACE, INPUTS)).toEqual(renderText(text, PLACE, INPUTS))
  }
})
