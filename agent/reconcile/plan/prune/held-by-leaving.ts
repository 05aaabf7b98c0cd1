// A Service that needs a port or an address of another that is to go: neither can be first by itself, because the API
// server refuses the new one as long as the old one is there. Pure.
import type { K8sObject } from '../../../../shared/kube/object.ts'
import type { Problem } from '../../snapshot/situation.ts'

const PORT = /Invalid value: (\d+): provided port is already allocated/g
const ADDRESS = /failed to allocate IP ([0-9a-fA-F.:]+): provided IP is already allocated/g

interface ServiceSpec {
  clusterIP?: unknown
  clusterIPs?: unknown
  ports?: unknown
}

/** PR6: all reasons of its refusal belong to applied documents of leaving objects. */
export function isHeldByLeaving(problem: Problem, leaving: Iterable<string>): boolean {
  if (problem.kind !== 'failed' || problem.failure.kind !== 'taken') return false
  const { message } = problem.failure
  const taken = [...message.matchAll(PORT), ...message.matchAll(ADDRESS)].flatMap(([, value]) => value ?? [])
  if (taken.length === 0) return false
  const held = new Set([...leaving].flatMap(heldBy))
  return taken.every((value) => held.has(value))
}

function heldBy(doc: string): string[] {
  const { kind, spec } = JSON.parse(doc) as K8sObject & { spec?: ServiceSpec }
  if (kind !== 'Service' || spec === undefined) return []
  const ports = Array.isArray(spec.ports) ? spec.ports.flatMap((port: { nodePort?: unknown }) => port?.nodePort ?? []) : []
  const addresses = Array.isArray(spec.clusterIPs) ? spec.clusterIPs : []
  return [...ports, ...addresses, spec.clusterIP ?? []].flat().map(String)
}
