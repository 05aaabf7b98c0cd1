// The API of each cluster as its agent last reported it, kept in memory because every render may ask. Most clusters
// report the same, which is held once.

import { type SiteStatus, siteStatusSchema } from '../../shared/model/site-config.ts'
import { factsStatusSchema } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import type { StatusWrite } from '../fleet/records.ts'
import type { ClusterFacts } from '../render/inputs.ts'
import type { Store } from '../store/store.ts'

export interface KnownFacts {
  /** The facts of those clusters that have reported any. Equal facts are one and the same object. */
  of(clusters: readonly ClusterId[]): Promise<ReadonlyMap<ClusterId, ClusterFacts>>
  /** SC3: values that those clusters report of their ConfigMaps. */
  siteOf(clusters: readonly ClusterId[]): Promise<ReadonlyMap<ClusterId, SiteStatus>>
  /** Rows that were just written, a null document among them for a cluster that is no more. Whether what is known of
   *  the cluster changed. */
  reported(clusterId: ClusterId, rows: readonly StatusWrite[]): boolean
}

/** Clusters whose rows are asked for together. */
const READ_AT_ONCE = 20

interface Shared {
  /** As it was said. */
  text: string
  facts: ClusterFacts
  refs: number
}

export function createKnownFacts(store: Pick<Store, 'listClusters' | 'listStatus'>, clock: Pick<Clock, 'nowMs'>): KnownFacts {
  const held = new Map<ClusterId, Shared>()
  const shared = new Map<string, Shared>()
  /** Reported while the store was read: newer than what was read. */
  const touched = new Set<ClusterId>()
  const sites = new Map<ClusterId, SiteStatus>()
  const touchedSites = new Set<ClusterId>()
  let loading: Promise<void> | null = null
  let loaded = false

  const drop = (clusterId: ClusterId) => {
    const entry = held.get(clusterId)
    if (entry !== undefined && --entry.refs === 0) shared.delete(entry.text)
    held.delete(clusterId)
  }
  const set = (clusterId: ClusterId, doc: unknown): boolean => {
    const said = factsStatusSchema.safeParse(doc).data
    const text = said === undefined ? undefined : JSON.stringify(said)
    if (text === held.get(clusterId)?.text) return false
    drop(clusterId)
    if (said === undefined || text === undefined) return true
    const entry = shared.get(text) ?? { text, facts: toFacts(said), refs: 0 }
    entry.refs += 1
    shared.set(entry.text, entry)
    held.set(clusterId, entry)
    return true
  }
  const setSite = (clusterId: ClusterId, doc: unknown): boolean => {
    const said = siteStatusSchema.safeParse(doc).data
    const before = sites.get(clusterId)
    if (JSON.stringify(said) === JSON.stringify(before)) return false
    if (said === undefined) sites.delete(clusterId)
    else sites.set(clusterId, said)
    return true
  }
  // A few at a time: all of them would be ten thousand documents in memory, and half a second without a turn for other
  // work.
  const load = async () => {
    const pace = createPace(clock)
    const clusters = await store.listClusters()
    for (let start = 0; start < clusters.length; start += READ_AT_ONCE) {
      const some = clusters.slice(start, start + READ_AT_ONCE)
      const read = await Promise.all(some.map(({ clusterId }) => store.listStatus({ clusterId, kind: 'facts', key: 'cluster' })))
      for (const { clusterId, doc } of read.flat()) {
        if (!touched.has(clusterId)) set(clusterId, doc)
        await pace()
      }
    }
    for (const { clusterId, doc } of await store.listStatus({ kind: 'site', key: 'cluster' })) {
      if (!touchedSites.has(clusterId)) setSite(clusterId, doc)
      await pace()
    }
    loaded = true
    touched.clear()
    touchedSites.clear()
  }
  const ready = () => {
    loading ??= load().catch((error: unknown) => {
      loading = null
      throw error
    })
    return loading
  }
  return {
    async siteOf(clusters) {
      await ready()
      return new Map(clusters.flatMap((clusterId) => (sites.has(clusterId) ? [[clusterId, sites.get(clusterId) as SiteStatus]] : [])))
    },
    async of(clusters) {
      await ready()
      const found = new Map<ClusterId, ClusterFacts>()
      for (const clusterId of clusters) {
        const entry = held.get(clusterId)
        if (entry !== undefined) found.set(clusterId, entry.facts)
      }
      return found
    },
    reported(clusterId, rows) {
      const last = (kind: 'facts' | 'site') => rows.filter((row) => row.kind === kind).at(-1)
      const [facts, site] = [last('facts'), last('site')]
      if (!loaded && facts !== undefined) touched.add(clusterId)
      if (!loaded && site !== undefined) touchedSites.add(clusterId)
      const isOther = facts !== undefined && set(clusterId, facts.doc)
      return (site !== undefined && setSite(clusterId, site.doc)) || isOther
    },
  }
}

type Said = ReturnType<typeof factsStatusSchema.parse>

export function toFacts({ kubernetesVersion, apis }: Said): ClusterFacts {
  const apiVersions: Record<string, true> = {}
  for (const [version, kinds] of Object.entries(apis)) {
    apiVersions[version] = true
    for (const kind of kinds) apiVersions[`${version}/${kind}`] = true
  }
  return { kubernetesVersion, apiVersions }
}
