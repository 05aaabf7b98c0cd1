// Health rules of a service (CEL) that could never be told, found when the service is written and not at night in a cluster.
import { checkHealthRule } from '../../shared/adapters/cel.ts'
import type { Applicable } from '../../shared/model/resources.ts'
import type { Problem } from '../../shared/protocol/error.ts'

export async function healthProblems(resource: Applicable): Promise<Problem[]> {
  const problems: Problem[] = []
  if (resource.kind !== 'Service') return problems
  for (const [index, rule] of (resource.spec.health ?? []).entries()) {
    const message = await checkHealthRule(rule)
    if (message !== null) problems.push({ path: `spec.health[${index}]`, message })
  }
  return problems
}
