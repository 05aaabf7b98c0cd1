// What a removal order is carried out on. After a lost disk the inventory holds only what came since, and only the cluster can tell what was before.
// Nothing may be called removed on the word of such an inventory, so the marks on live objects are looked for before anything goes, in every kind.
import { backoffMs } from '../../../shared/runtime/backoff.ts'
import type { Requests, Services, Site, Storage, Turns } from '../ports.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import { takeIn } from './remember.ts'
import { RETRY_BACKOFF } from './revision.ts'

/** IV6: true when there is nothing (more) to look for. What was found is in the inventory then, all of it or nothing. */
export async function recallInventory(model: ServiceModel, deps: Site & Requests & Storage & Services & Turns): Promise<boolean> {
  const order = model.reading.kind === 'complete' ? model.row?.removal : undefined
  if (order === undefined || model.removal.isRecalled(order)) return true
  const { marked } = deps.evidence
  const failure = await marked.look(deps.isHalted)
  if (deps.isHalted()) return false
  if (failure !== null) {
    const retryInMs = backoffMs(model.removal.attempts, RETRY_BACKOFF, deps.random, failure.retryAfterMs)
    model.removal.lookedInVain()
    model.pruning.waits(`searching every kind for objects of the service before removing any: ${failure.message}; retrying`)
    deps.wakeAt(model.key, deps.clock.nowMs() + retryInMs)
    return false
  }
  const found = marked.of(model)
  deps.log.info('looked for the objects of a service that is to be removed', { service: model.key, found: found.length })
  for (const key of takeIn(model, deps, found)) model.agenda.mark(key)
  model.removal.recalled(order)
  model.expectNewObjects() // also what watches show of it
  return true
}
