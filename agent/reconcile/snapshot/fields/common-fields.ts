// The common part of a takeover and of reading others' fields: the entry of an object that had none.
import { type FieldsNode, isLeaf } from './owned-fields.ts'

export interface Split {
  taken: FieldsNode | null
  left: FieldsNode | null
}

export const isNode = (value: unknown): value is FieldsNode => value !== null && typeof value === 'object' && !Array.isArray(value)

/** The API server's name for the owner of all fields of an object without managedFields at its first apply. */
export const BEFORE_FIRST_APPLY = 'before-first-apply'

/** The part of `before-first-apply`, which has all fields of an object without managedFields, that we own too.
 *  Fields of the API server and controllers (the volume of a claim, the selector of a Job, finalizers) were in no
 *  manifest. An item of a list that is ours is taken whole: the rest would be half an item. */
export function splitCommon(theirs: FieldsNode, own: FieldsNode): Split {
  const taken: FieldsNode = {}
  const left: FieldsNode = {}
  for (const [key, node] of Object.entries(theirs)) {
    const ours = own[key]
    if (!isNode(node)) continue
    const isWhole = isNode(ours) && (!key.startsWith('f:') || (isLeaf(node) && isLeaf(ours)))
    const split =
      isWhole || !isNode(ours) || isLeaf(node) || isLeaf(ours)
        ? { taken: isWhole ? node : null, left: isWhole ? null : node }
        : splitCommon(node, ours)
    if (split.taken !== null) taken[key] = split.taken
    if (split.left !== null) left[key] = split.left
  }
  return { taken: Object.keys(taken).some((key) => key !== '.') ? taken : null, left: Object.keys(left).length > 0 ? left : null }
}
