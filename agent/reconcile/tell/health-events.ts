// The events of a service that stops being well and is well again: one at each end, however long it lasts, whatever comes between and however often the agent starts.
import { type ObjectRef, refText } from '../../../shared/kube/object.ts'
import { compareRefs } from '../../../shared/kube/order.ts'
import type { EventStatus, ObjectStatus, ServiceStatus } from '../../../shared/model/status.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { ServiceModel } from '../service-model.ts'

const FACT = 'health/degraded'
const MESSAGE_CHARS_MAX = 1_000

interface HealthChange {
  /** It was Degraded and has not been well since. */
  wasDegraded: boolean
  /** What was said of it last, also before this start; null: nothing. */
  previous: ServiceStatus | null
  now: ServiceStatus
  objects: Iterable<{ ref: ObjectRef; status: ObjectStatus }>
}

interface HealthTurn {
  isDegraded: boolean
  event: Pick<EventStatus, 'type' | 'reason' | 'message'> | null
}

/** HE11. On its way back a service is Progressing, Missing or Unknown: neither an end nor another beginning. */
export function healthTurn({ wasDegraded, previous, now, objects }: HealthChange): HealthTurn {
  if (now.health === 'Degraded') {
    if (wasDegraded || previous?.health === 'Degraded') return { isDegraded: true, event: null }
    const message = worstText(objects) ?? (now.message || now.reason)
    return { isDegraded: true, event: { type: 'Warning', reason: 'Degraded', message: message.slice(0, MESSAGE_CHARS_MAX) } }
  }
  const isWell = now.health === 'Healthy' || now.health === 'Suspended'
  if (!wasDegraded || !isWell) return { isDegraded: wasDegraded, event: null }
  if (previous !== null && (previous.health === 'Healthy' || previous.health === 'Suspended')) return { isDegraded: false, event: null }
  return { isDegraded: false, event: { type: 'Normal', reason: 'Healthy', message: 'it is well again: none of its objects is Degraded' } }
}

function worstText(objects: HealthChange['objects']): string | null {
  let count = 0
  let first: { ref: ObjectRef; status: ObjectStatus } | null = null
  for (const object of objects) {
    if (object.status.health !== 'Degraded') continue
    count += 1
    if (first === null || compareRefs(object.ref, first.ref) < 0) first = object
  }
  if (first === null) return null
  const more = count === 1 ? '' : ` (and ${count - 1} more)`
  return `${refText(first.ref)}: ${first.status.message || first.status.reason}${more}`
}

/** Read once for a service. */
export const wasDegraded = (model: Pick<ServiceModel, 'id' | 'degraded'>, state: Pick<AgentState, 'facts'>): boolean => {
  model.degraded ??= state.facts(model.id, FACT).has(FACT)
  return model.degraded
}

export function noteDegraded(model: Pick<ServiceModel, 'id' | 'degraded'>, state: Pick<AgentState, 'setFacts'>, isDegraded: boolean): void {
  if (model.degraded === isDegraded) return
  state.setFacts(model.id, new Map([[FACT, isDegraded ? {} : null]]))
  model.degraded = isDegraded
}
