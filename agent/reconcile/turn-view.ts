// What a service's turn looks like to its plan: the model, the live picture, and the gates that are shut.
import type { ApiResource } from '../cluster/cluster.ts'
import { isApart, isKeptAsMade } from './apply/left-alone.ts'
import { type Leave, leaveOf } from './fields/ignore.ts'
import type { OtherFields } from './fields/other-fields.ts'
import { isInForce, othersIn } from './fields/shaping.ts'
import { allOf, type Gate } from './gates/gates.ts'
import { changeGate } from './gates/revision-gate.ts'
import { orderGate } from './order/phases.ts'
import type { PlanView } from './plan-view.ts'
import type { ServiceModel } from './service-model.ts'
import { accountTrouble, liveIn, type TurnDeps } from './turn-deps.ts'
import type { Wanted } from './wanted.ts'
import type { LiveView } from './watch/watches.ts'

/** Gates of a service, in the order in which a person would want to hear of them. */
function gatesOf(model: ServiceModel, deps: TurnDeps): Gate {
  const trouble = accountTrouble(model)
  return trouble === null
    ? allOf([deps.times.gate(model.id, deps.clock.nowMs()), changeGate(model, deps), orderGate(model.hooks.position, model.inventory)])
    : () => trouble
}

/** DR10: at the start nothing is decided about a workload that somebody scaled before its autoscalers are known. */
function viewForPlan(model: ServiceModel, { autoscalers, watches }: TurnDeps, resource: ApiResource, key: string): LiveView {
  const view = watches.view(resource, key)
  if (view.kind !== 'present' || view.live.others === undefined) return view
  const scaled = model.wanted.get(key)?.leave?.scaled ?? []
  return scaled.length > 0 && autoscalers.isUncertain(scaled, view.live.others) ? { kind: 'unknown' } : view
}

export function planView(model: ServiceModel, deps: TurnDeps): PlanView {
  const { kinds, owners } = deps
  return {
    recreates: model.recreates,
    protect: model.row?.protect === true,
    id: model.id,
    clusterId: deps.clusterId,
    sync: model.sync(),
    wanted: model.wanted,
    inventory: model.inventory,
    problems: model.problems,
    contacts: model.contacts,
    contests: model.contests,
    notes: model.notes,
    gate: gatesOf(model, deps),
    leave: (wanted, met = null) => leaveNow(wanted, deps, met),
    view: (resource, key) => viewForPlan(model, deps, resource, key),
    find: (group, version, kind) => kinds.find(group, version, kind),
    findAny: (group, version, kind) => kinds.findAny(group, version, kind),
    takenBy: (key) => {
      const owner = owners.get(key)
      return owner === undefined || (owner.project === model.id.project && owner.service === model.id.service) ? null : owner
    },
    nowMs: deps.clock.nowMs(),
  }
}

/** RC15: the first object of which another document is in force than the wanted one; null: none. */
export function notInForce(model: ServiceModel, deps: TurnDeps): string | null {
  for (const wanted of model.wanted.values()) {
    const applied = model.inventory.get(wanted.key)?.appliedDoc ?? null
    if (applied === wanted.sent || isApart(wanted, applied) || isKeptAsMade(wanted)) continue
    if (!isInForce(wanted, leaveNow(wanted, deps, null), othersIn(liveIn(deps, wanted)), applied)) return wanted.key
  }
  return null
}

/** DR9, DR10: null for almost every object. `met`: others' fields of an object that was looked at and is not watched yet. */
function leaveNow(
  wanted: Wanted,
  { autoscalers, kinds, watches }: Pick<TurnDeps, 'autoscalers' | 'kinds' | 'watches'>,
  met: readonly OtherFields[] | null,
): Leave | null {
  const { key, leave } = wanted
  if (leave === undefined) return null
  if (leave.scaled.length === 0) return leaveOf(leave, [])
  const others = met ?? othersIn(liveIn({ kinds, watches }, wanted))
  return leaveOf(
    leave,
    autoscalers.of(key, others).map(({ part }) => part),
  )
}
