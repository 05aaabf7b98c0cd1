// HM: charts written for the purpose, each rendered by us and by helm alone with flags that a person would write: the
// same objects.
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { RenderSpec } from '../../shared/model/render.ts'
import {
  bareHelm,
  CHARTS_FOLDER,
  createCaseRenderer,
  FACTS,
  filesOfFolder,
  type HelmMajor,
  objectTexts,
  renderedTexts,
  type TestFiles,
  writeFiles,
} from '../support/helm-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const renderCase = createCaseRenderer()

interface Golden {
  chart: string
  name?: string
  /** Values files, beside the chart, in their order: what helm alone gets as several -f. */
  files?: readonly string[]
  helm?: NonNullable<RenderSpec['helm']>
  /** Capabilities that helm alone is given. */
  flags?: readonly string[]
  /** Looks that helm alone would answer by its own list. */
  notServed?: readonly string[]
  only?: HelmMajor
}

const VERSION_FLAG = `--kube-version=${FACTS.kubernetesVersion}`
const GOLDENS: readonly Golden[] = [
  { chart: 'basic' },
  {
    chart: 'basic',
    name: 'with values',
    files: ['replicaCount: 5\nimage: {tag: "2"}\n', 'nodeSelector: {disk: ssd}\nimage: {repository: other}\n'],
  },
  { chart: 'hooks' },
  { chart: 'hook-unknown' },
  { chart: 'sub-conditions' },
  {
    chart: 'sub-conditions',
    name: 'the other way round',
    files: ['first: {enabled: false}\nsecond: {enabled: true}\ntags: {front: false, back: true}\n'],
  },
  { chart: 'sub-alias', files: ['green: {text: given}\n'] },
  { chart: 'sub-global' },
  { chart: 'sub-global', name: 'from a file', files: ['global: {colour: blue}\nchild: {grandchild: {text: deep}}\n'] },
  { chart: 'import-values' },
  { chart: 'import-values', name: 'overridden', files: ['taken: {port: 9}\n', 'giver: {exports: {shared: {host: other}}}\n'] },
  { chart: 'crds' },
  { chart: 'crds', name: 'without CRDs', helm: { skipCrds: true } },
  { chart: 'lookup' },
  { chart: 'named-templates' },
  { chart: 'library-use' },
  { chart: 'library-inside' },
  { chart: 'tpl', files: ['host: "{{ .Chart.Version }}.example.org"\n'] },
  { chart: 'files' },
  { chart: 'to-yaml' },
  { chart: 'scopes' },
  { chart: 'required', files: ['a: given\n'] },
  {
    chart: 'capabilities',
    flags: ['--api-versions=monitoring.coreos.com/v1/ServiceMonitor'],
    notServed: ['policy/v1beta1', 'extensions/v1beta1', 'gateway.networking.k8s.io/v1'],
  },
  { chart: 'kube-version', flags: [VERSION_FLAG] },
  { chart: 'kube-constraint', flags: [VERSION_FLAG] },
  { chart: 'api-range', flags: [`--api-versions=${Object.keys(FACTS.apiVersions).join(',')}`] },
  { chart: 'schema', files: ['replicas: 3\nlevel: high\n'] },
  { chart: 'schema', name: 'not looked at', files: ['replicas: many\n'], helm: { skipSchemaValidation: true } },
  { chart: 'null-overrides' },
  {
    chart: 'null-overrides',
    name: 'removed',
    files: ['drop: {a: null}\nprobe: {httpGet: null, tcp: 1}\n', 'list: null\nchild: {gone: null}\nkeep: null\n'],
  },
  { chart: 'null-overrides', name: 'removed and given again', files: ['drop: null\n', 'drop: {c: 3}\nchild: {gone: {y: null}}\n'] },
  { chart: 'big-ints', files: ['given: 123456789\nlarge: 9007199254740991\n'] },
  { chart: 'multi-doc' },
  { chart: 'multi-doc', name: 'all of it', files: ['more: true\n'] },
  { chart: 'non-ascii', files: ['greeting: "\\u00e9 ☃"\n'] },
  { chart: 'notes' },
  { chart: 'helmignore' },
  { chart: 'differences', files: ['port: 70000000\n'] },
  { chart: 'requirements' },
  { chart: 'anchors', files: ['base: {disk: 1}\nweb: &w {cpu: 9}\nother: *w\n'] },
  { chart: 'release-info', helm: { releaseName: 'another' } },
  { chart: 'scalars', files: ['a: off\nc: 0x10\ne: 1_000\n8081: {on: y}\n'] },
  { chart: 'checksum', files: ['a: 2\n'] },
  { chart: 'differences', name: 'several documents of values', files: ['port: 1\n---\nport: 2\n'], only: '4' },
]

const folder = tempDir()
const charts = new Set(GOLDENS.map(({ chart }) => chart))

/** The folder for helm alone: the chart with its `file://` neighbours in charts/, and the answers of the cluster in
 *  place of its questions about kinds that are not served. */
function bareFolder(name: string, golden: Golden): string {
  const target = join(folder, name)
  mkdirSync(target, { recursive: true })
  const files = Object.entries(filesOfFolder(join(CHARTS_FOLDER, golden.chart))).map(([path, bytes]) => {
    const text = Buffer.from(bytes).toString()
    const answered = (golden.notServed ?? []).reduce(
      (one, api) => one.replace(new RegExp(`[$.]*Capabilities.APIVersions.Has "${api}"`), 'false'),
      text,
    )
    return [join('chart', path), answered] as const
  })
  if (golden.chart === 'library-use')
    for (const [path, bytes] of Object.entries(filesOfFolder(join(CHARTS_FOLDER, 'library-common'))))
      files.push([join('chart/charts/common', path), Buffer.from(bytes).toString()])
  writeFiles(target, new Map([...files, ...(golden.files ?? []).map((text, index) => [`values-${index}.yaml`, text] as const)]))
  return target
}

const all: Record<string, Uint8Array> = filesOfFolder(CHARTS_FOLDER)
const TABLE = GOLDENS.flatMap((golden) =>
  (golden.only === undefined ? (['4', '3'] as const) : [golden.only]).map((major) => ({
    ...golden,
    major,
    title: `${golden.chart}${golden.name === undefined ? '' : `, ${golden.name}`}, helm ${major}`,
  })),
)

test.each(TABLE.map((row) => [row.title, row] as const))('HM1 golden: %s', async (title, row) => {
  const { major, chart, files = [], helm = {} } = row
  const bare = bareFolder(title.replaceAll(/\W/g, '-'), row)
  const skip = [helm.skipSchemaValidation === true ? '--skip-schema-validation' : '', helm.skipCrds === true ? '' : '--include-crds']
  const values = files.map((_, index) => `-f=values-${index}.yaml`)
  const flags = ['--namespace=apps', '--skip-tests', ...skip.filter(Boolean), ...values, ...(row.flags ?? [])]
  const golden = bareHelm(major, bare, [helm.releaseName ?? 'release', 'chart', ...flags])
  expect(golden.exitCode, golden.stderr).toBe(0)
  const valuesFiles: TestFiles = Object.fromEntries(files.map((text, index) => [`values/values-${index}.yaml`, text]))
  const { result } = await renderCase({
    root: chart,
    files: { ...all, ...valuesFiles },
    helm: { ...helm, helm: major, valuesFiles: files.map((_, index) => `../values/values-${index}.yaml`) },
  })
  expect(result.kind === 'failed' ? result.problems : []).toEqual([])
  expect(objectTexts(renderedTexts(result))).toEqual(objectTexts([golden.stdout]))
})

test('HM1 every chart of the corpus is rendered, and there are at least 25', () => {
  expect(charts.size).toBeGreaterThanOrEqual(25)
  const others = ['library-common', 'random']
  expect(readdirSync(CHARTS_FOLDER).filter((name) => !charts.has(name) && !others.includes(name))).toEqual([])
})
