// What a status says besides: which fields an autoscaler has, and what others added. Names and paths, never a value.
import type { K8sObject } from '../../shared/kube/object.ts'
import { additionsText } from './additions.ts'
import type { Autoscaler } from './autoscalers.ts'
import type { OtherFields } from './other-fields.ts'

export interface LeftFacts {
  /** The document in force; null: nothing was applied. */
  applied: string | null
  autoscalers: readonly Autoscaler[]
  /** Null: additions are not asked for. */
  additions: { others: readonly OtherFields[] | null } | null
}

/** DR10, DR11. */
export function leftText({ applied, autoscalers, additions }: LeftFacts): string {
  if (applied === null || (autoscalers.length === 0 && additions === null)) return ''
  const said = autoscalers.flatMap(({ part, name }) => (isYielded(part, applied) ? [`${part} are left to ${name}`] : []))
  const added = additions === null ? '' : additionsText(applied, additions.others)
  return [...said, ...(added === '' ? [] : [added])].join('; ')
}

function isYielded(part: Autoscaler['part'], applied: string): boolean {
  if (part === 'resources') return true
  const spec = (JSON.parse(applied) as K8sObject)['spec']
  return spec === null || typeof spec !== 'object' || !Object.hasOwn(spec, 'replicas')
}
