// What a chart's text names: functions that mean something else here, and capabilities.
import { describe, expect, test } from 'bun:test'
import { templateTokens } from '../../server/render/helm/lexer.ts'
import { type ScannedFile, scanChart } from '../../server/render/helm/scan.ts'

const template = (text: string, path = 'templates/x.yaml'): ScannedFile => ({ path, text, kind: 'template' })
const partial = (text: string, path = 'templates/_x.tpl'): ScannedFile => ({ path, text, kind: 'partial' })
const values = (text: string): ScannedFile => ({ path: 'values.yaml', text, kind: 'values' })

const TOKENS: ReadonlyArray<readonly [string, readonly string[]]> = [
  ['plain lookup text', []],
  ['a {{ .Values.a }} b', ['{{', '.Values.a', '}}']],
  ['{{- if and $x.y (eq .a "b}}c") -}}', ['{{', '-', 'if', 'and', '$x.y', '(', 'eq', '.a', 'b}}c', ')', '-', '}}']],
  ['{{/* {{ lookup }} */}}x{{- /* lookup */ -}}{{ a }}', ['{{', 'a', '}}']],
  ['{{ `raw }} {{ x` | quote }}', ['{{', 'raw }} {{ x', '|', 'quote', '}}']],
  ['{{ "\\"quoted\\"" }}', ['{{', '"quoted"', '}}']],
  ["{{ 'x' }}{{ 1.5e3 }}{{ -3 }}", ['{{', "'", '}}', '{{', '1.5e3', '}}', '{{', '-3', '}}']],
  ['{{ $ }}{{ . }}{{ $x := 1 }}', ['{{', '$', '}}', '{{', '.', '}}', '{{', '$x', ':=', '1', '}}']],
  ['{{ (index .a 0).name }}', ['{{', '(', 'index', '.a', '0', ')', '.name', '}}']],
  ['{{ never ends', ['{{', 'never', 'ends']],
  ['{{ "never ends }}\n{{ a }}', ['{{', '"', '{', '{', 'a', '}}']],
  ['{{ `never ends }}\n{{ a }}', ['{{', '`']],
  ['{{/* never ends', []],
]
test.each(TOKENS.map(([text, tokens]) => [text, tokens] as const))('HM7 tokens of %s', (text, tokens) => {
  expect(templateTokens(text).map((token) => token.text)).toEqual([...tokens])
})

test('HM7 a megabyte of quotes that do not end is looked at once', () => {
  expect(templateTokens(`{{ ${'\\"'.repeat(500_000)}`).length).toBeLessThan(10)
})

const USES: ReadonlyArray<readonly [string, readonly ScannedFile[], readonly string[]]> = [
  ['a function, with its place', [template('a: b\n  c: {{ randAlphaNum 5 }}')], ['templates/x.yaml:2:9 randAlphaNum']],
  ['none in comments, in text, in names of fields', [template('lookup {{/* lookup */}} {{ .Values.lookup }} {{ "lookup" }}')], []],
  ['a pipe', [template('{{ 5 | randNumeric | quote }}')], ['templates/x.yaml:1:8 randNumeric']],
  [
    'in a helper that is included',
    [template('{{ include "h" . }}'), partial('{{ define "h" }}{{ now }}{{ end }}')],
    ['templates/_x.tpl:1:20 now'],
  ],
  ['in a helper that nobody includes', [template('a: b'), partial('{{ define "h" }}{{ now }}{{ end }}')], []],
  [
    'in a helper through another, with blocks inside',
    [
      template('{{ template "a" . }}'),
      partial('{{ define "a" }}{{ if .x }}{{ end }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ lookup "v1" "Pod" "" "" }}{{ end }}'),
    ],
    ['templates/_x.tpl:1:84 lookup'],
  ],
  [
    'in any helper when the name is not literal',
    [template('{{ include .Values.x . }}'), partial('{{ define "h" }}{{ now }}{{ end }}')],
    ['templates/_x.tpl:1:20 now'],
  ],
  [
    'not by the path of another template',
    [template('{{ include (print $.Template.BasePath "/a.yaml") . | sha256sum }}'), partial('{{ define "h" }}{{ now }}{{ end }}')],
    [],
  ],
  ['in values when tpl is used', [template('{{ tpl .Values.a . }}'), values('a: "{{ genCA 1 2 }}"')], ['values.yaml:1:8 genCA']],
  ['not in values without tpl', [template('{{ .Values.a }}'), values('a: "{{ genCA 1 2 }}"')], []],
  ['in a literal text for tpl', [template('{{ tpl "{{ uuidv4 }}" . }}')], ['templates/x.yaml:1:8 uuidv4']],
  ['not in notes', [{ ...template('{{ randAlpha 5 }}{{ .Release.IsInstall }}'), kind: 'notes' }], []],
  ['the kind of release', [template('{{ if $.Release.IsUpgrade }}{{ end }}')], ['templates/x.yaml:1:7 .Release.IsUpgrade']],
  ['what is outside of definitions in a partial is not rendered', [partial('{{ now }}')], []],
]
test.each(USES.map(([name, files, uses]) => [name, files, uses] as const))('HM7 uses: %s', (_, files, uses) => {
  expect(scanChart(files).uses.map(({ name, file, line, column }) => `${file}:${line}:${column} ${name}`)).toEqual([...uses])
})

describe('HM4 capabilities that a chart names', () => {
  const rows: ReadonlyArray<readonly [string, { apis?: string[]; any?: true; version?: true }]> = [
    ['{{ .Values.a }}', {}],
    ['{{ .Capabilities.HelmVersion.Version }}', {}],
    ['{{ .Capabilities.APIVersions.Has "a/v1" }}', { apis: ['a/v1'] }],
    ['{{ if or ($.Capabilities.APIVersions.Has "a/v1") (.ctx.Capabilities.APIVersions.Has `b/v1/C`) }}', { apis: ['a/v1', 'b/v1/C'] }],
    ['{{ .Capabilities.APIVersions.Has .Values.a }}', { any: true }],
    ['{{ .Capabilities.APIVersions.Has (print "a" "/v1") }}', { any: true }],
    ['{{ "a/v1" | .Capabilities.APIVersions.Has }}', { any: true }],
    ['{{ range .Capabilities.APIVersions }}', { any: true }],
    ['{{ semverCompare ">=1.2" .Capabilities.KubeVersion.Version }}', { version: true }],
    ['{{ $v := .Capabilities.KubeVersion }}', { version: true }],
    ['{{ $c := .Capabilities }}', { any: true, version: true }],
    ['{{ (.Capabilities).APIVersions }}', { any: true, version: true }],
    ['{{ index . "Capabilities" "APIVersions" }}', { any: true, version: true }],
    ['{{ tpl "{{ .Capabilities.KubeVersion }}" . }}', { any: true, version: true }],
    ['{{/* .Capabilities.KubeVersion */}} .Capabilities', {}],
  ]
  test.each(rows.map(([text, expected]) => [text, expected] as const))('%s', (text, expected) => {
    const { apis, anyApi, kubeVersion } = scanChart([template(text)])
    expect({ apis: apis.map(({ api }) => api), any: anyApi !== null, version: kubeVersion }).toEqual({
      apis: expected.apis ?? [],
      any: expected.any ?? false,
      version: expected.version ?? false,
    })
  })
})
