// The limits of a service's content and of the account that applies it: the rules of its Project, which the server
// checks and signs into the service's row, and those of a site's own policy. Pure, and the same for server and agent.
// An absent rule allows everything.
import { z } from 'zod'
import { type ObjectRef, refText } from '../kube/object.ts'
import { matchesSelector } from './labels.ts'
import { type AccountRule, accountRuleOf, accountRuleSchema, type KindsRule, kindsRuleSchema, type ProjectSpec } from './projects.ts'
import { matchesGlob } from './source-patterns.ts'

export interface Bounds {
  namespaces?: readonly string[] | undefined
  /** Allowed and denied namespaced kinds. */
  kinds?: KindsRule | undefined
  clusterScopedKinds?: readonly string[] | undefined
  serviceAccounts?: AccountRule | undefined
}

/** Bounds that allow nothing. */
const NOTHING: Bounds = { namespaces: [], clusterScopedKinds: [] }

/** PJ9: as they travel. What an agent cannot read, also a rule that it does not know, allows nothing. */
export const boundsSchema = z
  .strictObject({
    namespaces: z.array(z.string()).optional(),
    kinds: kindsRuleSchema.optional(),
    clusterScopedKinds: z.array(z.string()).optional(),
    serviceAccounts: accountRuleSchema.optional(),
  })
  .catch({ namespaces: [], clusterScopedKinds: [] })

/** PJ3: of a project in a cluster with these labels. Null means that its services do not go there. */
export function boundsIn(spec: ProjectSpec, labels: Readonly<Record<string, string>>): Bounds | null {
  const { destinations, kinds, clusterScopedKinds } = spec
  const serviceAccounts = accountRuleOf(spec)
  const meant = destinations.filter(({ clusters }) => matchesSelector(labels, clusters))
  if (meant.length === 0) return null
  return {
    namespaces: [...new Set(meant.flatMap(({ namespaces }) => namespaces))].sort(),
    ...(kinds === undefined ? {} : { kinds }),
    clusterScopedKinds,
    ...(serviceAccounts === undefined ? {} : { serviceAccounts }),
  }
}

/** Which rule refuses, by the name of its field, and why in words: `namespace kube-system is not allowed (allowed:
 *  web-*)`. */
export interface Refusal {
  rule: 'namespaces' | 'kinds' | 'clusterScopedKinds' | 'serviceAccounts'
  why: string
}

const SHOWN_MAX = 10
export const listText = (all: readonly string[]): string =>
  all.length === 0
    ? 'none'
    : all.length > SHOWN_MAX
      ? `${all.slice(0, SHOWN_MAX).join(', ')} and ${all.length - SHOWN_MAX} more`
      : all.join(', ')

export const allowsNamespace = ({ namespaces }: Bounds, namespace: string): boolean =>
  namespaces === undefined || namespaces.some((pattern) => matchesGlob(pattern, namespace))

/** `v1/Secret` of the core group. */
export const kindName = ({ group, kind }: Pick<ObjectRef, 'group' | 'kind'>): string => `${group === '' ? 'v1' : group}/${kind}`

/** `Secret` and `v1/Secret` are the same. A version of the core group is no part of a kind's name. */
export function coversKind(pattern: string, { group, kind }: Pick<ObjectRef, 'group' | 'kind'>): boolean {
  if (pattern === '*') return true
  const slash = pattern.indexOf('/')
  const [wantedGroup, wantedKind] = slash < 0 ? ['v1', pattern] : [pattern.slice(0, slash), pattern.slice(slash + 1)]
  const isGroup = wantedGroup === '*' || wantedGroup === (group === '' ? 'v1' : group)
  return isGroup && (wantedKind === '*' || wantedKind === kind)
}

const isNamespaceKind = ({ group, kind }: Pick<ObjectRef, 'group' | 'kind'>): boolean => group === '' && kind === 'Namespace'

/** PJ4: why an object may not be applied. Null means that it may. An empty namespace means a kind outside namespaces.
 */
export function refuseObject(bounds: Bounds, ref: ObjectRef): Refusal | null {
  const { kinds, clusterScopedKinds, namespaces = [] } = bounds
  if (ref.namespace === '') {
    if (clusterScopedKinds !== undefined && !clusterScopedKinds.some((name) => coversKind(name, ref)))
      return { rule: 'clusterScopedKinds', why: `${kindName(ref)} is not allowed (allowed: ${listText(clusterScopedKinds)})` }
    return isNamespaceKind(ref) ? refuseNamespace(bounds, ref.name) : null
  }
  const outside = refuseNamespace(bounds, ref.namespace)
  if (outside !== null) return outside
  if (kinds?.deny?.some((pattern) => coversKind(pattern, ref)) === true)
    return { rule: 'kinds', why: `${kindName(ref)} is denied (denied: ${listText(kinds.deny)})` }
  if (kinds?.allow !== undefined && !kinds.allow.some((pattern) => coversKind(pattern, ref)))
    return { rule: 'kinds', why: `${kindName(ref)} is not allowed (allowed: ${listText(kinds.allow)})` }
  return null

  function refuseNamespace(of: Bounds, name: string): Refusal | null {
    return allowsNamespace(of, name)
      ? null
      : { rule: 'namespaces', why: `namespace ${name} is not allowed (allowed: ${listText(namespaces)})` }
  }
}

/** PJ6: why the service may not give its namespace labels and annotations. Null means that it may. They decide what
 *  pods may do there, such as the pod security level. */
export function refuseNamespaceMarks(
  bounds: Bounds,
  sync: { namespaceLabels?: object | undefined; namespaceAnnotations?: object | undefined },
): Refusal | null {
  const { clusterScopedKinds } = bounds
  const isMarked = Object.keys({ ...sync.namespaceLabels, ...sync.namespaceAnnotations }).length > 0
  if (
    !isMarked ||
    clusterScopedKinds === undefined ||
    clusterScopedKinds.some((name) => coversKind(name, { group: '', kind: 'Namespace' }))
  )
    return null
  const why = `sync.namespaceLabels and sync.namespaceAnnotations need v1/Namespace (allowed: ${listText(clusterScopedKinds)})`
  return { rule: 'clusterScopedKinds', why }
}

/** PJ5: the account of a service that names none. Undefined means the agent's own. */
export const defaultAccount = ({ serviceAccounts }: Pick<Bounds, 'serviceAccounts'>): string | undefined =>
  typeof serviceAccounts === 'object' ? serviceAccounts.default : undefined

/** PJ5: why a service may not be applied as this account, after the default was put in. Null means it may. `namespace`:
 *  the service's. */
export function refuseAccount(bounds: Bounds, serviceAccount: string | undefined, namespace: string | undefined): Refusal | null {
  const { serviceAccounts: rule } = bounds
  if (rule === undefined && serviceAccount === undefined) return null
  if (serviceAccount === undefined) return { rule: 'serviceAccounts', why: 'sync.serviceAccount is required' }
  const slash = serviceAccount.indexOf('/')
  const of = slash < 0 ? namespace : serviceAccount.slice(0, slash)
  const full = of === undefined ? serviceAccount : `${of}/${serviceAccount.slice(slash + 1)}`
  const isDefault = defaultAccount(bounds) === serviceAccount
  // A default with a namespace is the words of the Project, which may name an account outside of its namespaces.
  if (isDefault && slash >= 0) return null
  if (of !== undefined && !allowsNamespace(bounds, of))
    return {
      rule: 'serviceAccounts',
      why: `ServiceAccount ${full} is in a namespace that is not allowed (allowed: ${listText(bounds.namespaces ?? [])})`,
    }
  if (rule === undefined || rule === 'required' || isDefault) return null
  const { allowed = [] } = rule
  const isAllowed = allowed.some((pattern) => matchesGlob(pattern, pattern.includes('/') ? full : full.slice(full.indexOf('/') + 1)))
  if (isAllowed) return null
  const all = [...(rule.default === undefined ? [] : [rule.default]), ...allowed]
  return { rule: 'serviceAccounts', why: `ServiceAccount ${full} is not allowed (allowed: ${listText(all)})` }
}

/** For people. `of`: whose rules these are, such as `project web`. */
export const refusalText = (of: string, { rule, why }: Refusal, ref?: ObjectRef): string =>
  `${ref === undefined ? '' : `${refText(ref)}: `}refused by ${of}, rule ${rule}: ${why}`

/** The row's bounds, where the server sent none that can be read. */
export const nothingAllowed = NOTHING
