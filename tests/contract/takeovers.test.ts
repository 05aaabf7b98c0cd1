// TG21: a removal, a relabel, another spec and a new name say which objects another service takes over, as it then
// happens.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createRemovalPlans } from '../../server/actions/removal-plans.ts'
import { readEffects } from '../../server/http/apply-effects.ts'
import { readMoves } from '../../server/http/apply-moves.ts'
import { createObjectOwners } from '../../server/ingest/object-owners.ts'
import { createRenderNow } from '../../server/ingest/render/render-now.ts'
import { type Applicable, applicableSchema } from '../../shared/model/resources.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'

const NAMES = ['ConfigMap shop/a', 'ConfigMap shop/b']
let kit: IngestKit
let deps: Parameters<typeof readEffects>[0] & Parameters<typeof readMoves>[0]

/** Two clusters that have the service `shop` with the objects of NAMES; `boutique` names the same. */
beforeEach(async () => {
  kit = await createIngestKit()
  const { store, content, ingest } = kit
  const owners = createObjectOwners({ store, content, renderer: ingest })
  const removals = createRemovalPlans({ store, content, owners, clock: systemClock })
  const rendersForPeople = kit.otherRenders()
  const [configs, sealing] = [{ read: async () => null }, { current: () => null }]
  const renders = createRenderNow({ store, ingest, rendersForPeople, configs, sealing, macOf: String })
  deps = { store, owners, removals, renders, clock: systemClock }
  await kit.join('1', { env: 'prod', tier: 'old' })
  await kit.join('2', { env: 'prod' })
  await kit.git.commit(
    { 'shop/a.yaml': configMap('a', '1'), 'shop/b.yaml': configMap('b', '1'), 'less/a.yaml': configMap('a', '1') },
    'first',
  )
  await kit.repository()
  await kit.service()
})
afterEach(() => kit.close())
const boutique = () => kit.service({ source: { repository: 'apps', path: 'shop' }, namespace: 'shop' }, 'boutique')

const documentOf = (name: string, change: Record<string, unknown>): Applicable => {
  const spec = { source: { repository: 'apps', path: 'shop' }, targets: { selector: { matchLabels: { env: 'prod' } } }, namespace: 'shop' }
  return applicableSchema.parse({ apiVersion: 'skerry.dev/v1', kind: 'Service', metadata: { name }, spec: { ...spec, ...change } })
}
const planned = async (resource: Applicable) => {
  const { kind, metadata } = resource
  const project = kind === 'Service' ? 'default' : ''
  return [{ resource, held: await kit.store.getResource({ kind, project, name: metadata.name }) }]
}
const OLD = { selector: { matchLabels: { env: 'prod', tier: 'old' } } }
const owned = (by: string) => NAMES.map((name) => ({ name, by }))

test('TG21 a service under a new name: its objects are managed by the old one, and the removal of that one hands them over', async () => {
  const renamed = documentOf('boutique', {})
  const { effects } = await readEffects(deps, await planned(renamed))
  expect(effects).toMatchObject([
    {
      service: 'boutique',
      clusters: { count: 2 },
      objects: { takesOver: { count: 2, first: owned('default/shop') }, created: { count: 0 } },
    },
  ])
  const hidden = await readEffects({ ...deps, isShown: ({ service }) => service !== 'shop' }, await planned(renamed))
  expect(hidden.effects[0]?.objects?.takesOver?.first).toEqual(owned('another service'))

  await boutique()
  const [removal, ...others] = (await deps.removals.ofService(SHOP, () => true)) ?? []
  expect(others).toEqual([])
  expect(removal?.view).toMatchObject({
    clusters: { count: 2 },
    deletes: { count: 0 },
    takenOver: { count: 2, first: owned('default/boutique') },
  })
})

test('TG21 a relabelled cluster loses one service and keeps the other: by the labels that it gets', async () => {
  await boutique()
  await kit.service({ targets: OLD })
  const cluster = (await kit.store.listClusters()).find(({ labels }) => labels['tier'] === 'old')
  const metadata = { name: cluster?.name, labels: { env: 'prod', tier: 'new' } }
  const resource = applicableSchema.parse({ apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata, spec: {} })
  const { moves } = await readMoves(deps, await planned(resource))
  expect(moves[0]?.removals).toMatchObject([{ service: 'shop', deletes: { count: 0 }, takenOver: { count: 2 } }])

  const away = { ...metadata, labels: { env: 'test' } }
  const leaving = applicableSchema.parse({ apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: away, spec: {} })
  const found = (await readMoves(deps, await planned(leaving))).moves[0]?.removals?.find(({ service }) => service === 'shop')
  expect([found?.deletes.count, found?.takenOver]).toEqual([2, undefined])
})

test('TG21 a spec that no longer names an object of another service hands it over; one that nobody names is deleted', async () => {
  await boutique()
  const smaller = documentOf('shop', { source: { repository: 'apps', path: 'less' } })
  const { effects } = await readEffects(deps, await planned(smaller))
  expect(effects).toMatchObject([
    {
      service: 'shop',
      objects: { deleted: { count: 0 }, takenOver: { count: 1, first: [{ name: 'ConfigMap shop/b', by: 'default/boutique' }] } },
    },
  ])
  const alone = { ...deps, owners: { ...deps.owners, takersOf: async () => new Map() } }
  expect((await readEffects(alone, await planned(smaller))).effects).toMatchObject([
    { objects: { deleted: { first: ['ConfigMap shop/b'] } } },
  ])
})

test('IC3 two services with equal specs and equal files have rows of their own', async () => {
  await kit.service({ namespace: 'shop' })
  await boutique()
  const specs = ['shop', 'boutique'].map((name) => kit.store.getResource({ kind: 'Service', project: 'default', name }))
  const [first, second] = (await Promise.all(specs)).map((held) => held?.spec)
  expect(first).toBe(second ?? '')
  const [cluster] = await kit.store.listClusters()
  const rows = cluster === undefined ? [] : await kit.pull(cluster.clusterId)
  expect(rows.filter((id) => id.startsWith('object/'))).toEqual([
    'object/default/boutique//ConfigMap/shop/a',
    'object/default/boutique//ConfigMap/shop/b',
    'object/default/shop//ConfigMap/shop/a',
    'object/default/shop//ConfigMap/shop/b',
  ])
})
