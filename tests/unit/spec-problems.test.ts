// What a person is told to mend: the Service resource, the files, or both; and what is told of a service that has no
// cluster.
import { expect, test } from 'bun:test'
import { configsOfService } from '../../server/ingest/render/service-configs.ts'
import { failedRender } from '../../server/render/object-rows.ts'
import { specRemedy } from '../../server/render/spec-problems.ts'
import { createFolderTree } from '../../server/sources/folder-tree.ts'
import { CORRECT_SPEC } from '../../server/sources/source.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { loopWorld } from '../support/loop-world.ts'
import { naming } from '../support/naming.ts'

const file = { path: 'web/a.yaml:3:1', message: 'bad indentation' }
const patch = { path: 'render.patches[0]', message: 'x' }
const source = { path: '$envs/x.yaml', message: 'no source has the name envs; set sources[].name' }
const config = { path: 'Config shared, values', message: 'x' }
const chart = { path: 'web/Chart.yaml', message: 'not a chart: Chart.yaml is missing' }
const IN_SPEC = 'in the spec'

test.each([
  ['files alone', [file], ['1 error', 'manifests'], null],
  ['a file in a folder of that name', [{ ...file, path: 'render/a.yaml:1:1' }], ['1 error', 'manifests'], null],
  ['a patch', [patch], ['1 error', IN_SPEC], ['spec.render.patches', '`skerry apply`']],
  ['options', [{ path: 'render.helm', message: 'web holds no Chart.yaml' }], ['1 error', IN_SPEC], ['spec.render.helm', '`skerry apply`']],
  ['an override', [{ ...patch, path: 'overrides[1].patches[0]' }], ['1 error', IN_SPEC], ['spec.overrides[1].patches', '`skerry apply`']],
  ['a source that has no such name', [source], ['1 error', IN_SPEC], ['valuesFiles in spec', '`skerry apply`']],
  [
    'a values file that is not there',
    [{ path: 'charts/web/value-prod.yaml', message: 'values file not found; one whose name ends with ? may be missing' }],
    ['1 error', IN_SPEC],
    ['valuesFiles in spec', 'push the file', '`skerry apply`'],
  ],
  ['a Config', [config], ['1 error', IN_SPEC], ['Config', 'valuesFrom', '`skerry apply`']],
  ['a type that is not so', [chart], ['1 error', IN_SPEC], ['type', 'path in spec', '`skerry apply`']],
  ['both', [patch, file], ['2 errors', IN_SPEC, 'manifests'], ['spec.render.patches', '`skerry apply`', 'manifests', 'push again']],
] as const)('AP11 the headline and the next step of %s', (_, problems, message, remedy) => {
  expect([failedRender(problems).message, specRemedy(problems)]).toEqual([naming(...message), remedy === null ? null : naming(...remedy)])
})

test('IC5 a Config that is not there is told with the name that was probably meant, and how to list them', async () => {
  const given = { source: { repository: 'apps', path: '.' }, targets: { selector: {} }, configFrom: [{ name: 'bas' }] }
  const found = await configsOfService(
    async () => null,
    async () => ['base', 'other'],
    { project: 'p', service: 's' },
    serviceSpecSchema.parse(given),
  )
  const error = found.kind === 'failed' ? found.error : null
  expect(error).toMatchObject({ code: 'not_found', message: naming('Config bas', 'project p', 'base?') })
  expect(error?.remedy).toContain('`skerry get configs -p p`')
})

test('AP11 what is wrong for any cluster is told without one; what only lacks a cluster is no error, and neither was rendered', async () => {
  const { clock, world, renderStates, ingest, end } = loopWorld({ file: 'a.yaml.liquid' })
  const wanting = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { v: "{{ cluster.labels.site }}" }\n'
  world.text = (commit) => (commit === 'c1' ? wanting : `${wanting}# {{ service.nam }}\n`)
  await clock.advance(1_000)
  expect(renderStates.get('apps')).toMatchObject({ commit: null, renderedMs: null, digest: null, error: null, generation: 1 })
  world.commit = 'c2'
  await Promise.all([ingest.repositoryChanged('default', 'apps'), clock.advance(0)])
  const { commit, error } = renderStates.get('apps') ?? {}
  expect([commit, error?.code, error?.problems.length]).toEqual([null, 'render_failed', 1])
  expect(error?.problems[0]?.message).toContain('service.nam')
  await end()
})

test('AP11 a path that is a file is told with what to correct, and nothing to push', async () => {
  const tree = createFolderTree(import.meta.dir)
  const failure = await tree.files('spec-problems.test.ts', () => true).catch((error: unknown) => error)
  expect(failure).toMatchObject({
    code: 'source_refused',
    data: { detail: naming('spec-problems.test.ts', 'file'), remedy: CORRECT_SPEC },
  })
})
