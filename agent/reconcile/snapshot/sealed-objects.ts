// Objects that came sealed although they are no Secrets, such as a ConfigMap with a password of a Config in it (SL1).
// Answers to questions show none of their contents (AK10). Remembered by service until the applied document came in
// clear: an older revision may stay in force after the rows of a newer one arrived. Pure.
import { keyInNamespace, type ObjectRef, refKey } from '../../../shared/kube/object.ts'
import { parseRowId } from '../../../shared/model/desired.ts'
import { isSealed } from '../../../shared/model/sealed-object.ts'
import { isSecretKind } from '../../cluster/redact/shown-fields.ts'
import type { ServiceModel } from './service-model.ts'

export const SEALED_FACTS = 'sealed/'

/** Keys of sealed rows. A row may lack the namespace that its object gets from the service. */
export function sealedKeys(rows: Iterable<readonly [rowId: string, doc: string]>): Set<string> {
  const keys = new Set<string>()
  for (const [rowId, doc] of rows) {
    const row = isSealed(doc) ? parseRowId(rowId) : null
    if (row?.kind === 'object' && !isSecretKind(row.ref.kind)) keys.add(refKey(row.ref))
  }
  return keys
}

/** Names that are generated (HK9) differ in their end: that of a row, and that of each run of its hook. */
const GENERATED = /[0-9a-f]{10}$/

export function isSealedKey(keys: Iterable<string>, ref: ObjectRef): boolean {
  const names = [refKey(ref), refKey({ ...ref, namespace: '' })]
  for (const key of keys) {
    if (names.includes(key)) return true
    if (GENERATED.test(key) && names.some((name) => GENERATED.test(name) && key.startsWith(name.replace(GENERATED, '')))) return true
  }
  return false
}

/** The changes of a service's facts once its revision was read. */
export function sealedFacts(
  { row, wanted, inventory }: Pick<ServiceModel, 'row' | 'wanted' | 'inventory'>,
  rows: ReadonlyMap<string, string>,
  facts: ReadonlyMap<string, unknown>,
): Map<string, unknown> {
  const now = sealedKeys(rows)
  const news = new Map<string, unknown>([...now].filter((key) => !facts.has(SEALED_FACTS + key)).map((key) => [SEALED_FACTS + key, true]))
  for (const fact of facts.keys()) {
    const key = fact.slice(SEALED_FACTS.length)
    if (!fact.startsWith(SEALED_FACTS) || now.has(key)) continue
    const placed = row?.namespace === undefined || inventory.has(key) ? key : keyInNamespace(key, row.namespace)
    const entry = inventory.get(placed)
    if (entry === undefined || entry.appliedDoc === wanted.get(placed)?.sent) news.set(fact, null)
  }
  return news
}
