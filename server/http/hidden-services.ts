// AZ4: messages of agents and of the server name other services, such as the one that manages an object already. An
// answer has these names only for callers who may read the service. Every route is covered, so that a new one cannot
// forget it.
import { hideServices } from '../../shared/runtime/ids.ts'
import { isEverywhere, type Scope, serviceInScope } from '../fleet/rights.ts'

/** Answers that hold what people wrote, or that a reader verifies byte by byte. Nothing in them comes from an agent. */
const VERBATIM = /\/(?:audit(?:\/.*)?|render|variants|diff|configs(?:\/.*)?)$/

/** `route`: its pattern. `scope`: where the caller may read services. */
export function withoutHiddenServices(answer: unknown, route: string, scope: () => Scope): unknown {
  if (typeof answer !== 'object' || answer === null || answer instanceof Response || VERBATIM.test(route)) return answer
  const services = scope()
  return isEverywhere(services) ? answer : within(answer, (text) => hideServices(text, (id) => serviceInScope(services, id)))
}

/** The same value where nothing changes. `spec` is a document of its author, who gets it back as it was written. */
function within(value: unknown, hide: (text: string) => string): unknown {
  if (typeof value === 'string') return hide(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => within(item, hide))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  const entries = Object.entries(value).map(([key, held]) => [key, key === 'spec' ? held : within(held, hide)] as const)
  return entries.some(([key, now]) => now !== (value as Record<string, unknown>)[key]) ? Object.fromEntries(entries) : value
}
