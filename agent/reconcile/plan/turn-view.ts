// The input of a service's plan: the model, the live state, and the closed gates.
import type { ObjectRef } from '../../../shared/kube/object.ts'
import type { ApiResource } from '../../cluster/cluster.ts'
import type { Services, Site, Turns } from '../ports.ts'
import { accountTrouble } from '../snapshot/account.ts'
import { type Leave, leaveOf } from '../snapshot/fields/ignore.ts'
import type { OtherFields } from '../snapshot/fields/other-fields.ts'
import { isInForce, othersIn } from '../snapshot/fields/shaping.ts'
import { withEnd } from '../snapshot/finished-jobs.ts'
import type { ServiceSnapshot } from '../snapshot/service-model.ts'
import type { Wanted } from '../snapshot/wanted.ts'
import type { LiveView } from '../snapshot/watch/live-object.ts'
import { confirmationOf } from './gates/confirmation.ts'
import { allOf, type Gate } from './gates/gates.ts'
import { changeGate } from './gates/revision-gate.ts'
import { isApart, isKeptAsMade } from './left-alone.ts'
import { orderGate } from './order/phases.ts'
import { type PlanView, viewIn } from './plan-view.ts'
import { deletionHold } from './prune/prune-guard.ts'

const NOTHING_CONFIRMED: ReadonlySet<string> = new Set()

/** As the watches have it. */
export const liveIn = (
  { kinds, watches }: Pick<Site, 'kinds' | 'watches'>,
  object: { key: string; ref: ObjectRef; apiVersion: string },
): LiveView => viewIn({ find: kinds.find.bind(kinds), view: watches.view.bind(watches) }, object)

/** Gates of a service, in the order of their importance for a person. */
function gatesOf(model: ServiceSnapshot, deps: Site & Turns, change: Gate): Gate {
  const trouble = accountTrouble(model)
  if (trouble !== null) return () => trouble
  const { position } = model.hooks
  const order = position === null ? [] : [orderGate(position, model.inventory)]
  return allOf([deps.times.gate(model.id, deps.clock.nowMs()), change, ...order])
}

/** DR10: at the start nothing is decided about a scaled workload before its autoscalers are known. */
function viewForPlan(model: ServiceSnapshot, { autoscalers, watches }: Site, resource: ApiResource, key: string): LiveView {
  const view = withEnd(watches.view(resource, key), model.finishedJobs, key, model.inventory.get(key))
  if (view.kind !== 'present' || view.live.others === undefined) return view
  const scaled = model.wanted.get(key)?.leave?.scaled ?? []
  return scaled.length > 0 && autoscalers.isUncertain(scaled, view.live.others) ? { kind: 'unknown' } : view
}

/** `change`: of the service as a whole, for documents that are not applied yet. */
export function planView(model: ServiceSnapshot, deps: Site & Services & Turns, change: Gate = changeGate(model, deps).gate): PlanView {
  const { kinds, owners } = deps
  return {
    recreates: model.recreates,
    protect: model.row?.protect === true,
    deletionHold: deletionHold(model, deps),
    confirmed: model.row === null ? NOTHING_CONFIRMED : confirmationOf(model, model.row).names,
    id: model.id,
    clusterId: deps.clusterId,
    former: deps.former,
    sync: model.sync(),
    commit: model.row?.commit ?? null,
    revision: model.row?.digest ?? null,
    wanted: model.wanted,
    inventory: model.inventory,
    problems: model.problems,
    contacts: model.contacts,
    contests: model.contests,
    notes: model.notes,
    gate: gatesOf(model, deps, change),
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

/** RC15: the first object with another applied document than the wanted one. Null means none. */
export function notInForce(model: ServiceSnapshot, deps: Site): string | null {
  for (const wanted of model.wanted.values()) {
    const applied = model.inventory.get(wanted.key)?.appliedDoc ?? null
    if (applied === wanted.sent || isApart(wanted, applied) || isKeptAsMade(wanted)) continue
    if (!isInForce(wanted, leaveNow(wanted, deps, null), othersIn(liveIn(deps, wanted)), applied)) return wanted.key
  }
  return null
}

/** DR9, DR10: null for almost every object. `met`: others' fields of an object that was read and is not watched yet. */
function leaveNow(
  wanted: Wanted,
  { autoscalers, kinds, watches }: Pick<Site, 'autoscalers' | 'kinds' | 'watches'>,
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
