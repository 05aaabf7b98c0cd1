// How an object is doing, from the object alone: no API call, no clock. General rules mirror kstatus (kubernetes-sigs/cli-utils pkg/kstatus); health-core.ts has the kinds that Kubernetes
// serves, health-delivery.ts and health-platform.ts well-known custom ones, health-rule.ts those of a service's author.
//   Healthy      it is what its spec asks for      Progressing  on the way there
//   Degraded     it will not get there by itself   Suspended    somebody stopped it on purpose
//   Missing      it should exist and does not      Unknown      it could not be looked at

import { deletionText } from './deletion.ts'
import { byConditions } from './health-conditions.ts'
import { CORE_RULES } from './health-core.ts'
import { DELIVERY_RULES, deliveryFamily } from './health-delivery.ts'
import { degraded, HEALTHY, type Health, type Look, lookAt, progressing, type Rule } from './health-look.ts'
import { PLATFORM_RULES } from './health-platform.ts'
import { type CompiledRule, healthByRule } from './health-rule.ts'
import { groupOf, type K8sObject } from './object.ts'
import { isBuiltInGroup } from './order.ts'

export { HEALTHY, type Health } from './health-look.ts'

/** What the object's service asks for. */
export interface HealthOptions {
  /** `sync.waitForAddress`. */
  waitForAddress: boolean
  /** `spec.health`; the first of the object's group and kind counts. */
  rules: readonly CompiledRule[]
}

/** HE1: deletion and observedGeneration first, then the service's own rule, then Stalled and Reconciling, then the kind's own, then conditions. */
export function healthOf(object: K8sObject, nowMs: number, options?: HealthOptions): Health {
  const deleting = deletionText(object)
  if (deleting !== null) return progressing('Deleting', deleting)
  const look = lookAt(object, nowMs, options?.waitForAddress ?? false)
  const group = groupOf(object.apiVersion)
  const unseen = generationUnseen(look, object.metadata.generation)
  if (unseen !== null) return unseen
  const own = options?.rules.find((rule) => rule.group === group && rule.kind === object.kind)
  if (own !== undefined) return healthByRule(own, object)
  const stalled = look.condition('Stalled')
  if (stalled?.status === 'True') return degraded(stalled.reason || 'Stalled', stalled.message)
  const reconciling = look.condition('Reconciling')
  if (reconciling?.status === 'True') return progressing(reconciling.reason || 'Reconciling', reconciling.message)
  const rule = ruleOf(group, object.kind)
  if (rule !== null) return rule(look)
  return isBuiltInGroup(group) ? HEALTHY : byConditions(look)
}

/** Argo Rollouts writes the number as a text. */
function generationUnseen({ status }: Look, generation: number | undefined): Health | null {
  const raw = status['observedGeneration']
  const observed = typeof raw === 'string' && /^\d{1,15}$/.test(raw) ? Number(raw) : raw
  if (typeof observed !== 'number' || generation === undefined || observed >= generation) return null
  return progressing('GenerationNotObserved', `its controller has seen generation ${observed} of ${generation}`)
}

function ruleOf(group: string, kind: string): Rule | null {
  const key = `${group}/${kind}`
  return CORE_RULES[key] ?? DELIVERY_RULES[key] ?? PLATFORM_RULES[key] ?? deliveryFamily(group)
}

/** HE2: past its deadline, Progressing is Degraded. */
export function pastDeadline(health: Health, sinceMs: number, deadlineMs: number, nowMs: number): Health {
  if (health.word !== 'Progressing' || nowMs - sinceMs < deadlineMs) return health
  const message = `${health.message}; not healthy within ${Math.round(deadlineMs / 1000)} s (sync.healthDeadline)`.replace(/^; /, '')
  return degraded('DeadlineExceeded', message)
}

/** These end by their own rules and may run for hours: the health deadline is not theirs. */
const WITHOUT_DEADLINE: ReadonlySet<string> = new Set([
  'batch/Job',
  'argoproj.io/Workflow',
  'kubeflow.org/MPIJob',
  'kubeflow.org/PyTorchJob',
  'kubeflow.org/TFJob',
  'jobset.x-k8s.io/JobSet',
  'ray.io/RayJob',
  'sparkoperator.k8s.io/SparkApplication',
  'tekton.dev/PipelineRun',
  'tekton.dev/TaskRun',
  'velero.io/Backup',
  'velero.io/Restore',
])
export const hasHealthDeadline = (group: string, kind: string): boolean => !WITHOUT_DEADLINE.has(`${group}/${kind}`)
