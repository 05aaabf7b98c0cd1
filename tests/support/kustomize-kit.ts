// Renders a kustomization through the renderer, and the same by kustomize and kubectl alone in a plain folder: what
// they give must be the same objects.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { InputRead, RenderInputs } from '../../server/render/inputs.ts'
import { renderKustomize } from '../../server/render/kustomize/kustomize-renderer.ts'
import { recordedInputs } from '../../server/render/record/inputs.ts'
import { recordedTree } from '../../server/render/record/tree.ts'
import type { RendererResult, RenderJob } from '../../server/render/renderer.ts'
import type { Sandbox } from '../../server/render/sandbox.ts'
import type { SourceTree } from '../../server/sources/source.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import { memoryTree, type TestFiles } from './helm-kit.ts'
import { ROOT } from './source-files.ts'

export const KUSTOMIZATIONS = join(ROOT, 'tests/fixtures/kustomizations')
export const KUSTOMIZE = join(ROOT, 'build/render/kustomize')
export const kustomizationNames = (): string[] => readdirSync(KUSTOMIZATIONS).sort()

const SOME_INPUTS: RenderInputs = {
  cluster: { name: 'edge-1', labels: { region: 'eu' }, facts: { kubernetesVersion: 'v1.36.3', apiVersions: { v1: true } } },
  config: { color: 'blue', count: 3 },
  service: { name: 'web', project: 'shop', namespace: null },
  source: { version: 'abc' },
}

export interface KustomizeRun {
  files: TestFiles
  root: string
  sandbox: Sandbox
  spec?: RenderSpec
  inputs?: Partial<RenderInputs>
  once?: RenderJob['once']
  wrap?: (tree: SourceTree) => SourceTree
}

export interface KustomizeResult {
  result: RendererResult
  /** Paths that were looked at and are there, sorted. */
  files: string[]
  inputs: InputRead[]
}

export async function kustomized({
  files,
  root,
  sandbox,
  spec = {},
  inputs,
  once = (_, run) => run(),
  wrap = (tree) => tree,
}: KustomizeRun): Promise<KustomizeResult> {
  const readFiles = new Set<string>()
  const readInputs: InputRead[] = []
  const all: RenderInputs = { ...SOME_INPUTS, ...inputs }
  const tree = recordedTree(wrap(memoryTree(files)), 0, ({ path, id }) => {
    if (id !== null) readFiles.add(path)
  })
  const job: RenderJob = {
    id: { project: 'shop', service: 'web' },
    ...{ spec, namespace: undefined, source: { tree, root }, named: new Map(), values: [], sandbox, plainInputs: all },
    inputs: recordedInputs(all, (path) => readInputs.push(path)),
    recordInput: () => {},
    configValue: () => undefined,
    once,
    signal: new AbortController().signal,
  }
  const result = await renderKustomize(job)
  return { result, files: [...readFiles].sort(), inputs: readInputs }
}

/** As canonical JSON, sorted: an order of objects is no promise of a render. */
export function objectsOf(text: string): string[] {
  const { documents, problems } = parseYamlDocuments(text, { file: 'output' })
  if (problems.length > 0) throw new Error(JSON.stringify(problems.slice(0, 3)))
  return documents.map(({ value }) => canonicalJson(value)).sort()
}

/** Of a render that must have been good. */
export function renderedObjects(result: RendererResult): string[] {
  if (result.kind === 'failed') throw new Error(JSON.stringify(result.problems, null, 2))
  return [...result.files.values()].flatMap((bytes) => objectsOf(new TextDecoder().decode(bytes))).sort()
}

export const problemLines = (result: RendererResult): string[] =>
  result.kind === 'failed' ? result.problems.map(({ path, message }) => `${path} ${message}`) : []

export function bareBuild(argv: string[], env: Record<string, string> = {}): string {
  const run = Bun.spawnSync(argv, { env: { HOME: '/tmp', PATH: '/usr/bin:/bin', ...env } })
  if (!run.success) throw new Error(run.stderr.toString())
  return run.stdout.toString()
}
