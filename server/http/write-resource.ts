// One way to write a resource, for PUT and for apply.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { type Applicable, clusterSpecSchema, projectOf } from '../../shared/model/resources.ts'
import type { ApplyAnswer } from '../../shared/model/views.ts'
import { AppError, type Problem } from '../../shared/protocol/error.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import { removeSubject } from '../fleet/plan-service.ts'
import type { ResourceKey, StoredResource } from '../store/records.ts'
import { cycleProblem } from './dependency-problems.ts'
import type { AdminDeps } from './deps.ts'
import { notFound, wrongFields } from './problem.ts'

export type WriteAction = ApplyAnswer['results'][number]['action']

export const keyOf = (resource: Applicable): ResourceKey => ({
  kind: resource.kind,
  project: projectOf(resource),
  name: resource.metadata.name,
})

/** For people: `service web in project shop`. */
export const keyText = ({ kind, project, name }: ResourceKey): string =>
  `${kind.toLowerCase()} ${name}${project === '' ? '' : ` in project ${project}`}`

export const keyNotFound = (key: ResourceKey): AppError =>
  notFound(
    keyText(key),
    { Repository: 'skerry get repositories -A', Service: 'skerry get services -A', Cluster: 'skerry get clusters' }[key.kind],
  )

/** Why it cannot be written although its fields are right; null when it can. */
export async function refusal({ store }: AdminDeps, resource: Applicable, held: StoredResource | null): Promise<Problem | null> {
  if (held === null && resource.kind === 'Cluster') {
    const message = `there is no cluster ${resource.metadata.name}: clusters come into being by joining, see \`skerry join-token create\``
    return { path: 'metadata.name', message }
  }
  if (held !== null && held.deletingMs !== null) {
    const question = await store.confirmationFor(removeSubject({ project: held.project, service: held.name }))
    if (question !== null && question.confirmedMs === null) return null // TG14
    return { path: 'metadata.name', message: BEING_DELETED }
  }
  return null
}

/** Whether the write revokes the agent of a cluster or lets it in again; null: neither. */
function revocation(resource: Applicable, held: StoredResource | null): boolean | null {
  if (resource.kind !== 'Cluster' || held === null) return null
  const { revoked } = resource.spec
  return clusterSpecSchema.parse(JSON.parse(held.spec)).revoked === revoked ? null : revoked
}

const BEING_DELETED = 'is being deleted; apply it again when `skerry get services` no longer shows it'

/** What a write would do. */
export function plannedAction(resource: Applicable, held: StoredResource | null): WriteAction {
  if (held === null) return 'created'
  if (held.deletingMs !== null) return 'configured'
  const same = held.spec === canonicalJson(resource.spec) && canonicalJson(held.labels) === canonicalJson(resource.metadata.labels)
  return same ? 'unchanged' : 'configured'
}

/** `changed`: the caller tells `actions.onChanged`, once it has written all that it has to write. */
export async function writeResource(
  { store, actions, clock }: AdminDeps,
  resource: Applicable,
  { by, held, ifVersion }: { by: string; held: StoredResource | null; ifVersion?: number | undefined },
): Promise<{ action: WriteAction; changed: boolean }> {
  const key = keyOf(resource)
  const takesBack = held !== null && held.deletingMs !== null
  if (takesBack && !(await actions.takeBackDeletion({ project: key.project, service: key.name }, by)))
    throw new AppError('in_use', { detail: `${keyText(key)} ${BEING_DELETED}` })
  const result = await store.applyResource(key, {
    labels: resource.metadata.labels,
    spec: canonicalJson(resource.spec),
    nowMs: clock.nowMs(),
    ...(ifVersion === undefined ? {} : { ifVersion }),
  })
  if (result.kind === 'conflict') {
    if (result.version === null) throw keyNotFound(key)
    throw new AppError('conflict', { detail: `${keyText(key)} is at version ${result.version} now` })
  }
  if (result.kind === 'cycle') throw wrongFields([cycleProblem(result)], `write ${keyText(key)}`)
  const revoked = revocation(resource, held)
  if (revoked !== null)
    await store.appendEvents([
      fleetEvent(clock.nowMs(), revoked ? 'Warning' : 'Normal', revoked ? 'ClusterRevoked' : 'ClusterReadmitted', `by ${by}`, {
        cluster: key.name,
      }),
    ])
  return { action: takesBack ? 'configured' : result.kind, changed: result.kind !== 'unchanged' || takesBack }
}
