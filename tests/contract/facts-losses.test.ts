// Who took an object away: the facts of a cluster, or somebody. Through the whole ingest, with a real helm.
import { afterEach, expect, test } from 'bun:test'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { memoryRendering } from '../support/render-kit.ts'

let kit: IngestKit
let rev = 0
afterEach(() => kit.close())

/** Without the five seconds in which reports are gathered. */
const clock = { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms <= 5_000 ? 0 : ms, signal) }

async function serves(clusterId: ClusterId, apis: Record<string, string[]>, kubernetesVersion = 'v1.36.0') {
  const row = { kind: 'facts' as const, key: 'cluster', rev: ++rev, doc: { kubernetesVersion, apis } }
  await kit.store.upsertStatus(clusterId, [row], { complete: false, nowMs: 1 })
  kit.ingest.statusReported(clusterId, [row])
}
const marks = async (clusterId: ClusterId) => {
  const row = await kit.row(clusterId)
  return [row?.count, row?.factsOnly]
}
const asking = (name: string) => `{% if cluster.facts.apiVersions["x/v1"] %}\n${configMap(name, '1')}{% endif %}\n`
const VALUES = { source: undefined, sources: [{ repository: 'apps', path: 'shop' }, { name: 'values', repository: 'apps', path: '.', filesOnly: true }] } // biome-ignore format: one thought
const [WITH, WITHOUT] = [{ v1: ['ConfigMap'], 'x/v1': ['X'] }, { v1: ['ConfigMap'] }]

async function shop(files: Record<string, string>, change: Record<string, unknown>) {
  kit = await createIngestKit({ clock })
  await kit.git.commit(files, 'first')
  await kit.repository()
  const one = await kit.join('1')
  await serves(one, WITH)
  await kit.service(change)
  return one
}

test('RL5 a commit that the service never looked at does not hide what facts take away', async () => {
  const one = await shop({ 'shop/a.yaml': configMap('a', '1'), 'shop/b.yaml.liquid': asking('b') }, VALUES)
  expect(await marks(one)).toEqual([2, undefined])
  await kit.push({ 'README.md': 'nothing to do with it' })
  await serves(one, WITHOUT)
  await kit.ingest.serviceChanged(SHOP)
  expect(await marks(one)).toEqual([1, true])
  await kit.push({ 'shop/a.yaml': configMap('a', '2') })
  expect(await marks(one)).toEqual([1, true]) // nor does a later one
  await serves(one, WITH)
  await kit.ingest.serviceChanged(SHOP)
  expect(await marks(one)).toEqual([2, undefined])
  await kit.push({ 'shop/b.yaml.liquid': null })
  expect(await marks(one)).toEqual([1, undefined])
})

test('RL5 a template that looks elsewhere with other facts, and a commit that comes with them', async () => {
  const other = `{% if cluster.facts.apiVersions["x/v1"] %}\n${configMap('b', '1')}{% elsif config.other %}\n${configMap('c', '1')}{% endif %}\n`
  const one = await shop({ 'shop/a.yaml': configMap('a', '1'), 'shop/b.yaml.liquid': other }, { config: { other: true } })
  expect(await marks(one)).toEqual([2, undefined])
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '2') }, 'with it')
  const row = { kind: 'facts' as const, key: 'cluster', rev: ++rev, doc: { kubernetesVersion: 'v1.36.0', apis: WITHOUT } }
  await kit.store.upsertStatus(one, [row], { complete: false, nowMs: 1 })
  kit.ingest.statusReported(one, [row])
  await kit.ingest.repositoryChanged('default', 'apps')
  await kit.ingest.serviceChanged(SHOP)
  expect(await marks(one)).toEqual([2, true])
})

const CHART = {
  'charts/web/Chart.yaml': 'apiVersion: v2\nname: web\nversion: 1.0.0\n',
  'charts/web/templates/a.yaml':
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: "{{ .Capabilities.KubeVersion.Major }}"}\n',
  'charts/web/templates/b.yaml': '{{ if .Values.second }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n{{ end }}\n',
  'prod.yaml': 'second: true\n',
}

test.each([
  ['a Config of valuesFrom', { valuesFrom: [{ name: 'vals', key: 'v' }] }],
  ['a values file outside of the folder', { valuesFiles: ['../../prod.yaml'] }],
])('RL5 what somebody switches off in %s is not held for facts', async (_, helm) => {
  let second = true
  const rendering = () => ({ ...memoryRendering(realSandbox()), config: async () => ({ data: { v: { second } }, secrets: {} }) })
  kit = await createIngestKit({ rendering, clock })
  await kit.git.commit(CHART, 'first')
  await kit.repository()
  const one = await kit.join('1')
  await serves(one, WITH, 'v1.33.0')
  await kit.service({ source: { repository: 'apps', path: 'charts/web' }, render: { helm } })
  expect(await marks(one)).toEqual([2, undefined])
  second = false
  await kit.push({ 'prod.yaml': 'second: false\n' })
  await kit.ingest.serviceChanged(SHOP)
  expect(await marks(one)).toEqual([1, undefined])
})
