// The list of services says of each what its own view says, and reads next to nothing for it.
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { foldSummary, summarise, summaryCounts } from '../../server/fleet/placements-summary.ts'
import type { StoredResource } from '../../server/fleet/records.ts'
import { createFleetViews } from '../../server/http/fleet-views.ts'
import type { Store } from '../../server/store/store.ts'
import { HEALTH_WORDS } from '../../shared/kube/health-object.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { repositorySpecSchema, serviceSpecSchema, syncOptionsSchema } from '../../shared/model/resources.ts'
import { SYNC_WORDS } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { agentIdSchema, type ClusterId, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { makeToken } from '../support/store-fixtures.ts'
import { openIn, STORES } from '../support/stores.ts'

setDefaultTimeout(120_000) // PostgreSQL is started in one of them

const CLUSTERS = 230
const SERVICES = ['well', 'away', 'mixed', 'new', 'nowhere', 'one-bad']
const NOW = 10_000_000
const clock: Clock = { nowMs: () => NOW, monotonicMs: () => NOW, sleep: async () => {} }
const row = serviceRowSchema.parse({ commit: 'c', digest: 'one', count: 1, sync: syncOptionsSchema.parse({}) })
const point = { commit: 'c', digest: 'one', atMs: 1 }

async function clusters(store: Store): Promise<ClusterId[]> {
  const tokenHash = await makeToken(store, 'many', CLUSTERS)
  const ids: ClusterId[] = []
  for (let n = 0; n < CLUSTERS; n += 1) {
    const hex = ((n * 7_919) % CLUSTERS).toString(16).padStart(16, '0') // the order of ids is not that of names
    const clusterId = clusterIdSchema.parse(`c-${hex}`)
    const name = `site-${String(n).padStart(3, '0')}`
    const agentId = agentIdSchema.parse(`a-${hex}`)
    await store.join({ tokenHash, clusterName: name, publicKey: hex, recipient: 'r', clusterUid: 'u', nowMs: 1, clusterId, agentId })
    ids.push(clusterId)
  }
  return ids
}

async function fleet(store: Store): Promise<StoredResource[]> {
  const ids = await clusters(store)
  const random = seededRandom(5)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  // The service that is well is in clusters that are online; some of the others are not.
  await store.markSeen(new Map(ids.slice(0, 200).map((id) => [id, NOW])))
  await store.markSeen(new Map(ids.slice(200, 220).map((id) => [id, 1])))
  const placed: Record<string, readonly ClusterId[]> = {
    well: ids.slice(0, 20),
    away: ids,
    mixed: ids,
    new: ids,
    nowhere: [],
    'one-bad': ids,
  }
  const spec = repositorySpecSchema.parse({ git: { url: 'https://git.example/apps.git' } })
  await store.applyResource({ kind: 'Repository', project: 'p', name: 'apps' }, { labels: {}, spec: JSON.stringify(spec), nowMs: 1 })
  await store.setRepositoryState('p', 'apps', { commit: 'c', fetchedMs: 1, tag: null, error: null })
  for (const service of SERVICES) {
    const spec = serviceSpecSchema.parse({ source: { repository: 'apps', path: 'x' }, targets: { selector: {} } })
    await store.applyResource({ kind: 'Service', project: 'p', name: service }, { labels: {}, spec: JSON.stringify(spec), nowMs: 1 })
    const render = { commit: 'c', generation: 1, digest: 'one', objectCount: 1, renderedMs: 1, error: null }
    await store.setRenderState({ project: 'p', service }, render)
    const rows = (placed[service] ?? []).map((clusterId) => ({ clusterId, project: 'p', service, doc: row, setSha: null, placedBy: '{}' }))
    await store.publish(rows)
  }
  const push = (clusterId: ClusterId, index: number) => {
    const said = (service: string, sync: string, health: string) => ({
      kind: 'service' as const,
      key: `p/${service}`,
      rev: SERVICES.indexOf(service) + 1,
      doc: {
        sync,
        health,
        reason: 'Said',
        message: `by ${index}`,
        sinceMs: index,
        received: point,
        applied: point,
        objectCount: 1,
        healthyCount: 1,
      },
    })
    const rows = [
      said('away', 'Synced', 'Healthy'),
      said('mixed', pick(SYNC_WORDS), pick(HEALTH_WORDS)),
      said('one-bad', 'Synced', index === 77 ? 'Degraded' : 'Healthy'),
      ...(index < 20 ? [said('well', 'Synced', 'Healthy')] : []),
    ]
    return store.upsertStatus(clusterId, rows, { complete: false, nowMs: 1 })
  }
  await Promise.all(ids.map(push))
  return (await store.listResources('Service', { limit: 100 })).items
}

describe.each(STORES)('the list of services on $name', (kind) => {
  test('RU7 says of each what its own view says, of counts and the first of the worst placements alone', async () => {
    const store = await openIn(kind)
    const services = await fleet(store)
    const calls: string[] = []
    const counted = new Proxy(store, {
      get: (target, property) => {
        const name = property as keyof Store
        calls.push(name)
        return target[name]
      },
    })
    const views = createFleetViews(counted, clock, { pendingSinceMs: async () => null })
    const listed = (await views.listed(services)).filter((view) => view.kind === 'Service')
    const read = (name: string) => calls.filter((call) => call === name).length
    // Clusters once, for those that are placed nowhere: which of them are meant to have it.
    expect([read('desiredOfService'), read('listClusters'), read('listStatus')]).toEqual([0, 1, 3])
    expect(listed.find((view) => view.metadata.name === 'nowhere')?.status.reason).toBe('Rendering')
    expect<string[]>(listed.map((view) => view.metadata.name)).toEqual([...SERVICES].sort())
    const words = listed.map(({ metadata, status }) => `${metadata.name} ${status.reason}: ${status.message}`)
    expect(words[0]).toBe('away LastKnown: last known state of site-200, site-201, site-202, site-203, site-204 and 25 more (not online)')
    expect(words).toContain('one-bad Said: 1 of 230: site-077: by 77')
    expect(words.at(-1)).toBe('well : ')
    for (const [index, view] of listed.entries()) {
      const [own] = await views.resources(services.slice(index, index + 1))
      if (own?.kind !== 'Service') throw new Error('it is gone')
      const isWell = view.status.reason === '' || view.status.reason === 'LastKnown'
      expect<unknown>(view).toEqual(isWell ? { ...own, status: { ...own.status, sinceMs: null } } : own)
    }
    await store.close()
  })

  test('RU7 a single view says what all placements come to', async () => {
    const store = await openIn(kind)
    const services = await fleet(store)
    const { resources, placementsOfService } = createFleetViews(store, clock, { pendingSinceMs: async () => null })
    const placed = services.filter(({ name }) => name !== 'nowhere')
    for (const service of placed) {
      const [own] = await resources([service])
      if (own?.kind !== 'Service') throw new Error('it is gone')
      const summary = summarise(await placementsOfService({ project: 'p', service: service.name }), ({ cluster }) => cluster)
      const { next: _, ...folded } = foldSummary(summary)
      expect(own.status).toMatchObject({ ...folded, clusters: summaryCounts(summary) })
    }
    const since = await Promise.all(placed.map(async (one) => (await resources([one]))[0]?.status))
    expect(since.slice(0, 1)).toMatchObject([{ sinceMs: CLUSTERS - 1 }])
    expect(since.slice(-1)).toMatchObject([{ sinceMs: 19 }])
    await store.close()
  })
})
