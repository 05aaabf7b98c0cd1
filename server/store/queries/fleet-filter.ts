// The meaning of a query in numbers: which clusters, names and states match, and in which of them each searched word
// occurs. Pure, over the dictionary.
import { matchesSelector } from '../../../shared/model/labels.ts'
import { type ImageTest, imageTest } from '../../fleet/image-filter.ts'
import { isEverywhere, matchesName, type Scope, serviceInScope } from '../../fleet/rights.ts'
import type { ClusterEntry, FleetDictionary, NameEntry, StateEntry } from './fleet-dictionary.ts'
import type { ClusterFilter, ObjectFilter } from './fleet-queries.ts'
import type { PlanInput, WordCounts } from './fleet-query-plan.ts'
import type { StatusRow } from './fleet-query-sql.ts'

/** Words of one search: as many bits. */
export const WORDS_MAX = 8
const PASSES = 1 << WORDS_MAX

/** Drifts that were put back are over. */
const HEALED = 'healed'

export interface Found {
  clusters: number[]
  names: number[]
  states: number[]
}

export class ObjectMasks {
  /** In the order of names. */
  readonly clusters: readonly ClusterEntry[]
  readonly #places: FleetDictionary['places']
  /** By place: PASSES, and a bit for each word that occurs there. */
  readonly #clusters: Uint16Array
  readonly #names: Uint16Array
  readonly #states: Uint16Array
  readonly #allWords: number
  /** Words that occur in some cluster or state. */
  #wordsElsewhere = 0
  /** Whether only the state of a row says if it belongs to the answer: it is asked for, or words occur in states. */
  readonly needsState: boolean
  readonly asksState: boolean
  /** Rows that are left by each side, as the counts say. Null means that nothing is asked of it. */
  readonly counts: Pick<PlanInput, 'clusters' | 'names' | 'states' | 'words' | 'split'>
  /** Nothing can match. */
  readonly isEmpty: boolean
  /** For each word: where it occurs. */
  readonly found: readonly Found[]
  /** Places with all words in the name, or any in the cluster or the state: every match is among them. */
  readonly split: Found = { clusters: [], names: [], states: [] }
  /** Numbers of matching names and states. */
  readonly passingNames: number[] = []
  readonly passingStates: number[] = []

  constructor(dictionary: FleetDictionary, filter: ObjectFilter) {
    const words = filter.words ?? []
    this.#dictionary = dictionary
    this.#pair = pairTest(filter.scope)
    this.#allWords = (1 << words.length) - 1
    const { places } = dictionary
    this.#places = places
    const found = words.map((): Found => ({ clusters: [], names: [], states: [] }))
    const split: WordCounts = { clusters: 0, names: 0, states: 0 }
    const counts = words.map((): WordCounts => ({ clusters: 0, names: 0, states: 0 }))
    const rows = { clusters: 0, names: 0, states: 0 }
    const note = (masks: Uint16Array, side: keyof Found, number: number, text: string, n: number) => {
      rows[side] += n
      let bits = PASSES
      for (let word = 0; word < words.length; word++) {
        if (!text.includes(words[word] ?? '')) continue
        bits |= 1 << word
        found[word]?.[side].push(number)
        const count = counts[word]
        if (count !== undefined) count[side] += n
      }
      masks[places[side].of(number)] = bits
      if (side !== 'names') this.#wordsElsewhere |= bits & this.#allWords
      if (words.length < 2 || (side === 'names' ? bits !== PASSES + this.#allWords : bits === PASSES)) return
      this.split[side].push(number)
      split[side] += n
    }
    const { asksCluster, asksName, asksState } = filterParts(filter)
    // A plain query without conditions was computed before.
    const isPlain = words.length === 0
    const plain = dictionary.everything(PASSES)
    if (isPlain && !asksCluster) {
      this.clusters = dictionary.clusters
      this.#clusters = plain.clusters
    } else {
      const ofClusters = clusterTest(filter)
      this.#clusters = new Uint16Array(places.clusters.size)
      this.clusters = dictionary.clusters.filter(ofClusters)
      for (const cluster of this.clusters) note(this.#clusters, 'clusters', cluster.no, cluster.name, cluster.rows)
    }
    if (isPlain && !asksName) {
      this.#names = plain.names
      this.passingNames = plain.nameIds
    } else {
      const ofNames = nameTest(filter)
      this.#names = new Uint16Array(places.names.size)
      for (const name of dictionary.names) {
        if (name.kind !== 'object' || !ofNames(name)) continue
        this.passingNames.push(name.id)
        note(this.#names, 'names', name.id, name.text, name.refs)
      }
    }
    // A word that is in no name of a cluster or an object is asked of the state.
    const ofStateAlone = words.reduce((bits, _, word) => {
      const { clusters = [], names = [] } = found[word] ?? {}
      return clusters.length + names.length === 0 ? bits | (1 << word) : bits
    }, 0)
    if (isPlain && !asksState) {
      this.#states = plain.states
      this.passingStates = plain.stateIds
    } else {
      const ofStates = stateTest(filter)
      this.#states = new Uint16Array(places.states.size)
      for (const state of dictionary.states.values()) {
        if (
          !ofStates(state) ||
          (ofStateAlone !== 0 && !words.every((word, n) => (ofStateAlone & (1 << n)) === 0 || state.text.includes(word)))
        )
          continue
        this.passingStates.push(state.id)
        note(this.#states, 'states', state.id, state.text, state.refs)
      }
    }
    const isElsewhere = (_: unknown, word: number) => (ofStateAlone & (1 << word)) === 0
    this.found = found.filter(isElsewhere)
    this.asksState = asksState || ofStateAlone !== 0
    this.needsState = this.asksState || found.some(({ states }) => states.length > 0)
    this.isEmpty = this.clusters.length === 0 || this.passingNames.length === 0 || this.passingStates.length === 0
    this.counts = {
      clusters: asksCluster ? rows.clusters : null,
      names: asksName ? rows.names : null,
      states: this.asksState ? rows.states : null,
      words: counts.filter(isElsewhere),
      split: this.found.length < 2 ? null : split,
    }
  }

  #ofCluster = (no: number): number => this.#clusters[this.#places.clusters.of(no)] ?? 0
  #ofName = (id: number): number => this.#names[this.#places.names.of(id)] ?? 0
  #ofState = (id: number): number => this.#states[this.#places.states.of(id)] ?? 0

  passesName = (id: number): boolean => this.#ofName(id) !== 0
  /** Whether some cluster and state would make an object of this name one of the answer. */
  canMatch = (id: number): boolean => this.passesName(id) && ((this.#ofName(id) | this.#wordsElsewhere) & this.#allWords) === this.#allWords
  /** Whether some state would make it one of the answer. */
  mayMatch = ({ cluster_no, name_id }: StatusRow): boolean => (this.#ofCluster(cluster_no) & this.#ofName(name_id) & PASSES) !== 0
  /** All words occur in the name: nothing else has to be known, if no state is asked for. */
  hasAllWords = (id: number): boolean => (this.#ofName(id) & this.#allWords) === this.#allWords
  readonly #dictionary: FleetDictionary
  readonly #pair: ReturnType<typeof pairTest>
  /** A row that was read without its state has a matching one, and no words. */
  matches = ({ cluster_no, name_id, state_id }: StatusRow): boolean => {
    const cluster = this.#ofCluster(cluster_no)
    const name = this.#ofName(name_id)
    const state = state_id === null ? (this.asksState ? 0 : PASSES) : this.#ofState(state_id)
    const isAsked = (cluster & name & state & PASSES) !== 0 && ((cluster | name | state) & this.#allWords) === this.#allWords
    return isAsked && this.#isInScope(cluster_no, name_id)
  }
  #isInScope(clusterNo: number, nameId: number): boolean {
    if (this.#pair === null) return true
    const [name, cluster] = [this.#dictionary.namesById.get(nameId), this.#dictionary.clustersByNo.get(clusterNo)]
    return name !== undefined && cluster !== undefined && this.#pair(name, cluster)
  }
}

export function clusterTest({ cluster, labels, scope }: ClusterFilter): (entry: ClusterEntry) => boolean {
  return (entry) =>
    (cluster === undefined || entry.name === cluster) &&
    (labels === undefined || matchesSelector(entry.labels, labels)) &&
    (scope === undefined || scope.some(({ clusters }) => clusters === null || matchesSelector(entry.labels, clusters)))
}

/** Null if all services are in scope, in every cluster. */
export const limiting = (scope: Scope | undefined): Scope | null => (scope === undefined || isEverywhere(scope) ? null : scope)

/** A name that some place holds; in which of the clusters, `pairTest` says. */
const isNameInScope = (scope: Scope, { project, service }: Pick<NameEntry, 'project' | 'service'>): boolean =>
  scope.some(
    ({ projects, services }) => (projects === null || projects.includes(project)) && (services === null || matchesName(services, service)),
  )

/** Whether a service in a cluster is in scope, where names and clusters alone do not say it. Null means that they do.
 */
export function pairTest(scope: Scope | undefined): ((name: NameEntry, cluster: ClusterEntry) => boolean) | null {
  const limited = limiting(scope)
  if (limited === null || limited.length < 2 || limited.every(({ clusters }) => clusters === null)) return null
  return (name, cluster) => serviceInScope(limited, name, cluster.labels)
}

function filterParts({
  cluster,
  labels,
  scope,
  project,
  service,
  kind,
  group,
  namespace,
  name,
  sync,
  health,
  reason,
  image,
}: ObjectFilter) {
  const limited = limiting(scope)
  return {
    asksCluster: cluster !== undefined || labels !== undefined || limited?.some(({ clusters }) => clusters !== null) === true,
    asksName: limited !== null || [project, service, kind, group, namespace, name].some((part) => part !== undefined),
    asksState: [sync, health, reason, image].some((part) => part !== undefined),
  }
}

/** A kind as kubectl takes it: in any capitals. */
function nameTest({ project, service, kind, group, namespace, name, scope }: ObjectFilter): (entry: NameEntry) => boolean {
  const lower = kind?.toLowerCase()
  const limited = limiting(scope)
  return (entry) =>
    (limited === null || isNameInScope(limited, entry)) &&
    (project === undefined || entry.project === project) &&
    (service === undefined || entry.service === service) &&
    (lower === undefined || entry.object_kind.toLowerCase() === lower) &&
    (group === undefined || entry.api_group === group) &&
    (namespace === undefined || entry.namespace === namespace) &&
    (name === undefined || entry.name === name)
}

function stateTest({ sync, health, reason, image }: ObjectFilter): (entry: StateEntry) => boolean {
  const lower = reason?.toLowerCase()
  const hasImage = image === undefined ? null : (imageTest(image) ?? NO_IMAGE)
  return (entry) =>
    (sync === undefined || sync.includes(entry.sync === '' ? 'Unknown' : entry.sync)) &&
    (health === undefined || health.includes(entry.health === '' ? 'Unknown' : entry.health)) &&
    (lower === undefined || entry.reason.toLowerCase() === lower) &&
    (hasImage === null || (entry.images !== null && hasImage(entry.images)))
}

/** Callers check what they filter by before it comes here. */
const NO_IMAGE: ImageTest = () => false

/** The action of a drift is the reason of its state, which says nothing else. */
export const isOpenDrift = ({ sync, health, reason }: StateEntry): boolean => sync === '' && health === '' && reason !== HEALED
