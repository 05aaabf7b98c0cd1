// While a revision waits as a whole, the one before is in force: what the new one drops is still the service's, and is put back to what was applied.

import { noteContests } from '../fields/contest.ts'
import { planApply } from '../plan.ts'
import { absorb, carryOut, isInterrupted } from '../rounds.ts'
import type { ServiceModel } from '../service-model.ts'
import type { TurnDeps } from '../turn-deps.ts'
import { planView } from '../turn-view.ts'
import type { Wanted } from '../wanted.ts'
import { heldWanted } from './held-wanted.ts'

/** DE3. `leaving`: of the inventory, named by no row; `isOthers`: another service wants it, and gets it. What is left of them to prune planning. */
export async function healLeaving(
  model: ServiceModel,
  deps: TurnDeps,
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
    noteContests(model.contests, plan.contests, deps.clock.nowMs())
    await carryOut(model, deps, plan.steps)
    keys = plan.later
  }
  return leaving.filter((key) => !wanted.has(key))
}

/** What failed while it was put back is no reason to keep what goes now. */
export function forgetHealing({ problems }: ServiceModel, leaving: readonly string[]): void {
  for (const key of leaving) {
    const problem = problems.get(key)
    if (problem?.kind === 'failed' && problem.sent !== null) problems.delete(key)
  }
}
