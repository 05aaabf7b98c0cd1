// A service that no cluster matches: what is wrong with it is told all the same, and what only a cluster can bring is
// told as that. With real Git, helm and kustomize.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { naming } from '../support/naming.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { memoryRendering } from '../support/render-kit.ts'

const DOUBT = '; this is rendered for no cluster: one may bring what is missing'
let kit: IngestKit
let runs = 0
beforeEach(async () => {
  const sandbox = realSandbox()
  const run = (...args: Parameters<typeof sandbox.run>) => {
    runs += 1
    return sandbox.run(...args)
  }
  kit = await createIngestKit({ rendering: () => memoryRendering({ run, version: (program) => sandbox.version(program) }) })
  runs = 0
})
afterEach(() => kit.close())

const CHART = 'apiVersion: v2\nname: shop\nversion: 1.0.0\n'
const named = (name: string, value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {a: "${value}"}\n`
const ASKS = named('asks', '{{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" }}')
const MAIN = (body: string) => `export default ({ cluster }) => {\n  ${body}\n}\n`

async function told(files: Record<string, string>, change: Record<string, unknown> = {}) {
  await kit.git.commit(Object.fromEntries(Object.entries(files).map(([path, text]) => [`shop/${path}`, text])), 'first')
  await kit.repository()
  await kit.service('main.ts' in files ? { render: { type: 'typescript' }, ...change } : change)
  const { error, release, commit } = await kit.store.renderState(SHOP)
  const text = ({ path, message }: { path: string; message: string }) => `${path} ${message}`
  return { errors: error?.problems.map(text) ?? [], doubts: (release?.warnings ?? []).map(text), commit }
}

describe('RD10 HM4 what is wrong for any cluster is the error of the service', () => {
  test.each([
    ['a chart that asks for nothing', { 'Chart.yaml': CHART, 'templates/a.yaml': named('a', '{{ required "set host" .Values.host }}') }, ['shop/templates/a.yaml:4:15 set host']],
    ['a template that is none, in a chart that asks', { 'Chart.yaml': CHART, 'templates/a.yaml': ASKS, 'templates/b.yaml': '{{ if }}\n' }, ['shop/templates/b.yaml:1 missing value for if']],
    ['a chart that is none', { 'Chart.yaml': 'name: shop\n', 'templates/a.yaml': ASKS }, ['shop/Chart.yaml validation: chart.metadata.version is required']],
    ['a syntax error beside a look at the cluster', { 'main.ts': "import './b.ts'\nexport default ({ cluster }) => ({ name: cluster.name })\n", 'b.ts': 'const = 1\n' }, Array(3).fill(expect.stringMatching(/^shop\/b\.ts:1:/))],
    ['plain manifests', { 'a.yaml': 'kind: ConfigMap\n' }, ['shop/a.yaml:1:1 apiVersion is missing', 'shop/a.yaml:1:1 ConfigMap has no metadata']],
    ['a name that is misspelt', { 'a.yaml.liquid': named('a', '{{ service.nmae }}') }, [naming('shop/a.yaml.liquid:4:15', 'service.nmae', 'service.name?')]],
  ])('RD10 %s', async (_, files, expected) => expect(await told(files)).toMatchObject({ errors: expected, doubts: [] })) // biome-ignore format: a table
})

describe('RD10 what a cluster may bring is a warning that says so, and what is asked of it is none', () => {
  test.each([
    ['a chart that wants an API', { 'Chart.yaml': CHART, 'templates/a.yaml': `{{ if not (.Capabilities.APIVersions.Has "a.example/v1") }}{{ fail "install a first" }}{{ end }}\n` }, {}, [`shop/templates/a.yaml:1:63 install a first${DOUBT}`]],
    ['a chart for another Kubernetes', { 'Chart.yaml': `${CHART}kubeVersion: '>=1.99'\n`, 'templates/a.yaml': named('a', 'x') }, {}, [expect.stringMatching(/^shop\/Chart\.yaml .*kubeVersion: .*no cluster/)]],
    ['a value of overrides for clusters', { 'Chart.yaml': CHART, 'templates/a.yaml': named('a', '{{ required "set host" .Values.host }}') }, { overrides: [{ selector: { matchLabels: { a: 'b' } }, helm: { values: { host: 'x' } } }] }, [`shop/templates/a.yaml:4:15 set host${DOUBT}`]],
    ['a value of the cluster', { 'Chart.yaml': CHART, 'templates/a.yaml': named('a', 'x') }, { render: { helm: { values: { host: '{{ cluster.name }}' } } } }, []],
    ['a program that takes what there is of it', { 'main.ts': MAIN('return { name: cluster.name }') }, {}, [expect.stringMatching(/^shop\/main\.ts:2:\d+ TypeError: .*; .*no cluster/)]],
    ['a variable that is nowhere', { 'a.yaml.liquid': named('a', '{{ config.region }}') }, {}, [naming('shop/a.yaml.liquid:4:15', 'name config.region', 'no cluster', '{{ config.region | default: "…" }}')]],
    ['a name of the cluster', { 'a.yaml.liquid': named('a', '{{ cluster.name }}'), 'b.yaml.liquid': named('b', '{{ cluster.labels.region }}') }, {}, []],
    ['manifests for some clusters only', { 'a.yaml.liquid': '{% if cluster %}x{% endif %}\n' }, {}, []],
  ])('RD10 %s', async (_, files, change, expected) => expect(await told(files, change)).toEqual({ errors: [], doubts: expected, commit: null } as never)) // biome-ignore format: a table
})

test('RD10 RL4 it is rendered once, told once, publishes nothing, and a cluster that comes has the last word', async () => {
  const fail = '{{ if not (.Capabilities.APIVersions.Has "a.example/v1") }}{{ fail "install a first" }}{{ end }}\n'
  await told({ 'Chart.yaml': CHART, 'templates/a.yaml': fail, 'templates/b.yaml': named('b', 'x') })
  const taken = runs
  const events = await kit.events()
  expect(events.filter((text) => text.startsWith('ManifestWarning: shop/templates/a.yaml:1:63: install a first; this is'))).toHaveLength(1)
  const before = await kit.store.renderState(SHOP)
  await kit.ingest.serviceChanged(SHOP)
  expect([runs, await kit.events(), await kit.store.renderState(SHOP)]).toEqual([taken, events, before])

  const one = await kit.join('1')
  await kit.ingest.serviceChanged(SHOP)
  expect((await kit.store.renderState(SHOP)).error?.problems).toMatchObject([
    { path: 'shop/templates/a.yaml:1:63', message: 'install a first' },
  ])
  expect(await kit.pull(one)).toEqual([])

  await kit.push({ 'shop/templates/a.yaml': null })
  expect((await kit.pull(one)).length).toBe(2)
  expect((await kit.store.renderState(SHOP)).release?.warnings ?? []).toEqual([])
})

test('RD10 what is in force stays: targets that match nobody any more leave its words alone', async () => {
  await told({ 'a.yaml': configMap('a', 'x') })
  const { digest } = await kit.store.renderState(SHOP)
  await kit.push({ 'shop/b.yaml.liquid': named('b', '{{ cluster.name }}') })
  const { release, ...state } = await kit.store.renderState(SHOP)
  expect([state.digest, state.error, release?.warnings ?? []]).toEqual([digest, null, []])
  await kit.push({ 'shop/b.yaml.liquid': named('b', '{{ config.color }}') })
  const after = await kit.store.renderState(SHOP)
  expect([after.digest, after.error, after.release?.warnings.length]).toEqual([digest, null, 1])
})
