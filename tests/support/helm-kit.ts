// Renders a chart from files in memory, and the same by helm alone in a folder: what the two give must be the same
// objects.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createHelmRenderer } from '../../server/render/helm/helm-renderer.ts'
import type { ClusterFacts, ClusterInputs, InputRead, RenderInputs } from '../../server/render/inputs.ts'
import { recordedInputs } from '../../server/render/record/inputs.ts'
import type { JobSource, Renderer, RendererResult, RenderJob } from '../../server/render/renderer.ts'
import type { Sandbox, SandboxRun } from '../../server/render/sandbox.ts'
import { pathSegments, type SourceTree } from '../../server/sources/source.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import { realSandbox } from './real-sandbox.ts'
import { ROOT } from './source-files.ts'

export const HELM = { '4': join(ROOT, 'build/render/helm'), '3': join(ROOT, 'build/render/helm3') } as const
export type HelmMajor = keyof typeof HELM
export const CHARTS_FOLDER = join(ROOT, 'tests/fixtures/charts')

export type TestFiles = Readonly<Record<string, string | Uint8Array>>

export function filesOfFolder(folder: string): Record<string, Uint8Array> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(
    names.map(({ parentPath, name }) => [join(parentPath, name).slice(folder.length + 1), readFileSync(join(parentPath, name))]),
  )
}

const normal = (path: string): string => pathSegments(path).join('/')

/** As a Source's, without links. */
export function memoryTree(files: TestFiles): SourceTree {
  const all = new Map(Object.entries(files).map(([path, text]) => [path, typeof text === 'string' ? new TextEncoder().encode(text) : text]))
  const below = (path: string) =>
    [...all].filter(([name]) => path === '' || name.startsWith(`${path}/`)).sort(([a], [b]) => (a < b ? -1 : 1))
  const fileAt = (path: string) => {
    const bytes = all.get(normal(path))
    return bytes === undefined ? null : { oid: sha256Hex(bytes), bytes }
  }
  return {
    id: async (path) =>
      fileAt(path)?.oid ??
      (below(normal(path)).length === 0
        ? null
        : sha256Hex(canonicalJson(below(normal(path)).map(([name, bytes]) => [name, sha256Hex(bytes)])))),
    list: async () => null,
    file: async (path) => fileAt(path),
    files: async (path, wanted) => {
      const parents = (name: string) =>
        name
          .split('/')
          .slice(0, -1)
          .map((_, index, names) => `${names.slice(0, index + 1).join('/')}/`)
      const root = normal(path)
      const found = below(root).filter(
        ([name]) => wanted(name) && parents(name).every((parent) => parent.length <= root.length + 1 || wanted(parent)),
      )
      return new Map(found.map(([name, bytes]) => [name, { oid: sha256Hex(bytes), bytes }]))
    },
  }
}

export function writeFiles(folder: string, files: ReadonlyMap<string, Uint8Array | string>): void {
  for (const [path, bytes] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), bytes)
  }
}

function recordedRuns(sandbox: Sandbox, runs: SandboxRun[]): Sandbox {
  return {
    version: (program) => sandbox.version(program),
    run: (run, signal) => {
      runs.push(run)
      return sandbox.run(run, signal)
    },
  }
}

export interface HelmCase {
  /** The folder of the chart in `files`. */
  root: string
  files: TestFiles
  helm?: NonNullable<RenderSpec['helm']>
  templated?: boolean
  namespace?: string | undefined
  cluster?: Partial<ClusterInputs> | null
  config?: Record<string, unknown>
  configs?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  values?: RenderJob['values']
  named?: Readonly<Record<string, JobSource>>
  charts?: NonNullable<RenderJob['charts']>
  service?: string
}

export interface HelmRun {
  result: RendererResult
  reads: InputRead[]
  /** What the sandbox was given, in its order. */
  runs: SandboxRun[]
  /** The parts that `once` was asked with. */
  parts: readonly string[]
}

export const FACTS: ClusterFacts = {
  kubernetesVersion: 'v1.36.3',
  apiVersions: {
    v1: true,
    'apps/v1': true,
    'apps/v1/Deployment': true,
    'policy/v1': true,
    'monitoring.coreos.com/v1/ServiceMonitor': true,
    'example.com/v1': true,
    'example.com/v1/Thing': true,
  },
}

/** One for each test file: its sandbox ends with the file. */
export function createCaseRenderer(): (one: HelmCase) => Promise<HelmRun> {
  const [renderer, sandbox] = [createHelmRenderer(), realSandbox()]
  return (one) => renderCase(one, renderer, sandbox)
}

async function renderCase(one: HelmCase, renderer: Renderer, sandbox: Sandbox): Promise<HelmRun> {
  const reads: InputRead[] = []
  const runs: SandboxRun[] = []
  let parts: readonly string[] = []
  const service = { name: one.service ?? 'release', project: 'default', namespace: one.namespace ?? null }
  const cluster = one.cluster === null ? null : { name: 'eu-1', labels: { region: 'eu' }, facts: FACTS, ...one.cluster }
  const inputs: RenderInputs = { cluster, config: one.config ?? {}, service, source: { version: 'abc' } }
  const result = await renderer({
    id: { project: 'default', service: service.name },
    spec: { ...(one.helm === undefined ? {} : { helm: one.helm }), ...(one.templated === undefined ? {} : { templated: one.templated }) },
    namespace: 'namespace' in one ? one.namespace : 'apps',
    source: { tree: memoryTree(one.files), root: one.root },
    named: new Map(Object.entries(one.named ?? {})),
    inputs: recordedInputs(inputs, (path) => reads.push(path)),
    recordInput: (path) => reads.push(path),
    plainInputs: inputs,
    values: one.values ?? [],
    configValue: (name, key) => one.configs?.[name]?.[key],
    ...(one.charts === undefined ? {} : { charts: one.charts }),
    sandbox: recordedRuns(sandbox, runs),
    once: (all, run) => {
      parts = all
      return run()
    },
    signal: new AbortController().signal,
  })
  return { result, reads, runs, parts }
}

/** Objects of YAML streams, `List` not opened, in an order of their own. */
export function objectTexts(texts: Iterable<string>): string[] {
  const found: string[] = []
  for (const text of texts) {
    const { documents, problems } = parseYamlDocuments(text, { file: 'rendered' })
    if (problems.length > 0) throw new Error(JSON.stringify(problems))
    found.push(...documents.map(({ value }) => canonicalJson(value)))
  }
  return found.sort()
}

export const renderedTexts = (result: RendererResult): string[] =>
  result.kind === 'rendered' ? [...result.files.values()].map((bytes) => new TextDecoder().decode(bytes)) : []

/** `helm template` as a person would call it. */
export function bareHelm(major: HelmMajor, folder: string, args: readonly string[]): { stdout: string; stderr: string; exitCode: number } {
  const done = Bun.spawnSync([HELM[major], 'template', ...args], { cwd: folder, env: {} })
  return { stdout: done.stdout.toString(), stderr: done.stderr.toString(), exitCode: done.exitCode }
}
