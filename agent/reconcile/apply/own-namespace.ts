// The namespace that `sync.createNamespace` made, and whether it goes with its service.
import { type ObjectRef, parseRefKey } from '../../../shared/kube/object.ts'
import type { ServiceRow } from '../../../shared/model/desired.ts'
import { type ServiceId, serviceKey } from '../../../shared/model/ids.ts'
import type { AgentState, InventoryEntry } from '../../state/agent-state.ts'
import { namespaceKey } from '../situation.ts'
import { type WantedContext, wantedNamespace } from '../wanted.ts'

/** NS1, NS3: what the row says about namespaces, for reading its objects. */
export const namespaceContext = ({
  namespace,
  sync,
}: ServiceRow): Pick<WantedContext, 'namespace' | 'namespaceMarks' | 'enforceNamespace'> => ({
  namespace,
  namespaceMarks: { labels: sync.namespaceLabels, annotations: sync.namespaceAnnotations },
  enforceNamespace: sync.enforceNamespace,
})

interface Leaving {
  id: ServiceId
  row: ServiceRow
  clusterId: string
  inventory: ReadonlyMap<string, InventoryEntry>
  /** Keyed by refKey. */
  owners: ReadonlyMap<string, ServiceId>
}

const FACT = 'namespace/stays'

/** NS2: something was let go in the namespace because it is to be kept (IV4): it would be deleted with the namespace. Outlives a restart. */
export function noteKept(
  id: ServiceId,
  row: ServiceRow,
  state: AgentState,
  steps: ReadonlyArray<{ kind: string; ref: ObjectRef }>,
): boolean {
  const isInside = ({ kind, ref }: { kind: string; ref: ObjectRef }) => kind === 'orphan' && ref.namespace === row.namespace
  if (row.namespace === undefined || row.removal?.policy === 'orphan' || !steps.some(isInside)) return false
  if (!state.facts(id, FACT).has(FACT)) state.setFacts(id, new Map([[FACT, { namespace: row.namespace }]]))
  return true
}

export const keepsNamespace = (id: ServiceId, state: AgentState): boolean => state.facts(id, FACT).has(FACT)

/** NS2: the key of the namespace that is deleted with its service, last of all. Only the very one that we made, by its document; and not while another service has
 *  anything in it, which would be deleted with it. */
export function namespaceThatGoes({ id, row, clusterId, inventory, owners }: Leaving): string | null {
  const { namespace, sync, removal } = row
  if (removal?.policy !== 'prune' || sync.deleteNamespace !== true || namespace === undefined) return null
  const key = namespaceKey(namespace)
  const context: WantedContext = { ...namespaceContext(row), clusterId, service: id, find: () => ({ kind: 'stale' }) }
  if (inventory.get(key)?.appliedDoc !== wantedNamespace(namespace, context).sent) return null
  const own = serviceKey(id)
  for (const [owned, owner] of owners) if (parseRefKey(owned)?.namespace === namespace && serviceKey(owner) !== own) return null
  return key
}
