// What people ordered, told apart from what any server or agent remembers: the only judge of a delete. Every
// publication has a number, which travels as the `commit` of its service row.
import type { ServiceRow } from '../../shared/model/desired.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'

export interface Order {
  number: number
  /** The server that it was given to: after a fork two of them go their own ways. */
  line: string
  /** Names of objects; null for a removal order. */
  names: ReadonlySet<string> | null
  removal: 'prune' | 'orphan' | null
  /** False: what was published does not hash to its own digest and is nobody's wish. */
  complete: boolean
}

const commitOf = (number: number): string => `order-${number}`
const numberOf = (commit: string): number => Number(/^order-(\d+)$/.exec(commit)?.[1] ?? Number.NaN)

export class Orders {
  readonly #orders = new Map<number, Order>()
  readonly #ofService = new Map<string, Order[]>()
  /** The newest order of each line that a cluster was seen to hold. */
  readonly #held = new Map<string, number>()
  readonly #confirmed = new Map<number, ReadonlySet<string> | 'all'>()
  #last = 0

  give(cluster: string, service: ServiceId, order: Omit<Order, 'number'>): string {
    this.#last += 1
    const given = { ...order, number: this.#last }
    this.#orders.set(given.number, given)
    const key = `${cluster} ${serviceKey(service)}`
    this.#ofService.set(key, [...(this.#ofService.get(key) ?? []), given])
    return commitOf(given.number)
  }

  isComplete(row: ServiceRow): boolean {
    return this.#orders.get(numberOf(row.commit))?.complete === true
  }

  /** A person confirmed deletions of the order that this row is of: names, or the revision as a whole. */
  confirm(row: ServiceRow, names: readonly string[] | 'all'): void {
    const number = numberOf(row.commit)
    const before = this.#confirmed.get(number)
    this.#confirmed.set(number, names === 'all' || before === 'all' ? 'all' : new Set([...(before ?? []), ...names]))
  }

  /** Null if a person confirmed that its data is lost. `row` null: the replica cannot be read, and holds the newest
   *  order. */
  whyNotLost(cluster: string, service: ServiceId, deletionName: string, row: ServiceRow | null): string | null {
    const newest = this.#ofService.get(`${cluster} ${serviceKey(service)}`)?.at(-1)
    const number = row === null ? (newest?.number ?? Number.NaN) : numberOf(row.commit)
    const names = this.#confirmed.get(number)
    if (names === 'all' || names?.has(deletionName)) return null
    return `it holds data, and nobody confirmed ${deletionName} for order ${number}`
  }

  /** The cluster's replica holds this row. */
  sawHeld(cluster: string, service: ServiceId, row: ServiceRow): void {
    const order = this.#orders.get(numberOf(row.commit))
    if (order === undefined) return
    const key = `${cluster} ${serviceKey(service)} ${order.line}`
    this.#held.set(key, Math.max(order.number, this.#held.get(key) ?? 0))
  }

  /** After a fork two servers order what they like, each whole and signed: what only the other one had ordered is no
   *  wish of this one. */
  isOfAnotherLine(cluster: string, service: ServiceId, name: string, line: string): boolean {
    const naming = (this.#ofService.get(`${cluster} ${serviceKey(service)}`) ?? []).filter(({ names }) => names?.has(name))
    const newest = naming.at(-1)
    return newest !== undefined && newest.line !== line
  }

  /** As `whyNotDelete`, when the replica's file cannot be read any more (a byte of it flipped under the agent, whose
   *  cache is whole): the newest order is what it holds. */
  whyNotDeleteUnseen(cluster: string, service: ServiceId, name: string): string | null {
    const [newest, ...earlier] = (this.#ofService.get(`${cluster} ${serviceKey(service)}`) ?? []).toReversed()
    if (newest === undefined) return 'nobody gave an order for its service'
    if (!newest.complete) return `order ${newest.number} was never whole`
    if (newest.removal === 'orphan') return `order ${newest.number} lets go, it removes nothing`
    if (newest.names?.has(name)) return `order ${newest.number} names it`
    return earlier.some(({ names }) => names?.has(name)) ? null : `order ${newest.number} did not drop it: nobody had named it before`
  }

  /** Null when somebody wanted it gone; else why this delete is nobody's wish. `row`: of the object's service, as the
   *  replica holds it now. */
  whyNotDelete(cluster: string, service: ServiceId, name: string, row: ServiceRow | null): string | null {
    if (row === null) return 'the replica holds no row of its service'
    const order = this.#orders.get(numberOf(row.commit))
    if (order === undefined) return `nobody gave the order ${row.commit}`
    if (!order.complete) return `order ${order.number} was never whole`
    if (row.removal !== undefined && order.removal !== 'prune') return `order ${order.number} lets go, it removes nothing`
    if (order.names?.has(name)) return `order ${order.number} names it`
    if (row.pruneConfirmed === row.digest && row.pruneConfirmed !== undefined) return null // a person saw the names
    const earlier = (this.#ofService.get(`${cluster} ${serviceKey(service)}`) ?? []).filter(({ number }) => number < order.number)
    if (!earlier.some(({ names }) => names?.has(name))) return `order ${order.number} did not drop it: nobody had named it before`
    const newest = this.#held.get(`${cluster} ${serviceKey(service)} ${order.line}`) ?? 0
    return newest > order.number ? `order ${order.number} is older than ${newest}, which the cluster held` : null
  }
}
