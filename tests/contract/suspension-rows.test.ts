// Suspensions, from the store to the rows that each cluster gets.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { resume, type SuspensionRights, suspend } from '../../server/actions/suspension-actions.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { configMap, createIngestKit, type IngestKit } from '../support/ingest-kit.ts'

const EVERY_RIGHT: SuspensionRights = {
  knows: async () => true,
  scope: [{ projects: null, services: null, clusters: null }],
  require: async () => {},
  seen: async (all) => [...all],
}
let kit: IngestKit
let one: ClusterId
let two: ClusterId
const pulled = async (clusterId: ClusterId) => (await kit.pull(clusterId)).filter((id) => /^-?suspension/.test(id))
const order = async (asked: Omit<Parameters<typeof suspend>[1], 'selector'>, selector?: Parameters<typeof suspend>[1]['selector']) => {
  await suspend({ ...kit, rights: EVERY_RIGHT, clock: { nowMs: () => 5 } }, { ...asked, selector }, 'harbour', 'ana')
  await kit.ingest.suspensionsChanged()
}
const lift = async (asked: Omit<Parameters<typeof resume>[1], 'selector'>) => {
  await resume({ ...kit, rights: EVERY_RIGHT, clock: { nowMs: () => 6 } }, { ...asked, selector: undefined }, undefined, 'ana')
  await kit.ingest.suspensionsChanged()
}

beforeEach(async () => {
  kit = await createIngestKit()
  one = await kit.join('1')
  two = await kit.join('2')
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1') }, 'first')
  await kit.repository()
  await kit.service()
})
afterEach(() => kit.close())

test('SU1 clusters get the suspensions that concern them, and lose those that are lifted; what is equal writes nothing', async () => {
  await order({ services: ['shop'] })
  expect([await pulled(one), await pulled(two)]).toEqual([['suspension/services/default/shop'], ['suspension/services/default/shop']])
  await order({ services: ['shop'], clusters: ['cluster-1'] })
  await order({ clusters: ['cluster-2'] })
  expect([await pulled(one), await pulled(two)]).toEqual([
    ['suspension/placement/cluster-1/default/shop'],
    ['suspension/cluster/cluster-2'],
  ])
  const before = await kit.store.clusterOrdinals()
  await kit.ingest.suspensionsChanged()
  await kit.ingest.suspensionsChanged(['cluster-1'])
  await lift({ services: ['nobody'] })
  expect(await kit.store.clusterOrdinals()).toEqual(before)
  await lift({ services: ['shop'] })
  expect([await pulled(one), await pulled(two)]).toEqual([['-suspension/services/default/shop'], ['-suspension/services/default/shop']])
  await lift({ services: ['shop'], clusters: ['cluster-1', 'cluster-2'] })
  await lift({ clusters: ['cluster-2'] })
  expect([await pulled(one), await pulled(two)]).toEqual([
    ['-suspension/placement/cluster-1/default/shop'],
    ['-suspension/cluster/cluster-2'],
  ])
  expect((await kit.events()).filter((event) => /^(Suspended|Resumed)/.test(event))).toHaveLength(6)
})

test('SU1 a cluster that joins, and a server that starts, give out what is ordered; a placement is none', async () => {
  await order({ all: true })
  const three = await kit.join('3')
  kit.actions.onJoined('cluster-3')
  await kit.ingest.suspensionsChanged(['cluster-3'])
  expect(await pulled(three)).toEqual(['suspension/all'])
  await kit.ingest.clustersChanged()
  expect((await kit.store.desiredInCluster(three)).filter(({ doc }) => doc !== null).map(({ service }) => service)).toEqual(['shop'])
  await resume({ ...kit, rights: EVERY_RIGHT, clock: { nowMs: () => 6 } }, { all: true, selector: undefined }, undefined, 'ana')
  const again = kit.restarted()
  await again.suspensionsChanged()
  expect(await pulled(three)).toEqual(['-suspension/all'])
})
