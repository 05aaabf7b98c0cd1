// Reads the last lines of the log of a container. A port of its own, because few agents may read logs.
import type { ObjectRef } from '../../shared/kube/object.ts'
import type { ApiFailure, ApiResource } from './cluster.ts'
import { objectPath } from './discovery.ts'
import type { KubeHttp, KubeStream } from './kube-http.ts'

const LOG_BYTES_MAX = 16_384
/** A status has no room for more. */
export const LOG_LINES_MAX = 20
const PODS: ApiResource = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true, verbs: [] }

export type LogResult = { kind: 'log'; text: string } | { kind: 'failed'; failure: ApiFailure }

export interface PodLogs {
  /** `previous`: the log of the run before the present one. */
  logTail(pod: ObjectRef, options: { container: string; previous: boolean; lines: number }): Promise<LogResult>
}

export interface LogStreamOptions {
  container: string
  follow: boolean
  previous: boolean
  timestamps: boolean
  sinceSeconds: number | undefined
  tailLines: number | undefined
  signal: AbortSignal
}

/** Beside `logTail`, which reads a little for statuses: whole logs, for people who ask. */
export interface LogStreams {
  /** `release` is to be called when the body was read or is no longer wanted. */
  logStream(pod: ObjectRef, options: LogStreamOptions): Promise<KubeStream>
}

export function openPodLog(
  http: KubeHttp,
  { namespace, name }: ObjectRef,
  { container, follow, previous, timestamps, sinceSeconds, tailLines, signal }: LogStreamOptions,
): Promise<KubeStream> {
  const query = new URLSearchParams({ container })
  for (const [key, isSet] of Object.entries({ follow, previous, timestamps })) if (isSet) query.set(key, 'true')
  if (sinceSeconds !== undefined) query.set('sinceSeconds', String(sinceSeconds))
  if (tailLines !== undefined) query.set('tailLines', String(tailLines))
  const path = `${objectPath(PODS, namespace, name)}/log?${query}`
  return http.stream({ method: 'GET', path, plural: 'pods', accept: '*/*', signal, isList: true })
}

export async function readPodLog(
  http: KubeHttp,
  { namespace, name }: ObjectRef,
  { container, previous, lines }: { container: string; previous: boolean; lines: number },
): Promise<LogResult> {
  const query = new URLSearchParams({ container, tailLines: String(lines), limitBytes: String(LOG_BYTES_MAX) })
  if (previous) query.set('previous', 'true')
  const path = `${objectPath(PODS, namespace, name)}/log?${query}`
  const answer = await http.request({ method: 'GET', path, plural: 'pods', accept: '*/*', plain: true })
  if (answer.kind === 'failed') return { kind: 'failed', failure: answer.failure }
  return { kind: 'log', text: typeof answer.body === 'string' ? answer.body : '' }
}
