// What a render of a chart costs beside `helm template` alone: the same chart of thirty templates, one after the other in turn, nothing kept from one time to the next.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createHelmRenderer } from '../../server/render/helm/renderer.ts'
import type { RenderInputs } from '../../server/render/inputs.ts'
import type { RenderJob } from '../../server/render/renderer.ts'
import type { Sandbox } from '../../server/render/sandbox.ts'
import type { SourceFile, SourceTree } from '../../server/sources/source.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { percentile, rounded } from './figures.ts'

const TEMPLATES = 30
const WARM_UPS = 3

const HELPERS = `{{- define "web.name" -}}{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "web.labels" -}}
app.kubernetes.io/name: {{ include "web.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
`
const template = (number: number): string => `{{- if .Capabilities.APIVersions.Has "apps/v1" }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "web.name" . }}-${number}
  labels: {{- include "web.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web-${number}}}
  template:
    metadata: {labels: {app: web-${number}}}
    spec:
      containers:
        - name: web
          image: "{{ .Values.image }}:{{ .Values.tag }}"
          resources: {{- toYaml .Values.resources | nindent 12 }}
{{- end }}
`
const FILES: ReadonlyMap<string, string> = new Map([
  ['Chart.yaml', 'apiVersion: v2\nname: web\nversion: 1.0.0\n'],
  ['values.yaml', 'replicas: 2\nimage: example/web\ntag: "1"\nresources: {requests: {cpu: 100m, memory: 64Mi}}\n'],
  ['templates/_helpers.tpl', HELPERS],
  ...Array.from({ length: TEMPLATES }, (_, number) => [`templates/web-${number}.yaml`, template(number)] as const),
])

export interface HelmCost {
  /** Our time of a render ÷ the bare process; the fastest tenth of both, which others on the machine disturb least. */
  helm_ratio: number
  ours_ms: number
  bare_ms: number
}

/** `folder`: an empty one; `helm`: the program that the sandbox has too; `nowMs`: of a clock that does not jump. */
export async function measureHelm(sandbox: Sandbox, helm: string, folder: string, nowMs: () => number, rounds = 20): Promise<HelmCost> {
  for (const [path, text] of FILES) {
    mkdirSync(dirname(join(folder, 'chart', path)), { recursive: true })
    writeFileSync(join(folder, 'chart', path), text)
  }
  writeFileSync(join(folder, 'values.json'), '{"tag":"2"}')
  const bare = async (): Promise<number> => {
    const args = [
      'template',
      'web',
      'chart',
      '--values=values.json',
      '--skip-tests',
      '--include-crds',
      '--namespace=web',
      '--api-versions=apps/v1',
    ]
    const child = Bun.spawn([helm, ...args], { cwd: folder, env: {}, stdout: 'pipe', stderr: 'ignore' })
    const text = await new Response(child.stdout).text()
    if ((await child.exited) !== 0) throw new Error('helm failed by itself')
    return text.length
  }
  const [ours, alone]: [number[], number[]] = [[], []]
  const renderer = createHelmRenderer()
  const job = jobOf(sandbox)
  const render = async (): Promise<number> => {
    const result = await renderer(job)
    if (result.kind === 'failed' || result.files.size !== TEMPLATES) throw new Error('the chart was not rendered')
    return result.files.size
  }
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
  const [oursMs, bareMs] = [percentile(ours, 10), percentile(alone, 10)]
  return { helm_ratio: rounded(oursMs / bareMs, 2), ours_ms: rounded(oursMs), bare_ms: rounded(bareMs) }
}

function jobOf(sandbox: Sandbox): RenderJob {
  const inputs: RenderInputs = {
    cluster: { name: 'edge-1', labels: {}, facts: { kubernetesVersion: 'v1.36.3', apiVersions: { v1: true, 'apps/v1': true } } },
    config: {},
    service: { name: 'web', project: 'default', namespace: 'web' },
    source: { version: 'bench' },
  }
  return {
    id: { project: 'default', service: 'web' },
    spec: { helm: { values: { tag: '2' } } },
    namespace: 'web',
    source: { tree: treeOf(FILES), root: '' },
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
