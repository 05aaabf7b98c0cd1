// A service whose folder in Git is a Helm chart: from a push to the objects that each cluster shall have, and what is
// told of a push that helm refuses.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { CHARTS_FOLDER, filesOfFolder } from '../support/helm-kit.ts'
import { createIngestKit, type IngestKit } from '../support/ingest-kit.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { memoryRendering } from '../support/render-kit.ts'

let kit: IngestKit
beforeEach(async () => {
  const sandbox = realSandbox()
  kit = await createIngestKit({ rendering: () => memoryRendering(sandbox) })
})
afterEach(() => kit.close())

const chart = Object.fromEntries(
  Object.entries(filesOfFolder(join(CHARTS_FOLDER, 'hooks'))).map(([path, bytes]) => [`charts/web/${path}`, Buffer.from(bytes).toString()]),
)
const TEMPLATE = `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Values.host }}", labels: {release: "{{ .Release.Name }}"}}
data: {replicas: "{{ required "set replicas" .Values.replicas }}"}
`
const names = (rows: readonly string[]) => rows.map((id) => id.split('/').slice(-2).join('/')).sort()

test('HM1 HM2 HM6 a chart in Git becomes the objects of each cluster, and a chart that fails leaves them as they are', async () => {
  const { git, store } = kit
  await git.commit({ ...chart, 'charts/web/templates/host.yaml': TEMPLATE, 'prod.yaml': 'replicas: 3\n' }, 'first')
  await kit.repository()
  const [one, two] = [await kit.join('1', { env: 'prod', region: 'eu' }), await kit.join('2', { env: 'prod', region: 'us' })]
  await kit.service({
    source: { repository: 'apps', path: 'charts/web' },
    render: { helm: { valuesFiles: ['../../prod.yaml'], values: { host: '{{ cluster.labels.region }}' } } },
    overrides: [{ selector: { matchLabels: { region: 'us' } }, helm: { values: { host: 'west' } } }],
  })
  const state = await store.renderState({ project: 'default', service: 'shop' })
  expect(state.error).toBeNull()
  const inOne = names(await kit.pull(one))
  const inTwo = names(await kit.pull(two))
  expect([inOne.some((name) => name.endsWith('/eu')), inTwo.some((name) => name.endsWith('/west'))]).toEqual([true, true])
  const isOf = (name: string) => (id: string) => id.endsWith(`/${name}`)
  for (const name of ['main', 'pre-install', 'post-upgrade', 'both', 'failed']) expect(inOne.some(isOf(name)), name).toBe(true)
  for (const name of ['a-test', 'old-test']) expect(inOne.some(isOf(name)), name).toBe(false)

  await kit.push({ 'prod.yaml': 'other: 1\n' })
  const { error } = await store.renderState({ project: 'default', service: 'shop' })
  expect(error?.problems.map(({ path, message }) => `${path} ${message}`)).toEqual(['charts/web/templates/host.yaml:4:22 set replicas'])
  expect([await kit.pull(one), await kit.pull(two)]).toEqual([[], []])

  await kit.push({ 'prod.yaml': 'replicas: 3\n' })
  expect((await store.renderState({ project: 'default', service: 'shop' })).error).toBeNull()
})
