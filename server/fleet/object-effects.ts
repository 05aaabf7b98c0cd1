// Effects of a new render on the objects of a service in a cluster, by name, with those on data and replicas. Pure.
import { deletionName, lossKind } from '../../shared/kube/data-loss.ts'
import { fields } from '../../shared/kube/health-object.ts'
import { type K8sObject, type ObjectRef, refKey } from '../../shared/kube/object.ts'
import { compareApply, comparePrune } from '../../shared/kube/order.ts'
import type { ObjectEffectsView } from '../../shared/model/apply-views.ts'
import { parseRowId } from '../../shared/model/desired.ts'

/** Named of each kind of effect. */
const NAMED_MAX = 20

interface Held {
  ref: ObjectRef
  text: string
}

/** Owners of objects beside the service itself, by the key of the object: `project/service`. Null means none. */
export interface OtherOwners {
  /** The service that takes over an object that the service loses. */
  taker(object: string): string | null
  /** The service that manages an object that the service gets. */
  holder(object: string): string | null
}
const NOBODY: OtherOwners = { taker: () => null, holder: () => null }

/** By row id. Null means that nothing is another. */
export function objectEffects(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
  { taker, holder }: OtherOwners = NOBODY,
): ObjectEffectsView | null {
  const lost = without(before, after)
  const gained = without(after, before)
  const takenOver = takeOut(lost, taker)
  const takesOver = takeOut(gained, holder)
  const recreated: Array<{ from: Held; to: Held }> = []
  for (const [key, from] of lost) {
    const found = [...gained].find(([, to]) => isNamesake(from.ref, to.ref))
    if (found === undefined) continue
    recreated.push({ from, to: found[1] })
    lost.delete(key)
    gained.delete(found[0])
  }
  const changed: Array<{ from: Held; to: Held }> = []
  for (const [id, text] of after) {
    const [was, to] = [before.get(id), heldOf(id, text)]
    if (was !== undefined && was !== text && to !== null) changed.push({ from: { ref: to.ref, text: was }, to })
  }
  const owned = takenOver.length + takesOver.length
  if (lost.size + gained.size + recreated.length + changed.length + owned === 0) return null
  const goes = [...lost.values(), ...recreated.map(({ from }) => from)]
  const isData = ({ ref }: Held) => ['data', 'contents'].includes(lossKind(ref) ?? '')
  return {
    deleted: named([...lost.values()].map(({ ref }) => ref).sort(comparePrune)),
    recreated: {
      count: recreated.length,
      first: recreated
        .sort((a, b) => compareApply(a.to.ref, b.to.ref))
        .slice(0, NAMED_MAX)
        .map(({ from, to }) => ({ from: deletionName(from.ref), to: deletionName(to.ref) })),
    },
    created: named([...gained.values()].map(({ ref }) => ref).sort(compareApply)),
    changed: named(changed.map(({ to }) => to.ref).sort(compareApply)),
    data: named(
      goes
        .filter(isData)
        .map(({ ref }) => ref)
        .sort(comparePrune),
    ),
    ...(takenOver.length === 0 ? {} : { takenOver: ownedView(takenOver) }),
    ...(takesOver.length === 0 ? {} : { takesOver: ownedView(takesOver) }),
    replicas: [...changed, ...recreated].flatMap(({ from, to }) => replicasOf(from, to)).slice(0, NAMED_MAX),
  }
}

interface Owned {
  ref: ObjectRef
  by: string
}

/** Removes the objects that have another owner. */
function takeOut(all: Map<string, Held>, ownerOf: (object: string) => string | null): Owned[] {
  const found: Owned[] = []
  for (const [id, { ref }] of all) {
    const by = ownerOf(refKey(ref))
    if (by === null) continue
    found.push({ ref, by })
    all.delete(id)
  }
  return found.sort((a, b) => compareApply(a.ref, b.ref))
}

const ownedView = (owned: readonly Owned[]) => ({
  count: owned.length,
  first: owned.slice(0, NAMED_MAX).map(({ ref, by }) => ({ name: deletionName(ref), by })),
})

/** Keys of objects among `all` that `others` does not have. */
export const keysWithout = (all: ReadonlyMap<string, string>, others: ReadonlyMap<string, string>): Set<string> =>
  new Set([...without(all, others).values()].map(({ ref }) => refKey(ref)))

function without(all: ReadonlyMap<string, string>, others: ReadonlyMap<string, string>): Map<string, Held> {
  const found = new Map<string, Held>()
  for (const [id, text] of all) {
    const held = others.has(id) ? null : heldOf(id, text)
    if (held !== null) found.set(id, held)
  }
  return found
}

function heldOf(id: string, text: string): Held | null {
  const row = parseRowId(id)
  return row.kind === 'object' ? { ref: row.ref, text } : null
}

/** The same object in another namespace. */
const isNamesake = (a: ObjectRef, b: ObjectRef): boolean => a.group === b.group && a.kind === b.kind && a.name === b.name

const named = (refs: readonly ObjectRef[]): ObjectEffectsView['deleted'] => ({
  count: refs.length,
  first: refs.slice(0, NAMED_MAX).map(deletionName),
})

function replicasOf(from: Held, to: Held): ObjectEffectsView['replicas'] {
  const [was, is] = [from, to].map(({ text }) => fields((JSON.parse(text) as K8sObject)['spec'])['replicas'])
  const count = (value: unknown) => (typeof value === 'number' ? value : null)
  return count(was) === count(is) ? [] : [{ name: deletionName(to.ref), from: count(was), to: count(is) }]
}
