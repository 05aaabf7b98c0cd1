// Events that the server itself adds to the stream: one for each change of state, none for a tick.
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { withTrace } from '../../shared/runtime/trace-id.ts'
import type { FleetEvent, UnnumberedEvent } from './records.ts'

export type NewEvent = UnnumberedEvent

interface About {
  project?: string
  service?: ServiceId
  cluster?: string
  /** Correlation id. */
  trace?: string | undefined
}

export function fleetEvent(atMs: number, type: FleetEvent['type'], reason: string, message: string, about: About): NewEvent {
  const { service, cluster = null, trace } = about
  const project = service?.project ?? about.project ?? null
  return { atMs, type, reason, message, cluster, project, service: service?.service ?? null, object: null, ...withTrace(trace) }
}
