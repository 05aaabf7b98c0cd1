// A question of a caller to a cluster: the right that it needs, its entry in the audit log, and the stream of its
// answer.
import type { AccessVerb } from '../../shared/model/access-words.ts'
import type { AskRequest, Question } from '../../shared/protocol/ask.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { Principal } from '../access/principal.ts'
import { type AnswerStream, offline } from '../ask/asks.ts'
import { livenessOf } from '../fleet/liveness.ts'
import type { ClusterRecord } from '../fleet/records.ts'
import type { Ask } from '../fleet/rights.ts'
import { forbidden, hidden } from './auth.ts'
import type { AdminDeps } from './deps.ts'

export type AskDeps = Pick<AdminDeps, 'store' | 'asks' | 'onQuestion' | 'trail' | 'clock' | 'principal' | 'authorizer'>

export function verbOf({ kind }: Question): AccessVerb {
  if (kind === 'logs') return 'logs:read'
  return kind === 'restart' ? 'restart' : 'live:read'
}

export async function isPlaced(store: AskDeps['store'], id: ServiceId, { clusterId }: ClusterRecord): Promise<boolean> {
  return (await store.desiredOf(id, [clusterId])).some(({ doc }) => doc !== null)
}

const serviceOf = ({ question, within }: AskRequest) => ('service' in question ? question.service : (within ?? null))

/** AK2: with the right on the cluster everything in it may be asked; with the right on a service, its objects. */
export function confined(
  { authorizer }: Pick<AskDeps, 'authorizer'>,
  by: Principal,
  onCluster: Ask & { cluster: ClusterRecord },
  request: AskRequest,
): { asked: Ask; within: AskRequest['within'] | null } {
  const service = serviceOf(request)
  if (authorizer.allows(by, onCluster)) return { asked: onCluster, within: request.within ?? null }
  const { verb, cluster } = onCluster
  const onService: Ask | null =
    service === null ? null : { verb, kind: 'Service', project: service.project, name: service.service, cluster }
  if (onService !== null && authorizer.allows(by, onService)) return { asked: onService, within: service }
  if (authorizer.allows(by, { ...onCluster, verb: 'read' })) throw forbidden(by, onService ?? onCluster)
  if (onService !== null && authorizer.allows(by, { ...onService, verb: 'read' })) throw forbidden(by, onService)
  throw hidden(onCluster)
}

/** Throws `cluster_offline`, `ask_unsupported` and `too_many_requests` at once. */
export async function openAnswer(
  deps: AskDeps,
  by: Principal,
  cluster: ClusterRecord,
  request: AskRequest,
  asked: Ask,
): Promise<AnswerStream> {
  const { kind } = request.question
  try {
    const stream = await admitted(deps, by, cluster, request, asked)
    deps.onQuestion?.(kind, 'asked')
    return stream
  } catch (error) {
    deps.onQuestion?.(kind, error instanceof AppError ? error.code : 'internal')
    throw error
  }
}

async function admitted(
  { asks, trail, clock }: AskDeps,
  by: Principal,
  cluster: ClusterRecord,
  request: AskRequest,
  { kind, project, name }: Ask,
): Promise<AnswerStream> {
  if (asks === undefined) throw new AppError('unavailable', { detail: 'this server does not send questions to clusters' })
  const { word, lastSeenMs } = livenessOf(cluster, clock.nowMs())
  if (word !== 'Online') throw offline(cluster.name, lastSeenMs)
  const asked = { clusterId: cluster.clusterId, name: cluster.name, lastSeenMs }
  asks.admit(asked)
  await asks.gathered(cluster.clusterId)
  // AK7: in the log before the agent can act on it.
  await trail.record({ verb: verbOf(request.question), kind, project, name, cluster: cluster.name, detail: questionText(request.question) })
  return asks.ask({ ...request, cluster: asked, by: { id: by.id, kind: by.kind, name: by.name } })
}

/** `logs Pod web/podinfo-1`. */
function questionText(question: Question): string {
  if (!('ref' in question) || question.ref === undefined) return question.kind
  const { kind, namespace, name } = question.ref
  return `${question.kind} ${kind} ${namespace === '' ? name : `${namespace}/${name}`}`
}
