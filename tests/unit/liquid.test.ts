import { describe, expect, test } from 'bun:test'
import type { InputRead, RenderInputs } from '../../server/render/inputs.ts'
import { evaluate, renderText } from '../../server/render/liquid/engine.ts'
import { Meter } from '../../server/render/liquid/limits.ts'
import type { Partials } from '../../server/render/liquid/run.ts'
import { recordedInputs } from '../../server/render/record/inputs.ts'
import { naming } from '../support/naming.ts'

const FACTS = { kubernetesVersion: 'v1.29.3-eks-a5565ad', apiVersions: { 'apps/v1': true, 'apps/v1/Deployment': true } as const }
const INPUTS: RenderInputs = recordedInputs(
  {
    cluster: { name: 'edge-1', labels: { region: 'eu', 'topology.kubernetes.io/zone': 'z1' }, facts: FACTS },
    config: {
      ...{
        replicas: 3,
        off: false,
        zero: 0,
        none: null,
        empty: '',
        text: 'hello',
        long: 'x'.repeat(60),
        list: [3, 1, 2],
        b64: 'aGk=',
        bad: '/w==',
      },
      ...{
        map: { b: 2, a: { deep: 'yes' } },
        secret: 'hunter2',
        next: 'noise',
        toLiquid: 'noise',
        yaml: 'a: [1, on]\n',
        quoted: `it's "x"`,
      },
    },
    service: { name: 'web', project: 'shop', namespace: null },
    source: { version: 'abc' },
  },
  () => {},
)
const PLACE = { file: 'a.yaml.liquid' }

const render = (text: string, inputs = INPUTS, partials?: Partials): string => {
  const result = renderText(text, PLACE, inputs, partials)
  if (result.kind === 'failed') throw new Error(JSON.stringify(result.problems))
  return result.text
}
const problems = (text: string, inputs = INPUTS, partials?: Partials): string[] => {
  const result = renderText(text, PLACE, inputs, partials)
  return result.kind === 'rendered' ? [] : result.problems.map(({ path, message }) => `${path.slice(PLACE.file.length + 1)} ${message}`)
}
function looks(text: string): string[] {
  const paths: InputRead[] = []
  render(
    text,
    recordedInputs(INPUTS, (path) => paths.push(path)),
  )
  return [...new Set(paths.map((path) => path.join('.').replace('\u0000', '')))].sort()
}

test.each([
  ['LQ2 inputs by name', '{{ cluster.name }} {{ service.project }} {{ source.version }} {{ config.replicas }}', 'edge-1 shop abc 3'],
  ['LQ2 a label whose name is no word', "{{ cluster.labels['topology.kubernetes.io/zone'] }}", 'z1'],
  [
    'LQ2 what is not there has a default',
    "{{ config.nope | default: 'd' }}{{ config.no.deeper | default: 'e' }}{{ config.none.x | default: 'f' }}",
    'def',
  ],
  [
    'LQ2 conditions take it for null',
    "{% if config.nope %}a{% else %}b{% endif %}{% if config.nope == 'x' %}c{% endif %}{% unless config.nope %}d{% endunless %}",
    'bd',
  ],
  [
    'LQ2 so do others that come first',
    "{{ config.nope | hasKey: 'a' }}{{ config.nope | ternary: 1, 2 }}{{ config.nope | coalesce: config.text }}{{ config.nope | dig: 'a', 'none' }}",
    'false2hellonone',
  ],
  ['LQ2 null is no text', '[{{ config.none }}{{ service.namespace }}]', '[]'],
  ['LQ2 loops', '{% for i in config.list %}{{ forloop.index }}{{ i }}{% unless forloop.last %},{% endunless %}{% endfor %}', '13,21,32'],
  ['LQ2 a mapping by its names', '{% for pair in config.map %}{{ pair[0] }}{% endfor %}', 'ab'],
  [
    'LQ2 variables of the template',
    '{% assign x = config.list | sort | join: "-" %}{% capture y %}<{{ x }}>{% endcapture %}{{ y }}',
    '<1-2-3>',
  ],
  [
    'LQ2 sizes and ends',
    '{{ config.list.size }}{{ config.map.size }}{{ config.text.size }}{{ config.list[0] }}{{ config.list.last }}',
    '32532',
  ],
  ['LQ7 toYaml and nindent', '{{ config.map | toYaml | nindent: 2 }}', "\n  a:\n    deep: 'yes'\n  b: 2"],
  ['LQ7 fromYaml', '{{ config.yaml | fromYaml | toJson }}', '{"a":[1,true]}'],
  ['LQ7 toJson and fromJson', "{{ config.map | toJson }} {{ '[1,2]' | fromJson | join: '+' }}", '{"a":{"deep":"yes"},"b":2} 1+2'],
  ['LQ7 indent', "{{ 'a\nb' | indent: 2 }}", '  a\n  b'],
  [
    'LQ7 quote and squote',
    '{{ config.quoted | quote }} {{ config.quoted | squote }} {{ config.replicas | quote }}',
    `"it's \\"x\\"" 'it''s "x"' "3"`,
  ],
  ['LQ7 base64', "{{ 'hé' | b64enc }} {{ config.b64 | b64dec }}", 'aMOp hi'],
  ['LQ7 sha256sum', "{{ 'abc' | sha256sum | trunc: 8 }}", 'ba7816bf'],
  [
    'LQ7 default keeps false and 0',
    "{{ config.off | default: true }} {{ config.zero | default: 5 }} {{ config.empty | default: 'e' }} {{ config.none | default: 'n' }}",
    'false 0 e n',
  ],
  ['LQ7 dig', "{{ config | dig: 'map', 'a', 'deep', 'no' }} {{ config | dig: 'map', 'x', 'deep', 'no' }}", 'yes no'],
  [
    'LQ7 hasKey',
    "{{ cluster.facts.apiVersions | hasKey: 'apps/v1' }} {{ cluster.facts.apiVersions | hasKey: 'batch/v1' }} {{ config | hasKey: 'off' }}",
    'true false true',
  ],
  ['LQ7 keys and values', "{{ config.map | keys | join: ',' }} {{ config.map | values | size }}", 'a,b 2'],
  ['LQ7 ternary', "{{ config.off | ternary: 'y', 'n' }} {{ true | ternary: 'y', 'n' }}", 'n y'],
  [
    'LQ7 semverCompare of short versions',
    "{{ '1.29' | semverCompare: '^1.2' }} {{ '2' | semverCompare: '~1' }} {{ 'v1.2.3' | semverCompare: '1.2.x' }}",
    'true false true',
  ],
  [
    'LQ7 semverCompare without what distributions add',
    "{{ cluster.facts.kubernetesVersion | semverCompare: '>=1.29-0' }} {{ cluster.facts.kubernetesVersion | semverCompare: '>=1.28, <1.29' }}",
    'true false',
  ],
  [
    'LQ7 parts of texts',
    "{{ 'abcdef' | trunc: 3 }} {{ 'abcdef' | trunc: -2 }} {{ 'a.git' | trimSuffix: '.git' }} {{ 'v1' | trimPrefix: 'v' }} [{{ ' a ' | trim }}]",
    'abc ef a 1 [a]',
  ],
  ['LQ7 hasPrefix and hasSuffix', "{{ 'abc' | hasPrefix: 'ab' }} {{ 'abc' | hasSuffix: 'ab' }}", 'true false'],
  [
    'LQ7 upper, lower, int, toString',
    "{{ 'a' | upper }}{{ 'B' | lower }} {{ '12.9' | int | plus: 1 }} {{ 7 | toString | append: 'x' }}",
    'Ab 13 7x',
  ],
  [
    'LQ7 Liquid’s own',
    "{{ 'a,b' | split: ',' | reverse | join: ',' }} {{ 7 | divided_by: 2 | floor }} {{ 'a-b' | replace: '-', '_' }}",
    'b,a 3 a_b',
  ],
] as const)('%s', (_, text, expected) => expect(render(text)).toBe(expected))

describe('LQ6 errors', () => {
  test('all at once, in their order, with the line as written', () => {
    const text =
      'a: 1\nb: {{ cluster.labels.regoin }}\nc: {{ cluster.region }} {{ clster.name }} {{ x | indnt: 2 }}\nd: {{ config.replica }}\n'
    const result = renderText(text, PLACE, INPUTS)
    expect(result.kind === 'failed' && result.problems).toEqual([
      {
        path: 'a.yaml.liquid:2:7',
        message: naming('name cluster.labels.regoin', 'cluster.labels.region?'),
        excerpt: 'b: {{ cluster.labels.regoin }}',
      },
      ...[
        { path: 'a.yaml.liquid:3:7', message: naming('name cluster.region', 'cluster.labels.region?') },
        { path: 'a.yaml.liquid:3:28', message: naming('name clster.name', 'cluster.name?') },
        { path: 'a.yaml.liquid:3:46', message: naming('name x', 'cluster, config, service and source') },
        { path: 'a.yaml.liquid:3:50', message: naming('filter indnt', 'indent?') },
      ].map((problem) => ({ ...problem, excerpt: 'c: {{ cluster.region }} {{ clster.name }} {{ x | indnt: 2 }}' })),
      {
        path: 'a.yaml.liquid:4:7',
        message: naming('name config.replica', 'config.replicas?'),
        excerpt: 'd: {{ config.replica }}',
      },
    ])
  })
  test.each([
    ['LQ2 a wrong name is no false condition', '{% if cluster.nmae %}x{% endif %}', [['1:7', 'name cluster.nmae', 'cluster.name?']]],
    ['LQ2 and none in a branch that is not taken', '{% if false %}{{ confg.a }}{% endif %}', [['1:18', 'name confg.a', 'config.a?']]],
    ['LQ7 required says its own words', "{{ config.nope | required: 'set nope' }}", [['1:1 set nope']]],
    ['LQ7 required does not say what is computed', '{{ config.nope | required: config.secret }}', [['1:1', 'required']]],
    ['a tag that is not there', '{% fro a %}', [['1:1', 'tag fro', 'for?']]],
    ['a block that is not closed', 'a\n {% if true %}', [['2:2', '{% if true %}', 'not closed']]],
    [
      'what belongs to a tag that is wrong is no error of its own',
      '{% iff a %}{% else %}{% endiff %}{% endif %}',
      [['1:1', 'tag iff', 'if?']],
    ],
    ['LQ10 a mapping', '{{ config.map }}', [['1:1', 'mapping', 'toJson', 'toYaml', 'nindent']]],
    ['LQ10 a list', '{{ config.list }}', [['1:1', 'list', 'toJson', 'toYaml', 'nindent']]],
    ['LQ10 no number', '{{ 1 | divided_by: 0 }}', [['1:1', 'not a number']]],
    ['LQ5 include', '{% include "/etc/passwd" %}', [['1:1', 'tag include', "{% render 'name' %}"]]],
    ['LQ5 the clock', "{{ 'now' | date: '%s' }}", [['1:12', 'filter date', 'config']]],
    [
      'LQ2 the right name in the wrong place, and not quite right',
      '{{ cluster.regon }}',
      [['1:4', 'name cluster.regon', 'cluster.labels.region?']],
    ],
    ['LQ2 what it was looked for in is no answer', '{{ config.x }}', [['1:4', 'name config.x', '{{ config.x | default: "…" }}']]],
    ['LQ7 a range that is none', "{{ '1.2.3' | semverCompare: 'new' }}", [['1:1', 'semverCompare', '">=1.29, <2"']]],
    [
      'LQ7 wrong arguments',
      "{{ 'a' | indent: 'x' }}{{ config.bad | b64dec }}{{ 'x: [' | fromYaml }}",
      [
        ['1:1', 'indent', 'whole number', '100'],
        ['1:24', 'b64dec', 'base64', 'UTF-8'],
        ['1:49', 'fromYaml', 'YAML'],
      ],
    ],
  ] as const)('%s', (_, text, expected) => {
    expect(problems(text)).toEqual(expected.map((values) => naming(...values)))
    expect(problems(text).join()).not.toContain('hunter2')
  })

  test('no message has a value of an input', () => {
    const all = [
      '{{ config[config.secret] }}',
      '{{ config.secret | fromYaml | dig: config.secret }}',
      '{{ config.secret | b64dec }}',
      '{{ config.secret | indent: config.secret }}',
      '{{ cluster.labels[config.secret] | required: config.secret }}',
      '{{ config.secret | semverCompare: config.secret }}',
      '{{ config.secret | int }}',
      '{% for i in (1..config.secret) %}{% endfor %}{{ config.secret.nope }}',
      "{{ config.list | where: config.secret, config.secret | toYaml | fromYaml | append: 1 }}{{ '{' | append: config.secret | fromJson }}",
    ].map((text) => renderText(text, PLACE, INPUTS))
    expect(all.map(({ kind }) => kind)).toEqual(all.map(() => 'failed'))
    expect(JSON.stringify(all)).not.toContain('hunter2')
  })
  test('at most 50, however many there are', () => {
    expect(problems('{{ config.nope }}\n'.repeat(60)).length).toBe(50)
    expect(problems('{% for i in (1..10000) %}{{ config.nope }}{% endfor %}')).toHaveLength(1)
  })
  test('the first 50 by place, each held against 500 names and telling 20', () => {
    const many = Array.from({ length: 5_000 }, (_, n) => `{%assign a${n}=1%}`).join('')
    const told = problems(`${many}${Array.from({ length: 5_000 }, (_, n) => `\n{{ zqwxzqwx${n} }}`).join('')}`)
    expect(told).toHaveLength(50)
    expect(told[49]).toMatch(/^51:4 .*\bzqwxzqwx49\b.* a0, a1, a10, /)
    expect(told[49]).toMatch(/\b4984\b/)
    expect(told[49]?.split(', ')).toHaveLength(21)
  })
  test('LQ2 there is no cluster where none is asked for', () => {
    const inputs = { ...INPUTS, cluster: null }
    expect(problems('{{ cluster.name }}', inputs)).toEqual([naming('1:4', 'cluster.name', 'no cluster')])
    expect(render("{{ cluster.labels.region | default: 'none' }}", inputs)).toBe('none')
  })
})

describe('LQ3 looks', () => {
  test.each([
    ['one label', '{{ cluster.labels.region }}', ['cluster.kind', 'cluster.labels.kind', 'cluster.labels.region']],
    ['one that is not there', '{{ config.nope | default: 1 }}', ['config.kind', 'config.nope']],
    [
      'by a filter',
      "{{ cluster.facts.apiVersions | hasKey: 'batch/v1' }}",
      ['cluster.facts.apiVersions.batch/v1', 'cluster.facts.apiVersions.kind', 'cluster.facts.kind', 'cluster.kind'],
    ],
    ['a branch that is not taken', '{% if config.off %}{{ config.secret }}{% endif %}', ['config.kind', 'config.off']],
    ['nothing', 'plain', []],
  ] as const)('%s', (_, text, expected) => expect(looks(text).filter((path) => !/\.(next|toLiquid)$/.test(path))).toEqual([...expected]))

  test('the library asks values whether they are iterators; of inputs it asks none', () => {
    expect(looks('{{ cluster.labels.region }}{{ config.map.b }}').filter((path) => /next|toLiquid/.test(path))).toEqual([])
  })
})

describe('LQ4 limits, at their edges', () => {
  test('the size of a template', () => {
    expect(render('x'.repeat(1024 * 1024))).toHaveLength(1024 * 1024)
    expect(problems('x'.repeat(1024 * 1024 + 1))).toEqual([naming('1:1', '1024 KiB')])
  })
  test('what is within outputs and tags', () => {
    const code = (length: number) => `{{${' '.repeat(length - 5)}1}}`
    expect(render(`text${code(256 * 1024)}`)).toBe('text1')
    expect(problems(`text${code(256 * 1024 + 1)}`)).toEqual([naming('1:5', '256 KiB')])
  })
  test('steps', () => {
    // A turn of an empty loop is a step; so is what is around it.
    expect(render('{% for i in (1..299990) %}{% endfor %}')).toBe('')
    expect(problems('{% for i in (1..300001) %}{% endfor %}').join()).toEqual(naming('300000 steps'))
    expect(problems('{% for i in (1..100000000) %}{% endfor %}').join()).toMatch(/\b16 Mi/)
    expect(problems('{% for i in (1..3000) %}{% for j in (1..3000) %}{{ j }}{% endfor %}{% endfor %}').join()).toContain('steps')
  }, 30_000)
  test('steps of what a mapping has', () => {
    const big = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`k${n}`, n]))
    const inputs = recordedInputs({ ...INPUTS, config: { big, list: Object.keys(big) } }, () => {})
    const loop = (inner: string, turns: number) => `{% for i in (1..${turns}) %}${inner}{% endfor %}`
    for (const inner of [
      ...['keys', 'values', 'toYaml', 'toJson', 'json'].map((name) => `{% assign k = config.big | ${name} %}`),
      '{% assign k = config.big.size %}',
      '{% for k in config.big limit: 1 %}{% endfor %}',
      '{% if config.list == config.list %}{% endif %}',
      '{% case config.list %}{% when config.list %}{% endcase %}',
    ]) {
      expect([inner, problems(loop(inner, 1), inputs)]).toEqual([inner, []])
      expect([inner, problems(loop(inner, 40), inputs).join()]).toEqual([inner, naming('300000 steps')])
    }
    const twofold = '{% assign l = "a,b" | split: "," %}{% for i in (1..40) %}{% assign l = l | push: l | push: l %}{% endfor %}'
    expect(problems(`${twofold}{{ l | toJson }}`).join()).toEqual(naming('300000 steps'))
  }, 30_000)
  test('steps of a render are those of all its texts', () => {
    const meter = new Meter()
    const text = '{% for i in (1..100000) %}{% endfor %}'
    const kinds = [1, 2, 3].map(() => renderText(text, PLACE, INPUTS, undefined, meter).kind)
    expect([...kinds, evaluate('{{ config.text }}', PLACE, INPUTS, meter).kind]).toEqual(['rendered', 'rendered', 'failed', 'failed'])
    expect(renderText(text, PLACE, INPUTS).kind).toBe('rendered')
  }, 30_000)
  test('steps of a value', () => {
    const heavy = '{{ config.list | concat: config.list | where: "a", 1 }}'
    expect(evaluate(heavy, { file: 'v', line: null }, INPUTS).kind).toBe('failed')
    expect(problems('{% for i in (1..400000) %}{{ config.map.a.deep | size }}{% endfor %}').join()).toContain('steps')
  }, 30_000)
  test('memory', () => {
    const doubling = '{% assign s = "0123456789" %}{% for i in (1..N) %}{% assign s = s | append: s %}{% endfor %}{{ s | size }}'
    expect(render(doubling.replace('N', '17'))).toBe(String(10 * 2 ** 17))
    expect(problems(doubling.replace('N', '30')).join()).toContain('steps')
    expect(problems('{% assign r = (1..16777217) %}').join()).toMatch(/\b16 Mi/)
  })
  test('output', () => {
    const kilobyte = 'x'.repeat(1024)
    expect(render(`{% for i in (1..16384) %}${kilobyte}{% endfor %}`)).toHaveLength(16 * 1024 * 1024)
    expect(problems(`{% for i in (1..16385) %}${kilobyte}{% endfor %}`).join()).toEqual(naming('writes', '16 MiB'))
  }, 30_000)
  test('depth', () => {
    const nested = (depth: number) => `${'{% if true %}'.repeat(depth)}x${'{% endif %}'.repeat(depth)}`
    expect(render(nested(99))).toBe('x')
    expect(problems(nested(100)).join()).toContain('100 blocks deep')
    expect(problems('{% if true %}'.repeat(15_000)).join()).toContain('nested too deeply')
    const self: Partials = new Map([['a', { file: 'a.liquid', text: "{% render 'a' %}{% render 'a' %}" }]])
    expect(problems("{% render 'a' %}", INPUTS, self).join()).toEqual(naming('partial', 'itself?'))
  })
})

test.each(['constructor', '__proto__', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__'])(
  'LQ5 %s is no name',
  (name) => {
    for (const owner of [
      'config',
      'cluster.labels',
      'config.list',
      'config.text',
      'config.map',
      '"x"',
      'forloop',
      'cluster.facts.apiVersions',
    ])
      expect(render(`{% for i in (1..1) %}{{ ${owner}['${name}'] | default: 'none' }}{% endfor %}`)).toBe('none')
    expect(problems(`{{ ${name} }}`)).toHaveLength(1)
  },
)

test.each([
  ['a number', '{{ config.replicas }}', 3],
  ['with spaces around', ' {{ config.off }}\n', false],
  ['a mapping', '{{ config.map }}', { a: { deep: 'yes' }, b: 2 }],
  ['a list', '{{ config.list }}', [3, 1, 2]],
  ['null', '{{ config.none }}', null],
  ['through filters', '{{ config.nope | default: 5 | plus: 1 }}', 6],
  ['two are text', '{{ config.replicas }}{{ config.replicas }}', '33'],
  ['text around it', 'x{{ config.replicas }}', 'x3'],
  ['no template', 'plain: text', 'plain: text'],
] as const)('LQ8 %s', (_, text, expected) => {
  const inputs = recordedInputs(INPUTS, () => {})
  expect(evaluate(text, { file: 'helm.values.a', line: null }, inputs)).toEqual({ kind: 'value', value: expected })
})
test('LQ8 what is wrong names the place of the value', () => {
  const { kind, ...rest } = evaluate('{{ config.nope }}', { file: 'helm.values.a', line: null }, INPUTS)
  expect(kind).toBe('failed')
  expect(rest).toMatchObject({ problems: [{ path: 'helm.values.a' }] })
})

describe('LQ9 partials', () => {
  const partials: Partials = new Map([
    ['labels', { file: 'p/labels.liquid', text: 'app: {{ name }}\nregion: {{ cluster.labels.region }}\n' }],
    ['bad', { file: 'p/bad.liquid', text: '\n{{ name | nope }}{{ nothing }}' }],
  ])
  test('see inputs and what they are given', () => {
    expect(render("{% render 'labels', name: service.name %}", INPUTS, partials)).toBe('app: web\nregion: eu\n')
    expect(problems("{% assign name = 1 %}{% render 'labels' %}", INPUTS, partials)).toHaveLength(1)
  })
  test('tell their own file and line', () => {
    const result = renderText("{% render 'bad', name: 1 %}", PLACE, INPUTS, partials)
    expect(result.kind === 'failed' && result.problems.map(({ path }) => path)).toContain('p/bad.liquid:2:11')
  })
  test.each(["{% render '/etc/passwd' %}", "{% render '../x' %}", '{% render config.text %}', "{% render 'none' %}"])('%s', (text) =>
    expect(problems(text, INPUTS, partials)).toHaveLength(1),
  )
})
