// A render job over files in memory, which keeps what was looked at.

import type { InputRead, RenderInputs } from '../../server/render/inputs.ts'
import { recordedInputs } from '../../server/render/record/inputs.ts'
import { createRecorder } from '../../server/render/record/reads.ts'
import { recordedTree } from '../../server/render/record/tree.ts'
import type { RenderJob } from '../../server/render/renderer.ts'
import type { Sandbox } from '../../server/render/sandbox.ts'
import type { SourceEntry, SourceTree } from '../../server/sources/source.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import type { RenderSpec } from '../../shared/model/render.ts'

export function memoryTree(texts: Readonly<Record<string, string>>): SourceTree {
  const clean = (path: string) =>
    path
      .split('/')
      .filter((part) => part !== '' && part !== '.')
      .join('/')
  const below = (folder: string) => Object.entries(texts).filter(([path]) => clean(folder) === '' || path.startsWith(`${clean(folder)}/`))
  const fileOf = (text: string) => ({ oid: sha256Hex(text), bytes: new TextEncoder().encode(text) })
  return {
    async id(path) {
      const text = texts[clean(path)]
      if (text !== undefined) return sha256Hex(text)
      const inside = below(path)
      return inside.length === 0 ? null : sha256Hex(JSON.stringify(inside))
    },
    async list(path): Promise<SourceEntry[] | null> {
      const names = new Set(below(path).map(([file]) => file.slice(clean(path) === '' ? 0 : clean(path).length + 1).split('/')[0] ?? ''))
      if (names.size === 0) return null
      return [...names].sort().map((name) => {
        const whole = clean(`${path}/${name}`)
        return {
          name,
          kind: texts[whole] === undefined ? 'folder' : 'file',
          id: sha256Hex(JSON.stringify(below(whole)) + (texts[whole] ?? '')),
        } as const
      })
    },
    file: async (path) => (texts[clean(path)] === undefined ? null : fileOf(texts[clean(path)] ?? '')),
    async files(path, wanted) {
      const folders = (file: string) =>
        file
          .split('/')
          .slice(0, -1)
          .map((_, index, all) => `${all.slice(0, index + 1).join('/')}/`)
      const asked = below(path).filter(
        ([file]) =>
          wanted(file) &&
          folders(file)
            .filter((folder) => folder.length > clean(path).length + 1)
            .every((folder) => wanted(folder)),
      )
      return new Map(asked.sort(([a], [b]) => (a < b ? -1 : 1)).map(([file, text]) => [file, fileOf(text)]))
    },
  }
}

export const INPUTS: RenderInputs = {
  cluster: { name: 'berlin', labels: { region: 'eu', tier: 'gold' }, facts: { kubernetesVersion: 'v1.36.3', apiVersions: { v1: true } } },
  config: { replicas: 3, image: { tag: '1.2.3', name: 'web' } },
  service: { name: 'web', project: 'default', namespace: 'web' },
  source: { version: 'abc' },
}

export interface TestJob {
  job: RenderJob
  /** So far. */
  inputReads(): InputRead[]
}

export function renderJob(options: {
  texts: Readonly<Record<string, string>>
  root?: string
  spec?: RenderSpec
  sandbox: Sandbox
  inputs?: RenderInputs
}): TestJob {
  const { texts, root = '', spec = {}, sandbox, inputs = INPUTS } = options
  const recorder = createRecorder()
  const known = new Map<string, Uint8Array>()
  const job: RenderJob = {
    id: { project: 'default', service: 'web' } as RenderJob['id'],
    spec,
    namespace: 'web',
    source: { tree: recordedTree(memoryTree(texts), 0, recorder.file), root },
    named: new Map(),
    inputs: recordedInputs(inputs, recorder.input),
    plainInputs: inputs,
    recordInput: recorder.input,
    values: [],
    configValue: () => undefined,
    sandbox,
    async once(parts, run) {
      const key = JSON.stringify(parts)
      const bytes = known.get(key) ?? (await run())
      known.set(key, bytes)
      return bytes
    },
    signal: new AbortController().signal,
  }
  return { job, inputReads: () => [...recorder.reads().inputs] }
}
