// Plain manifests through their renderer: which files, which templates, and what becomes of them.
import { describe, expect, test } from 'bun:test'
import { readManifests } from '../../server/render/manifests.ts'
import { recordedInputs } from '../../server/render/record/inputs.ts'
import { renderRaw } from '../../server/render/render-raw.ts'
import type { RendererResult, RenderJob } from '../../server/render/renderer.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import { memoryTree, type TestFiles } from '../support/helm-kit.ts'
import { naming } from '../support/naming.ts'

const INPUTS = {
  cluster: { name: 'edge-1', labels: { region: 'eu' }, facts: { kubernetesVersion: '', apiVersions: {} } },
  config: { color: 'blue' },
  service: { name: 'web', project: 'shop', namespace: null },
  source: { version: 'abc' },
}

const render = (files: TestFiles, root = 'app', spec: RenderSpec = {}): Promise<RendererResult> =>
  renderRaw({
    id: { project: 'shop', service: 'web' },
    ...{ spec, namespace: undefined, source: { tree: memoryTree(files), root }, named: new Map(), values: [], plainInputs: INPUTS },
    inputs: recordedInputs(INPUTS, () => {}),
    recordInput: () => {},
    configValue: () => undefined,
    sandbox: { run: () => Promise.reject(new Error('no program runs')), version: async () => null },
    once: (_, run) => run(),
    signal: new AbortController().signal,
  } satisfies RenderJob)

const texts = (result: RendererResult): Record<string, string> =>
  Object.fromEntries([...(result.files ?? [])].map(([path, bytes]) => [path, new TextDecoder().decode(bytes)]))
const problems = (result: RendererResult): string[] =>
  result.kind === 'failed' ? result.problems.map(({ path, message }) => `${path} ${message}`) : []

describe('LQ1 which files are templates', () => {
  const files = {
    'app/a.yaml': 'x: {{ config.color }}',
    'app/b.yaml.liquid': 'x: {{ config.color }}',
    'app/c.json': '{}',
    'app/d.txt.liquid': '{{ nope }}',
  }
  test('by their ending', async () => {
    expect(texts(await render(files))).toEqual({ 'app/a.yaml': 'x: {{ config.color }}', 'app/b.yaml': 'x: blue', 'app/c.json': '{}' })
  })
  test('all of them, when the service says so', async () => {
    expect(texts(await render(files, 'app', { templated: true }))).toEqual({
      'app/a.yaml': 'x: blue',
      'app/b.yaml': 'x: blue',
      'app/c.json': '{}',
    })
  })
  test('two that become one', async () => {
    expect(problems(await render({ 'app/a.yaml': 'a: 1', 'app/a.yaml.liquid': 'a: 2' }))).toEqual([
      naming('app/a.yaml.liquid', 'app/a.yaml', 'output'),
    ])
  })
  test('RD1 a template of a kustomization or a chart is never passed over', async () => {
    for (const name of ['Kustomization', 'kustomization.yml', 'Chart.yaml'])
      expect(problems(await render({ 'app/a.yaml': 'a: 1', [`app/below/${name}.liquid`]: 'x' }))).toEqual([
        naming(`app/below/${name}.liquid`, name === 'Chart.yaml' ? 'Helm chart' : 'kustomization'),
      ])
  })
  test('one that is no text', async () => {
    expect(problems(await render({ 'app/a.yaml.liquid': new Uint8Array([0xff, 0xfe]) }))).toEqual([naming('app/a.yaml.liquid', 'UTF-8')])
  })
})

describe('LQ9 partials are of the folder of the service', () => {
  const files = {
    'app/a.yaml.liquid': "{% render 'parts/labels', of: service.name %}",
    'app/parts/labels.liquid': "app: {{ of }}\n{% render 'parts/more' %}",
    'app/parts/more.liquid': 'region: {{ cluster.labels.region }}\n',
    'secret.liquid': 'not for you',
  }
  test('and of those that they render', async () => expect(texts(await render(files))).toEqual({ 'app/a.yaml': 'app: web\nregion: eu\n' }))
  test.each([
    [100, undefined],
    [101, '100'],
  ] as const)('a template has 100 of them and no more: %d', async (count, told) => {
    const numbers = Array.from({ length: count }, (_, index) => index)
    const parts = Object.fromEntries(numbers.map((n) => [`app/p${n}.liquid`, `k${n}: ${n}\n`]))
    const all = numbers.map((n) => `{% render 'p${n}' %}`).join('')
    expect(problems(await render({ ...parts, 'app/a.yaml.liquid': all }))).toEqual(
      told === undefined ? [] : [naming('app/a.yaml.liquid', told)],
    )
  })
  test.each(['../secret', '/secret', './parts/more', 'parts\\more'])('%s is none', async (name) => {
    const result = await render({ ...files, 'app/a.yaml.liquid': `{% render '${name}' %}` })
    expect(problems(result)).toHaveLength(1)
    expect(JSON.stringify(result)).not.toContain('not for you')
  })
})

test('LQ6 the errors of all files at once, and the others are still there to be looked at', async () => {
  const result = await render({
    'app/a.yaml.liquid': '{{ config.colour }}',
    'app/b.yaml.liquid': '\n{{ clster.name }}',
    'app/c.yaml': 'a: 1',
  })
  expect(problems(result)).toEqual([
    naming('app/a.yaml.liquid:1:4', 'config.colour', 'config.color?'),
    naming('app/b.yaml.liquid:2:4', 'clster.name', 'cluster.name?'),
  ])
  expect(texts(result)).toEqual({ 'app/c.yaml': 'a: 1' })
})

test.each(['Chart.yaml', 'sub/kustomization.yaml', 'sub/kustomization.yml.liquid', 'Kustomization'])(
  'RN2 %s is not for plain reading',
  async (name) => {
    expect(problems(await render({ 'app/a.yaml': 'a: 1', [`app/${name}`]: 'a: 1' }))[0]).toEqual(
      naming(name.replace('.liquid', ''), 'plain manifests'),
    )
  },
)

const read = (text: string) => readManifests(new Map([['a.yaml', new TextEncoder().encode(text)]]))
const cm = (name: string, annotations = '{}') => `{apiVersion: v1, kind: ConfigMap, metadata: {name: ${name}, annotations: ${annotations}}}`

test.each([
  ['"true"', []],
  ['""', []],
  ['"yes"', []],
  ['true', []],
  ['"false"', ['a']],
] as const)('RN9 local-config %s', (value, expected) => {
  const { found, problems: wrong } = read(`${cm('a', `{config.kubernetes.io/local-config: ${value}}`)}\n`)
  expect(found.map(({ object }) => object.metadata.name)).toEqual([...expected])
  expect(wrong).toEqual([])
})
test('RN9 one that is local may be no object of Kubernetes at all', () => {
  expect(
    read(`apiVersion: x\nkind: Thing\nmetadata: {annotations: {config.kubernetes.io/local-config: "true"}}\n---\n${cm('a')}\n`),
  ).toMatchObject({
    found: [{ object: { metadata: { name: 'a' } } }],
    problems: [],
  })
})

describe('RN1 documents, lists and JSON', () => {
  test.each([
    ['several documents', `${cm('a')}\n---\n# nothing\n---\n${cm('b')}\n...\n`, ['a', 'b']],
    ['a List in a List', `kind: List\nitems: [{kind: ConfigMapList, items: [${cm('a')}]}, ${cm('b')}]\n`, ['a', 'b']],
    ['an empty List', 'kind: List\nitems: []\n', []],
    ['JSON', '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}', ['a']],
    ['a byte order mark and CRLF', `\ufeff${cm('a')}\r\n---\r\n${cm('b')}\r\n`, ['a', 'b']],
  ] as const)('%s', (_, text, expected) => {
    const { found, problems: wrong } = read(text)
    expect(wrong).toEqual([])
    expect(found.map(({ object }) => object.metadata.name)).toEqual([...expected])
  })
})

describe('RN11 which files of a folder are read', () => {
  const files = {
    'app/a.yaml': 'a: 1',
    'app/b.json.liquid': '{}',
    'app/alternatives/c.yaml': 'a: 1',
    'app/alternatives/kustomization.yaml': '{}',
  }
  test.each([
    [{}, null],
    [{ exclude: 'alternatives/*' }, ['app/a.yaml', 'app/b.json']],
    [{ recurse: false }, ['app/a.yaml', 'app/b.json']],
    [{ include: '{*.json,alternatives/c.yaml}' }, ['app/alternatives/c.yaml', 'app/b.json']],
    [{ include: '*.yaml', exclude: '*kustomization.yaml' }, ['app/a.yaml', 'app/alternatives/c.yaml']],
  ] as const)('%j', async (directory, expected) => {
    const result = await render(files, 'app', { directory })
    if (expected === null) expect(problems(result)).toHaveLength(1)
    else expect([problems(result), Object.keys(texts(result)).sort()]).toEqual([[], [...expected]])
  })
})

describe('RN12 Jsonnet beside plain manifests', () => {
  const wrong = (result: RendererResult) => (result.kind === 'failed' ? result.problems : []).map(({ path }) => path)
  test('alone it is an error, beside manifests a warning, as a library or left out nothing', async () => {
    expect(wrong(await render({ 'app/main.jsonnet': '{}', 'app/z.jsonnet': '{}' }))).toEqual(['app/main.jsonnet'])
    const beside = await render({ 'app/main.jsonnet': '{}', 'app/a.yaml': 'a: 1' })
    expect(beside.kind === 'rendered' && beside.warnings.map(({ path }) => path)).toEqual(['app/main.jsonnet'])
    for (const [file, directory] of [
      ['a.libsonnet', {}],
      ['.x/a.jsonnet', {}],
      ['a.jsonnet', { exclude: '*.jsonnet' }],
    ] as const)
      expect(await render({ [`app/${file}`]: '{}' }, 'app', { directory })).toMatchObject({ kind: 'rendered', warnings: [] })
  })
})
