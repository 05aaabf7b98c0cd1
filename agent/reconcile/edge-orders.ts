// Local commands of a person to the running agent, without a network: hold, resume, and prune what the guard refused.
// Each command is stored before it takes effect, and is sent as an event.
import { z } from 'zod'
import type { PruneRefusal } from '../../shared/model/status.ts'
import { parseServiceKey, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { andMore } from '../../shared/runtime/messages.ts'
import { news, warning } from '../messages/event-messages.ts'
import { refusedOrder, sitePart } from '../messages/site-messages.ts'
import { keepConfirmation, remember } from './apply/remember.ts'
import { joinConfirmations } from './plan/gates/confirmation.ts'
import { type Holds, holdFacts, holdText, LAST_UNTIL_MS } from './plan/gates/hold.ts'
import type { Reports, Site, Storage, Turns } from './ports.ts'
import type { Hold } from './snapshot/kept-notes.ts'
import type { ServiceModel } from './snapshot/service-model.ts'

const by = z.string().min(1).max(256)
/** `project/service`. Null means all of the cluster. */
const scope = z
  .string()
  .regex(/^[a-z0-9.-]+\/[a-z0-9.-]+$/)
  .max(256)
export const edgeOrderSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('hold'),
    service: scope.nullable(),
    by,
    why: z.string().min(1).max(1_024),
    untilMs: z.number().int().positive().optional(),
  }),
  /** CM7: the local agent enforces instead of the other one. */
  z.object({ kind: z.literal('take_over'), by, why: z.string().min(1).max(1_024) }),
  z.object({ kind: z.literal('unhold'), service: scope.nullable(), by }),
  /** `digest`: of the list that was shown. */
  z.object({ kind: z.literal('confirm'), service: scope, digest: z.string().min(1).max(64), by }),
])
export type EdgeOrder = z.infer<typeof edgeOrderSchema>

export const edgeAnswerSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('done'), message: z.string() }),
  z.object({ kind: z.literal('refused'), message: z.string() }),
])
export type EdgeAnswer = z.infer<typeof edgeAnswerSchema>

export interface EdgeDeps {
  holds: Holds
  /** Null if there is no such service here. */
  modelOf(key: string): ServiceModel | null
  turn: Pick<Site, 'clock'> & Pick<Storage, 'state'> & Pick<Turns, 'wake'> & Pick<Reports, 'emit' | 'flushReports'>
  services(): readonly ServiceId[]
}

export function carryOutOrder(order: Exclude<EdgeOrder, { kind: 'take_over' }>, deps: EdgeDeps): EdgeAnswer {
  const model = order.service === null ? null : deps.modelOf(order.service)
  if (order.service !== null && model === null) return refusedOrder('service_not_here', { service: order.service })
  switch (order.kind) {
    case 'hold': {
      const { by: who, why, untilMs } = order
      const nowMs = deps.turn.clock.nowMs()
      if (untilMs !== undefined && untilMs <= nowMs) return refusedOrder('hold_has_ended')
      if (untilMs !== undefined && untilMs > LAST_UNTIL_MS) return refusedOrder('clock_not_set')
      return setHold(order.service, { by: who, why, sinceMs: nowMs, ...(untilMs === undefined ? {} : { untilMs }) }, who, deps)
    }
    case 'unhold':
      return setHold(order.service, null, order.by, deps)
    case 'confirm':
      return confirm(order, model, deps)
  }
}

function setHold(service: string | null, hold: Hold | null, by: string, { holds, turn, services }: EdgeDeps): EdgeAnswer {
  const { owner, facts } = holdFacts(service === null ? null : parseServiceKey(service), hold)
  remember({ id: owner }, turn, facts)
  holds.set(owner, hold)
  const what = service ?? sitePart('whole_cluster')
  const held = hold === null ? stillHeld(service === null ? services() : [parseServiceKey(service)], holds, turn.clock.nowMs()) : []
  const event =
    hold === null ? released(what, by, service, held) : news('Held', { what, hold: holdText({ ...hold, scope: service ?? '--all' }) })
  turn.emit({ ...event, ...(service === null ? {} : { service }) })
  turn.flushReports()
  for (const key of service === null ? services().map(serviceKey) : [service]) turn.wake(key)
  return { kind: 'done', message: event.message }
}

const NAMED_MAX = 5

/** Lifting one of two holds resumes nothing; the answer must say so. */
function released(what: string, by: string, service: string | null, held: readonly string[]) {
  if (held.length === 0) return news('Released', { what, by })
  if (service !== null) return news('Released.still', { what, by })
  return news('Released.butFor', { what, by, held: andMore(held.slice(0, NAMED_MAX), held.length), count: held.length })
}

const stillHeld = (services: readonly ServiceId[], holds: Holds, nowMs: number): string[] =>
  services.filter((id) => holds.ofSite(id, nowMs) !== null).map(serviceKey)

/** EC1: confirms a prune at the site by its digest. */
function confirm(
  { service, digest, by }: Extract<EdgeOrder, { kind: 'confirm' }>,
  model: ServiceModel | null,
  { turn }: EdgeDeps,
): EdgeAnswer {
  const refusal: PruneRefusal | null = model?.pruning.refusal ?? null
  if (model === null || refusal === null) return refusedOrder('nothing_to_confirm', { service })
  if (refusal.list !== digest) return refusedOrder('list_changed', { service })
  const confirmation = { digest: refusal.digest, by, atMs: turn.clock.nowMs(), names: refusal.names }
  keepConfirmation(model, turn, joinConfirmations(model.pruning.confirmation, confirmation))
  const named = { by, names: refusal.names.join(', ') }
  const event = refusal.only === true ? warning('PruneConfirmed', named) : warning('PruneConfirmed.all', { ...named, total: refusal.count })
  const message = event.message.slice(0, 1_000)
  turn.emit({ ...event, message, service })
  turn.flushReports()
  turn.wake(service)
  return { kind: 'done', message }
}
