// RD5 RD6: what is said to a renderer that has no part in it, and a path that is not there, are errors that say why.
import { describe, expect, test } from 'bun:test'
import { specProblems } from '../../server/http/resource-checks.ts'
import { KUSTOMIZATION_NAMES } from '../../server/render/kustomize/paths.ts'
import { checkPatchesHere } from '../../server/render/patch/patches.ts'
import { type PipelineInput, runPipeline } from '../../server/render/pipeline.ts'
import { renderRaw } from '../../server/render/render-raw.ts'
import type { RenderJob } from '../../server/render/renderer.ts'
import { chooseRenderer } from '../../server/render/renderer-of.ts'
import type { RendererName, RenderSpec } from '../../shared/model/render.ts'
import { applicableSchema } from '../../shared/model/resources.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { naming } from '../support/naming.ts'
import { memoryTree } from '../support/render-job.ts'

const OBJECT = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: web}\n'
let asked: string[] = []
const said = (name: RendererName) => async (job: RenderJob) => {
  asked.push(name)
  const { tree, root } = job.source
  if (name === 'raw') return renderRaw(job)
  if ((await tree.list(root)) === null) return { kind: 'failed' as const, problems: [{ path: 'x', message: `${name} finds nothing` }] }
  return { kind: 'rendered' as const, files: new Map([[`${root}.yaml`, new TextEncoder().encode(OBJECT.replace('a,', `${root.replace('/', '-')},`))]]), warnings: [] } // biome-ignore format: one answer
}
const renderers = { raw: said('raw'), helm: said('helm'), kustomize: said('kustomize'), typescript: said('typescript'), exec: said('exec') }
const FILES = {
  'apps/plain/a.yaml': OBJECT,
  'apps/empty/README.md': 'nothing',
  'apps/chart/Chart.yaml': 'name: a\n',
  'apps/kust/kustomization.yaml': '{}\n',
  'apps/ts/main.ts': '\n',
  'podinfo/a.yaml': OBJECT,
}
const nothing = { config: { values: {}, secrets: new Set<string>() }, helmValues: [], patches: [] }

async function run(
  sources: ReadonlyArray<{ root: string; render?: RenderSpec; filesOnly?: boolean }>,
  render: RenderSpec,
  settings: Partial<PipelineInput['settings']> = {},
) {
  asked = []
  const { result } = await runPipeline(
    {
      renderers,
      sandbox: { run: () => Promise.reject(new AppError('renderer_missing')), version: async () => 'tool 1.0.0' },
      once: (_, work) => work(),
      signal: new AbortController().signal,
    },
    {
      ...{ id: { project: 'default', service: 'shop' }, namespace: 'web', render, cluster: null, configs: new Map() },
      settings: { ...nothing, ...settings },
      sources: sources.map(({ root, render: own, filesOnly = false }, index) => ({
        ...{ name: undefined, label: `s${index}`, render: own, filesOnly },
        opened: { tree: memoryTree(FILES), root, version: 'c'.repeat(40) },
      })),
    },
  )
  if (result instanceof AppError) return [result.code]
  if (result.kind === 'rendered') return []
  return result.problems.length === 0 ? [result.message] : result.problems.map(({ path, message }) => `${path}: ${message}`)
}

test('RD1 a program that is named is what renders, also where the folder holds a chart', async () => {
  expect(await run([{ root: 'apps/chart' }], { exec: { command: 'cue', args: [], inputs: [] } })).toEqual([])
  expect(asked).toEqual(['exec'])
})

describe('RD1 the folder decides', () => {
  const chosen = async (...names: string[]) => {
    const tree = memoryTree(Object.fromEntries(names.map((name) => [`app/${name}`, 'x'])))
    const { renderer, file } = await chooseRenderer({}, { tree, root: 'app' })
    return [renderer, file]
  }
  for (const name of KUSTOMIZATION_NAMES)
    test(`RD1 ${name}, also as a template`, async () => {
      expect(await chosen(name, 'a.yaml')).toEqual(['kustomize', name])
      expect(await chosen(`${name}.liquid`, 'a.yaml')).toEqual(['kustomize', `${name}.liquid`])
      expect(await chosen(`below/${name}.liquid`, 'a.yaml')).toEqual(['raw', null])
    })
  test('RD1 a chart before a kustomization before all else', async () => {
    expect(await chosen('Chart.yaml', 'kustomization.yaml', 'main.ts')).toEqual(['helm', 'Chart.yaml'])
    expect(await chosen('Kustomization.liquid', 'main.ts')).toEqual(['kustomize', 'Kustomization.liquid'])
  })
  test('RD1 TypeScript runs only for a spec that asks for it; a folder that may be meant so is an error', async () => {
    for (const render of [{ type: 'typescript' }, { typescript: { entry: 'main.ts' } }] as const)
      expect([await run([{ root: 'apps/ts' }], render), asked]).toEqual([[], ['typescript']])
    expect([await run([{ root: 'apps/ts' }], {}), asked]).toEqual([[expect.stringMatching(/^apps\/ts\/main\.ts: .*render\.type/)], []])
    await run([{ root: 'apps/ts' }], { type: 'raw' })
    expect(asked).toEqual(['raw'])
  })
})

const helm = { values: { a: 1 } }
describe('RD5 options that nothing hears', () => {
  test.each<[string, RenderSpec, string[]]>([
    ['apps/plain', { helm }, ['render.helm: apps/plain', 'no Chart.yaml', 'raw']],
    ['apps/kust', { helm }, ['render.helm: apps/kust', 'kustomization.yaml', 'no Chart.yaml', 'kustomize']],
    ['apps/chart', { kustomize: { namePrefix: 'a-' } }, ['render.kustomize: apps/chart', 'Chart.yaml', 'helm']],
    ['apps/plain', { kustomize: { namePrefix: 'a-' } }, ['render.kustomize: apps/plain', 'no kustomization.yaml', 'raw']],
    ['apps/plain', { typescript: { entry: 'x.ts' } }, ['render.typescript: apps/plain', 'no x.ts', 'raw']],
    ['apps/chart', { type: 'raw', helm }, ['render.helm:', 'type is raw', 'apps/chart']],
    ['apps/chart', { helm, exec: { command: 'cue', args: [], inputs: [] } }, ['render.helm:', 'program cue', 'apps/chart', 'as exec']],
  ])('RD5 %s with %j', async (root, render, expected) => {
    expect(await run([{ root }], render)).toContainEqual(naming(...expected))
  })
  test('RD5 what is heard is none, and options that hold nothing say nothing', async () => {
    expect(await run([{ root: 'apps/chart' }], { helm })).toEqual([])
    expect(await run([{ root: 'apps/kust' }], { kustomize: { namePrefix: 'a-' }, helm: {} })).toEqual([])
    expect(await run([{ root: 'apps/ts' }], { typescript: { entry: 'main.ts' } })).toEqual([])
  })
  test('RD5 of several sources one that hears is enough for the options of the service; those of a source are its own', async () => {
    expect(await run([{ root: 'apps/plain' }, { root: 'apps/chart' }], { helm })).toEqual([])
    expect(await run([{ root: 'apps/plain', render: { helm } }, { root: 'apps/chart' }], {})).toEqual([
      naming('sources[0].render.helm: apps/plain', 'Chart.yaml'),
    ])
    expect(await run([{ root: 'apps/plain' }, { root: 'apps/chart', render: { type: 'helm' } }], { helm })).toEqual([
      naming('render.helm: apps/plain', 'Chart.yaml'),
    ])
    expect(await run([{ root: 'apps/chart', render: { helm } }], { helm })).toEqual([naming('render.helm:', 'every source')])
  })
  test('RD5 helm values of overrides', async () => {
    const settings = { helmValues: [{ from: 'overrides[2]', values: { a: 1 } }] }
    expect(await run([{ root: 'apps/plain' }], {}, settings)).toEqual([naming('overrides[2].helm: apps/plain', 'Chart.yaml')])
    expect(await run([{ root: 'apps/plain' }, { root: 'apps/chart', render: { type: 'helm' } }], {}, settings)).toEqual([])
  })
})

test.each<[string, RenderSpec, string[]]>([
  ['type raw and helm', { type: 'raw', helm }, ['spec.render.helm']],
  ['type helm and exec', { type: 'helm', exec: { command: 'cue', args: [], inputs: [] } }, ['spec.render.exec']],
  ['exec and kustomize', { exec: { command: 'cue', args: [], inputs: [] }, kustomize: { namePrefix: 'a' } }, ['spec.render.kustomize']],
  ['auto and two of which the folder decides', { helm, kustomize: { namePrefix: 'a' } }, []],
  ['type exec and exec', { type: 'exec', exec: { command: 'cue', args: [], inputs: [] } }, []],
])('RD5 refused when it is written: %s', async (_, render, paths) => {
  const head = { apiVersion: 'skerry.dev/v1', kind: 'Service', metadata: { name: 'a' } }
  const spec = { targets: { selector: {} }, source: { repository: 'r', path: 'p' }, render }
  expect((await specProblems(applicableSchema.parse({ ...head, spec }), checkPatchesHere)).map(({ path }) => path)).toEqual(paths)
  const sources = [{ repository: 'r', path: 'p', render }]
  const ofSources = await specProblems(applicableSchema.parse({ ...head, spec: { targets: { selector: {} }, sources } }), checkPatchesHere)
  expect(ofSources.map(({ path }) => path)).toEqual(paths.map((path) => path.replace('spec.', 'spec.sources[0].')))
})

describe('RD6 a path that is not there', () => {
  const at = `commit ${'c'.repeat(12)}`
  test.each<[string, RenderSpec, string[]]>([
    ['podinof', {}, ['folder podinof', at, 'podinfo?']],
    ['podinof', { type: 'helm', helm }, ['folder podinof', at, 'podinfo?']],
    ['podinof', { helm }, ['folder podinof', at, 'podinfo?']],
    ['apps/char', {}, ['folder apps/char', at, 'apps/chart?']],
    ['app/chart', {}, ['folder app/chart', at, 'apps/chart?']],
    ['apps/nowhere', {}, ['folder apps/nowhere', at, 'apps: chart, empty, kust, plain, ts']],
    ['podinfo/a.yaml', {}, ['podinfo/a.yaml', 'file', at, 'folder']],
  ])('RD6 %s with %j', async (root, render, expected) => {
    expect(await run([{ root }], render)).toEqual([naming(...expected)])
  })
  test('RD6 one of several', async () => {
    expect(await run([{ root: 'apps/plain' }, { root: 'podinof' }], {})).toEqual([naming('s1/podinof:', at, 'podinfo?')])
    expect(await run([{ root: 'apps/plain' }, { root: 'apps/empty' }], {})).toEqual([naming('s1/apps/empty:', 'no manifests', at)])
  })
})
