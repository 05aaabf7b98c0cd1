// Health rules in CEL that could never be evaluated, found when a service or a HealthRule is written and not at night
// in a cluster.
import { checkServiceHealth, compileFleetRule } from '../../shared/adapters/cel.ts'
import type { Applicable } from '../../shared/model/resources.ts'
import type { Problem } from '../../shared/runtime/error.ts'

export async function healthProblems(resource: Applicable): Promise<Problem[]> {
  const problems: Problem[] = []
  if (resource.kind === 'HealthRule') {
    const compiled = await compileFleetRule(resource.metadata.name, resource.spec)
    return 'why' in compiled ? [{ path: `spec.${compiled.path}`, message: compiled.why }] : []
  }
  if (resource.kind !== 'Service') return problems
  for (const [index, rule] of (resource.spec.health ?? []).entries()) {
    const message = await checkServiceHealth(rule)
    if (message !== null) problems.push({ path: `spec.health[${index}]`, message })
  }
  return problems
}
