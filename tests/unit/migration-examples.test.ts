// What users of Argo CD and Flux write instead, as files that `skerry apply -f` takes; and what is said when a new
// field is misspelt.
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseResources } from '../../server/cli/resource-files.ts'
import { specProblems } from '../../server/http/resource-checks.ts'
import { checkPatchesHere } from '../../server/render/patch/patches.ts'
import { explainIssues } from '../../shared/model/explain.ts'
import { applicableSchema } from '../../shared/model/resources.ts'
import { createTestAdmin } from '../support/admin-app.ts'
import { naming } from '../support/naming.ts'
import { joinCluster } from '../support/store-fixtures.ts'

const FOLDER = join(import.meta.dir, '../fixtures/migration')
const EXAMPLES = readdirSync(FOLDER).sort()

test.each(EXAMPLES)('AP4 CG2 %s is applied as it is, and shows none of its secrets', async (name) => {
  const { read, problems } = parseResources([{ name, text: readFileSync(join(FOLDER, name), 'utf8') }])
  expect(problems).toEqual([])
  expect((await Promise.all(read.map(({ resource }) => specProblems(resource, checkPatchesHere)))).flat()).toEqual([])
  const admin = await createTestAdmin()
  const clusters = read.filter(({ resource }) => resource.kind === 'Cluster')
  if (clusters.length > 0) await joinCluster(admin.store, '7')
  const resources = read.map(({ document }) => document)
  const applied = await admin.call('POST', '/api/v1/apply', { resources })
  expect(applied).toMatchObject({ status: 200 })
  const again = (await admin.call('POST', '/api/v1/apply', { resources })).body as { results: { action: string }[] }
  expect(new Set(again.results.map(({ action }) => action))).toEqual(new Set(['unchanged']))
  for (const kind of ['configs', 'services', 'repositories'])
    expect(JSON.stringify((await admin.call('GET', `/api/v1/${kind}`)).body)).not.toContain('change-me')
  await admin.store.close()
})

const service = (spec: Record<string, unknown>) => ({ kind: 'Service', metadata: { name: 'a' }, spec: { source: { repository: 'r', path: 'p' }, targets: { selector: {} }, ...spec } }) // biome-ignore format: short
const repository = (spec: Record<string, unknown>) => ({ kind: 'Repository', metadata: { name: 'a' }, spec })
test.each<[string, Record<string, unknown>, string[]]>([
  ['valuesFile', service({ render: { helm: { valuesFile: [] } } }), ['spec.render.helm.valuesFile: ', '"valuesFiles"?']],
  ['overides', service({ overides: [] }), ['spec.overides: ', '"overrides"?']],
  ['selektor', service({ overrides: [{ selector: {}, selektor: {} }] }), ['spec.overrides[0].selektor: ', '"selector"?']],
  [
    'labelSelektor',
    service({ render: { patches: [{ target: { labelSelektor: 'a' }, patch: {} }] } }),
    ['spec.render.patches[0].target.labelSelektor: ', '"labelSelector"?'],
  ],
  ['kustomise', service({ render: { type: 'kustomise' } }), ['spec.render.type: ', '"auto"', '"exec"', '"kustomize"?']],
  [
    'fileOnly',
    { ...service({}), spec: { sources: [{ repository: 'r', path: 'p', fileOnly: true }], targets: { selector: {} } } },
    ['spec.sources[0].fileOnly: ', '"filesOnly"?'],
  ],
  ['semvr', repository({ git: { url: 'https://git.example/a', semvr: '^1' } }), ['spec.git.semvr: ', '"semver"?']],
  [
    'secretref',
    repository({ helm: { url: 'https://a.example', auth: { secretref: 'a' } } }),
    ['spec.helm.auth.secretref: ', '"secretRef"?'],
  ],
  ['secret', { kind: 'Config', metadata: { name: 'a' }, spec: { secret: { a: 'hunter2' } } }, ['spec.secret: ', '"secrets"?']],
  ['a password in a URL', repository({ git: { url: 'https://me:hunter2@git.example/a' } }), ['spec.git.url: ', 'password']],
])('AP4 %s is told with its place and the nearest right name, and no value', (_, resource, expected) => {
  const input = { apiVersion: 'skerry.dev/v1', ...resource }
  const read = applicableSchema.safeParse(input)
  const told = read.success ? [] : explainIssues(applicableSchema, input, read.error).map(({ path, message }) => `${path}: ${message}`)
  expect(told).toContainEqual(naming(...expected))
  expect(told.join()).not.toContain('hunter2')
})
