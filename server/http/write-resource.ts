// One way to write a resource, for PUT and for apply.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { ApplyAnswer } from '../../shared/model/apply-views.ts'
import { type Applicable, clusterSpecSchema, projectOf } from '../../shared/model/resources.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import { andMore } from '../../shared/runtime/messages.ts'
import { sealConfig } from '../access/config-secrets.ts'
import type { ChangedResource } from '../actions/port.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import { removeSubject } from '../fleet/plan-service.ts'
import type { ResourceKey, ResourceKind, StoredResource } from '../fleet/records.ts'
import { news, warning } from '../messages/event-messages.ts'
import { versionConflict } from '../store/store-resources.ts'
import { cycleProblem } from './dependency-problems.ts'
import type { AdminDeps } from './deps.ts'
import type { IfVersion } from './preconditions.ts'
import { notFound, wrongFields } from './problem.ts'
import { givesFleetAdmin, isLastAdminBinding } from './roles.ts'

export type WriteAction = ApplyAnswer['results'][number]['action']

export const keyOf = (resource: Applicable): ResourceKey => ({
  kind: resource.kind,
  project: projectOf(resource),
  name: resource.metadata.name,
})

/** The object of a question about rights. */
export const askOfKey = ({ kind, project, name }: ResourceKey): { kind: Applicable['kind']; project?: string; name: string } => ({
  kind: kind as Applicable['kind'],
  // A Project is its own project.
  ...(kind === 'Project' ? { project: name } : project === '' ? {} : { project }),
  name,
})

/** For people: `service web in project shop`. */
export const keyText = ({ kind, project, name }: ResourceKey): string =>
  `${kindText(kind)} ${name}${project === '' ? '' : ` in project ${project}`}`

/** `health rule`. */
export const kindText = (kind: ResourceKind): string => kind.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase()

export const keyNotFound = (key: ResourceKey): AppError =>
  notFound(
    keyText(key),
    {
      Repository: 'skerry get repositories -A',
      Service: 'skerry get services -A',
      Cluster: 'skerry get clusters',
      Config: 'skerry get configs -A',
      HealthRule: 'skerry get health-rules',
      Role: 'skerry get roles',
      RoleBinding: 'skerry get role-bindings -A',
      Suspension: 'skerry get suspensions',
      Project: 'skerry get projects',
      NotificationSink: 'skerry get notification-sinks',
      NotificationRoute: 'skerry get notification-routes',
    }[key.kind],
  )

/** Why it cannot be written although its fields are right; null when it can. */
export async function refusal(
  { store, authorizer, clock }: AdminDeps,
  resource: Applicable,
  held: StoredResource | null,
  /** Names of roles that the same request writes. */
  alsoWritten: ReadonlySet<string> = new Set(),
): Promise<Problem | null> {
  if (held === null && resource.kind === 'Cluster') {
    const message = `cluster ${resource.metadata.name} does not exist: joining creates clusters, see \`skerry join-token create\``
    return { path: 'metadata.name', message }
  }
  if (resource.kind === 'RoleBinding' && authorizer.rulesOf(resource.spec.role) === null && !alsoWritten.has(resource.spec.role))
    return { path: 'spec.role', message: `role ${resource.spec.role} does not exist; \`skerry get roles\` lists the roles` }
  if (resource.kind === 'RoleBinding' && held !== null && !givesFleetAdmin({ project: held.project, spec: canonicalJson(resource.spec) }))
    if (await isLastAdminBinding({ store, clock }, held)) return { path: 'spec', message: 'is the last credential of a fleet admin' }
  if (held !== null && held.deletingMs !== null) {
    const question = await store.confirmationFor(removeSubject({ project: held.project, service: held.name }))
    if (question !== null && question.confirmedMs === null) return null // TG14
    return { path: 'metadata.name', message: BEING_DELETED }
  }
  return null
}

/** Whether the write revokes the agent of a cluster or lets it in again. Null means neither. */
function revocation(resource: Applicable, held: StoredResource | null): boolean | null {
  if (resource.kind !== 'Cluster' || held === null) return null
  const { revoked } = resource.spec
  return clusterSpecSchema.parse(JSON.parse(held.spec)).revoked === revoked ? null : revoked
}

const BEING_DELETED = 'is being deleted; apply it again when `skerry get services` no longer shows it'

/** Marks of secrets that stand for nothing that is there; none: `storedSpec` can be asked. */
export async function secretProblems({ secrets }: AdminDeps, resource: Applicable, held: StoredResource | null): Promise<Problem[]> {
  if (resource.kind !== 'Config') return []
  const sealed = await sealConfig(secrets, keyOf(resource), resource.spec, held?.spec ?? null)
  return sealed.kind === 'refused' ? sealed.problems : []
}

/** The stored form of a spec: a Config with its secrets sealed. */
export async function storedSpec({ secrets }: AdminDeps, resource: Applicable, held: StoredResource | null): Promise<string> {
  if (resource.kind !== 'Config') return canonicalJson(resource.spec)
  const sealed = await sealConfig(secrets, keyOf(resource), resource.spec, held?.spec ?? null)
  if (sealed.kind === 'refused') throw wrongFields(sealed.problems, `write ${keyText(keyOf(resource))}`)
  return sealed.spec
}

/** The action that a write would take. */
export async function plannedAction(deps: AdminDeps, resource: Applicable, held: StoredResource | null): Promise<WriteAction> {
  if (held === null) return 'created'
  if (held.deletingMs !== null) return 'configured'
  const isSame =
    held.spec === (await storedSpec(deps, resource, held)) && canonicalJson(held.labels) === canonicalJson(resource.metadata.labels)
  return isSame ? 'unchanged' : 'configured'
}

/** `changed`: what the caller tells `actions.onChanged`, once it has written all that it has to write. Null means
 *  nothing. */
export async function writeResource(
  deps: AdminDeps,
  resource: Applicable,
  {
    by,
    held,
    ifVersion: given,
    isShown,
  }: { by: string; held: StoredResource | null; ifVersion?: IfVersion; isShown: (serviceKey: string) => boolean },
): Promise<{ action: WriteAction; changed: ChangedResource | null }> {
  const { store, actions, clock } = deps
  const key = keyOf(resource)
  // The write replaces the version that was judged, or nothing: a Config with kept secrets, and labels that the caller
  // may not change.
  const ifVersion = given === undefined && (key.kind === 'Config' || key.kind === 'Cluster') ? held?.version : given
  const takesBack = held !== null && held.deletingMs !== null
  if (takesBack && !(await actions.takeBackDeletion({ project: key.project, service: key.name }, by)))
    throw new AppError('in_use', { detail: `${keyText(key)} ${BEING_DELETED}` })
  const write = async () =>
    store.applyResource(key, {
      labels: resource.metadata.labels,
      spec: await storedSpec(deps, resource, held),
      nowMs: clock.nowMs(),
      ...(ifVersion === undefined ? {} : { ifVersion }),
    })
  const result = await changingRights(deps, key, () => (key.kind === 'Config' ? deps.secrets.using(write) : write())) // CG7
  if (result.kind === 'conflict') {
    if (given !== undefined) throw versionConflict(key, given, result.version)
    if (result.version === null) throw keyNotFound(key)
    throw new AppError('conflict', { detail: `${keyText(key)} now has version ${result.version}` })
  }
  if (result.kind === 'cycle') throw wrongFields([cycleProblem(result, isShown)], `write ${keyText(key)}`)
  const revoked = revocation(resource, held)
  if (revoked !== null)
    await store.appendEvents([
      fleetEvent(clock.nowMs(), revoked ? warning('ClusterRevoked', { by }) : news('ClusterReadmitted', { by }), {
        cluster: key.name,
      }),
    ])
  if (resource.kind === 'Cluster' && held !== null && canonicalJson(held.labels) !== canonicalJson(resource.metadata.labels))
    await store.appendEvents([
      fleetEvent(clock.nowMs(), news('ClusterRelabelled', { changes: relabelText(held.labels, resource.metadata.labels), by }), {
        cluster: key.name,
      }),
    ])
  const labelsOnly = result.kind === 'configured' && result.resource.generation === held?.generation
  const changed = result.kind === 'unchanged' && !takesBack ? null : { ...key, labelsOnly }
  return { action: takesBack ? 'configured' : result.kind, changed }
}

/** AZ8: a write that failed may have been committed. */
export async function changingRights<T>({ authorizer }: Pick<AdminDeps, 'authorizer'>, { kind }: ResourceKey, write: () => Promise<T>) {
  try {
    return await write()
  } finally {
    if (kind === 'Role' || kind === 'RoleBinding') authorizer.changed()
  }
}

/** `env: test to prod`. */
function relabelText(before: Readonly<Record<string, string>>, after: Readonly<Record<string, string>>): string {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((key) => before[key] !== after[key]).sort()
  const named = keys.slice(0, 5).map((key) => `${key}: ${before[key] ?? '(none)'} to ${after[key] ?? '(none)'}`)
  return andMore(named, keys.length)
}
