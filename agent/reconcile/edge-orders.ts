// Local commands of a person to the running agent, without a network: hold, resume, and prune what the guard refused.
// Each command is stored before it takes effect, and is sent as an event.
import { z } from 'zod'
import { parseServiceKey, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import type { PruneRefusal } from '../../shared/model/status.ts'
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
  if (order.service !== null && model === null) return { kind: 'refused', message: `service ${order.service} is not in this cluster` }
  switch (order.kind) {
    case 'hold': {
      const { by: who, why, untilMs } = order
      const nowMs = deps.turn.clock.nowMs()
      if (untilMs !== undefined && untilMs <= nowMs) return { kind: 'refused', message: 'the end of the hold is in the past' }
      if (untilMs !== undefined && untilMs > LAST_UNTIL_MS)
        return {
          kind: 'refused',
          message:
            'the clock of this machine is not set, so the hold cannot have an end; a hold without an end lasts until `skerry-agent unhold`',
        }
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
  const whole = service ?? 'the whole cluster'
  const held = hold === null ? stillHeld(service === null ? services() : [parseServiceKey(service)], holds, turn.clock.nowMs()) : []
  const message =
    hold === null
      ? `${releasedText(whole, service, held)}; lifted by ${by}`
      : `${whole} is ${holdText({ ...hold, scope: service ?? '--all' })}`
  turn.emit({ type: 'Normal', reason: hold === null ? 'Released' : 'Held', message, ...(service === null ? {} : { service }) })
  turn.flushReports()
  for (const key of service === null ? services().map(serviceKey) : [service]) turn.wake(key)
  return { kind: 'done', message }
}

const NAMED_MAX = 5

/** Lifting one of two holds resumes nothing; the answer must say so. */
function releasedText(whole: string, service: string | null, held: readonly string[]): string {
  if (held.length === 0) return `${whole} goes on`
  if (service !== null) return `${whole} is still held with the whole cluster (\`skerry-agent unhold --all\`)`
  const more = held.length > NAMED_MAX ? ` and ${held.length - NAMED_MAX} more` : ''
  return `${whole} goes on but for ${held.slice(0, NAMED_MAX).join(', ')}${more}, held by ${held.length === 1 ? 'a hold of its own' : 'holds of their own'}`
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
  if (model === null || refusal === null) return { kind: 'refused', message: `no pending confirmation for ${service}` }
  if (refusal.list !== digest)
    return {
      kind: 'refused',
      message: `the list of ${service} has changed since it was shown: run \`skerry-agent confirm ${service}\` again`,
    }
  const confirmation = { digest: refusal.digest, by, atMs: turn.clock.nowMs(), names: refusal.names }
  keepConfirmation(model, turn, joinConfirmations(model.pruning.confirmation, confirmation))
  const of = refusal.only === true ? '' : ` of ${refusal.count} objects in total`
  const message = `${by} confirmed at the site: delete ${refusal.names.join(', ')}${of}`.slice(0, 1_000)
  turn.emit({ type: 'Warning', reason: 'PruneConfirmed', message, service })
  turn.flushReports()
  turn.wake(service)
  return { kind: 'done', message }
}
