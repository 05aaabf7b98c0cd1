// The Cluster port on a real API server, with raw JSON, server-side apply and watches that resume. A refusal is a
// value. Only `info` and `discover` throw, because nothing can start without them.
import { z } from 'zod'
import { FIELD_MANAGER } from '../../shared/kube/marks.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { failureSays } from '../messages/object-messages.ts'
import { namesMissingObject, parseStatus, warningsOf } from './api-failure.ts'
import type {
  About,
  Acting,
  ApiFailure,
  ApiResource,
  ApplyResult,
  Cluster,
  ClusterInfo,
  DeleteResult,
  Discovery,
  GetResult,
} from './cluster.ts'
import { DISCOVERY_ACCEPT, objectPath, parseDiscovery } from './discovery.ts'
import type { KubeCredentials } from './kube-credentials.ts'
import { createKubeHttp, type KubeAnswer, type KubeHttp, type KubeRequest } from './kube-http.ts'
import { watchResource } from './kube-watch.ts'
import { type LogStreams, openPodLog, type PodLogs, readPodLog } from './pod-logs.ts'
import { Positions } from './resource-version.ts'
import { asObject, METADATA_ACCEPT, ofResource } from './watch-stream.ts'

/** Field manager of patches outside of an apply, whose fields must not mix with those that Git owns. */
export const MARKS_MANAGER = 'skerry-marks'

export interface RestClusterDeps {
  clock: Clock
  random: Random
  log: Logger
  /** `skerry-agent/<version>`, by which audit logs tell the requests of the agent. */
  userAgent: string
}

export function createRestCluster(credentials: KubeCredentials, deps: RestClusterDeps): Cluster & PodLogs & LogStreams & { close(): void } {
  const http = createKubeHttp(credentials, deps)
  const positions = new Positions()

  async function patch(
    resource: ApiResource,
    { namespace, name }: { namespace: string; name: string },
    query: string,
    body: { type: string; json: unknown },
    { as, about }: Pick<KubeRequest, 'as' | 'about'>,
  ): Promise<ApplyResult> {
    const path = `${objectPath(resource, namespace, name)}?${query}`
    const answer = await http.request({ method: 'PATCH', path, plural: resource.plural, body, as, about })
    const warnings = warningsOf(answer.warning ?? null, body.json)
    const warned = warnings.length === 0 ? {} : { warnings }
    if (answer.kind === 'failed') return { kind: 'failed', failure: answer.failure, ...warned }
    const object = asObject(answer.body)
    return object === null ? failed(unreadable(answer)) : { kind: 'applied', object, created: answer.status === 201, ...warned }
  }

  return {
    info: () => readInfo(http),
    discover: () => readDiscovery(http),

    apply(resource, object, { force, dryRun, as }) {
      const { name = '', namespace = '' } = object.metadata
      const query = `fieldManager=${FIELD_MANAGER}&force=${force}${dryRun ? '&dryRun=All' : ''}`
      return patch(resource, { namespace, name }, query, { type: 'application/apply-patch+yaml', json: object }, { as })
    },

    mergePatch: (resource, ref, body, options = {}) =>
      patch(resource, ref, `fieldManager=${MARKS_MANAGER}`, { type: 'application/merge-patch+json', json: body }, options),

    async get(resource, ref, { metadataOnly = false } = {}): Promise<GetResult> {
      const path = objectPath(resource, ref.namespace, ref.name)
      const accept = metadataOnly ? { accept: METADATA_ACCEPT } : {}
      const answer = await http.request({ method: 'GET', path, plural: resource.plural, ...accept })
      if (answer.kind === 'failed') return isAbsent(answer, resource, ref.name) ? { kind: 'absent' } : failed(answer.failure)
      const object = asObject(metadataOnly ? ofResource(answer.body, resource) : answer.body)
      return object === null ? failed(unreadable(answer)) : { kind: 'found', object }
    },

    delete: (resource, ref, uid, options) => deleteObject(http, { resource, ref, uid, ...options }),
    watch: (resource, options) => watchResource({ http, positions, ...deps }, resource, options),
    logTail: (pod, options) => readPodLog(http, pod, options),
    logStream: (pod, options) => openPodLog(http, pod, options),
    close: () => http.close(),
  }
}

/** Both forms of an unmet precondition: rest/delete.go and storage/interfaces.go of the API server. */
const UNMET = /\b(UID|ResourceVersion) in (?:the )?precondition/

interface Deletion extends Acting, About {
  resource: ApiResource
  ref: ObjectRef
  uid: string
  foreground?: boolean
  resourceVersion?: string
}

async function deleteObject(
  http: KubeHttp,
  { resource, ref, uid, foreground = false, resourceVersion, as, about }: Deletion,
): Promise<DeleteResult> {
  const propagationPolicy = foreground ? 'Foreground' : 'Background'
  const preconditions = { uid, ...(resourceVersion === undefined ? {} : { resourceVersion }) }
  const json = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy, preconditions }
  const path = objectPath(resource, ref.namespace, ref.name)
  const body = { type: 'application/json', json }
  const answer = await http.request({ method: 'DELETE', path, plural: resource.plural, body, as, about })
  if (answer.kind === 'failed') {
    if (isAbsent(answer, resource, ref.name)) return { kind: 'gone' }
    const unmet = answer.failure.kind === 'conflict' ? UNMET.exec(parseStatus(answer.body)?.message ?? '')?.[1] : undefined
    return unmet === undefined ? failed(answer.failure) : { kind: unmet === 'UID' ? 'replaced' : 'changed' }
  }
  const object = asObject(answer.body)
  if (object?.metadata.uid === uid) return isGone(object) ? { kind: 'gone' } : { kind: 'deleting', finalizers: finalizersOf(object) }
  const status = deletedStatus.safeParse(answer.body)
  return status.success && status.data.details.uid === uid ? { kind: 'gone' } : readDeleted(http, { resource, name: ref.name, path, uid })
}

const deletedStatus = z.looseObject({
  kind: z.literal('Status'),
  status: z.literal('Success'),
  details: z.looseObject({ uid: z.string() }),
})

/** KA58: an answer that names no object proves nothing. Aggregated APIs give one before they delete, or without
 *  deleting. */
async function readDeleted(
  http: KubeHttp,
  { resource, name, path, uid }: { resource: ApiResource; name: string; path: string; uid: string },
): Promise<DeleteResult> {
  const answer = await http.request({ method: 'GET', path, plural: resource.plural, accept: METADATA_ACCEPT })
  if (answer.kind === 'failed') return isAbsent(answer, resource, name) ? { kind: 'gone' } : failed(answer.failure)
  const left = asObject(ofResource(answer.body, resource))
  if (left === null) return failed(unreadable(answer))
  return left.metadata.uid === uid ? { kind: 'deleting', finalizers: left.metadata.finalizers ?? [] } : { kind: 'replaced' }
}

/** The last state of the object. A deletionTimestamp means that work is left, except for a Pod that never started. */
function isGone(object: K8sObject): boolean {
  if (object.metadata.deletionTimestamp === undefined) return true
  return finalizersOf(object).length === 0 && object.metadata['deletionGracePeriodSeconds'] === 0
}

/** A Namespace has finalizers in its spec, too. */
function finalizersOf(object: K8sObject): readonly string[] {
  const inSpec = z.looseObject({ spec: z.looseObject({ finalizers: z.array(z.string()) }) }).safeParse(object)
  const ofNamespace = object.apiVersion === 'v1' && object.kind === 'Namespace' && inSpec.success ? inSpec.data.spec.finalizers : []
  return [...(object.metadata.finalizers ?? []), ...ofNamespace]
}

async function readInfo(http: KubeHttp): Promise<ClusterInfo> {
  const [version, namespace] = await Promise.all([
    http.request({ method: 'GET', path: '/version', plural: '' }),
    http.request({ method: 'GET', path: '/api/v1/namespaces/kube-system', plural: 'namespaces' }),
  ])
  const doing = 'read version and identity of the cluster'
  const parsedVersion = z.looseObject({ gitVersion: z.string() }).safeParse(bodyOf(version, doing))
  const uid = asObject(bodyOf(namespace, doing))?.metadata.uid
  if (!parsedVersion.success || uid === undefined)
    throw new AppError('kube_unsupported', { doing, detail: 'the answers do not come from Kubernetes' })
  return { uid, version: parsedVersion.data.gitVersion }
}

async function readDiscovery(http: KubeHttp): Promise<Discovery> {
  const doing = 'discover the served kinds'
  const answers = await Promise.all(
    ['/api', '/apis'].map((path) => http.request({ method: 'GET', path, plural: '', accept: DISCOVERY_ACCEPT })),
  )
  const discovery = parseDiscovery(answers.map((answer) => bodyOf(answer, doing)))
  if (discovery === null) throw new AppError('kube_unsupported', { doing, detail: 'the server does not support aggregated discovery' })
  return discovery
}

function bodyOf(answer: KubeAnswer, doing: string): unknown {
  if (answer.kind === 'answer') return answer.body
  const { kind, reason, message, retryAfterMs } = answer.failure
  const refused = kind === 'unauthorized' || kind === 'forbidden'
  const code = reason === 'kube_config' ? 'kube_config' : refused ? 'kube_refused' : 'kube_unreachable'
  throw new AppError(code, { doing, detail: message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) })
}

/** KA7: the answer names the object that was asked for. */
const isAbsent = (answer: Extract<KubeAnswer, { kind: 'failed' }>, resource: ApiResource, name: string): boolean =>
  answer.failure.status === 404 && namesMissingObject(answer.body, resource, name)

const failed = (failure: ApiFailure): { kind: 'failed'; failure: ApiFailure } => ({ kind: 'failed', failure })

const unreadable = ({ status }: { status: number }): ApiFailure => ({
  kind: 'server_error',
  status,
  ...failureSays('Unreadable.object'),
})
