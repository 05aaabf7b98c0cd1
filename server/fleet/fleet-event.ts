// Events that the server itself adds to the stream: one for each change of state, none for a tick.
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { withTrace } from '../../shared/runtime/trace-id.ts'
import type { FleetEvent, UnnumberedEvent } from './records.ts'

export type NewEvent = UnnumberedEvent

/** From the catalogue: `news` or `warning`. */
export type SaidEvent = Pick<FleetEvent, 'type' | 'reason' | 'message'>

interface About {
  project?: string
  service?: ServiceId
  cluster?: string
  /** Correlation id. */
  trace?: string | undefined
}

export function fleetEvent(atMs: number, said: SaidEvent, about: About): NewEvent {
  const { service, cluster = null, trace } = about
  const project = service?.project ?? about.project ?? null
  return { atMs, ...said, cluster, project, service: service?.service ?? null, object: null, ...withTrace(trace) }
}
