// What our examples for users of Argo CD really render to, by the real helm: the values file of each cluster counts for
// that cluster.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { clusterOf, readResources } from '../../server/local-render/read-job.ts'
import { renderLocally } from '../../server/local-render/render-local.ts'
import { createRenderers } from '../../server/render/renderers.ts'
import { writeFiles } from '../support/helm-kit.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { tempDir } from '../support/temp-dir.ts'

const FIXTURE = 'argo-cd-application.yaml'
const FILES = {
  'charts/podinfo/Chart.yaml': 'apiVersion: v2\nname: podinfo\nversion: 6.5.4\n',
  'charts/podinfo/values.yaml': 'replicaCount: 1\n',
  'charts/podinfo/templates/a.yaml':
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {count: {{ .Values.replicaCount | quote }}}\n',
  'fleet/values/podinfo.yaml': 'replicaCount: 2\n',
  'fleet/values/eu-1.yaml': 'replicaCount: 5\n',
}
const sandbox = realSandbox()

async function render(cluster: string, change: (text: string) => string = (text) => text) {
  const folder = tempDir()
  writeFiles(folder, new Map(Object.entries(FILES)))
  const text = change(readFileSync(join(import.meta.dir, '../fixtures/migration', FIXTURE), 'utf8'))
  const { resources, problems } = await readResources([{ name: FIXTURE, text }])
  expect(problems).toEqual([])
  const service = resources.find((one) => one.kind === 'Service')
  if (service === undefined) throw new Error('no service')
  const dirs = `charts=${join(folder, 'charts')},fleet=${join(folder, 'fleet')}`
  const deps = { sandbox, renderers: createRenderers(), signal: new AbortController().signal, mark: () => 'mark' }
  return renderLocally(deps, { service, resources, cluster: clusterOf(resources, { clusterName: cluster }), dirs, version: 'local' })
}

test.each([
  ['eu-1', '5'],
  ['us-1', '2'],
])('HM2 the Application of Argo CD, on %s: replicaCount of its own file, where there is one', async (cluster, count) => {
  const { error, problems, objects } = await render(cluster)
  expect([error, problems]).toEqual([null, []])
  expect(objects.map((object) => (typeof object === 'string' ? JSON.parse(object) : object))).toMatchObject([{ data: { count } }])
})

test('HM2 a values file that is missing is named by the source that lacks it', async () => {
  const { problems } = await render('us-1', (text) => text.replace('.yaml?"', '.yaml"'))
  expect(problems.map(({ path }) => path)).toEqual(['values/values/us-1.yaml'])
  expect(problems[0]?.message).toContain('named by {{ cluster.name }}.yaml')
})
