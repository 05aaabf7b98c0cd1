// Which run of a hook a live object is of, and whether a Job with a TTL has ended. Pure.
import type { Health } from '../../../shared/kube/health.ts'
import { fields, list, text } from '../../../shared/kube/health-object.ts'
import { groupOf, type K8sObject, type ObjectRef } from '../../../shared/kube/object.ts'
import { HOOK_RUN_ANNOTATION } from '../../../shared/kube/waves.ts'
import { jobEnd } from '../../messages/explanation-messages.ts'
import type { HookEnd } from './hook-spec.ts'
import type { LiveObject } from './watch/live-object.ts'

/** The run to which a live object belongs, and whether that run has ended. */
export interface LiveRun {
  /** '' for a Job with a TTL that is no hook. */
  id: string
  ended: 'no' | 'well' | 'ill'
}

/** HK3, JB1: undefined if it is neither. */
export function liveRunOf(object: K8sObject, health: Health): LiveRun | undefined {
  const id = object.metadata.annotations?.[HOOK_RUN_ANNOTATION]
  if (id !== undefined) return { id, ended: endedOf(object, health) }
  const ended = ttlJobEnd(object)
  return ended === null ? undefined : { id: '', ended }
}

function endedOf(object: K8sObject, { word }: Health): LiveRun['ended'] {
  if (object.kind === 'Pod' && groupOf(object.apiVersion) === '') {
    const phase = (object['status'] as { phase?: unknown } | undefined)?.phase
    // A Pod that is Ready has not done its work yet, and one that crashes may still do it.
    return phase === 'Succeeded' ? 'well' : phase === 'Failed' ? 'ill' : 'no'
  }
  return word === 'Healthy' ? 'well' : word === 'Degraded' ? 'ill' : 'no'
}

/** Null if it has not ended, or is no run. */
export const endOf = ({ run, health }: Pick<LiveObject, 'run' | 'health'>): HookEnd | null => {
  if (run === undefined || run.ended === 'no') return null
  return run.ended === 'well' ? { outcome: 'succeeded', message: '' } : { outcome: 'failed', message: health.message || health.reason }
}

// Whether a Job has ended, and how: by its conditions while it exists, by the Events about it when its TTL has removed
// it. Pure.

interface JobParts {
  spec?: { ttlSecondsAfterFinished?: unknown }
  status?: { conditions?: unknown }
}

/** JB1: of a Job that Kubernetes removes some time after its end; null for everything else. */
export function ttlJobEnd(object: K8sObject): LiveRun['ended'] | null {
  if (object.kind !== 'Job' || groupOf(object.apiVersion) !== 'batch') return null
  const { spec, status } = object as JobParts
  if (typeof spec?.ttlSecondsAfterFinished !== 'number') return null
  const conditions: unknown[] = Array.isArray(status?.conditions) ? status.conditions : []
  if (conditions.some((condition) => isTrue(condition, 'Complete'))) return 'well'
  return conditions.some((condition) => isTrue(condition, 'Failed')) ? 'ill' : 'no'
}

const isTrue = (condition: unknown, type: string): boolean =>
  typeof condition === 'object' &&
  condition !== null &&
  'type' in condition &&
  'status' in condition &&
  condition.type === type &&
  condition.status === 'True'

/** By the reason of the Warning with which the Job controller ends a Job. Messages are not used, because everyone who
 *  may write Events controls them. */
const FAILURES = ['BackoffLimitExceeded', 'DeadlineExceeded', 'PodFailurePolicy', 'FailedIndexes', 'MaxFailedIndexesExceeded'] as const
const EXIT_CODE = / failed with exit code (\d{1,3}) matching FailJob rule at index \d{1,3}$/

/** Null if this Event does not tell the end of its Job. */
export function jobEndIn(event: K8sObject): HookEnd | null {
  const { type, reason, message } = event
  if (type === 'Normal' && reason === 'Completed') return { outcome: 'succeeded', message: '' }
  const failure = type === 'Warning' ? FAILURES.find((known) => known === reason) : undefined
  if (failure === undefined) return null
  const exitCode = EXIT_CODE.exec(typeof message === 'string' ? message : '')?.[1]
  if (failure !== 'PodFailurePolicy' || exitCode === undefined) return { outcome: 'failed', message: jobEnd(failure) }
  return { outcome: 'failed', message: jobEnd('PodFailurePolicy.exitCode', { exitCode }) }
}

export const isCronJob = ({ group, kind }: Pick<ObjectRef, 'group' | 'kind'>): boolean => group === 'batch' && kind === 'CronJob'

/** Names of the Jobs of a CronJob that have not ended. */
export const activeJobs = (cronJob: K8sObject): string[] =>
  list(fields(cronJob['status'])['active']).flatMap(({ name }) => (typeof name === 'string' ? [name] : []))

/** Start of a CronJob's present run; null if there is none. */
export function runningSinceMs(cronJob: K8sObject): number | null {
  const atMs = Date.parse(text(fields(cronJob['status'])['lastScheduleTime']))
  return Number.isNaN(atMs) || activeJobs(cronJob).length === 0 ? null : atMs
}
