// Health by a rule that a service's author wrote (`spec.health`): CEL over the members of the object, in the form of
// Flux's healthCheckExprs. What an expression means is the adapter's; here is what its answers mean.
import type { Health } from './health-object.ts'
import { degraded, HEALTHY, progressing } from './health-object.ts'
import type { K8sObject } from './object.ts'

export type CelAnswer = { kind: 'answer'; value: boolean } | { kind: 'error'; why: string }
export type CelTest = (members: Record<string, unknown>) => CelAnswer

export interface CompiledRule {
  group: string
  kind: string
  current: CelTest
  inProgress: CelTest | null
  failed: CelTest | null
}

/**
 * HE6: the first that is true, in the order failed, inProgress, current. Without one, and if one cannot be evaluated,
 * the object is Progressing.
 */
export function healthByRule({ failed, inProgress, current }: CompiledRule, object: K8sObject): Health {
  const members = membersOf(object)
  const why = saidBy(object)
  for (const [part, test] of [
    ['failed', failed],
    ['inProgress', inProgress],
    ['current', current],
  ] as const) {
    if (test === null) continue
    const answer = test(members)
    if (answer.kind === 'error') {
      return progressing(
        'HealthRuleError',
        `the health rule of the service cannot be evaluated (${part}: ${answer.why}); correct it if this persists`,
      )
    }
    if (!answer.value) continue
    if (part === 'current') return HEALTHY
    return part === 'failed'
      ? degraded('HealthRuleFailed', `"failed" of the service’s health rule is true${why}`)
      : progressing('HealthRuleInProgress', `"inProgress" of the service’s health rule is true${why}`)
  }
  return progressing('HealthRuleNotMet', `"current" of the service’s health rule is not true yet${why}`)
}

/** The controller’s own words, where it left any in a condition that is not True. */
export function saidBy(object: K8sObject): string {
  const status = object['status']
  const conditions = typeof status === 'object' && status !== null && 'conditions' in status ? status.conditions : null
  if (!Array.isArray(conditions)) return ''
  for (const condition of conditions as unknown[]) {
    if (typeof condition !== 'object' || condition === null || !('type' in condition) || condition.type !== 'Ready') continue
    if ('message' in condition && typeof condition.message === 'string' && condition.message !== '')
      return `; it says: ${condition.message}`
  }
  return ''
}

/** `spec` and `status` are there before a controller wrote any, so that `has(status.x)` can be asked. Whole numbers are
 *  CEL's ints, as they are for Kubernetes. */
export function membersOf(object: K8sObject): Record<string, unknown> {
  const { metadata, ...others } = object
  const { managedFields: _, ...named } = metadata
  return { spec: {}, status: {}, ...(celValue({ ...others, metadata: named }, 0) as Record<string, unknown>) }
}

/** No reader needs more depth than this, and a document of a thousand levels must not end the agent. */
const DEPTH_MAX = 40

function celValue(value: unknown, depth: number): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return typeof value === 'object' ? null : value
  if (Array.isArray(value)) return value.map((item) => celValue(item, depth + 1))
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, celValue(member, depth + 1)]))
}
