// The part of a service that outlives this process: its inventory, its progress, and its facts. Reconciliations write
// them only here, before anything relies on them; plans only return what to store. A failure between two of these
// writes costs repeated work, and never an object.
import { type ObjectRef, refKey } from '../../../shared/kube/object.ts'
import { confirmationToken, type ServiceRow } from '../../../shared/model/desired.ts'
import { type ObjectStatus, objectStatusSchema, serviceStatusSchema } from '../../../shared/model/status.ts'
import { type ServiceId, serviceKey } from '../../../shared/runtime/ids.ts'
import { type AgentState, entryOnPaper, type InventoryEntry, type ServiceState } from '../../state/agent-state.ts'
import { isOutdated } from '../plan/gates/confirmation.ts'
import { recallBegun } from '../plan/gates/revision-gate.ts'
import { recallKept } from '../plan/prune/prune-plan.ts'
import type { StepOf } from '../plan/step.ts'
import type { Services, Site, Storage, Turns } from '../ports.ts'
import { recallActing } from '../snapshot/account.ts'
import { FinishedJobs } from '../snapshot/finished-jobs.ts'
import { HookBook } from '../snapshot/hooks.ts'
import {
  confirmationFact,
  type Recreate,
  readRecreates,
  recallConfirmation,
  recreateFacts,
  type SiteConfirmation,
} from '../snapshot/kept-notes.ts'
import { type Recalled, ServiceModel } from '../snapshot/service-model.ts'
import { recallDegraded } from '../snapshot/service-state.ts'
import { readRefusedNulls, refusedNullsFact } from '../snapshot/wanted.ts'

/** By key; null drops one. */
export type Facts = ReadonlyMap<string, unknown>
type State = Pick<Storage, 'state'>

/** As a former process left it. */
export const recallService = (id: ServiceId, state: AgentState): ServiceModel =>
  new ServiceModel(id, {
    inventory: state.inventory(id),
    progress: state.serviceState(id),
    ...recallFacts(state.facts(id, '')),
    said: serviceStatusSchema.safeParse(state.lastReported('service', serviceKey(id))).data ?? null,
  })

const recallFacts = (facts: Facts): Omit<Recalled, 'inventory' | 'progress' | 'said'> => ({
  hooks: new HookBook(facts),
  finishedJobs: new FinishedJobs(facts),
  acting: recallActing(facts),
  recreates: readRecreates(facts),
  refusedNulls: readRefusedNulls(facts),
  confirmation: recallConfirmation(facts),
  keepsNamespace: recallKept(facts),
  begun: recallBegun(facts),
  degraded: recallDegraded(facts),
})

/** Null, or none: there is nothing new to store. */
export function remember({ id }: { id: ServiceId }, { state }: { state: Pick<AgentState, 'setFacts'> }, facts: Facts | null): void {
  if (facts !== null && facts.size > 0) state.setFacts(id, facts)
}

/** IV1: objects enter the inventory in the file before anything else. Returns those that did; objects of another
 *  service stay its own. */
export function takeIn<T extends { ref: ObjectRef; apiVersion: string; uid?: string | null }>(
  model: ServiceModel,
  { state, owners }: State & Pick<Services, 'owners'>,
  objects: readonly T[],
): string[] {
  if (objects.length === 0) return []
  const taken = new Set(state.widenInventory(model.id, objects).map(refKey))
  const keys: string[] = []
  for (const { ref, apiVersion, uid } of objects) {
    const key = refKey(ref)
    if (taken.has(key) || model.inventory.has(key)) continue
    model.objects.own(entryOnPaper({ ref, apiVersion }, uid ?? undefined))
    owners.set(key, model.id)
    keys.push(key)
  }
  return keys
}

/** A service that has an object from now on, on paper. */
export interface Heir {
  model: ServiceModel
  entry: InventoryEntry
}

/**
 * The API server said that they are gone, or another service has them: the heirs among `refs` in the same write. The
 * next owners learn of it after this.
 */
export function letGo(
  model: ServiceModel,
  { state, owners }: State & Pick<Services, 'owners'>,
  refs: readonly ObjectRef[],
  heirs: readonly Heir[] = [],
): void {
  if (refs.length === 0) return
  state.narrowInventory(
    model.id,
    refs,
    heirs.map(({ model: { id }, entry: { ref, apiVersion } }) => ({ service: id, ref, apiVersion })),
  )
  for (const ref of refs) {
    const owner = owners.get(refKey(ref))
    if (owner !== undefined && serviceKey(owner) === model.key) owners.delete(refKey(ref))
  }
  for (const { model: heir, entry } of heirs) {
    const key = refKey(entry.ref)
    heir.objects.own(entry)
    heir.foundByLabel.delete(key)
    heir.queue.mark(key)
    owners.set(key, heir.id)
  }
}

/**
 * The API server confirmed a delete of this service. Another service with the object in its inventory is notified,
 * because the watch takes its deletion as known.
 */
export function dropDeleted(
  { key: service }: ServiceModel,
  { watches, owners, modelOf, wake }: Pick<Site, 'watches'> & Pick<Services, 'owners' | 'modelOf'> & Pick<Turns, 'wake'>,
  { resource, key, uid }: StepOf<'delete' | 'recreate'>,
): void {
  watches.drop(resource, key, uid)
  const owner = owners.get(key)
  const other = owner === undefined || serviceKey(owner) === service ? null : modelOf(serviceKey(owner))
  if (other === null) return
  other.queue.mark(key)
  wake(other.key)
}

/** Stores applied documents; without `entries`, all that are not stored yet. */
export function writeApplied(
  model: ServiceModel,
  { state }: { state: Pick<AgentState, 'recordApplied'> },
  entries: readonly InventoryEntry[] = model.takeUnrecorded(),
): void {
  state.recordApplied(model.id, entries)
}

/** For events of objects. `recordEnded` stores the records of turns that just ended, which are older. */
export const keepBesideTurns = (deps: State, recordEnded: () => void) => ({
  settled(model: ServiceModel, entry: InventoryEntry): void {
    recordEnded()
    writeApplied(model, deps, [entry])
  },
  facts: (model: ServiceModel, facts: Facts): void => remember(model, deps, facts),
})

/** In memory; a report writes it with its rows. */
export const reaches = ({ progress }: ServiceModel, reached: ServiceState): void => progress.reaches(reached)

export function writeProgress(model: ServiceModel, { state }: State, progress: ServiceState): void {
  reaches(model, progress)
  state.setServiceState(model.id, progress)
}

/** Its removal is carried out, or no row names it any more and nothing of it is left. */
export function forgetService(model: ServiceModel, { state }: State): void {
  state.forgetService(model.id)
  model.startOver()
  reaches(model, { applied: null, healthy: null })
}

/** The last status of an object, also from before this start. */
export function lastObject(model: ServiceModel, { state }: State, key: string): ObjectStatus | null {
  const known = model.statuses.get(key)
  if (known !== undefined) return known
  const parsed = objectStatusSchema.safeParse(state.lastReported('object', `${model.key}/${key}`))
  return parsed.success ? parsed.data : null
}

/** AO5. Null means that it is not being recreated, or no longer. */
export function keepRecreates(model: ServiceModel, deps: State, notes: ReadonlyMap<string, Recreate | null>): void {
  const news = new Map([...notes].filter(([key, note]) => note !== null || model.recreates.has(key)))
  remember(model, deps, recreateFacts(news))
  for (const [key, note] of news) model.objects.setRecreate(key, note)
}

/** RC25. Null means that no refusal is known. True: it is new. */
export function keepRefusedNulls(model: ServiceModel, deps: State, key: string, document: string | null): boolean {
  if ((model.refusedNulls.get(key) ?? null) === document) return false
  remember(model, deps, refusedNullsFact(key, document))
  model.objects.refuseNulls(key, document)
  return true
}

export function keepConfirmation(model: ServiceModel, deps: State, confirmation: SiteConfirmation): void {
  remember(model, deps, confirmationFact(confirmation))
  model.pruning.confirm(confirmation)
}

/** EC1: those of other revisions and orders. */
export function dropOutdatedConfirmation({ id, pruning }: ServiceModel, deps: State, row: ServiceRow): void {
  if (pruning.confirmedHere !== confirmationToken(row)) pruning.forgetConfirmedHere()
  if (!isOutdated(pruning.confirmation, row)) return
  remember({ id }, deps, confirmationFact(null))
  pruning.forgetConfirmation()
}

/** NS2: an object in the namespace of the service was released and has to stay. */
export function keepNamespace(model: ServiceModel, deps: State, facts: Facts): void {
  if (!model.removal.keepsNamespace) remember(model, deps, facts)
  model.removal.keepNamespace()
}
