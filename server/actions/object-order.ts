// Phases and waves of the objects that a cluster shall have of a service, read from the content of its revision.

import { orderOf, PHASES } from '../../shared/kube/waves.ts'
import { parseRowId } from '../../shared/model/desired.ts'
import type { ObjectOrder } from '../../shared/model/object-order.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'

export interface OrderDeps {
  store: Pick<Store, 'desiredOf'>
  content: Pick<ContentStore, 'get'>
}

/** Null if the cluster does not have the service. Objects without a wave and a phase are left out. */
export async function readObjectOrder({ store, content }: OrderDeps, id: ServiceId, clusterId: ClusterId): Promise<ObjectOrder[] | null> {
  const [row] = await store.desiredOf(id, [clusterId])
  if (row === undefined || row.doc === null) return null
  const bytes = row.setSha === null ? null : await content.get(row.setSha)
  if (bytes === null) return []
  return [...decodeRenderedSet(bytes)].flatMap(([rowId, doc]) => orderIn(rowId, doc) ?? [])
}

function orderIn(rowId: string, doc: string): ObjectOrder | null {
  const row = parseRowId(rowId)
  // Most documents name neither, and are not parsed.
  if (row.kind !== 'object' || !/wave|hook/.test(doc)) return null
  const { metadata } = JSON.parse(doc) as { metadata?: { annotations?: Record<string, string> } }
  const order = orderOf(metadata?.annotations)
  if (order.kind === 'hook') return { ...row.ref, wave: order.wave, phases: PHASES.filter((phase) => order.phases.includes(phase)) }
  return order.kind === 'ordinary' && order.wave !== 0 ? { ...row.ref, wave: order.wave } : null
}
