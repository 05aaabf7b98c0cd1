// SL16: the store holds, for each service in each cluster, a proof that this server placed that set there. Sealed sets
// are shared and their keys derived from the sealing key, so without it somebody who writes the store could give a
// cluster the set of another one, and the server would wrap the keys. The key of the proofs is not in the store.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import type { DesiredService, ProofOf } from '../fleet/records.ts'
import type { Store } from '../store/store.ts'
import type { Sealing } from './sealing.ts'

type Placed = Omit<DesiredService, 'ordinal'>

function proofUnder(key: Uint8Array, id: string, row: Placed, ordinal: number): string {
  const { clusterId, project, service, setSha, renderedFrom = null } = row
  const text = canonicalJson(['skerry-placement-v1', clusterId, project, service, ordinal, setSha, renderedFrom])
  return `${id}.${createHmac('sha256', key).update(text).digest('base64url')}`
}

/** Null for a row without objects, for one that is not proven itself, and on a server that does not seal. */
export const proofsOf =
  (sealing: Pick<Sealing, 'current' | 'proofKey'>): ProofOf =>
  (row, ordinal) => {
    const id = sealing.current()
    const key = id === null || row.setSha === null || row.unproven === true ? null : sealing.proofKey(id)
    return id === null || key === null ? null : proofUnder(key, id, row, ordinal)
  }

const keyOf = (proof: string): string => proof.slice(0, proof.indexOf('.'))

export function isProven(sealing: Pick<Sealing, 'proofKey'>, row: DesiredService): boolean {
  if (row.proof === undefined) return false
  const id = keyOf(row.proof)
  const key = sealing.proofKey(id)
  if (key === null) return false
  const [held, made] = [Buffer.from(row.proof), Buffer.from(proofUnder(key, id, row, row.ordinal))]
  return held.length === made.length && timingSafeEqual(held, made)
}

/** A store that writes proofs, and marks the rows that lack one. */
export function withProofs(store: Store, sealing: Sealing): Store {
  const marked = (row: DesiredService): DesiredService => ({ ...row, unproven: true })
  const needsProof = (row: DesiredService) => row.setSha !== null && sealing.current() !== null
  // A service has as many rows as clusters. Only the key of their proofs is looked at, so that rows without a proof are
  // published again; what is opened for a cluster is checked in full.
  const isNamed = ({ proof }: DesiredService) => proof !== undefined && sealing.proofKey(keyOf(proof)) !== null
  const named = (rows: DesiredService[]) => rows.map((row) => (needsProof(row) && !isNamed(row) ? marked(row) : row))
  const proofOf = proofsOf(sealing)
  return {
    ...store,
    publish: (rows) => store.publish(rows, proofOf),
    desiredInCluster: async (clusterId) =>
      (await store.desiredInCluster(clusterId)).map((row) => (needsProof(row) && !isProven(sealing, row) ? marked(row) : row)),
    desiredOfService: async (id) => named(await store.desiredOfService(id)),
    desiredOf: async (id, clusterIds) => named(await store.desiredOf(id, clusterIds)),
  }
}

/** For pages: the objects of a placement that is proven. `sets`: reads them. */
export const placedBy =
  (store: Pick<Store, 'desiredOf'>, sealing: Sealing, sets: (row: DesiredService) => Promise<ReadonlyMap<string, string>>) =>
  async (clusterId: ClusterId, service: ServiceId): Promise<ReadonlyMap<string, string> | null> => {
    const [row] = await store.desiredOf(service, [clusterId])
    return row === undefined || !isProven(sealing, row) ? null : sets(row)
  }

/** Clusters whose placements are proven in one transaction. */
const CLUSTERS_A_TIME = 50

/** Once, after an upgrade from a version without proofs: makes a proof for each placement that the store has then.
 *  Returns their number. */
export async function proveAll(store: Pick<Store, 'clusterOrdinals' | 'desiredInCluster' | 'publish'>, sealing: Sealing): Promise<number> {
  if (sealing.current() === null || sealing.hasProofs()) return 0
  const clusterIds: ClusterId[] = [...(await store.clusterOrdinals()).keys()]
  const proofOf = proofsOf(sealing)
  let proven = 0
  for (let start = 0; start < clusterIds.length; start += CLUSTERS_A_TIME) {
    const rows: DesiredService[] = []
    for (const clusterId of clusterIds.slice(start, start + CLUSTERS_A_TIME))
      rows.push(...(await store.desiredInCluster(clusterId)).filter(({ setSha }) => setSha !== null))
    rows.sort((a, b) => compare(a.project, b.project) || compare(a.service, b.service))
    await store.publish(rows, proofOf)
    proven += rows.length
  }
  sealing.proofsWritten()
  return proven
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
