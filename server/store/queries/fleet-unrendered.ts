// Services in clusters that have nothing of them, because they cannot be rendered there: they have no row. The note of
// the last render names them, or their targets do, and they appear among the rows of a list in its order.

import { serviceSpecSchema } from '../../../shared/model/resources.ts'
import { HEALTH_WORST } from '../../../shared/model/status.ts'
import { type ServiceId, serviceKey } from '../../../shared/runtime/ids.ts'
import { serviceInScope } from '../../fleet/rights.ts'
import { type FailedWords, type FailingIn, failingIn } from '../../fleet/unrendered.ts'
import type { ReadDb } from '../store-db.ts'
import { readRenderErrors } from '../store-resources.ts'
import { readError } from '../tables.ts'
import { byText, type ClusterEntry } from './fleet-dictionary.ts'
import { limiting } from './fleet-filter.ts'
import type { FailedNote, Placed, PlacementQuery } from './fleet-queries.ts'
import { compareKeys, placeOf } from './positions.ts'

interface Failing {
  id: ServiceId
  key: string
  sinceMs: number
  failing: FailingIn
}
type Row = Awaited<ReturnType<typeof readRenderErrors>>[number]

/** The failed renders, as one query sees them. */
export class FailureList {
  /** In the order of their keys. */
  readonly all: readonly Failing[]
  readonly #byKey: ReadonlyMap<string, Failing>
  #named: ReadonlyMap<string, readonly Failing[]> | null = null

  constructor(all: readonly Failing[]) {
    this.all = [...all].sort((a, b) => byText(a.key, b.key))
    this.#byKey = new Map(all.map((one) => [one.key, one]))
  }

  /** In a cluster that has nothing of them; `cut`: those of `all` of which not all clusters are named. */
  in({ name, labels }: ClusterEntry, cut: readonly Failing[]): readonly Failing[] {
    this.#named ??= byCluster(this.all)
    const named = this.#named.get(name) ?? NONE
    const others = cut.filter((one) => !named.includes(one) && one.failing.without({ name, labels }) !== undefined)
    return others.length === 0 ? named : [...named, ...others].sort((a, b) => byText(a.key, b.key))
  }

  /** The failure of a service that has something in that cluster. */
  keeping(key: string, cluster: string): FailedNote | undefined {
    const one = this.#byKey.get(key)
    const group = one?.failing.keeping(cluster)
    return one === undefined || group === undefined ? undefined : { words: wordsOf(group), sinceMs: one.sinceMs }
  }
}

/** Read again with each query, parsed again after a change. */
export class RenderFailures {
  #rows = new Map<string, { row: Row; failing: Failing | null }>()
  #list = new FailureList([])

  async at(db: ReadDb): Promise<FailureList> {
    const rows = (await readRenderErrors(db)).map((row) => ({ key: serviceKey(idOf(row)), row }))
    const held = this.#rows
    if (rows.length === held.size && rows.every(({ key, row }) => isSame(held.get(key)?.row, row))) return this.#list
    const entries = rows.map(({ key, row }) => {
      const known = held.get(key)
      return [key, known !== undefined && isSame(known.row, row) ? known : { row, failing: understood(row) }] as const
    })
    this.#rows = new Map(entries)
    this.#list = new FailureList([...this.#rows.values()].flatMap(({ failing }) => failing ?? []))
    return this.#list
  }
}

const NONE: readonly Failing[] = []
const idOf = ({ project, service }: Row): ServiceId => ({ project, service })
const isSame = (held: Row | undefined, row: Row): boolean => held?.error === row.error && held.spec === row.spec

function understood(row: Row): Failing | null {
  const error = readError(row.error)
  if (error?.failing === undefined) return null
  const id = idOf(row)
  const targets = () => serviceSpecSchema.parse(JSON.parse(row.spec)).targets
  return { id, key: serviceKey(id), sinceMs: error.sinceMs, failing: failingIn(error, targets) }
}

function byCluster(all: readonly Failing[]): Map<string, Failing[]> {
  const found = new Map<string, Failing[]>()
  for (const one of all)
    for (const name of one.failing.named.keys()) {
      const held = found.get(name)
      if (held === undefined) found.set(name, [one])
      else held.push(one)
    }
  return found
}

const wordsOf = ({ code, message, remedy, problem }: FailedWords): FailedWords => ({
  code,
  message,
  ...(remedy === undefined ? {} : { remedy }),
  ...(problem === undefined ? {} : { problem }),
})

/** A service in a cluster that has nothing of it. */
export interface Unrendered extends Placed {
  note: FailedNote
}

const MISSING = HEALTH_WORST.indexOf('Missing')

function remembered<T>(find: (words: readonly string[]) => T): (words: readonly string[]) => T {
  const found = new Map<string, T>()
  return (words) => {
    const key = words.join('\n')
    const known = found.get(key) ?? find(words)
    found.set(key, known)
    return known
  }
}

/**
 * The matches of a query, in these clusters (in the order of their names), strictly after a position, in its order. The
 * caller leaves out those that do have a row: an order to remove an older revision.
 */
export function* unrenderedOf(failures: FailureList, clusters: readonly ClusterEntry[], query: PlacementQuery): Generator<Unrendered> {
  const { project, service, words = [], sort, sync, health, revision } = query
  const scope = limiting(query.scope)
  if (failures.all.length === 0 || revision !== undefined) return
  if (sync?.includes('OutOfSync') === false || health?.includes('Missing') === false) return
  const after = placeOf(query.after, sort)
  const isIn = ({ id }: Failing, cluster?: ClusterEntry) => scope === null || serviceInScope(scope, id, cluster?.labels)
  const isAsked = (one: Failing) => {
    const { id } = one
    return isIn(one) && (project === undefined || id.project === project) && (service === undefined || id.service === service)
  }
  const make = ({ id, sinceMs }: Failing, { clusterId }: ClusterEntry, group: FailedWords): Unrendered => ({
    ...{ ...id, cluster_id: clusterId, sync: 'OutOfSync', health: 'Missing' },
    note: { words: wordsOf(group), sinceMs },
  })
  const asked = failures.all.filter(isAsked)
  // A part that is not in one name must be in the other, so few different words remain to be searched.
  const textOf = ({ id }: Failing) => `${id.project}\n${id.service}`
  const clustersWith = remembered((left) => clusters.filter(({ name }) => left.every((word) => name.includes(word))))
  const servicesWith = remembered((left) => new Set(asked.filter((one) => left.every((word) => textOf(one).includes(word)))))
  const leftOf = (text: string) => words.filter((word) => !text.includes(word))
  if (sort === 'name') {
    const named = (one: Failing, cluster: string | null) => [one.id.service, one.id.project, cluster]
    const sorted = [...asked].sort((a, b) => compareKeys(named(a, null), named(b, null)))
    for (const one of sorted) {
      if (after !== undefined && compareKeys(named(one, null), after) <= 0) continue
      for (const cluster of clustersWith(leftOf(textOf(one)))) {
        const group = isIn(one, cluster) ? one.failing.without(cluster) : undefined
        if (group === undefined) continue
        if (after === undefined || compareKeys(named(one, cluster.name), after) > 0) yield make(one, cluster, group)
      }
    }
    return
  }
  const cut = asked.filter(({ failing }) => failing.isCut)
  const first = sort === 'health' ? [MISSING] : []
  for (const cluster of clusters) {
    if (after !== undefined && compareKeys([...first, cluster.name, null], after) <= 0) continue
    const passing = servicesWith(leftOf(cluster.name))
    for (const one of passing.size === 0 ? [] : failures.in(cluster, cut)) {
      const group = passing.has(one) && isIn(one, cluster) ? one.failing.without(cluster) : undefined
      if (group === undefined) continue
      if (after === undefined || compareKeys([...first, cluster.name, one.key], after) > 0) yield make(one, cluster, group)
    }
  }
}
