// While a revision waits as a whole, the one before is in force: what the new one drops is still the service's, and is
// put back to what was applied.

import { planApply } from '../plan/plan.ts'
import { planView } from '../plan/turn-view.ts'
import type { Reports, Requests, Services, Site, Storage, Turns } from '../ports.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import { heldWanted, type Wanted } from '../snapshot/wanted.ts'
import { absorb, carryOut, isInterrupted } from './rounds.ts'

/** DE3. `leaving`: of the inventory, named by no row; `isOthers`: another service wants it, and gets it. What is left
 *  of them to prune planning. */
export async function healLeaving(
  model: ServiceModel,
  deps: Site & Requests & Storage & Services & Turns & Reports,
  leaving: readonly string[],
  isOthers: (key: string) => boolean,
): Promise<string[]> {
  const wanted = new Map<string, Wanted>()
  for (const key of leaving) {
    const entry = model.inventory.get(key)
    const held = entry === undefined || isOthers(key) ? null : heldWanted(entry)
    if (held !== null) wanted.set(key, held)
  }
  if (wanted.size === 0) return [...leaving]
  for (let keys = [...wanted.keys()]; keys.length > 0 && !isInterrupted(model, deps); ) {
    const plan = planApply({ ...planView(model, deps), wanted }, keys)
    absorb(model, deps, plan.problems)
    model.objects.contested(plan.contests, deps.clock.nowMs())
    await carryOut(model, deps, plan.steps)
    keys = plan.later
  }
  return leaving.filter((key) => !wanted.has(key))
}

/** Clears the failures of healing: they are no reason to keep objects that leave now. */
export function forgetHealing({ problems, objects }: ServiceModel, leaving: readonly string[]): void {
  for (const key of leaving) {
    const problem = problems.get(key)
    if (problem?.kind === 'failed' && problem.sent !== null) objects.setProblem(key, null)
  }
}
