// The namespace that `sync.createNamespace` made, and whether it goes with its service.
import type { ObjectRef } from '../../../shared/kube/object.ts'
import { deletes, type ServiceRow } from '../../../shared/model/desired.ts'
import type { ServiceId } from '../../../shared/model/ids.ts'
import type { InventoryEntry } from '../../state/agent-state.ts'
import { namespaceKey } from '../snapshot/situation.ts'
import { namespaceContext, type WantedContext, wantedNamespace } from '../snapshot/wanted.ts'

interface Leaving {
  id: ServiceId
  row: ServiceRow
  clusterId: string
  inventory: ReadonlyMap<string, InventoryEntry>
  /** Whether another service has an object in the namespace. */
  hasOthersIn(namespace: string): boolean
}

const FACT = 'namespace/stays'

/** NS2: something is let go in the namespace because it is to be kept (IV4): it would be deleted with the namespace. The fact outlives a restart; null: there is no such step. */
export function keptFacts(row: ServiceRow, steps: ReadonlyArray<{ kind: string; ref: ObjectRef }>): ReadonlyMap<string, unknown> | null {
  const isInside = ({ kind, ref }: { kind: string; ref: ObjectRef }) => kind === 'orphan' && ref.namespace === row.namespace
  if (row.namespace === undefined || row.removal?.policy === 'orphan' || !steps.some(isInside)) return null
  return new Map([[FACT, { namespace: row.namespace }]])
}

export const recallKept = (facts: ReadonlyMap<string, unknown>): boolean => facts.has(FACT)

/** NS2: the key of the namespace that is deleted with its service, last of all. Only the very one that we made, by its document; and not while another service has
 *  anything in it, which would be deleted with it. */
export function namespaceThatGoes({ id, row, clusterId, inventory, hasOthersIn }: Leaving): string | null {
  const { namespace, sync, removal } = row
  if (removal === undefined || !deletes(removal) || sync.deleteNamespace !== true || namespace === undefined) return null
  const key = namespaceKey(namespace)
  const context: WantedContext = { ...namespaceContext(row), clusterId, service: id, find: () => ({ kind: 'stale' }) }
  if (inventory.get(key)?.appliedDoc !== wantedNamespace(namespace, context).sent) return null
  return hasOthersIn(namespace) ? null : key
}
