// The one place that decides what a caller may do: by the role of its token, and by the bindings of its name, address
// and groups.
import {
  type AccessRule,
  ALL_PROJECTS,
  BUILT_IN_ROLES,
  builtInOf,
  isBuiltIn,
  type RoleBindingSpec,
  roleBindingSpecSchema,
  roleSpecSchema,
  type Subject,
} from '../../shared/model/access.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { type Ask, type Grant, grantFor, isGrantedInSomeCluster, type Place, type Scope, scopeOf } from '../fleet/rights.ts'
import type { Store } from '../store/store.ts'
import { type Principal, subjectKeys } from './principal.ts'

export interface Authorizer {
  allows(principal: Principal, ask: Ask): boolean
  /** The same for an act whose clusters are not known yet: each of them is asked about later. */
  allowsInSomeCluster(principal: Principal, ask: Ask): boolean
  /** The grant that allows it. Null means none does. */
  grantFor(principal: Principal, ask: Ask): Grant | null
  /** Where the caller has the right, for lists. */
  scope(principal: Principal, verb: Ask['verb'], kind: Ask['kind']): Scope
  grantsOf(principal: Principal): readonly Grant[]
  /** Grants of the bindings to these subject keys, such as `user:alice@example.com`. */
  grantsOfKeys(keys: readonly string[]): readonly Grant[]
  /** Subject keys with what bindings give to them. */
  subjects(): ReadonlyMap<string, readonly Grant[]>
  /** Rules of a role. Null means that there is none of that name. */
  rulesOf(role: string): readonly AccessRule[] | null
  /** Resolves when all writes of roles and bindings that were told are known. Throws while they cannot be read: nothing
   *  is decided then. */
  loaded(): Promise<void>
  /** AZ8: a role or binding was written, or perhaps was: they are read again. */
  changed(): void
}

interface Index {
  roles: ReadonlyMap<string, readonly AccessRule[]>
  bySubject: ReadonlyMap<string, readonly Grant[]>
}

const EMPTY: Index = { roles: new Map(), bySubject: new Map() }
const PAGE_ROWS = 500
/** Role that a token has of itself, in bindings that name no other place. */
const EVERYWHERE: Place = { projects: null, services: null, clusters: null }

export function createAuthorizer(store: Pick<Store, 'listResources'>): Authorizer {
  let index = EMPTY
  /** Grows with each write of a role or binding. */
  let written = 1
  /** Writes that the index knows. */
  let known = 0
  let reading: Promise<void> | null = null
  const read = async () => {
    // A write that comes while the rows are read may be missing in them.
    for (let upTo = 0; upTo !== written; known = upTo) {
      upTo = written
      index = await readIndex(store)
    }
  }
  const loaded = (): Promise<void> => {
    if (known === written) return CURRENT
    reading ??= read().finally(() => {
      reading = null
    })
    return reading
  }
  const compiled = new WeakMap<Principal, { of: Index; grants: readonly Grant[] }>()
  const grantsOf = (principal: Principal): readonly Grant[] => {
    const held = compiled.get(principal)
    if (held?.of === index) return held.grants
    const grants = compile(principal, index)
    compiled.set(principal, { of: index, grants })
    return grants
  }
  return {
    allows: (principal, ask) => grantFor(grantsOf(principal), ask) !== null,
    allowsInSomeCluster: (principal, ask) => isGrantedInSomeCluster(grantsOf(principal), ask),
    grantFor: (principal, ask) => grantFor(grantsOf(principal), ask),
    scope: (principal, verb, kind) => scopeOf(grantsOf(principal), verb, kind),
    grantsOf,
    grantsOfKeys: (keys) => keys.flatMap((key) => index.bySubject.get(key) ?? []),
    subjects: () => index.bySubject,
    rulesOf: (role) => rulesIn(index.roles, role),
    loaded,
    changed() {
      written += 1
      // At once, for streams that are open. The next request reads again if this fails.
      loaded().catch(() => {})
    },
  }
}

const CURRENT = Promise.resolve()

const rulesIn = (roles: ReadonlyMap<string, readonly AccessRule[]>, role: string): readonly AccessRule[] | null =>
  isBuiltIn(role) ? BUILT_IN_ROLES[role].rules : (roles.get(role) ?? null)

async function readIndex(store: Pick<Store, 'listResources'>): Promise<Index> {
  const roles = new Map<string, readonly AccessRule[]>()
  for await (const { name, spec } of all(store, 'Role')) roles.set(name, roleSpecSchema.parse(JSON.parse(spec)).rules)
  const bySubject = new Map<string, Grant[]>()
  for await (const { project, name, spec } of all(store, 'RoleBinding')) {
    const binding = roleBindingSpecSchema.parse(JSON.parse(spec))
    const place = placeOfBinding(project, binding)
    const by = { role: binding.role, binding: { project, name } }
    const grants = (rulesIn(roles, binding.role) ?? []).map((rule): Grant => ({ rule, by, ...place }))
    for (const key of new Set(binding.subjects.map(subjectKey))) bySubject.set(key, [...(bySubject.get(key) ?? []), ...grants])
  }
  return { roles, bySubject }
}

async function* all(store: Pick<Store, 'listResources'>, kind: 'Role' | 'RoleBinding') {
  for (let after: string | undefined; ; ) {
    const page = await store.listResources(kind, { limit: PAGE_ROWS, ...(after === undefined ? {} : { after }) })
    yield* page.items
    if (page.next === null) return
    after = page.next
  }
}

/** Where a binding gives its role. `project`: that it belongs to. */
export function placeOfBinding(project: string, { projects, services, clusters }: RoleBindingSpec): Place {
  const named = project === FLEET ? (projects ?? []) : [project]
  return { projects: named.includes(ALL_PROJECTS) ? null : named, services: services ?? null, clusters: clusters ?? null }
}

export function subjectKey({ user, group, token }: Subject): string {
  if (user !== undefined) return `user:${user.includes('@') && !user.includes(':') ? user.toLowerCase() : user}`
  return group !== undefined ? `group:${group}` : `token:${token}`
}

function compile(principal: Principal, { bySubject }: Index): Grant[] {
  const role = principal.kind === 'token' && principal.role !== null ? builtInOf(principal.role) : null
  const own = role === null ? [] : BUILT_IN_ROLES[role].rules.map((rule): Grant => ({ rule, by: { role, binding: null }, ...EVERYWHERE }))
  const grants = [...own, ...subjectKeys(principal).flatMap((key) => bySubject.get(key) ?? [])]
  const { projects: limit } = principal
  return limit === null ? grants : grants.flatMap((grant) => within(grant, limit))
}

/** The part of a grant that is in these projects. */
function within(grant: Grant, limit: readonly string[]): Grant[] {
  const projects = grant.projects === null ? limit : grant.projects.filter((project) => limit.includes(project))
  return projects.length === 0 ? [] : [{ ...grant, projects }]
}
