// What a render of a kustomization costs beside `kustomize build` alone: the same overlay of a base with twenty Deployments, a generator, patches and images, one after
// the other in turn. No result is kept from one time to the next; the files are on the disk for both, since a sandbox keeps a folder of 8 files and more. The program alone
// runs as a person would run it, with the settings of Go as they come.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { RenderInputs } from '../../server/render/inputs.ts'
import { renderKustomize } from '../../server/render/kustomize/renderer.ts'
import type { RenderJob } from '../../server/render/renderer.ts'
import type { Sandbox } from '../../server/render/sandbox.ts'
import type { SourceFile, SourceTree } from '../../server/sources/source.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { percentile, rounded } from './figures.ts'

const DEPLOYMENTS = 20
const WARM_UPS = 3

const deployment = (number: number): string => `apiVersion: apps/v1
kind: Deployment
metadata: {name: web-${number}}
spec:
  selector: {matchLabels: {app: web-${number}}}
  template:
    metadata: {labels: {app: web-${number}}}
    spec:
      containers:
        - {name: web, image: "example/web:1", envFrom: [{configMapRef: {name: settings}}]}
`
const NUMBERS = Array.from({ length: DEPLOYMENTS }, (_, number) => number)
const FILES: ReadonlyMap<string, string> = new Map([
  [
    'base/kustomization.yaml',
    `resources: [${NUMBERS.map((number) => `web-${number}.yaml`).join(', ')}]\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\n`,
  ],
  ...NUMBERS.map((number) => [`base/web-${number}.yaml`, deployment(number)] as const),
  [
    'prod/kustomization.yaml',
    'resources: [../base]\nnamePrefix: prod-\nimages: [{name: example/web, newTag: "2"}]\nreplicas: [{name: web-0, count: 3}]\npatches: [{path: patch.yaml, target: {kind: Deployment}}]\n',
  ],
  ['prod/patch.yaml', '- {op: add, path: /metadata/labels, value: {env: prod}}\n'],
])

export interface KustomizeCost {
  /** Our time of a render ÷ the bare process; the lower quartile of both, which others on the machine disturb least. */
  kustomize_ratio: number
  ours_ms: number
  bare_ms: number
}

/** `folder`: an empty one; `kustomize`: the program that the sandbox has too; `nowMs`: of a clock that does not jump. */
export async function measureKustomize(
  sandbox: Sandbox,
  kustomize: string,
  folder: string,
  nowMs: () => number,
  rounds = 20,
): Promise<KustomizeCost> {
  for (const [path, text] of FILES) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const bare = async (): Promise<void> => {
    const child = Bun.spawn([kustomize, 'build', '.'], { cwd: join(folder, 'prod'), env: {}, stdout: 'pipe', stderr: 'ignore' })
    await new Response(child.stdout).bytes()
    if ((await child.exited) !== 0) throw new Error('kustomize failed by itself')
  }
  const job = jobOf(sandbox)
  const render = async (): Promise<void> => {
    const result = await renderKustomize(job)
    if (result.kind === 'failed') throw new Error(`the kustomization was not rendered: ${JSON.stringify(result.problems)}`)
  }
  const [ours, alone]: [number[], number[]] = [[], []]
  for (let round = -WARM_UPS; round < rounds; round++) {
    for (const [samples, run] of [
      [ours, render],
      [alone, bare],
    ] as const) {
      const startMs = nowMs()
      await run()
      if (round >= 0) samples.push(nowMs() - startMs)
    }
  }
  const [oursMs, bareMs] = [percentile(ours, 25), percentile(alone, 25)]
  return { kustomize_ratio: rounded(oursMs / bareMs, 2), ours_ms: rounded(oursMs), bare_ms: rounded(bareMs) }
}

function jobOf(sandbox: Sandbox): RenderJob {
  const inputs: RenderInputs = {
    cluster: { name: 'edge-1', labels: {}, facts: { kubernetesVersion: 'v1.36.3', apiVersions: { v1: true } } },
    config: {},
    service: { name: 'web', project: 'default', namespace: 'web' },
    source: { version: 'bench' },
  }
  return {
    id: { project: 'default', service: 'web' },
    spec: {},
    namespace: 'web',
    source: { tree: treeOf(FILES), root: 'prod' },
    named: new Map(),
    inputs,
    plainInputs: inputs,
    recordInput: () => {},
    values: [],
    configValue: () => undefined,
    sandbox,
    once: (_, run) => run(),
    signal: new AbortController().signal,
  }
}

function treeOf(texts: ReadonlyMap<string, string>): SourceTree {
  const files = new Map(
    [...texts].map(([path, text]): [string, SourceFile] => [path, { oid: sha256Hex(text), bytes: new TextEncoder().encode(text) }]),
  )
  return {
    id: async (path) => files.get(path)?.oid ?? null,
    list: async () => null,
    file: async (path) => files.get(path) ?? null,
    files: async (_, wanted) => new Map([...files].filter(([path]) => wanted(path))),
  }
}
