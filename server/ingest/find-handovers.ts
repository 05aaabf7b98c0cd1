// Finds the services that gain the objects that a service is about to lose. Called only for a loss: most commits change
// objects and move none.
import { objectRowPrefix, type ServiceRow } from '../../shared/model/desired.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import { type Gainer, type Handover, handoversTo } from '../fleet/handover.ts'
import { type ObjectNames, objectNames } from '../fleet/named-objects.ts'
import type { DesiredService } from '../fleet/records.ts'
import { type TargetCluster, targetsOf, withDestinations } from '../fleet/targeting.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'
import { parseServiceSpec } from './known-specs.ts'
import { readProject } from './projects.ts'
import type { ServiceRenderer } from './render/service-render.ts'

export interface HandoverDeps {
  store: Pick<Store, 'desiredOfService' | 'getResource'>
  content: Pick<ContentStore, 'get'>
  renderer: Pick<ServiceRenderer, 'rendersNaming'>
}

/** By the row of a cluster: what its next revision, or its removal, hands over. */
export type HandoverOf = (row: DesiredService, deed: 'revision' | 'removal') => Handover[]

const NOTHING: HandoverOf = () => []
const NO_NAMES: ReadonlySet<string> = new Set()

/** Read only when another service names an object. */
export type ClustersToRead = readonly TargetCluster[] | (() => Promise<readonly TargetCluster[]>)

export interface HandoverRender {
  digest: string
  objects: ReadonlyMap<string, string>
}

/** PR8: what the revisions that come now lose to other services, by row. Reads nothing as long as nothing is lost. */
export async function findHandovers(
  { store, content, renderer }: HandoverDeps,
  id: ServiceId,
  current: readonly DesiredService[],
  clusters: ClustersToRead,
  /** Its new content in a cluster. Null means unchanged there. Null altogether: the service is being deleted. */
  renderIn: ((clusterId: ClusterId) => HandoverRender | null) | null,
  targets: ReadonlySet<ClusterId>,
): Promise<HandoverOf> {
  const isLeft = ({ clusterId }: DesiredService) => renderIn === null || !targets.has(clusterId)
  const renderOf = ({ clusterId }: DesiredService) => renderIn?.(clusterId) ?? null
  const losesNothing = (row: DesiredService) => [null, row.doc?.digest].includes(renderOf(row)?.digest ?? null)
  if (current.every((row) => row.doc === null || (!isLeft(row) && losesNothing(row)))) return NOTHING
  const namesOf = createSetNames(content)
  const prefix = objectRowPrefix(id)
  const holds = namesHeld()
  const held = new Map<DesiredService, ReadonlySet<string>>()
  const lookedAt = new Map<HandoverRender['objects'] | null, Set<ReadonlySet<string>>>() // by what stays; null: nothing does
  const all = new Set<string>()
  for (const row of current) {
    if (row.doc === null) continue
    const names = holds(await namesOf(row.setSha, prefix), row.doc.handover)
    held.set(row, names)
    const render = isLeft(row) ? null : renderOf(row)
    if (render === null && !isLeft(row)) continue
    const stays = render?.objects ?? null
    const seen = lookedAt.get(stays) ?? new Set()
    lookedAt.set(stays, seen)
    if (seen.has(names)) continue
    seen.add(names)
    for (const name of names) if (stays?.has(prefix + name) !== true) all.add(name)
  }
  const numbered = numbering()
  const { gainers, states } = await findGainers({ store, content, renderer }, id, all, clusters, { namesOf, numbered })
  if (gainers.length === 0) return NOTHING
  // One answer for all clusters that hold the same, as do the gainers there.
  const answers = new Map<ReadonlySet<string>, Map<string, Handover[]>>()
  return (row, deed) => {
    const names = held.get(row)
    if (names === undefined) return []
    const known = answers.get(names) ?? new Map<string, Handover[]>()
    answers.set(names, known)
    const stays = deed === 'removal' ? null : (renderOf(row)?.objects ?? null)
    const key = [deed, numbered(stays), ...states.map((state) => state(row.clusterId))].join('\n')
    const lost = () => (stays === null ? names : [...names].filter((name) => !stays.has(prefix + name)))
    const answer = known.get(key) ?? handoversTo(lost(), gainers, row.clusterId)
    known.set(key, answer)
    return answer
  }
}

/** Names of objects in rendered sets; each set is read once. */
function createSetNames(content: HandoverDeps['content']) {
  const sets = new Map<string, ReadonlySet<string>>()
  return async (setSha: string | null, prefix: string): Promise<ReadonlySet<string>> => {
    if (setSha === null) return NO_NAMES
    const known = sets.get(prefix + setSha)
    if (known !== undefined) return known
    const bytes = await content.get(setSha)
    const names = new Set(bytes === null ? [] : [...decodeRenderedSet(bytes).keys()].map((rowId) => rowId.slice(prefix.length)))
    sets.set(prefix + setSha, names)
    return names
  }
}

interface FoundGainers {
  gainers: Gainer[]
  /** Equal texts of all of them for two clusters: the same answer there. */
  states: Array<(clusterId: ClusterId) => string>
}

/** Other services whose last render names one of these objects. */
export async function findGainers(
  { store, content, renderer }: HandoverDeps,
  id: ServiceId,
  objects: ReadonlySet<string>,
  clusters: ClustersToRead,
  { namesOf, numbered } = { namesOf: createSetNames(content), numbered: numbering() },
): Promise<FoundGainers> {
  const found = renderer.rendersNaming(objects).filter(({ id: other }) => serviceKey(other) !== serviceKey(id))
  const gainers: Gainer[] = []
  const states: FoundGainers['states'] = []
  const asked = found.length === 0 ? [] : typeof clusters === 'function' ? await clusters() : clusters
  for (const { id: other, objectsIn } of found) {
    const resource = await store.getResource({ kind: 'Service', project: other.project, name: other.service })
    if (resource === null || resource.deletingMs !== null) continue
    const spec = parseServiceSpec(resource.spec)
    const rows = new Map<ClusterId, { digest: string; names: ObjectNames }>()
    const namesOfSet = memoized((names: ReadonlySet<string>) => objectNames(names))
    const sameRows = new Map<ClusterId, string>()
    for (const { clusterId, doc, setSha } of await store.desiredOfService(other)) {
      if (doc === null) continue
      const published = doc.removal === undefined ? await namesOf(setSha, objectRowPrefix(other)) : NO_NAMES
      rows.set(clusterId, { digest: doc.digest, names: namesOfSet(published) })
      sameRows.set(clusterId, `${doc.digest} ${setSha} ${doc.removal === undefined}`)
    }
    const wanted = withDestinations(spec.targets, await readProject(store, other.project))
    const targets = new Set(targetsOf(wanted, asked).map(({ clusterId }) => clusterId))
    const ofOther = objectRowPrefix(other)
    const namesOfRender = memoized((objects: HandoverRender['objects']) => objectNames(objects, ofOther))
    const namesIn = (clusterId: ClusterId) => {
      const objects = objectsIn(clusterId)
      return objects === null ? null : namesOfRender(objects)
    }
    gainers.push({ id: other, namesIn, targets, rows })
    states.push((clusterId) =>
      targets.has(clusterId) ? `${numbered(objectsIn(clusterId))} ${sameRows.get(clusterId) ?? 'none'}` : 'elsewhere',
    )
  }
  return { gainers, states }
}

/** One answer for each set: many clusters share it. */
function memoized<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const made = new Map<K, V>()
  return (key) => {
    const value = made.get(key) ?? make(key)
    made.set(key, value)
    return value
  }
}

/** Equal sets are one and the same map: a number stands for each. */
function numbering(): (objects: HandoverRender['objects'] | null) => number {
  const numbers = new Map<HandoverRender['objects'] | null, number>()
  return (objects) => {
    const number = numbers.get(objects) ?? numbers.size
    numbers.set(objects, number)
    return number
  }
}

/**
 * Objects that were handed over before may still be in the cluster. One set serves all rows that hold the same: there
 * may be thousands.
 */
function namesHeld(): (names: ReadonlySet<string>, handover: ServiceRow['handover']) => ReadonlySet<string> {
  const made = new Map<ReadonlySet<string>, Map<ServiceRow['handover'], ReadonlySet<string>>>()
  return (names, handover) => {
    if (handover === undefined || handover.length === 0) return names
    const known = made.get(names) ?? new Map<ServiceRow['handover'], ReadonlySet<string>>()
    made.set(names, known)
    const both = known.get(handover) ?? new Set([...names, ...handover.map(({ object }) => object)])
    known.set(handover, both)
    return both
  }
}
