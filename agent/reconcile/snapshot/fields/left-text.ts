// The additional text of a status: the fields of an autoscaler, and the additions of others. Names and paths, never a
// value.

import { objectPart } from '../../../messages/object-messages.ts'
import type { Autoscaler } from '../watch/autoscalers.ts'
import { additionsText } from './additions.ts'
import { SCALED_PATHS, type Scaled } from './ignore.ts'
import type { OtherFields } from './other-fields.ts'
import { shapeDoc } from './shape.ts'

export interface LeftFacts {
  wanted: string
  /** The applied document. Null means that there is none. */
  applied: string | null
  autoscalers: readonly Autoscaler[]
  /** Null if additions are not asked for. */
  additions: { others: readonly OtherFields[] | null } | null
}

/** DR10, DR11: names the fields that are left to autoscalers and other owners. */
export function leftText({ wanted, applied, autoscalers, additions }: LeftFacts): string {
  if (applied === null || (autoscalers.length === 0 && additions === null)) return ''
  const said = autoscalers.flatMap(({ part, name }) =>
    isYielded(part, wanted, applied) ? [objectPart('fields_of_autoscaler', { part, name })] : [],
  )
  const added = additions === null ? '' : additionsText(applied, additions.others)
  return [...said, ...(added === '' ? [] : [added])].join('; ')
}

/** Named by Git, and not in the applied document. */
const isYielded = (part: Scaled, wanted: string, applied: string): boolean =>
  wanted !== applied && shapeDoc(wanted, { paths: SCALED_PATHS[part], managers: [] }, null, applied).left.length > 0
