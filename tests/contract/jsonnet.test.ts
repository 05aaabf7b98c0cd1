// docs/how-to/jsonnet.md as it is written: its script, its list of renderers, its service and its function, with the
// real go-jsonnet in the sandbox.
import { expect, test } from 'bun:test'
import { realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderExec } from '../../server/render/exec/exec-renderer.ts'
import { readExecList } from '../../server/render/exec/list.ts'
import { readManifests } from '../../server/render/manifests.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { type RenderSpec, renderSchema } from '../../shared/model/render.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { renderJob } from '../support/render-job.ts'
import { renderProgram } from '../support/render-programs.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

const page = await Bun.file(join(ROOT, 'docs/how-to/jsonnet.md')).text()
const blocks = [...page.matchAll(/^```([^\n]*)\n(.*?)^```/gms)].map(([, info = '', text = '']) => ({ info, text }))
const block = (info: string, begin: string): string => {
  const found = blocks.find((one) => one.info === info && one.text.startsWith(begin))
  if (found === undefined) throw new Error(`the page has no block that begins with ${begin}`)
  return found.text
}
const yamlOf = (yaml: string): unknown => parseYamlDocuments(yaml, { file: 'jsonnet.md' }).documents[0]?.value

const wrapper = join(tempDir(), 'skerry-jsonnet')
const here = (text: string) =>
  text.replaceAll('/usr/local/bin/skerry-jsonnet', wrapper).replaceAll('/usr/local/bin/jsonnet', realpathSync(renderProgram('jsonnet')))
writeFileSync(wrapper, here(block('', '#!/bin/sh')), { mode: 0o755 })
const list = readExecList(yamlOf(here(block('yaml renderers', 'jsonnet:'))), 'renderers.yaml')
if ('problems' in list) throw new Error(JSON.stringify(list.problems))
const sandbox = realSandbox({ renderers: list.entries })
const { spec } = yamlOf(block('yaml', 'spec:')) as { spec: { render: RenderSpec } }

const object = (kind: string, name: string, more: string) => `{ apiVersion: 'v1', kind: '${kind}', metadata: { name: '${name}' }, ${more} }`
const FILES = {
  'shop/main.jsonnet': block('', 'local web'),
  'shop/web.libsonnet': `{
    deployment(replicas):: ${object('Deployment', 'web', 'spec: { replicas: replicas }')},
    settings(cluster):: (import 'lib/settings.libsonnet')(cluster),
  }`,
  'shop/vendor/lib/settings.libsonnet': `function(cluster) ${object('ConfigMap', 'settings', 'data: { cluster: cluster }')}`,
  'other.libsonnet': '{}',
}
const render = (files: Readonly<Record<string, string>> = {}, exec: RenderSpec['exec'] = renderSchema.parse(spec.render).exec) => {
  const { job } = renderJob({ texts: { ...FILES, ...files }, root: 'shop', sandbox, spec: exec === undefined ? {} : { exec } })
  return renderExec(job)
}

test('EX1 a function of the inputs that the service names, with libraries of vendor/', async () => {
  const result = await render()
  if (result.kind === 'failed') throw new Error(JSON.stringify(result.problems))
  expect(readManifests(result.files).found.map(({ object }) => object)).toMatchObject([
    { kind: 'Deployment', spec: { replicas: 3 } },
    { kind: 'ConfigMap', data: { cluster: 'berlin' } },
  ])
})

test('EX1 a list without inputs', async () => {
  const list = `[${object('ConfigMap', 'a', 'data: {}')}]`
  const result = await render({ 'shop/main.jsonnet': list }, { command: 'plain-jsonnet', args: ['main.jsonnet'], inputs: [] })
  expect(result.kind === 'rendered' && readManifests(result.files).found.length).toBe(1)
})

test.each([
  ['a name that is not there', 'function(inputs) [inputs.gone]', 'main.jsonnet:1:'],
  ['a file of another folder', "function(inputs) [import '../other.libsonnet']", '../other.libsonnet'],
  ['a syntax error', 'function(inputs) [', 'main.jsonnet'],
])('EX2 %s is an error that names its place', async (_, main, place) => {
  const result = await render({ 'shop/main.jsonnet': main })
  expect(result.kind === 'failed' && result.problems.map(({ path, message }) => [path, message.includes(place)])).toEqual([
    ['render.exec: jsonnet', true],
  ])
})
