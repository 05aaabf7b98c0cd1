// Rights that a write needs beyond the verb `write`: those that its content asks for. Decided before anything is
// written.

import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { AccessRule } from '../../shared/model/access.ts'
import type { AccessKind } from '../../shared/model/access-words.ts'
import { dependencyKeys } from '../../shared/model/dependencies.ts'
import { type Applicable, placeOf, projectOf } from '../../shared/model/resources.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { parseServiceKey, type ServiceId } from '../../shared/runtime/ids.ts'
import { type Authorizer, placeOfBinding } from '../access/authorizer.ts'
import { isSecretMark, shownConfig } from '../access/config-secrets.ts'
import type { Principal } from '../access/principal.ts'
import type { StoredResource } from '../fleet/records.ts'
import { type Ask, missingToGrant, type Place, serviceInScope, withoutClusters } from '../fleet/rights.ts'
import { configProject, configsOf } from '../ingest/config-users.ts'
import { type Lack, missingText } from './auth.ts'
import { askOfKey, keyOf } from './write-resource.ts'

/** Rights that the caller lacks to write this. `rulesOf`: of roles, those that the same request writes among them. */
export function missingRights(
  authorizer: Authorizer,
  by: Principal,
  resource: Applicable,
  held: StoredResource | null,
  rulesOf: (role: string) => readonly AccessRule[] | null = authorizer.rulesOf,
): Lack[] {
  const { asks, path } = asksOf(resource, held)
  const missing = asks.filter((ask) => !authorizer.allows(by, ask)).map((ask) => ({ path, message: missingText(by, ask), deed: ask }))
  const deed = { verb: 'write', ...askOfKey(keyOf(resource)) } as const
  const more = escalations(authorizer, by, resource, rulesOf).map((problem) => ({ ...problem, deed: { ...deed, detail: problem.message } }))
  return [...missing, ...more]
}

function asksOf(resource: Applicable, held: StoredResource | null): { asks: Ask[]; path: string } {
  const project = projectOf(resource)
  const { name } = resource.metadata
  const ofProject = (verb: Ask['verb'], kind: AccessKind, other: string): Ask => ({ verb, kind, project, name: other })
  switch (resource.kind) {
    case 'Cluster': {
      const relabels = held === null || canonicalJson(held.labels) !== canonicalJson(resource.metadata.labels)
      return { asks: relabels ? [{ verb: 'cluster:label', kind: 'Cluster', name }] : [], path: 'metadata.labels' }
    }
    case 'Config': {
      const { secrets, hosts, valueFrom = [] } = resource.spec
      const before = held === null ? null : shownConfig(held.spec)
      const rebinds = hosts !== undefined && canonicalJson([...hosts].sort()) !== canonicalJson(before?.hosts ?? null)
      const redirects = canonicalJson(valueFrom) !== canonicalJson(before?.valueFrom ?? [])
      const sets = rebinds || redirects || !Object.values(secrets).every(isSecretMark)
      const credentials = [...new Set(valueFrom.flatMap(({ vault }) => (vault === undefined ? [] : [vault.secretRef])))]
      const uses = credentials.map((config) => ofProject('config:use', 'Config', config))
      return { asks: [...(sets ? [ofProject('secret:write', 'Config', name)] : []), ...uses], path: 'spec.secrets' }
    }
    case 'Repository': {
      const config = placeOf(resource.spec).spec.auth?.secretRef
      return { asks: config === undefined ? [] : [ofProject('config:use', 'Config', config)], path: 'spec' }
    }
    case 'NotificationSink': {
      const config = resource.spec.auth?.secretRef
      if (config === undefined) return { asks: [], path: '' }
      return { asks: [{ verb: 'config:use', kind: 'Config', project: configProject(project), name: config }], path: 'spec.auth' }
    }
    case 'Service': {
      const configs = [...configsOf(resource.spec)].map((config) => ofProject('config:use', 'Config', config))
      const others = dependencyKeys(project, resource.spec.dependsOn).map(parseServiceKey)
      // A caller who may read all services of its own project learns nothing from one more name.
      const reads = others.map(({ project: of, service }): Ask => ({ verb: 'read', kind: 'Service', project: of, name: service }))
      return { asks: [...configs, ...reads], path: 'spec' }
    }
    default:
      return { asks: [], path: '' }
  }
}

/** AZ6: a caller can only grant rights that it has in all of the place. */
function escalations(
  authorizer: Authorizer,
  by: Principal,
  resource: Applicable,
  rulesOf: (role: string) => readonly AccessRule[] | null,
): Problem[] {
  if (resource.kind === 'Role') {
    const everywhere = { projects: null, services: null, clusters: null }
    return resource.spec.rules.flatMap((rule, index) => escalation(authorizer, by, [rule], everywhere, `spec.rules[${index}]`))
  }
  if (resource.kind !== 'RoleBinding') return []
  return escalation(authorizer, by, rulesOf(resource.spec.role) ?? [], placeOfBinding(projectOf(resource), resource.spec), 'spec.role')
}

export function escalation(authorizer: Authorizer, by: Principal, rules: readonly AccessRule[], place: Place, path: string): Problem[] {
  for (const rule of rules) {
    const missing = missingToGrant(authorizer.grantsOf(by), rule, place)
    if (missing === null) continue
    const where = place.projects === null ? 'in the whole fleet' : `in all of ${place.projects.join(', ')}`
    const message = `${by.kind} ${by.name} cannot give a right that it does not have: ${missing.verb} ${missing.kind} ${where}`
    return [{ path, message }]
  }
  return []
}

/** AZ4: services that a message about others may name, by key. */
export const mayReadService =
  (authorizer: Authorizer, by: Principal) =>
  (key: string): boolean => {
    const { project, service } = parseServiceKey(key)
    return authorizer.allows(by, { verb: 'read', kind: 'Service', project, name: service })
  }

/** AZ4: services that an answer may name in every cluster. */
export function mayNameService(authorizer: Authorizer, by: Principal): (id: ServiceId) => boolean {
  const scope = withoutClusters(authorizer.scope(by, 'read', 'Service'))
  return (id) => serviceInScope(scope, id)
}

/** AZ4: projects that an answer may name. */
export const mayNameProject =
  (authorizer: Authorizer, by: Principal): ((project: string) => boolean) =>
  (project) =>
    authorizer.allows(by, { verb: 'read', kind: 'Project', project, name: project })
