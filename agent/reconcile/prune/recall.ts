// What a removal order is carried out on. After a lost disk the inventory holds only what came since, and only the cluster can tell what was before.
// Nothing may be called removed on the word of such an inventory, so the marks on live objects are looked for once for each order, in every kind.
import { SERVICE_LABEL, serviceLabel } from '../../../shared/kube/marks.ts'
import { type K8sObject, type ObjectRef, refKey, refOf } from '../../../shared/kube/object.ts'
import { backoffMs } from '../../../shared/runtime/backoff.ts'
import type { ApiFailure } from '../../cluster/cluster.ts'
import { listOnce } from '../../cluster/list-once.ts'
import { isOurs } from '../plan.ts'
import { RETRY_BACKOFF } from '../revision.ts'
import type { ServiceModel } from '../service-model.ts'
import type { TurnDeps } from '../turn-deps.ts'
import { ownerOf } from '../watch/live-object.ts'

/** Kinds that are listed at the same time. */
const LISTS_MAX = 4
/** What an agent that may not see a kind cannot have applied, and could not delete. */
const NOT_OURS: ReadonlySet<ApiFailure['kind']> = new Set(['forbidden', 'not_found', 'invalid'])

interface Found {
  ref: ObjectRef
  apiVersion: string
  uid: string
}

/** IV6: true when there is nothing (more) to look for. What was found is in the inventory then, all of it or nothing. */
export async function recallInventory(model: ServiceModel, deps: TurnDeps): Promise<boolean> {
  const order = model.reading.kind === 'complete' ? model.row?.removal : undefined
  if (order === undefined || model.recalledOrderMs === order.atMs) return true
  const found: Found[] = []
  const failure = await findMarked(model, deps, found)
  if (deps.isHalted()) return false
  if (failure !== null) {
    const retryInMs = backoffMs(model.recallAttempts, RETRY_BACKOFF, deps.random, failure.retryAfterMs)
    model.recallAttempts += 1
    model.pruneWhy = `before anything is removed, the objects of the service are looked for in every kind: ${failure.message}; it is tried again`
    deps.wakeAt(model.key, deps.clock.nowMs() + retryInMs)
    return false
  }
  deps.log.info('looked for the objects of a service that is to be removed', { service: model.key, found: found.length })
  const taken = new Set(deps.state.widenInventory(model.id, found).map(refKey))
  for (const { ref, apiVersion, uid } of found) {
    const key = refKey(ref)
    if (taken.has(key) || model.inventory.has(key)) continue
    model.inventory.set(key, { ref, apiVersion, uid, appliedDoc: null, ownedHash: null, digest: null })
    deps.owners.set(key, model.id)
    model.mark(key)
  }
  model.recalledOrderMs = order.atMs
  model.recallAttempts = 0
  model.narrow = true
  return true
}

/** Null: every kind was looked at. Of several failures any one. */
async function findMarked(model: ServiceModel, deps: TurnDeps, found: Found[]): Promise<ApiFailure | null> {
  const { cluster, kinds, log, signal } = deps
  const { project, service } = model.id
  const labelSelector = `${SERVICE_LABEL}=${serviceLabel(project, service)}`
  const open = kinds.all().filter(({ verbs }) => ['list', 'watch', 'patch', 'delete'].every((verb) => verbs.includes(verb)))
  const own = { id: model.id, clusterId: deps.clusterId }
  let failed: ApiFailure | null = null
  const take = (object: K8sObject, isThere: boolean) => {
    // Also what is being deleted: its finalizers may need what would go with it, and nothing is called removed that is there.
    if (isThere && isOurs(own, { owner: ownerOf(object) }))
      found.push({ ref: refOf(object), apiVersion: object.apiVersion, uid: object.metadata.uid ?? '' })
  }
  const worker = async () => {
    for (let resource = open.pop(); resource !== undefined && failed === null && !deps.isHalted(); resource = open.pop()) {
      const failure = await listOnce(cluster, resource, { labelSelector, signal }, take)
      if (failure === null) continue
      if (NOT_OURS.has(failure.kind)) log.info('kind passed over', { kind: resource.kind, group: resource.group, why: failure.message })
      else failed = failure
    }
  }
  await Promise.all(Array.from({ length: LISTS_MAX }, worker))
  return failed
}
