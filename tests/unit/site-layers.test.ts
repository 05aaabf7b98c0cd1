// SC3: the variables of a cluster out of what its agent reported, and which clusters cannot be rendered for.
import { expect, test } from 'bun:test'
import { siteLayers } from '../../server/ingest/render/site-layers.ts'
import { projectSpecSchema } from '../../shared/model/projects.ts'
import type { SiteStatus } from '../../shared/model/site-config.ts'
import { naming } from '../support/naming.ts'
import { clusterId } from '../support/store-fixtures.ts'

const id = clusterId('1')
const map = (values: Record<string, string>) => ({ values, absent: [], refused: {}, problem: null })
const reported = new Map<typeof id, SiteStatus>([[id, { maps: { 'infra/site': map({ color: 'green' }), 'own/site': map({ size: '3' }) } }]])
const site = (namespace: string, key: string) => ({ siteConfig: { namespace, name: 'site', keys: [key] } })
const cluster = (tenant: string, own = {}) => ({ clusterId: id, name: 'ship', labels: { tenant }, ...own })
/** Namespace infra in clusters of one tenant, web in those of another. */
const project = {
  name: 'web',
  spec: projectSpecSchema.parse({
    sources: ['*'],
    destinations: [
      { clusters: { matchLabels: { tenant: 'shared' } }, namespaces: ['infra'] },
      { clusters: { matchLabels: { tenant: 'web' } }, namespaces: ['web'] },
    ],
  }),
}

test('SC3 a service reads what was reported, above the values that the cluster names', () => {
  const found = siteLayers(site('infra', 'color'), null, [cluster('web', site('own', 'size'))], reported)
  expect([...found.lacking]).toEqual([])
  expect(found.of(id)?.layers).toEqual([
    { values: { size: '3' }, from: 'site ConfigMap own/site' },
    { values: { color: 'green' }, from: 'site ConfigMap infra/site' },
  ])
  expect([...found.names].sort()).toEqual(['color', 'size'])
})

test('SC1 SC3 a ConfigMap that was reported for others is not read in a cluster where the project does not allow its namespace', () => {
  const allowed = siteLayers(site('infra', 'color'), project, [cluster('shared')], reported)
  expect(allowed.of(id)?.layers).toMatchObject([{ values: { color: 'green' } }])
  for (const tenant of ['web', 'other']) {
    const refused = siteLayers(site('infra', 'color'), project, [cluster(tenant)], reported)
    expect([refused.of(id), refused.lacking.get(id)?.code]).toEqual([undefined, 'values_missing'])
    expect(refused.lacking.get(id)?.message).toEqual(naming('project web', 'namespace infra'))
  }
  // The operator of the cluster decides about its own ConfigMap.
  expect(siteLayers({}, project, [cluster('web', site('own', 'size'))], reported).of(id)?.layers).toMatchObject([{ values: { size: '3' } }])
})
