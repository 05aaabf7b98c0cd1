// An order at the site to change nothing for now: who gave it, why, and until when. It is stored with the agent's
// state, so that it outlives a restart, and works without a network. It closes the same gates as a window: new
// documents, prunes and the correction of manual changes; deleted objects are restored. A suspension is such an order
// on the server, and closes all gates.

import { suspendedText } from '../../../../shared/model/suspension.ts'
import { type ServiceId, serviceKey } from '../../../../shared/runtime/ids.ts'
import { serviceText } from '../../../messages/service-messages.ts'
import type { AgentState } from '../../../state/agent-state.ts'
import { type ActiveHold, type Hold, holdSchema } from '../../snapshot/kept-notes.ts'
import { type Closed, closed } from '../../snapshot/situation.ts'
import { type ActiveSuspension, keptSuspensions, SUSPENSIONS_FACT, type SuspensionRows, Suspensions } from './suspensions.ts'

/** Names have no star: facts that belong to all services. */
const WHOLE_CLUSTER: ServiceId = { project: '*', service: '*' }
const FACT = 'hold/site'

/** To be stored before it counts. `id` null: the whole cluster. `hold` null: lifted. */
export const holdFacts = (id: ServiceId | null, hold: Hold | null): { owner: ServiceId; facts: ReadonlyMap<string, unknown> } => ({
  owner: id ?? WHOLE_CLUSTER,
  facts: new Map([[FACT, hold]]),
})

/** To be written down before it counts. */
export const suspensionFacts = (rows: SuspensionRows): { owner: ServiceId; facts: ReadonlyMap<string, unknown> } => ({
  owner: WHOLE_CLUSTER,
  facts: new Map([[SUSPENSIONS_FACT, rows.length === 0 ? null : rows]]),
})

const asHold = (suspension: ActiveSuspension | null): ActiveHold | null => (suspension === null ? null : { ...suspension, scope: '' })

/** The stored suspension or hold of the whole cluster. */
export function holdOfCluster(state: Pick<AgentState, 'facts'>, nowMs: number): ActiveHold | null {
  const suspension = keptSuspensions(state.facts(WHOLE_CLUSTER, SUSPENSIONS_FACT).get(SUSPENSIONS_FACT)).whole
  if (suspension !== null) return asHold(suspension)
  const hold = readHold(state.facts(WHOLE_CLUSTER, FACT).get(FACT))
  return hold === null || nowMs >= endOf(hold) ? null : { ...hold, scope: '--all' }
}

const readHold = (fact: unknown): Hold | null => (fact === undefined ? null : (holdSchema.safeParse(fact).data ?? null))

/** All holds of the cluster. They are read from the state once, because each reconciliation asks several times and
 *  few services are held. */
export class Holds {
  /** By service key. */
  readonly #holds = new Map<string, Hold>()
  #suspensions: Suspensions

  constructor(state: Pick<AgentState, 'factsOf'>) {
    this.#suspensions = keptSuspensions(state.factsOf(SUSPENSIONS_FACT).get(serviceKey(WHOLE_CLUSTER)))
    for (const [service, fact] of state.factsOf(FACT)) {
      const hold = readHold(fact)
      if (hold !== null) this.#holds.set(service, hold)
    }
  }

  isSuspendedAs(rows: SuspensionRows): boolean {
    return this.#suspensions.isSame(rows)
  }

  suspend(rows: SuspensionRows): void {
    this.#suspensions = new Suspensions(rows)
  }

  /** SU4: a suspension takes precedence over a hold, because it closes more gates. */
  of(id: ServiceId, nowMs: number): ActiveHold | null {
    return asHold(this.#suspensions.of(id)) ?? this.ofSite(id, nowMs)
  }

  /** The hold that was ordered at the site, for the service or the whole cluster. Of two the longer one counts. */
  ofSite(id: ServiceId, nowMs: number): ActiveHold | null {
    if (this.#holds.size === 0) return null
    const own = this.#holds.get(serviceKey(id)) ?? null
    const whole = this.#holds.get(serviceKey(WHOLE_CLUSTER)) ?? null
    const longer = own === null || endOf(whole) > endOf(own) ? whole : own
    const hold = longer !== null && nowMs < endOf(longer) ? longer : null
    return hold === null ? null : { ...hold, scope: hold === own ? serviceKey(id) : '--all' }
  }

  /** It was written down. Null means lifted. */
  set(owner: ServiceId, hold: Hold | null): void {
    if (hold === null) this.#holds.delete(serviceKey(owner))
    else this.#holds.set(serviceKey(owner), hold)
  }

  /** The service is gone, its facts with it. */
  forget(id: ServiceId): void {
    this.#holds.delete(serviceKey(id))
  }
}

const endOf = (hold: Hold | null): number => (hold === null ? Number.NEGATIVE_INFINITY : (hold.untilMs ?? Number.POSITIVE_INFINITY))

/** The last year with four digits: a later time cannot be shown. */
export const LAST_UNTIL_MS = 253_402_300_799_999

const minuteText = (ms: number): string => `${new Date(Math.min(ms, LAST_UNTIL_MS)).toISOString().slice(0, 16)}Z`

/** The same text for as long as the hold is the same. */
export function holdText({ by, why, sinceMs, untilMs, scope, suspended }: ActiveHold): string {
  if (suspended !== undefined) return suspendedText({ by, why, sinceMs }, suspended)
  const until = untilMs === undefined ? '' : minuteText(untilMs)
  return serviceText('Held', { by, since: minuteText(sinceMs), until, why, scope })
}

export const holdReason = ({ suspended }: ActiveHold): 'Held' | 'Suspended' => (suspended === undefined ? 'Held' : 'Suspended')

export const heldGate = (hold: ActiveHold): Closed => closed(holdReason(hold), holdText(hold))
