// Tells before the first apply of an object whether one already exists. Single reads would be a request for each object
// of a fleet of small services. So after a few reads of one kind in one namespace the names there are listed once, for
// all services that ask within the next seconds.
import { type K8sObject, type ObjectRef, refKey, refOf } from '../../../../shared/kube/object.ts'
import type { Clock } from '../../../../shared/runtime/clock.ts'
import type { ApiFailure, ApiResource, Cluster, Extent } from '../../../cluster/cluster.ts'
import { listOnce } from '../../../cluster/list-once.ts'
import { otherFieldsOf } from '../fields/other-fields.ts'
import type { Contact } from '../situation.ts'
import { ownerOf, safeDeletion } from './live-object.ts'

/** Questions about one kind in one namespace, within `FRESH_MS`, that are answered one by one… */
export const GETS_MAX = 20
/** …and as many of one service at once: single GETs cost less than a list of a namespace that may be full of other
 *  people's objects. */
const GETS_AT_ONCE_MAX = 3
/** RC19: maximum age of a list of names. An object of that name that is created later is met by the apply itself. */
export const FRESH_MS = 5_000

/** RC26. Other kinds are read whole, because only their values distinguish a written field from a default. */
export const contactExtent = ({ group, kind }: Pick<ApiResource, 'group' | 'kind'>): Extent =>
  group === '' && (kind === 'Secret' || kind === 'ConfigMap') ? { metadataOnly: true } : {}

/** A map of data that `managedFields` names as a leaf is empty, whether it was read or not. */
const NO_DATA = { data: {}, binaryData: {} }

/** `object`: as `contactExtent` has it. */
export function contactOf(object: K8sObject): Contact {
  const { metadataOnly = false } = contactExtent(refOf(object))
  const others = otherFieldsOf(metadataOnly ? { ...object, ...NO_DATA } : object)
  return { kind: 'present', owner: ownerOf(object), deleting: safeDeletion(object), ...(others === null ? {} : { others }) }
}

type Names = { kind: 'names'; names: ReadonlySet<string> } | { kind: 'failed'; failure: ApiFailure }

interface Place {
  sinceMs: number
  asked: number
  names: Promise<Names> | null
}

export class FirstContacts {
  readonly #deps: { cluster: Cluster; clock: Clock; signal: AbortSignal }
  readonly #places = new Map<string, Place>()

  constructor(deps: { cluster: Cluster; clock: Clock; signal: AbortSignal }) {
    this.#deps = deps
  }

  /** Those of `refs`, all of one kind and namespace, that may exist and have to be read; the others do not exist. */
  async maybeThere(
    resource: ApiResource,
    refs: readonly ObjectRef[],
  ): Promise<{ kind: 'refs'; refs: readonly ObjectRef[] } | { kind: 'failed'; failure: ApiFailure }> {
    const [first] = refs
    // A namespace that somebody created a moment ago would count as created by Skerry.
    if (first === undefined || (first.kind === 'Namespace' && first.group === '')) return { kind: 'refs', refs }
    const place = this.#placeOf(resource, first.namespace)
    place.asked += refs.length
    if (place.names === null && place.asked <= GETS_MAX && refs.length <= GETS_AT_ONCE_MAX) return { kind: 'refs', refs }
    place.names ??= this.#list(resource, first.namespace)
    const answer = await place.names
    if (answer.kind === 'failed') {
      place.names = null // the next one asks anew
      return answer
    }
    return { kind: 'refs', refs: refs.filter((ref) => answer.names.has(refKey(ref))) }
  }

  #placeOf({ group, version, kind }: ApiResource, namespace: string): Place {
    const { clock } = this.#deps
    const key = `${group}/${version}/${kind}/${namespace}`
    const nowMs = clock.monotonicMs()
    const known = this.#places.get(key)
    if (known !== undefined && nowMs - known.sinceMs < FRESH_MS) return known
    // A continuing burst needs no twenty reads to be recognized.
    const place: Place = { sinceMs: nowMs, asked: known?.names ? GETS_MAX : 0, names: null }
    this.#places.set(key, place)
    void clock.sleep(2 * FRESH_MS, this.#deps.signal).then(() => {
      if (this.#places.get(key) === place) this.#places.delete(key)
    })
    return place
  }

  async #list(resource: ApiResource, namespace: string): Promise<Names> {
    const { cluster, signal } = this.#deps
    const names = new Set<string>()
    const options = { signal, metadataOnly: true, ...(namespace === '' ? {} : { namespace }) }
    const failure = await listOnce(cluster, resource, options, (object, isThere) => {
      const key = refKey(refOf(object))
      if (isThere) names.add(key)
      else names.delete(key)
    })
    return failure === null ? { kind: 'names', names } : { kind: 'failed', failure }
  }
}
