// A chart as helm gets it: the files of its folder that helm can see, with the charts that it depends on in its charts
// folder. Also where each file came from, for messages.
import { parseYamlDocuments } from '../../../shared/adapters/yaml.ts'
import { canonicalJson, sha256Hex } from '../../../shared/kube/canonical.ts'
import { AppError, type Problem } from '../../../shared/runtime/error.ts'
import { sopsFormatOf } from '../../../shared/sops/read.ts'
import { readArchive } from '../../sources/archive/archive.ts'
import { greatestVersion } from '../../sources/range.ts'
import { pathSegments, SOURCE_TREE_BYTES_MAX, type SourceTree } from '../../sources/source.ts'
import type { RenderJob } from '../renderer.ts'
import { treePath } from '../tree-path.ts'
import { decodeUtf8 } from '../utf8.ts'
import { helmIgnore, IGNORE_LENGTH_MAX, IGNORE_RULES_MAX } from './ignore.ts'
import { isValues } from './values.ts'

/** Charts in charts in charts. */
const CHART_DEPTH_MAX = 10
const CHARTS_MAX = 100
/** The limit of all files of a chart with its subcharts, unpacked. */
const CHART_BYTES_MAX = SOURCE_TREE_BYTES_MAX

interface ChartDependency {
  name: string
  version: string
  repository: string
  alias: string
}
export interface ChartNode {
  name: string
  version: string
  kubeVersion: string
  /** In the files: '' or `charts/redis`. */
  folder: string
  dependencies: readonly ChartDependency[]
  /** By the names that helm calls them in messages; a chart with aliases is there by each. */
  children: Map<string, ChartNode>
}

export interface ChartFile {
  bytes: Uint8Array
  /** Where in the tree it is, or of which chart. */
  origin: string
}
export interface Chart {
  files: Map<string, ChartFile>
  /** Names all bytes of all files. */
  id: string
  node: ChartNode
}
export type ReadChart = { kind: 'chart'; chart: Chart } | { kind: 'refused'; problems: Problem[] }

/** The chart of the source's folder with those that it depends on, as helm will get it (HM3, HM10). */
export async function readChart(job: RenderJob): Promise<ReadChart> {
  const reader = new ChartReader(job)
  const root = pathSegments(job.source.root).join('/')
  await reader.addFolder(job.source.tree, root, '')
  const node = await reader.complete('', root, 0)
  if (node === null || reader.problems.length > 0) return { kind: 'refused', problems: reader.problems }
  const ids = [...reader.files].map(([path, { id }]) => [path, id] as const).sort(([a], [b]) => (a < b ? -1 : 1))
  const files = new Map([...reader.files].map(([path, { bytes, origin }]) => [path, { bytes, origin }]))
  return { kind: 'chart', chart: { files, id: sha256Hex(canonicalJson(ids)), node } }
}

class ChartReader {
  readonly files = new Map<string, ChartFile & { id: string }>()
  readonly problems: Problem[] = []
  private readonly job: RenderJob
  private charts = 0
  private bytes = 0

  constructor(job: RenderJob) {
    this.job = job
  }

  /** Adds the files that helm sees of a folder of the tree, as `folder` of the chart. */
  async addFolder(tree: SourceTree, root: string, folder: string): Promise<void> {
    const prefix = root === '' ? '' : `${root}/`
    const rules = await tree.file(`${prefix}.helmignore`)
    const ignore = helmIgnore(rules === null ? '' : new TextDecoder().decode(rules.bytes))
    const file = `${prefix}.helmignore`
    if (ignore === null) {
      this.problem(file, `more than ${IGNORE_RULES_MAX} rules or ${IGNORE_LENGTH_MAX / 1024} KiB`)
    }
    const found = await tree.files(root, (path) => ignore?.hides(path.slice(prefix.length)) !== true)
    if (ignore?.tookTooMany() === true)
      this.problem(file, 'matching its rules against these files takes too long; use fewer rules with fewer stars')
    for (const [path, { bytes, oid }] of found) {
      this.add(`${inFolder(folder)}${path.slice(prefix.length)}`, { bytes, id: oid, origin: path })
    }
  }

  private problem(path: string, message: string): null {
    this.problems.push({ path, message })
    return null
  }

  /** Reads what the chart in `folder` says of itself and adds what it depends on and has not. `root`: where its folder
   *  is in the tree. Null means that it is not of the tree. */
  async complete(folder: string, root: string | null, depth: number): Promise<ChartNode | null> {
    this.charts += 1
    if (depth > CHART_DEPTH_MAX || this.charts > CHARTS_MAX) {
      const message = `more than ${CHARTS_MAX} charts, or charts nested more than ${CHART_DEPTH_MAX} deep`
      return this.charts > CHARTS_MAX + 1 ? null : this.problem(this.originOf(`${inFolder(folder)}Chart.yaml`), message)
    }
    const own = this.read(`${inFolder(folder)}Chart.yaml`)
    if (own === undefined)
      return this.problem(folder === '' ? inFolder(root ?? '').concat('Chart.yaml') : folder, 'not a chart: Chart.yaml is missing')
    if (own === null) return null
    this.refuseSops(`${inFolder(folder)}values.yaml`)
    const node: ChartNode = {
      name: textOf(own['name']),
      version: textOf(own['version']),
      kubeVersion: textOf(own['kubeVersion']),
      folder,
      dependencies: dependenciesOf(own['dependencies'] ?? this.read(`${inFolder(folder)}requirements.yaml`)?.['dependencies']),
      children: new Map(),
    }
    if (node.dependencies.length > CHARTS_MAX)
      return this.problem(this.originOf(`${inFolder(folder)}Chart.yaml`), `more than ${CHARTS_MAX} dependencies`)
    for (const path of this.archives(folder)) await this.unpack(path)
    for (const child of this.childFolders(folder)) this.adopt(node, await this.complete(child, null, depth + 1))
    for (const dependency of node.dependencies) await this.completeDependency(node, dependency, root, depth)
    return node
  }

  /** SP7: helm reads it by itself. */
  private refuseSops(path: string): void {
    const bytes = this.files.get(path)?.bytes
    const text = bytes === undefined ? null : decodeUtf8(bytes)
    if (text !== null && sopsFormatOf(text) !== null)
      this.problem(
        this.originOf(path),
        'is encrypted by SOPS, and helm reads it in clear; move its values to a file of render.helm.valuesFiles',
      )
  }

  private adopt(node: ChartNode, child: ChartNode | null): void {
    if (child === null) return
    node.children.set(child.name, child)
    for (const { name, alias } of node.dependencies) if (name === child.name && alias !== '') node.children.set(alias, child)
  }

  private async completeDependency(node: ChartNode, dependency: ChartDependency, root: string | null, depth: number): Promise<void> {
    const { name, version, repository } = dependency
    const chartFile = this.originOf(`${inFolder(node.folder)}Chart.yaml`)
    if (node.children.has(name)) return this.checkVersion(node, dependency, chartFile)
    const folder = `${inFolder(node.folder)}charts/${name}`
    const inTree = repository.startsWith('file://') && root !== null ? treePath(root, repository.slice('file://'.length)) : null
    if (repository.startsWith('file://')) {
      if (inTree === null) {
        this.problem(chartFile, `the dependency ${name} (${repository}) leads outside the files of its source`)
        return
      }
      await this.addFolder(this.job.source.tree, inTree, folder)
      if (!this.files.has(`${folder}/Chart.yaml`)) {
        this.problem(chartFile, `the dependency ${name} (${repository}) is not a chart: ${inFolder(inTree)}Chart.yaml is missing`)
        return
      }
    } else if (!(await this.fetchDependency(node, dependency, folder, chartFile))) return
    this.adopt(node, await this.complete(folder, inTree, depth + 1))
    this.checkVersion(node, { name, version, repository, alias: dependency.alias }, chartFile)
  }

  /** helm leaves out without a word what does not fit. */
  private checkVersion(node: ChartNode, { name, version }: ChartDependency, chartFile: string): void {
    const found = node.children.get(name)?.version
    if (found === undefined || version === '' || greatestVersion([found], version) !== null) return
    this.problem(
      chartFile,
      `the dependency ${name} needs version ${version}, but charts/ has ${found}, which helm would ignore; run \`helm dependency update\` and commit`,
    )
  }

  private async fetchDependency(node: ChartNode, dependency: ChartDependency, folder: string, chartFile: string): Promise<boolean> {
    const { name, repository } = dependency
    const lock = this.read(`${inFolder(node.folder)}Chart.lock`) ?? this.read(`${inFolder(node.folder)}requirements.lock`)
    const locked = dependenciesOf(lock?.['dependencies']).find((one) => one.name === name) ?? exactDependency(dependency)
    const what = `the dependency ${name} (${repository === '' ? 'no repository' : repository}) is not in ${inFolder(node.folder)}charts/`
    const commit = 'run `helm dependency build` and commit the result'
    if (this.job.charts === undefined || !/^(https?|oci):\/\//.test(repository)) this.problem(chartFile, `${what}; ${commit}`)
    else if (locked === undefined)
      this.problem(
        chartFile,
        `${what}, and without a Chart.lock its version must be exact (such as 1.2.3); ${commit}, at least Chart.lock, or write the exact version`,
      )
    else {
      try {
        const files = await this.job.charts(locked.repository, name, locked.version)
        const origin = `${name}-${locked.version}`
        for (const [path, bytes] of files) this.add(`${folder}/${path}`, { bytes, id: sha256Hex(bytes), origin: `${origin}/${path}` })
        return true
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        this.problem(chartFile, `${what}, and cannot be fetched: ${error.message}; ${commit}, or create a Repository with its URL`)
      }
    }
    return false
  }

  private archives(folder: string): string[] {
    const charts = `${inFolder(folder)}charts/`
    const isArchive = (path: string) => /^[^./_][^/]*\.tgz$/.test(path.startsWith(charts) ? path.slice(charts.length) : '')
    return [...this.files.keys()].filter(isArchive).sort()
  }

  /** A packed chart becomes a folder beside it: what is in it is seen, and held against the limits, before helm gets
   *  it. */
  private async unpack(path: string): Promise<void> {
    const archive = this.files.get(path)
    if (archive === undefined) return
    this.files.delete(path)
    try {
      for (const [name, bytes] of await readArchive(archive.bytes)) {
        const inside = name.slice(name.indexOf('/') + 1)
        this.add(`${path.slice(0, -'.tgz'.length)}.packed/${inside}`, { bytes, id: sha256Hex(bytes), origin: `${archive.origin}/${name}` })
      }
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      this.problem(archive.origin, error.message)
    }
  }

  private add(path: string, file: ChartFile & { id: string }): void {
    this.bytes += file.bytes.byteLength
    if (this.bytes <= CHART_BYTES_MAX) this.files.set(path, file)
    else if (this.bytes - file.bytes.byteLength <= CHART_BYTES_MAX)
      this.problem(file.origin, `the chart with its dependencies is larger than ${CHART_BYTES_MAX / 1024 / 1024} MiB`)
  }

  private childFolders(folder: string): string[] {
    const charts = `${inFolder(folder)}charts/`
    const names = new Set<string>()
    for (const path of this.files.keys()) {
      const [name = '', file] = path.startsWith(charts) ? path.slice(charts.length).split('/') : []
      if (file === 'Chart.yaml' && !/^[._]/.test(name)) names.add(name)
    }
    return [...names].sort().map((name) => `${charts}${name}`)
  }

  private originOf(path: string): string {
    return this.files.get(path)?.origin ?? path
  }

  /** A YAML file of the chart as a mapping. Undefined means that there is no such file. Null: it is no mapping, and a
   *  problem says so. */
  private read(path: string): Readonly<Record<string, unknown>> | null | undefined {
    const file = this.files.get(path)
    if (file === undefined) return undefined
    const { documents, problems } = parseYamlDocuments(new TextDecoder().decode(file.bytes), { file: file.origin })
    this.problems.push(...problems)
    const value = documents[0]?.value
    if (isValues(value)) return value
    return problems.length > 0 ? null : this.problem(file.origin, 'expected a mapping')
  }
}

export const inFolder = (folder: string): string => (folder === '' ? '' : `${folder}/`)
const textOf = (value: unknown): string => (typeof value === 'string' || typeof value === 'number' ? String(value) : '')

function dependenciesOf(list: unknown): ChartDependency[] {
  if (!Array.isArray(list)) return []
  return list.filter(isValues).map(({ name, version, repository, alias }) => ({
    name: textOf(name),
    version: textOf(version),
    repository: textOf(repository),
    alias: textOf(alias),
  }))
}

const EXACT_VERSION = /^=?\s*(v?\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)$/

/** HM3. The dependency with its version alone, where that is exact and needs no Chart.lock. */
function exactDependency(dependency: ChartDependency): ChartDependency | undefined {
  const version = EXACT_VERSION.exec(dependency.version)?.[1]
  return version === undefined ? undefined : { ...dependency, version }
}

/** As helm calls a file in messages (`podinfo/charts/redis/templates/x.yaml`) → its path in the files of the chart.
 *  Null means that it is none of them. */
export function chartPath({ files, node }: Chart, named: string): string | null {
  const names = named.split('/')
  let chart: ChartNode = node
  let at = 1
  while (names[at] === 'charts') {
    const child = chart.children.get(names[at + 1] ?? '')
    if (child === undefined) break
    chart = child
    at += 2
  }
  const path = `${inFolder(chart.folder)}${names.slice(at).join('/')}`
  return files.has(path) ? path : null
}
