// A Project between a commit and the rows that an agent pulls: what is rendered, which clusters get it, what the signed
// row says, and what narrowing it does.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { projectSpecSchema } from '../../shared/model/projects.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { configMap, confirmationId, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { naming } from '../support/naming.ts'

let kit: IngestKit
let one: ClusterId
let two: ClusterId
beforeEach(async () => {
  kit = await createIngestKit()
  one = await kit.join('1', { env: 'prod', tenant: 'web' })
  two = await kit.join('2', { env: 'prod', tenant: 'other' })
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1') }, 'first')
})
afterEach(() => kit.close())

const url = () => new URL(kit.git.url)
const write = async (spec: object) => {
  const full = { sources: [`${url().origin}/*`], destinations: [{ namespaces: ['shop'] }], ...spec }
  const key = { kind: 'Project', project: '', name: 'default' } as const
  await kit.store.applyResource(key, { labels: {}, spec: JSON.stringify(projectSpecSchema.parse(full)), nowMs: 1 })
}
const project = async (spec: object = {}) => {
  await write(spec)
  await kit.ingest.repositoryChanged('default', 'apps').catch(() => {})
  await kit.ingest.serviceChanged(SHOP)
}
const begin = async (spec: object = {}, service: object = {}) => {
  await write(spec)
  await kit.repository()
  await kit.service({ ...service })
}
const error = async () => (await kit.store.renderState(SHOP)).error

const OBJECT = (kind: string, name: string, more = '', apiVersion = 'v1') =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: ${name}\n${more}`

test.each<[what: string, manifest: string, told: string]>([
  [
    'another namespace',
    OBJECT('ConfigMap', 'x', '  namespace: kube-system\n'),
    'ConfigMap kube-system/x: refused by project default, rule namespaces',
  ],
  [
    'a kind outside namespaces',
    OBJECT('ClusterRole', 'x', '', 'rbac.authorization.k8s.io/v1'),
    'ClusterRole x: refused by project default, rule clusterScopedKinds',
  ],
  ['a Namespace', OBJECT('Namespace', 'shop'), 'Namespace shop: refused by project default, rule clusterScopedKinds'],
  [
    'a denied kind',
    OBJECT('RoleBinding', 'x', '', 'rbac.authorization.k8s.io/v1'),
    'RoleBinding shop/x: refused by project default, rule kinds',
  ],
  [
    'a List',
    `apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: kube-system}}\n`,
    'ConfigMap kube-system/x',
  ],
  ['a hook', OBJECT('Pod', 'x', '  namespace: kube-system\n  annotations: {skerry.dev/hook: pre-sync}\n'), 'Pod kube-system/x'],
  [
    'a generated name',
    'apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: x-\n  namespace: kube-system\n  annotations: {skerry.dev/hook: pre-sync}\n',
    'rule namespaces',
  ],
  ['a custom kind of unknown scope', OBJECT('Tenant', 'x', '  namespace: other\n', 'example.com/v1'), 'Tenant other/x'],
])('PJ10 %s fails the render with kind, name and file', async (_, manifest, told) => {
  await begin({ kinds: { deny: ['rbac.authorization.k8s.io/*'] } })
  const before = await kit.row(one)
  await kit.push({ 'shop/x.yaml': manifest })
  const { code, problems = [] } = (await error()) ?? { code: '' }
  expect(code).toBe('render_failed')
  expect(problems[0]?.path).toStartWith('shop/x.yaml')
  expect(problems[0]?.message).toContain(told)
  expect(await kit.row(one)).toEqual(before)
})

test('PJ10 a template that makes another namespace fails for the cluster where it does', async () => {
  await begin({}, { render: { templated: true } })
  await kit.push({
    'shop/a.yaml': configMap('a', '1').replace(
      'name: a',
      'name: a\n  namespace: {% if cluster.name == "c1" %}shop{% else %}kube-system{% endif %}',
    ),
  })
  const failing = (await error())?.failing ?? []
  expect(failing.map(({ keeping, without }) => [...keeping, ...without])).toHaveLength(1)
  expect(failing[0]?.problem?.message ?? failing[0]?.message).toContain('kube-system')
})

test('PJ3 clusters outside of the destinations get nothing, and a cluster that is relabelled into them does', async () => {
  await begin({ destinations: [{ clusters: { matchLabels: { tenant: 'web' } }, namespaces: ['shop'] }] })
  expect([(await kit.row(one))?.count, await kit.row(two)]).toEqual([1, null])
  const { name } = (await kit.store.listClusters()).find(({ clusterId }) => clusterId === two) ?? { name: '' }
  await kit.relabel(name, { env: 'prod', tenant: 'web' })
  expect((await kit.row(two))?.count).toBe(1)
})

test('PJ9 the bounds and the default account travel in the row, and a change of them changes no digest', async () => {
  await begin({ serviceAccounts: { default: 'deployer' }, kinds: { deny: ['v1/Secret'] } })
  const row = await kit.row(one)
  expect(row).toMatchObject({
    bounds: { namespaces: ['shop'], clusterScopedKinds: [], kinds: { deny: ['v1/Secret'] }, serviceAccounts: { default: 'deployer' } },
    sync: { serviceAccount: 'deployer' },
  })
  await project({ serviceAccounts: { default: 'other' } })
  expect(await kit.row(one)).toMatchObject({ digest: row?.digest ?? '', sync: { serviceAccount: 'other' } })
})

test('PJ8 narrowing fails what is not allowed any more, changes no row, and widening mends it', async () => {
  await kit.repository()
  await kit.service()
  const before = [await kit.row(one), await kit.row(two)]
  expect(before[0]).toMatchObject({ count: 1 })
  await project({ destinations: [{ namespaces: ['elsewhere'] }] })
  expect(await error()).toMatchObject({ code: 'project_refused' })
  await project({ sources: [] })
  expect((await kit.store.repositoryState('default', 'apps')).error).toMatchObject({ code: 'project_refused' })
  await project({ kinds: { deny: ['v1/ConfigMap'] } })
  expect(await error()).toMatchObject({ code: 'render_failed' })
  expect([await kit.row(one), await kit.row(two)]).toEqual(before)
  await project()
  expect(await error()).toBeNull()
  expect(await kit.row(one)).toMatchObject({ bounds: { namespaces: ['shop'] } })
})

test('PJ11 a cluster that is no destination any more keeps what it has until a person confirms', async () => {
  await begin()
  const before = await kit.row(two)
  expect(before).toMatchObject({ count: 1 })
  await project({ destinations: [{ clusters: { matchLabels: { tenant: 'web' } }, namespaces: ['shop'] }] })
  await kit.push({ 'shop/a.yaml': configMap('a', '2') })
  expect((await kit.row(one))?.digest).not.toBe(before?.digest ?? '')
  expect(await kit.row(two)).toEqual(before)
  expect((await kit.store.listConfirmations())[0]).toMatchObject({
    kind: 'leave_targets',
    why: naming('project', 'destination'),
  })
  await kit.actions.confirm(await confirmationId(kit.store), 'alice')
  await kit.ingest.serviceChanged(SHOP)
  expect((await kit.row(two))?.removal).toMatchObject({ policy: 'delete' })
})

test('PJ10 objects and bytes of a render have quotas', async () => {
  await begin({ quotas: { objects: 1 } })
  expect(await error()).toBeNull()
  await kit.push({ 'shop/b.yaml': configMap('b', '1') })
  expect((await error())?.problems[0]?.message).toContain('rule quotas.objects')
  await project({ quotas: { renderedBytes: 100 } })
  expect((await error())?.problems[0]?.message).toContain('rule quotas.renderedBytes')
})

test('PJ10 a renderer that the folder chooses is refused', async () => {
  await begin({ renderers: ['raw'] })
  await kit.push({ 'shop/kustomization.yaml': 'resources: [a.yaml]\n' })
  expect((await error())?.problems[0]?.message).toEqual(naming('rule renderers', 'kustomize'))
})
