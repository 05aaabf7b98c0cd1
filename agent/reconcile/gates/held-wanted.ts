// What was applied, as if a revision named it still: it is in force while the newer one cannot be read, or waits.
import { APPLY_PLAINLY } from '../../../shared/kube/apply-options.ts'
import { refKey } from '../../../shared/kube/object.ts'
import { applyStage } from '../../../shared/kube/order.ts'
import { isHookDocument } from '../../../shared/kube/waves.ts'
import type { InventoryEntry } from '../../state/agent-state.ts'
import { heldLeaveFacts } from '../fields/ignore.ts'
import { optionsOf, type Wanted } from '../wanted.ts'

/** Null: it was never applied, or is a hook, which is not put back. */
export function heldWanted({ ref, apiVersion, appliedDoc }: InventoryEntry): Wanted | null {
  if (appliedDoc === null || isHookDocument(appliedDoc)) return null
  const leave = heldLeaveFacts(appliedDoc, ref)
  const wanted = { key: refKey(ref), ref, apiVersion, stage: applyStage(ref), sent: appliedDoc, onlyIfAbsent: false }
  const options = optionsOf(appliedDoc)
  const held = options === APPLY_PLAINLY ? wanted : { ...wanted, options }
  return leave === null ? held : { ...held, leave }
}
