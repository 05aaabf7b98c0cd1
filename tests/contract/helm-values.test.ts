// HM2: values that we merge against values that helm merges, and against the defaults of a chart; some hundred cases in
// a handful of processes.
import { describe, expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { mergeValues, type Values } from '../../server/render/helm/values.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { bareHelm, createCaseRenderer, memoryTree, renderedTexts, writeFiles } from '../support/helm-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const renderCase = createCaseRenderer()

const CASES = 300
const CHART = {
  'Chart.yaml': 'apiVersion: v2\nname: merge\nversion: 1.0.0\n',
  'templates/all.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: all}\ndata:\n  all: {{ .Values | toJson | quote }}\n',
}

const scalar = fc.oneof(
  fc.constant(null),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.string({ unit: 'binary', maxLength: 4 }),
  fc.constantFrom('yes', '007', '1e3', '~', '{{ x }}'),
)
const { values: tree } = fc.letrec<{ values: Values; value: unknown }>((tie) => ({
  values: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'on', '1', 'x.y', 'ü', '__proto__'), tie('value'), {
    maxKeys: 4,
    noNullPrototype: true,
  }) as fc.Arbitrary<Values>,
  value: fc.oneof({ depthSize: 'small', withCrossShrink: true }, scalar, fc.array(scalar, { maxLength: 2 }), tie('values'), tie('values')),
}))
/** Of the chart itself, and three layers over it. */
const cases = fc.sample(fc.tuple(tree, tree, tree, tree), { numRuns: CASES, seed: 7 })
const layer = (index: 0 | 1 | 2 | 3): Values => Object.fromEntries(cases.map((one, number) => [`c${number}`, one[index]]))

describe.each(['4', '3'] as const)('helm %s', (major) => {
  test(`HM2 ${CASES} times three layers over a chart: our merge is helm’s`, () => {
    const folder = tempDir()
    mkdirSync(join(folder, 'chart'))
    const chart = Object.entries(CHART).map(([path, text]) => [`chart/${path}`, text] as const)
    const layers = [layer(1), layer(2), layer(3)]
    const merged = layers.reduce(mergeValues, {})
    const values = layers.map((one, index) => [`${index}.json`, canonicalJson(one)] as const)
    writeFiles(
      folder,
      new Map([...chart, ['chart/values.yaml', canonicalJson(layer(0))], ...values, ['merged.json', canonicalJson(merged)]]),
    )
    const theirs = bareHelm(major, folder, ['x', 'chart', '-f', '0.json', '-f', '1.json', '-f', '2.json'])
    const ours = bareHelm(major, folder, ['x', 'chart', '-f', 'merged.json'])
    expect([theirs.exitCode, ours.exitCode], theirs.stderr.slice(0, 500)).toEqual([0, 0])
    expect(theirs.stdout.length).toBeGreaterThan(CASES * 10)
    expect(ours.stdout).toBe(theirs.stdout)
  })

  test('HM2 each of the six places wins over the ones before it, and null removes what the chart has', async () => {
    const places = ['chart', 'file', 'other', 'config', 'inline', 'override', 'cluster']
    // At the place number n every place from n down says its name: the highest that does so wins.
    const says = (index: number) => Object.fromEntries(places.slice(index).map((_, more) => [`from${index + more}`, places[index] ?? '']))
    const { result } = await renderCase({
      root: 'web',
      files: {
        ...Object.fromEntries(Object.entries(CHART).map(([path, text]) => [`web/${path}`, text])),
        'web/values.yaml': canonicalJson({ ...says(0), gone: { a: 1, b: 2 } }),
        'prod.yaml': canonicalJson(says(1)),
      },
      named: { shared: { tree: memoryTree({ 'values/x.yaml.liquid': '{{ config.all | toJson }}\n' }), root: 'values' } },
      config: { all: says(2), count: 3, flag: true, map: { k: [1] } },
      configs: { common: { values: canonicalJson(says(3)), single: '007' } },
      helm: {
        helm: major,
        valuesFiles: ['../prod.yaml', '$shared/x.yaml.liquid', 'none.yaml?'],
        valuesFrom: [
          { name: 'common', key: 'values' },
          { name: 'common', key: 'single', at: 'deep.single' },
        ],
        values: {
          ...says(4),
          typed: [
            '{{ config.count }}',
            '{{config.flag}}',
            ' {{ config.map }} ',
            '{{ config.count }} x',
            '{% raw %}{{ .Chart.Name }}{% endraw %}',
          ],
          gone: { a: null },
        },
      },
      values: [
        { from: 'overrides[0]', values: says(5) },
        { from: 'cluster', values: { ...says(6), host: '{{ cluster.name }}.example.com' } },
      ],
    })
    expect(result.kind === 'failed' ? result.problems : []).toEqual([])
    const text = /all: (".*")/.exec(renderedTexts(result).join(''))?.[1] ?? '""'
    expect(JSON.parse(JSON.parse(text) as string)).toEqual({
      ...Object.fromEntries(places.map((place, index) => [`from${index}`, place])),
      deep: { single: '007' },
      gone: { b: 2 },
      host: 'eu-1.example.com',
      typed: [3, true, { k: [1] }, '3 x', '{{ .Chart.Name }}'],
    })
  })
})
