// The events of a service that becomes unhealthy and healthy again: one at each end, however long it lasts, whatever
// happens between and however often the agent starts.
import { type EventStatus, isWell, type ServiceStatus } from '../../../shared/model/status.ts'
import { news, warning } from '../../messages/event-messages.ts'
import { firstSaid, type SaidObject } from './outcome.ts'

const MESSAGE_CHARS_MAX = 1_000

interface HealthChange {
  /** It was Degraded and has not been well since. */
  wasDegraded: boolean
  /** Its last report, also from before this start. Null means none. */
  previous: ServiceStatus | null
  now: ServiceStatus
  objects: Iterable<SaidObject>
}

interface HealthTurn {
  isDegraded: boolean
  event: Pick<EventStatus, 'type' | 'reason' | 'message'> | null
}

/** HE11. On its way back a service is Progressing, Missing or Unknown: neither an end nor another beginning. */
export function healthTurn({ wasDegraded, previous, now, objects }: HealthChange): HealthTurn {
  if (now.health === 'Degraded') {
    if (wasDegraded || previous?.health === 'Degraded') return { isDegraded: true, event: null }
    const message = firstSaid(degradedOf(objects))?.message ?? (now.message || now.reason)
    return { isDegraded: true, event: warning('Degraded', { message: message.slice(0, MESSAGE_CHARS_MAX) }) }
  }
  if (!wasDegraded || !isWell(now.health)) return { isDegraded: wasDegraded, event: null }
  if (previous !== null && isWell(previous.health)) return { isDegraded: false, event: null }
  return { isDegraded: false, event: news('Healthy') }
}

function* degradedOf(objects: HealthChange['objects']): Generator<SaidObject> {
  for (const object of objects) if (object.status.health === 'Degraded') yield object
}
