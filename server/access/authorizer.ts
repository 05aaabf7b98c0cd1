// The one place that decides what a caller may do: by the role of its token, and by the bindings of its name, address and groups.
import { BUILT_IN_ROLES, builtInOf } from '../../shared/model/access.ts'
import { type Principal, subjectKeys } from './principal.ts'
import { type Ask, type Grant, grantFor, type Scope, scopeOf } from './rights.ts'

export interface Authorizer {
  allows(principal: Principal, ask: Ask): boolean
  /** The grant that allows it; null: none does. */
  grantFor(principal: Principal, ask: Ask): Grant | null
  /** Where the caller has the right, for lists. */
  scope(principal: Principal, verb: Ask['verb'], kind: Ask['kind']): Scope
  grantsOf(principal: Principal): readonly Grant[]
}

/** Grants by subject key. */
export type BindingIndex = ReadonlyMap<string, readonly Grant[]>

export function createAuthorizer(): Authorizer {
  const bindings: BindingIndex = new Map()
  const compiled = new WeakMap<Principal, { of: BindingIndex; grants: readonly Grant[] }>()
  const grantsOf = (principal: Principal): readonly Grant[] => {
    const held = compiled.get(principal)
    if (held?.of === bindings) return held.grants
    const grants = compile(principal, bindings)
    compiled.set(principal, { of: bindings, grants })
    return grants
  }
  return {
    allows: (principal, ask) => grantFor(grantsOf(principal), ask) !== null,
    grantFor: (principal, ask) => grantFor(grantsOf(principal), ask),
    scope: (principal, verb, kind) => scopeOf(grantsOf(principal), verb, kind),
    grantsOf,
  }
}

function compile(principal: Principal, bindings: BindingIndex): Grant[] {
  const role = principal.kind === 'token' && principal.role !== null ? builtInOf(principal.role) : null
  const own = role === null ? [] : BUILT_IN_ROLES[role].rules.map((rule): Grant => ({ rule, by: { role, binding: null }, ...EVERYWHERE }))
  const grants = [...own, ...subjectKeys(principal).flatMap((key) => bindings.get(key) ?? [])]
  const { projects: limit } = principal
  if (limit === null) return grants
  return grants.flatMap((grant) => {
    const projects = grant.projects === null ? limit : grant.projects.filter((project) => limit.includes(project))
    return projects.length === 0 ? [] : [{ ...grant, projects }]
  })
}

const EVERYWHERE = { projects: null, services: null, clusters: null }
