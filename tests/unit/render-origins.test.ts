// RH8: the file of each object, by the pipeline, with renderers that stand in for programs.
import { expect, test } from 'bun:test'
import { editKustomization, originIn } from '../../server/render/kustomize/edit.ts'
import { type PipelineSource, runPipeline } from '../../server/render/pipeline.ts'
import { renderRaw } from '../../server/render/render-raw.ts'
import type { Renderer } from '../../server/render/renderer.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { memoryTree } from '../support/render-job.ts'

const object = (name: string, more = '') => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name}${more} }\n`
const made = (fileOf?: (name: string) => string | null): Renderer => {
  const files = new Map([['out.yaml', new TextEncoder().encode(object('made'))]])
  return async () => ({ kind: 'rendered', files, warnings: [], ...(fileOf === undefined ? {} : { fileOf }) })
}

interface Given {
  sources: ReadonlyArray<{ files: Record<string, string>; label?: string } & Partial<PipelineSource>>
  render?: RenderSpec
  helm?: Renderer
  wantsFiles?: boolean
}

/** By name of the object: `source file:line`. */
async function origins({ sources, render = {}, helm = made(), wantsFiles = true }: Given): Promise<Record<string, string>> {
  const deps = {
    renderers: { raw: renderRaw, helm, kustomize: helm, typescript: helm, exec: helm },
    sandbox: { run: () => Promise.reject(new AppError('renderer_missing')), version: async () => null },
    once: (_: readonly string[], work: () => Promise<Uint8Array>) => work(),
    signal: new AbortController().signal,
  }
  const { result } = await runPipeline(deps, {
    ...{ id: { project: 'default', service: 'shop' }, namespace: 'web', render, cluster: null, configs: new Map(), wantsFiles },
    settings: { config: { values: {}, secrets: new Set() }, helmValues: [], patches: [] },
    sources: sources.map(({ files, ...rest }) => ({
      ...{ name: undefined, label: 'apps', render: undefined, filesOnly: false, ...rest },
      opened: { tree: memoryTree(files), root: 'app', version: 'c'.repeat(40) },
    })),
  })
  if (result instanceof AppError || result.kind === 'failed') throw new Error(JSON.stringify(result))
  return Object.fromEntries(
    [...(result.origins ?? [])].map(([row, { source, file, line }]) => [row.split('/').at(-1), `${source} ${file}:${line}`]),
  )
}

test('RH8 objects of plain manifests have file and line, those of templates the template', async () => {
  const files = {
    'app/a.yaml': `${object('a')}---\n# b\n${object('b')}`,
    'app/sub/list.yaml': `apiVersion: v1\nkind: List\nitems:\n- ${object('c').trim().replaceAll('\n', '\n  ')}\n`,
    'app/t.yaml.liquid': object('t'),
  }
  expect(await origins({ sources: [{ files }] })).toEqual({
    ...{ a: 'apps app/a.yaml:1', b: 'apps app/a.yaml:6', c: 'apps app/sub/list.yaml:4', t: 'apps app/t.yaml.liquid:null' },
  })
  const templated = { 'app/a.yaml': object('{{ service.name }}') }
  expect(await origins({ sources: [{ files: templated }], render: { templated: true } })).toEqual({ shop: 'apps app/a.yaml:null' })
})

test('RH8 a patch that renames an object keeps its file; several sources each have theirs', async () => {
  const patches = [{ target: { name: 'a' }, patch: [{ op: 'replace', path: '/metadata/name', value: 'z' }] }]
  const sources = [
    { files: { 'app/a.yaml': object('a') }, label: 'one' },
    { files: { 'app/a.yaml': object('b') }, label: 'two' },
  ]
  expect(await origins({ sources, render: { patches } as RenderSpec })).toEqual({ z: 'one app/a.yaml:1', b: 'two app/a.yaml:1' })
})

test('RH8 a program says of what it made an object, or nobody knows', async () => {
  const sources = [{ files: { 'app/Chart.yaml': 'name: c\n' } }]
  const chart = (name: string) => `app/templates/${name}`
  expect(await origins({ sources, helm: made(chart) })).toEqual({ made: 'apps app/templates/out.yaml:null' })
  expect(await origins({ sources, helm: made(() => null) })).toEqual({ made: 'apps null:null' })
})

test('RH8 nothing is looked up for a render that is not asked for files', async () => {
  expect(await origins({ sources: [{ files: { 'app/a.yaml': object('a') } }], wantsFiles: false })).toEqual({})
})

test('RH8 a kustomization is told to name files, beside what it names already', () => {
  const edit = (text: string) => editKustomization(text, { origins: true })
  expect(edit('resources: [a.yaml]\n')).toContain('originAnnotations')
  expect(edit('buildMetadata: [managedByLabel, originAnnotations]\n')?.match(/originAnnotations/g)).toHaveLength(1)
})

test.each([
  ['path: ../base/a.yaml\n', 'app/base/a.yaml'],
  ['configuredIn: kustomization.yaml\nconfiguredBy:\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n', 'app/prod/kustomization.yaml'],
  ['path: a.yaml\nrepo: https://git.example/x\nref: v1\n', null],
  ['path: ../../../etc/passwd\n', null],
  ['path: [1]\n', null],
  ['- : [\n', null],
  ['', null],
])('RH8 the origin %j of an object of app/prod is %p', (text, file) => {
  const metadata = { name: 'a', annotations: { 'config.kubernetes.io/origin': text } }
  expect(originIn({ apiVersion: 'v1', kind: 'ConfigMap', metadata }, 'app/prod')).toBe(file)
})
