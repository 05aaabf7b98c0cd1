// The health of an object, from the object alone: no API call, no clock. General rules mirror kstatus
// (kubernetes-sigs/cli-utils pkg/kstatus). health-core.ts has the kinds that Kubernetes serves; health-data, -delivery,
// -network, -operators, -platform, -provision and -silent have well-known custom ones; health-general.ts judges all
// others; health-rule.ts has those of a service's author.
//   Healthy      it is what its spec asks for      Progressing  on the way there
//   Degraded     it will not get there by itself   Suspended    somebody stopped it on purpose
//   Missing      it should exist and does not      Unknown      it could not be looked at

import { deletionText } from './deletion.ts'
import { concerns, type FleetRule, healthByFleetRule } from './fleet-rule.ts'
import { CORE_RULES } from './health-core.ts'
import { DATA_RULES } from './health-data.ts'
import { DELIVERY_RULES } from './health-delivery.ts'
import { generalHealth, stopAskedFor } from './health-general.ts'
import { NETWORK_RULES } from './health-network.ts'
import { degraded, HEALTHY, type Health, oneLine, progressing, type Reading, type Rule, readObject } from './health-object.ts'
import { OPERATOR_RULES } from './health-operators.ts'
import { PLATFORM_RULES } from './health-platform.ts'
import { familyRule, PROVISION_RULES } from './health-provision.ts'
import { type CompiledRule, healthByRule } from './health-rule.ts'
import { SILENT_RULES, silentGroup } from './health-silent.ts'
import { groupOf, type K8sObject } from './object.ts'
import { isBuiltInGroup } from './order.ts'

export { HEALTHY, type Health } from './health-object.ts'

/** The options that the object's service sets. */
export interface HealthOptions {
  /** `sync.waitForAddress`. */
  waitForAddress: boolean
  /** `spec.health`; the first of the object's group and kind counts. */
  rules: readonly CompiledRule[]
  /** HealthRules that concern the service, those of its project first. */
  fleetRules?: readonly FleetRule[]
  /** From discovery: the kind has a status subresource. Absent means not known: then the grace time of HE17 does not
   *  end. */
  hasStatus?: boolean
  /** Another object of the kind has a status in this cluster (HE17). */
  siblingsReport?: boolean
}

/**
 * Called with the rule that decides: `deletion`, `observedGeneration`, `service`, `healthrule:web/thing`, `stop`,
 * `condition:Stalled`, `kind:apps/Deployment`, `general`, `existence`.
 */
export type NoteRule = (rule: string) => void

/** HE1: deletion and observedGeneration first, then the service's own rule, then HealthRules, then a stop asked for,
 *  Stalled and Reconciling, then the rule of the kind, then the general evaluation. */
export function healthOf(object: K8sObject, nowMs: number, options?: Partial<HealthOptions>, note?: NoteRule): Health {
  const deleting = deletionText(object)
  if (deleting !== null) {
    note?.('deletion')
    return progressing('Deleting', deleting)
  }
  const reading = readObject(object, nowMs, options)
  const group = groupOf(object.apiVersion)
  const unseen = generationUnseen(reading, object.metadata.generation)
  if (unseen !== null) {
    note?.('observedGeneration')
    return unseen
  }
  const own = options?.rules?.find((rule) => rule.group === group && rule.kind === object.kind)
  if (own !== undefined) {
    note?.('service')
    return healthByRule(own, object)
  }
  for (const rule of options?.fleetRules ?? []) {
    const health = concerns(rule, object) ? healthByFleetRule(rule, object) : null
    if (health === null) continue
    note?.(`healthrule:${rule.id}`)
    return health
  }
  const isCustom = !isBuiltInGroup(group)
  const stopped = isCustom ? stopAskedFor(reading) : null
  if (stopped !== null) {
    note?.('stop')
    return stopped
  }
  const stalled = reading.condition('Stalled')
  if (stalled?.status === 'True') {
    note?.('condition:Stalled')
    return degraded(stalled.reason || 'Stalled', oneLine(stalled.message))
  }
  const reconciling = reading.condition('Reconciling')
  // Flux tries again after a failure: Ready tells about that failure.
  if (reconciling?.status === 'True' && reconciling.reason !== 'ProgressingWithRetry') {
    note?.('condition:Reconciling')
    return progressing(reconciling.reason || 'Reconciling', oneLine(reconciling.message))
  }
  const rule = KIND_RULES.get(`${group}/${object.kind}`) ?? (isCustom ? (familyRule(group) ?? silentGroup(group)) : null)
  note?.(rule !== null ? `kind:${group === '' ? '' : `${group}/`}${object.kind}` : isCustom ? 'general' : 'existence')
  if (rule !== null) return rule(reading)
  return isCustom ? generalHealth(reading) : HEALTHY
}

const KIND_RULES: ReadonlyMap<string, Rule> = new Map(
  [CORE_RULES, DATA_RULES, DELIVERY_RULES, NETWORK_RULES, OPERATOR_RULES, PLATFORM_RULES, PROVISION_RULES, SILENT_RULES].flatMap((rules) =>
    Object.entries(rules),
  ),
)

/** Argo Rollouts writes the number as a text. */
function generationUnseen({ status }: Reading, generation: number | undefined): Health | null {
  const raw = status['observedGeneration']
  const observed = typeof raw === 'string' && /^\d{1,15}$/.test(raw) ? Number(raw) : raw
  if (typeof observed !== 'number' || generation === undefined || observed >= generation) return null
  return progressing('GenerationNotObserved', `its controller has seen generation ${observed} of ${generation}`)
}

/** HE2: past its deadline, Progressing is Degraded. */
export function pastDeadline(health: Health, sinceMs: number, deadlineMs: number, nowMs: number): Health {
  if (health.word !== 'Progressing' || nowMs - sinceMs < deadlineMs) return health
  const message = `${health.message}; not healthy within ${Math.round(deadlineMs / 1000)} s (sync.healthDeadline)`.replace(/^; /, '')
  return degraded('DeadlineExceeded', message)
}
