// Built-in roles as resources that are read, and what must not be deleted of roles and bindings.
import { BUILT_IN_ROLE_NAMES, BUILT_IN_ROLES, isBuiltIn, roleBindingSpecSchema } from '../../shared/model/access.ts'
import { API_VERSION, FLEET } from '../../shared/model/resources.ts'
import type { RoleView } from '../../shared/model/views.ts'
import type { ResourceKey } from '../fleet/records.ts'
import type { Store } from '../store/store.ts'
import type { AdminDeps } from './deps.ts'

const FLEET_ADMIN = 'fleet-admin'
const PAGE_ROWS = 500

export function builtInRole(name: string): RoleView | null {
  if (!isBuiltIn(name)) return null
  const { description, rules } = BUILT_IN_ROLES[name]
  return {
    apiVersion: API_VERSION,
    kind: 'Role',
    metadata: { name, labels: {}, uid: `built-in-${name}`, generation: 1, version: 0, createdMs: 0, updatedMs: 0 },
    spec: { description, rules: rules.map(({ verbs, kinds }) => ({ verbs: [...verbs], kinds: [...kinds] })) },
    status: { builtIn: true },
  }
}

/** The built-in ones come first, on the first page; they have no labels. */
export function withBuiltInRoles<T>(
  query: { labelSelector?: string | undefined; continue?: string | undefined },
  page: { items: T[]; continue: string | null },
): { items: Array<T | RoleView>; continue: string | null } {
  const isFirst = query.labelSelector === undefined && query.continue === undefined
  return isFirst ? { ...page, items: [...BUILT_IN_ROLE_NAMES.flatMap((name) => builtInRole(name) ?? []), ...page.items] } : page
}

/** Bindings that name a role, as text. */
export async function bindingsOfRole(store: Pick<Store, 'listResources'>, role: string): Promise<string[]> {
  const users: string[] = []
  for await (const { project, name, spec } of bindings(store))
    if (roleBindingSpecSchema.parse(JSON.parse(spec)).role === role)
      users.push(`role binding ${name}${project === FLEET ? '' : ` in project ${project}`}`)
  return users
}

/** AZ9: whether a binding is the last way in of a fleet admin. */
export async function isLastAdminBinding({ store, clock }: Pick<AdminDeps, 'store' | 'clock'>, key: ResourceKey): Promise<boolean> {
  const held = await store.getResource(key)
  if (held === null || !givesFleetAdmin(held)) return false
  return (await store.countAdminTokens(clock.nowMs())) === 0 && (await adminBindings(store)) === 1
}

/** AZ9: whether a token with that id is the last way in of a fleet admin. */
export async function isLastAdmin({ store, clock }: Pick<AdminDeps, 'store' | 'clock'>, id: string): Promise<boolean> {
  const nowMs = clock.nowMs()
  const tokens = await store.listApiTokens()
  // A token in the place of another one, not used yet, ends with that.
  const isAdmin = ({ role, projects, expiresMs, replaces }: (typeof tokens)[number]) =>
    replaces === null && projects === null && (role === 'admin' || role === FLEET_ADMIN) && (expiresMs === null || expiresMs > nowMs)
  const admins = tokens.filter(isAdmin)
  return admins.length === 1 && admins[0]?.id === id && (await adminBindings(store)) === 0
}

/** A token's name gives nothing while no token has it: only people and groups are a way in. */
export function givesFleetAdmin({ project, spec }: { project: string; spec: string }): boolean {
  const { role, projects = [], subjects, clusters, services } = roleBindingSpecSchema.parse(JSON.parse(spec))
  const isWhole = project === FLEET && projects.includes('*') && clusters === undefined && services === undefined
  return role === FLEET_ADMIN && isWhole && subjects.some(({ token }) => token === undefined)
}

async function adminBindings(store: Pick<Store, 'listResources'>): Promise<number> {
  let count = 0
  for await (const binding of bindings(store)) if (givesFleetAdmin(binding)) count += 1
  return count
}

async function* bindings(store: Pick<Store, 'listResources'>) {
  for (let after: string | undefined; ; ) {
    const page = await store.listResources('RoleBinding', { limit: PAGE_ROWS, ...(after === undefined ? {} : { after }) })
    yield* page.items
    if (page.next === null) return
    after = page.next
  }
}
