// Charts and artifacts through the ingest loop: from a Helm repository or a registry to the rows of a cluster, and what
// happens when those are away.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createFindChart } from '../../server/ingest/chart-supply.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { repositorySpecSchema } from '../../shared/model/resources.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { createHelmRepository, type HelmRepository } from '../support/helm-charts.ts'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { naming } from '../support/naming.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { pusherTo, startRegistry } from '../support/registry.ts'
import { memoryRendering } from '../support/render-kit.ts'
import { gzipped, tarOf } from '../support/tar-writer.ts'

const sandbox = realSandbox()
let kit: IngestKit
let charts: HelmRepository
let cluster: ClusterId
beforeEach(async () => {
  kit = await createIngestKit({ rendering: () => memoryRendering(sandbox) })
  charts = createHelmRepository()
  cluster = await kit.join('1')
})
afterEach(async () => {
  await kit.close()
  await charts.stop()
})

async function repository(name: string, spec: object): Promise<void> {
  const parsed = repositorySpecSchema.parse(spec)
  await kit.store.applyResource({ kind: 'Repository', project: 'default', name }, { labels: {}, spec: canonicalJson(parsed), nowMs: 1 })
  await kit.ingest.repositoryChanged('default', name)
}
const rendered = () => kit.store.renderState(SHOP)
const errorOf = async () => (await rendered()).error?.message ?? null

test('SO10 SO13 a chart of a Helm repository is rendered; while that is away its last content stays, after a restart as well, and it is said', async () => {
  charts.add({ name: 'shop', version: '1.0.0' })
  await repository('charts', { helm: { url: charts.url } })
  await kit.service({ source: { repository: 'charts', chart: 'shop', version: '^1' } })
  expect(await errorOf()).toBeNull()
  const first = await kit.pull(cluster)
  expect(first.some((id) => id.includes('ConfigMap'))).toBe(true)
  charts.mode = 'away'
  await kit.ingest.repositoryChanged('default', 'charts')
  const state = await kit.store.repositoryState('default', 'charts')
  expect(state.error).toMatchObject({ code: 'source_unreachable', message: expect.stringContaining(new URL(charts.url).host) })
  expect(await kit.events()).toContainEqual(naming('RepositoryFailed: ', 'charts', new URL(charts.url).host))
  const later = kit.restarted()
  await later.serviceChanged(SHOP)
  expect([await errorOf(), await kit.pull(cluster)]).toEqual([null, []])
  expect((await kit.row(cluster))?.digest).toBeDefined()
  charts.mode = 'up'
  charts.add({ name: 'shop', version: '1.1.0' })
  await later.repositoryChanged('default', 'charts')
  expect((await kit.store.repositoryState('default', 'charts')).error).toBeNull()
  expect((await kit.pull(cluster)).length).toBeGreaterThan(0)
})

test.each([
  ['is damaged', (folder: string, revision: string) => writeFileSync(join(folder, `index-${revision}.json`), 'garbage')],
  ['went with its folder, as after a restore', (folder: string) => rmSync(folder, { recursive: true })],
])('SO9 SO12 an index that %s costs nothing that is published: it is fetched again, and writes nothing', async (_, damage) => {
  charts.add({ name: 'shop', version: '1.0.0' })
  await repository('charts', { helm: { url: charts.url } })
  await kit.service({ source: { repository: 'charts', chart: 'shop' } })
  expect(await kit.pull(cluster)).not.toEqual([])
  const { commit } = await kit.store.repositoryState('default', 'charts')
  const [folder = ''] = readdirSync(join(kit.dir, 'git'))
  damage(join(kit.dir, 'git', folder), commit ?? '')
  charts.mode = 'away'
  const later = kit.restarted()
  await later.repositoryChanged('default', 'charts')
  await later.serviceChanged(SHOP)
  expect((await kit.store.repositoryState('default', 'charts')).error?.code).toBe('source_unreachable')
  expect([await kit.pull(cluster), (await kit.row(cluster))?.removal]).toEqual([[], undefined])
  charts.mode = 'up'
  await later.repositoryChanged('default', 'charts')
  expect(await kit.store.repositoryState('default', 'charts')).toMatchObject({ commit, error: null })
  expect([await errorOf(), await kit.pull(cluster)]).toEqual([null, []])
})

test('IN8a of a Helm repository that is deleted nothing stays on the disk', async () => {
  charts.add({ name: 'shop', version: '1.0.0' })
  await repository('charts', { helm: { url: charts.url } })
  await kit.service({ source: { repository: 'charts', chart: 'shop' } })
  expect(readdirSync(join(kit.dir, 'git'))).toHaveLength(1)
  await kit.store.deleteResource({ kind: 'Service', project: 'default', name: 'shop' })
  await kit.store.deleteResource({ kind: 'Repository', project: 'default', name: 'charts' })
  await kit.ingest.repositoryChanged('default', 'charts')
  expect(readdirSync(join(kit.dir, 'git'))).toEqual([])
})

test('SO14 a range that nothing is in is an error of the service, which keeps what it had', async () => {
  charts.add({ name: 'shop', version: '1.0.0' })
  await repository('charts', { helm: { url: charts.url } })
  await kit.service({ source: { repository: 'charts', chart: 'shop' } })
  const before = await kit.row(cluster)
  await kit.service({ source: { repository: 'charts', chart: 'shop', version: '^2' } })
  expect(await errorOf()).toEqual(naming('range ^2', '1.0.0'))
  expect((await kit.row(cluster))?.digest).toBe(before?.digest)
})

test('SO17 manifests of an artifact in a registry are rows', async () => {
  const registry = await startRegistry()
  try {
    const bytes = gzipped(tarOf([{ name: 'deploy/map.yaml', bytes: configMap('colour', 'blue') }]))
    await pusherTo(registry.host, 'team/app').push('v1', [{ mediaType: 'application/vnd.cncf.flux.content.v1.tar+gzip', bytes }])
    await repository('app', { oci: { url: `oci://${registry.host}/team/app`, tag: 'v1', insecure: true } })
    await kit.service({ source: { repository: 'app', path: 'deploy' } })
    expect(await errorOf()).toBeNull()
    expect((await kit.pull(cluster)).some((id) => id.includes('colour'))).toBe(true)
  } finally {
    await registry.stop()
  }
})

const dependent = (repositoryUrl: string, version = '1.0.0') => ({
  name: 'shop',
  version: '1.0.0',
  files: {
    'Chart.yaml': `apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies:\n- name: common\n  version: ^1\n  repository: ${repositoryUrl}\n`,
    'Chart.lock': `dependencies:\n- name: common\n  repository: ${repositoryUrl}\n  version: ${version}\ndigest: sha256:${'0'.repeat(64)}\ngenerated: "2024-01-01T00:00:00Z"\n`,
  },
})

test('SO20 a chart in Git gets the charts that its lock names from the Repository of their URL, and as soon as there is one', async () => {
  charts.add({ name: 'common', version: '1.0.0' }, { name: 'common', version: '1.1.0' })
  const { files } = dependent(`${charts.url}/`)
  const inFolder = Object.fromEntries(Object.entries(files).map(([path, text]) => [`shop/${path}`, text]))
  await kit.git.commit({ ...inFolder, 'shop/templates/map.yaml': configMap('own', 'x') }, 'chart')
  await kit.repository()
  await repository('elsewhere', { helm: { url: `${charts.url}/more` } })
  await kit.service()
  const { error } = await rendered()
  expect(JSON.stringify(error)).toEqual(naming('project default', `${charts.url}/more`, 'Repository elsewhere'))
  await repository('charts', { helm: { url: charts.url } })
  expect((await rendered()).error).toBeNull()
  const rows = await kit.pull(cluster)
  expect(rows.filter((id) => id.includes('ConfigMap')).length).toBe(2)
  const asked = charts.requests.map(({ path }) => path)
  expect(asked).toContain('/charts/common-1.0.0.tgz')
  expect(asked).not.toContain('/charts/common-1.1.0.tgz')
})

test('SO20 of another project, another URL or Git nothing comes', async () => {
  charts.add({ name: 'common', version: '1.0.0' })
  await repository('charts', { helm: { url: charts.url } })
  await kit.repository()
  const find = createFindChart(kit.store)
  expect((await find('default', charts.url, 'common', '1.0.0')).place.spec.url).toBe(charts.url)
  const refusal = (project: string, url: string) =>
    find(project, url, 'common', '1.0.0').then(
      () => 'read',
      (error: unknown) => (error instanceof AppError ? `${error.code}: ${error.message}` : `${error}`),
    )
  expect(await refusal('web', charts.url)).toEqual(naming('source_refused', 'project web', 'URL'))
  expect(await refusal('default', 'http://10.0.0.1/charts')).toEqual(naming('source_refused', 'project default', 'URL'))
  expect(await refusal('default', kit.git.url)).toEqual(naming('source_refused', 'project default', 'URL'))
  const boundary = { sources: [], destinations: [], clusterScopedKinds: [] }
  await kit.store.applyResource({ kind: 'Project', project: '', name: 'default' }, { labels: {}, spec: JSON.stringify(boundary), nowMs: 1 })
  expect(await refusal('default', charts.url)).toEqual(naming('project_refused', 'project default', 'rule sources'))
})

test('SO21 what could not be had of another side is tried again, and rendered when it is there', async () => {
  charts.add({ name: 'shop', version: '1.0.0' })
  await repository('charts', { helm: { url: charts.url } })
  charts.mode = 'error'
  await kit.service({ source: { repository: 'charts', chart: 'shop' } })
  expect((await rendered()).error).toMatchObject({ code: 'source_unreachable' })
  const stopping = new AbortController()
  charts.requests.length = 0
  const loop = kit.restarted(stopping.signal).run()
  const archives = () => charts.requests.flatMap(({ path, status }) => (path.endsWith('.tgz') ? [status] : []))
  await until(async () => archives().length > 0)
  expect(archives()).toEqual([503]) // its first look after the start has failed as well; from here on nobody tells it anything
  charts.mode = 'up'
  await until(async () => (await rendered()).error === null)
  stopping.abort()
  await loop
  expect((await kit.pull(cluster)).length).toBeGreaterThan(0)
})

test('SO21 a chart of another one that could not be had is no result that is remembered', async () => {
  charts.add({ name: 'common', version: '1.0.0' })
  const { files } = dependent(charts.url)
  await kit.git.commit({ ...Object.fromEntries(Object.entries(files).map(([path, text]) => [`shop/${path}`, text])) }, 'chart')
  await repository('charts', { helm: { url: charts.url } })
  charts.mode = 'error'
  await kit.repository()
  await kit.service()
  expect((await rendered()).error).toMatchObject({ code: 'source_unreachable', problems: [{ path: 'shop/Chart.yaml' }] })
  charts.mode = 'up'
  await kit.ingest.serviceChanged(SHOP)
  expect((await rendered()).error).toBeNull()
})

/** Within the time that a test has. */
async function until(probe: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 4_000
  while (!(await probe())) {
    if (performance.now() > deadline) throw new Error('not within 4 s')
    await Bun.sleep(20)
  }
}
