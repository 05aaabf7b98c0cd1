// HM: charts and values with something wrong in them, each with all that has to be told: file, line, words, and the
// line as its author wrote it.
import { describe, expect, test } from 'bun:test'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import { createCaseRenderer, type HelmCase } from '../support/helm-kit.ts'

const renderCase = createCaseRenderer()

type Expected = { path: string; message: string | RegExp; excerpt?: string }
interface Wrong extends Omit<HelmCase, 'root' | 'files'> {
  name: string
  files?: Record<string, string | Uint8Array>
  meta?: string
  expected: readonly Expected[]
}

const HEAD = 'apiVersion: v2\nname: web\nversion: 1.0.0\n'
const OBJECT = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n'
const LINES = `${OBJECT}data:\n`
const dependency = (text: string) => `dependencies:\n  - ${text}\n`
const LIBRARY = { 'lib/Chart.yaml': 'apiVersion: v2\nname: lib\nversion: 2.0.0\ntype: library\n' }

const WRONG: readonly Wrong[] = [
  {
    name: 'two templates fail, and both are told',
    files: {
      'templates/a.yaml': `${LINES}  a: {{ .Values.no.such }}\n`,
      'templates/b.yaml': `${LINES}  ü: é\n  b: {{ required "b is needed" .Values.b }}\n`,
      'templates/c.yaml': OBJECT,
    },
    expected: [
      {
        path: 'charts/web/templates/a.yaml:5:16',
        message: '<.Values.no.such>: nil pointer evaluating interface {}.such',
        excerpt: '  a: {{ .Values.no.such }}',
      },
      { path: 'charts/web/templates/b.yaml:6:9', message: 'b is needed', excerpt: '  b: {{ required "b is needed" .Values.b }}' },
    ],
  },
  {
    name: 'columns are of characters',
    files: { 'templates/a.yaml': `${LINES}  ü: é{{ fail "wide" }}\n` },
    expected: [{ path: 'charts/web/templates/a.yaml:5:10', message: 'wide', excerpt: '  ü: é{{ fail "wide" }}' }],
  },
  {
    name: 'in a helper, with who called it',
    files: { 'templates/_h.tpl': '{{- define "h" }}\n{{ .no.such }}\n{{- end }}\n', 'templates/a.yaml': `${LINES}  {{ include "h" . }}\n` },
    expected: [
      {
        path: 'charts/web/templates/_h.tpl:2:7',
        message: /^<\.no\.such>: .*\(rendering web\/templates\/a\.yaml:5\)$/,
        excerpt: '{{ .no.such }}',
      },
    ],
  },
  {
    name: 'two files that cannot be parsed',
    files: {
      'templates/_h.tpl': '{{ define "h" }}\n{{ if }}{{ end }}{{ end }}\n',
      'templates/a.yaml': `${LINES}  {{ include "h" . }}\n`,
      'templates/b.yaml': 'x: {{ .Values.a\n',
    },
    expected: [
      { path: 'charts/web/templates/_h.tpl:2', message: 'missing value for if', excerpt: '{{ if }}{{ end }}{{ end }}' },
      { path: 'charts/web/templates/b.yaml:2', message: /unclosed action/ },
    ],
  },
  {
    name: 'a function that helm has not',
    files: { 'templates/a.yaml': `${LINES}  a: {{ env "HOME" }}\n` },
    expected: [{ path: 'charts/web/templates/a.yaml:5', message: /\bfunction env\b/, excerpt: '  a: {{ env "HOME" }}' }],
  },
  {
    name: 'what two templates render to is no YAML',
    files: {
      'templates/a.yaml': `${OBJECT}---\n${LINES}  a: "{{ .Values.a }}\n  b: c\n`,
      'templates/b.yaml': `${LINES}  b: c: d\n`,
      'templates/c.yaml': OBJECT,
    },
    expected: [
      { path: 'charts/web/templates/a.yaml:10', message: /^line \d+ .*YAML: / },
      { path: 'charts/web/templates/b.yaml:5', message: /^line 5 .*YAML: /, excerpt: '  b: c: d' },
    ],
  },
  {
    name: 'a value that a function refuses is not told',
    files: { 'templates/a.yaml': `${LINES}  a: {{ mustToDate "2006" .Values.password }}\n` },
    helm: { values: { password: 'hunter2' } },
    expected: [{ path: 'charts/web/templates/a.yaml:5:9', message: /mustToDate.*…/ }],
  },
  {
    name: 'values that the schema refuses, with who gave them',
    files: {
      'values.yaml': 'own: 1\n',
      'values.schema.json': JSON.stringify({
        type: 'object',
        properties: Object.fromEntries(['own', 'file', 'inline', 'over', 'config'].map((name) => [name, { type: 'string' }])),
      }),
      'templates/a.yaml': OBJECT,
      '../../prod.yaml': 'file: 1\ninline: 2\n',
    },
    helm: {
      valuesFiles: ['../../prod.yaml'],
      valuesFrom: [{ name: 'shared', key: 'level', at: 'config' }],
      values: { inline: 3, over: 3 },
    },
    configs: { shared: { level: 4 } },
    values: [{ from: 'overrides[1]', values: { over: 5 } }],
    expected: [
      { path: 'Config shared, level', message: /^config: .*string/ },
      { path: 'charts/web/values.yaml', message: /^own: .*string/ },
      { path: 'overrides[1].helm.values', message: /^over: .*string/ },
      { path: 'prod.yaml', message: /^file: .*string/ },
      { path: 'render.helm.values', message: /^inline: .*string/ },
    ],
  },
  {
    name: 'the chart’s own values are no YAML',
    files: { 'values.yaml': 'a: 1\nb: [\n', 'templates/a.yaml': OBJECT },
    expected: [{ path: 'charts/web/values.yaml:2', message: /did not find expected node content/ }],
  },
  {
    name: 'the Chart.yaml is none',
    files: { 'Chart.yaml': 'apiVersion: v2\nname: [\n' },
    expected: [{ path: 'charts/web/Chart.yaml:2:7', message: /./ }],
  },
  {
    name: 'the chart has no version',
    files: { 'Chart.yaml': 'apiVersion: v2\nname: web\n', 'templates/a.yaml': OBJECT },
    expected: [{ path: 'charts/web/Chart.yaml', message: /version is required/ }],
  },
  {
    name: 'a library is no chart by itself',
    meta: 'type: library\n',
    expected: [{ path: 'charts/web/Chart.yaml', message: /library charts are not installable/ }],
  },
  {
    name: 'another Kubernetes',
    meta: 'kubeVersion: ">=1.99"\n',
    expected: [{ path: 'charts/web/Chart.yaml', message: /kubeVersion: >=1\.99 .*v1\.36\.3/ }],
  },
  {
    name: 'dependencies that are missing, each with what to do',
    meta: `dependencies:\n  - {name: a, version: 1.x, repository: "https://charts.example.com"}\n  - {name: b, version: 1.x, repository: ""}\n  - {name: c, version: 1.x, repository: "file://../../../out"}\n  - {name: d, version: 1.x, repository: "file://../none"}\n`,
    expected: [
      {
        path: 'charts/web/Chart.yaml',
        message: /\ba \(https:\/\/charts\.example\.com\) .*`helm dependency build`/,
      },
      { path: 'charts/web/Chart.yaml', message: /\bb \(no repository\) .*charts\// },
      { path: 'charts/web/Chart.yaml', message: /\bdependency c .*outside/ },
      { path: 'charts/web/Chart.yaml', message: /\bdependency d .*charts\/none\/Chart\.yaml/ },
    ],
  },
  {
    name: 'a dependency that Chart.lock does not name, and one that cannot be had',
    meta: `dependencies:\n  - {name: a, version: 1.x, repository: "https://charts.example.com"}\n  - {name: b, version: 1.x, repository: "https://charts.example.com"}\n`,
    files: { 'Chart.lock': 'dependencies:\n  - {name: b, version: 1.2.3, repository: "https://charts.example.com"}\n' },
    charts: () => Promise.reject(new AppError('source_refused', { detail: 'no Repository has this URL' })),
    expected: [
      { path: 'charts/web/Chart.yaml', message: /Chart\.lock .*exact/ },
      { path: 'charts/web/Chart.yaml', message: /cannot be fetched: no Repository has this URL; run/ },
    ],
  },
  {
    name: 'a dependency whose version helm would leave out',
    meta: dependency('{name: lib, version: 1.x, repository: "file://../../lib"}'),
    files: { '../../lib/Chart.yaml': LIBRARY['lib/Chart.yaml'] },
    expected: [
      {
        path: 'charts/web/Chart.yaml',
        message: /\bdependency lib .*\b1\.x.* 2\.0\.0/,
      },
    ],
  },
  {
    name: 'a packed chart that is none',
    files: { 'charts/x-1.0.0.tgz': 'no archive' },
    expected: [{ path: 'charts/web/charts/x-1.0.0.tgz', message: /./ }],
  },
  {
    name: 'values files, all that is wrong at once',
    files: { '../../list.yaml': '- a\n', '../../broken.yaml': 'a: 1\nb: "x\n', '../../twice.yaml': 'a: 1\na: 2\n' },
    helm: {
      valuesFiles: [
        'none.yaml',
        'perhaps.yaml?',
        '../../../out.yaml',
        '$other/x.yaml',
        '../../list.yaml',
        '../../broken.yaml',
        '/etc/passwd',
        '../../twice.yaml',
      ],
    },
    expected: [
      { path: '$other/x.yaml', message: /\bname other\b/ },
      { path: '../../../out.yaml', message: /\binside\b/ },
      { path: '/etc/passwd', message: /\binside\b/ },
      { path: 'broken.yaml:2:4', message: /./ },
      { path: 'charts/web/none.yaml', message: /not found/ },
      { path: 'list.yaml:1', message: /mapping/ },
      { path: 'twice.yaml:2:1', message: /appears twice/ },
    ],
  },
  {
    name: 'Configs and texts, all that is wrong at once, beside what is wrong in the chart',
    meta: dependency('{name: a, version: 1.x, repository: "alias:here"}'),
    helm: {
      valuesFrom: [
        { name: 'none', key: 'values' },
        { name: 'none', key: 'values', optional: true },
        { name: 'shared', key: 'number' },
        { name: 'shared', key: 'number', at: 'a[0]' },
        { name: 'shared', key: 'text' },
        { name: 'shared', key: 'secret' },
      ],
      values: { host: '{{ config.colour }}', deep: [{ x: 'a {{ include "x" . }}' }] },
    },
    configs: { shared: { number: 3, text: 'a: [\n', secret: 'pin: 12345678901234567\nhunter2: 1\nhunter2: 2\n' } },
    config: { color: 'blue' },
    expected: [
      { path: 'Config none, values', message: /^no Config none has values; / },
      { path: 'Config shared, number', message: /expected a mapping/ },
      { path: 'Config shared, secret:1:6', message: /^(?!.*12345678901234567).*… .*2\^53/ },
      { path: 'Config shared, secret:3:1', message: /^(?!.*hunter2).*key … .*twice/ },
      { path: 'Config shared, text:1:4', message: /./ },
      { path: 'charts/web/Chart.yaml', message: /the dependency a \(alias:here\)/ },
      { path: 'render.helm.values.deep.0.x', message: /\{% raw %\}/ },
      { path: 'render.helm.values.host', message: /color/ },
      { path: 'render.helm.valuesFrom', message: /names with dots/ },
    ],
  },
  {
    name: 'the name of the release is too long',
    service: 'x'.repeat(54),
    files: { 'templates/a.yaml': OBJECT },
    expected: [{ path: 'render.helm.releaseName', message: /at most 53/ }],
  },
  {
    name: 'too many values',
    files: { '../../large.yaml': `a: &a ${'x'.repeat(100_000)}\nb: [${Array.from({ length: 50 }, () => '*a').join(', ')}]\n` },
    helm: { valuesFiles: ['../../large.yaml'] },
    expected: [{ path: 'large.yaml', message: /more than 4 MiB/ }],
  },
]

const inChart = (path: string): string => {
  const names: string[] = []
  for (const name of `charts/web/${path}`.split('/')) {
    if (name === '..') names.pop()
    else names.push(name)
  }
  return names.join('/')
}

describe.each(['4', '3'] as const)('helm %s', (major) => {
  test.each(WRONG.map((row) => [row.name, row] as const))('HM6 HM9 %s', async (_, { files = {}, meta = '', helm, expected, ...rest }) => {
    const chart = { 'Chart.yaml': `${HEAD}${meta}`, ...files }
    const { result } = await renderCase({
      ...rest,
      root: 'charts/web',
      files: Object.fromEntries(Object.entries(chart).map(([path, text]) => [inChart(path), text])),
      helm: { ...helm, helm: major },
    })
    const problems: Problem[] = result.kind === 'failed' ? result.problems : []
    expect(problems.map(({ path }) => path).sort()).toEqual(expected.map(({ path }) => path).sort())
    expect(JSON.stringify(problems)).not.toContain('hunter2')
    for (const { path, message, excerpt } of expected) {
      const fits = problems.filter(
        (problem) => problem.path === path && (typeof message === 'string' ? problem.message === message : message.test(problem.message)),
      )
      expect(fits.length, `${path}: ${String(message)} in ${JSON.stringify(problems, null, 1)}`).toBeGreaterThan(0)
      if (excerpt !== undefined) expect(fits.map((problem) => problem.excerpt)).toContain(excerpt)
    }
  })
})
