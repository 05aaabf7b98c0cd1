// What each cluster serves, as its agent said last: kept in memory, for every render may ask. Most clusters say the same: it is held once.

import type { ClusterId } from '../../shared/model/ids.ts'
import { factsStatusSchema } from '../../shared/model/status.ts'
import type { ClusterFacts } from '../render/inputs.ts'
import type { StatusWrite } from '../store/records.ts'
import type { Store } from '../store/store.ts'

export interface KnownFacts {
  /** Of those of the clusters that have said any; equal facts are one and the same object. */
  of(clusters: readonly ClusterId[]): Promise<ReadonlyMap<ClusterId, ClusterFacts>>
  /** Rows that were just written, a null document among them for a cluster that is no more. Whether what is known of the cluster changed. */
  reported(clusterId: ClusterId, rows: readonly StatusWrite[]): boolean
}

export function createKnownFacts(store: Pick<Store, 'listStatus'>): KnownFacts {
  const held = new Map<ClusterId, ClusterFacts>()
  const shared = new Map<string, { facts: ClusterFacts; refs: number }>()
  const textOf = new Map<ClusterId, string>()
  /** Reported while the store was read: newer than what was read. */
  const touched = new Set<ClusterId>()
  let loading: Promise<void> | null = null
  let loaded = false

  const drop = (clusterId: ClusterId) => {
    const text = textOf.get(clusterId)
    const entry = text === undefined ? undefined : shared.get(text)
    if (text !== undefined && entry !== undefined && --entry.refs === 0) shared.delete(text)
    textOf.delete(clusterId)
    held.delete(clusterId)
  }
  const set = (clusterId: ClusterId, doc: unknown): boolean => {
    const said = factsStatusSchema.safeParse(doc).data
    const text = said === undefined ? undefined : JSON.stringify(said)
    if (text === textOf.get(clusterId)) return false
    drop(clusterId)
    if (said === undefined || text === undefined) return true
    const entry = shared.get(text) ?? { facts: toFacts(said), refs: 0 }
    entry.refs += 1
    shared.set(text, entry)
    textOf.set(clusterId, text)
    held.set(clusterId, entry.facts)
    return true
  }
  const load = async () => {
    for (const { clusterId, doc } of await store.listStatus({ kind: 'facts', key: 'cluster' }))
      if (!touched.has(clusterId)) set(clusterId, doc)
    loaded = true
    touched.clear()
  }
  return {
    async of(clusters) {
      loading ??= load().catch((error: unknown) => {
        loading = null
        throw error
      })
      await loading
      const found = new Map<ClusterId, ClusterFacts>()
      for (const clusterId of clusters) {
        const facts = held.get(clusterId)
        if (facts !== undefined) found.set(clusterId, facts)
      }
      return found
    },
    reported(clusterId, rows) {
      const said = rows.filter(({ kind }) => kind === 'facts').at(-1)
      if (said === undefined) return false
      if (!loaded) touched.add(clusterId)
      return set(clusterId, said.doc)
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
