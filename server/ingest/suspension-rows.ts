// The suspensions that concern each cluster, as rows beside those of its services. Level-triggered: equal rows are not
// written, and clusters that no suspension names share one set.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { SUSPENSIONS, scopeText, suspensionRowId, widthOf } from '../../shared/model/suspension.ts'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import { type Publication, publishRevisions } from '../desired/publisher.ts'
import type { ClusterRecord } from '../fleet/records.ts'
import { type OrderedSuspension, readSuspension } from '../fleet/suspensions.ts'
import type { Store } from '../store/store.ts'
import type { HealthRuleRowsDeps } from './health-rule-rows.ts'

const LIST_LIMIT = 500
const RETRY = { baseMs: 1_000, capMs: 60_000 }

/** All of them, the widest first, then by service and cluster. */
export async function listSuspensions(store: Pick<Store, 'listResources'>): Promise<OrderedSuspension[]> {
  const all: OrderedSuspension[] = []
  let after: string | undefined
  do {
    const page = await store.listResources('Suspension', { limit: LIST_LIMIT, ...(after === undefined ? {} : { after }) })
    all.push(...page.items.map(readSuspension))
    after = page.next ?? undefined
  } while (after !== undefined)
  return all.sort((a, b) => widthOf(a) - widthOf(b) || (scopeText(a) < scopeText(b) ? -1 : 1))
}

export class SuspensionRows {
  readonly #deps: HealthRuleRowsDeps
  /** One at a time: an older look must not write over a newer one. */
  #last: Promise<unknown> = Promise.resolve()
  /** A run that was requested and has not begun. */
  #queued: Promise<void> | null = null
  /** The cluster names of that read. Null for all clusters. */
  #names: Set<string> | null = new Set()

  constructor(deps: HealthRuleRowsDeps) {
    this.#deps = deps
  }

  /** SU1: suspensions were ordered or lifted, the server starts, or, with `names`, clusters of these names joined.
   *  Tried again until it is done or the server stops. Never rejects. */
  changed(names?: readonly string[]): Promise<void> {
    if (names === undefined) this.#names = null
    else for (const name of names) this.#names?.add(name)
    this.#queued ??= this.#untilDone()
    return this.#queued
  }

  async #untilDone(): Promise<void> {
    const { clock, random, log, stopping } = this.#deps
    for (let attempt = 0; !stopping.aborted; attempt += 1) {
      const look = this.#last.then(() => this.#look())
      this.#last = look.catch(() => {})
      try {
        return await look
      } catch (error) {
        const retryInMs = backoffMs(attempt, RETRY, random)
        log.warn('suspensions could not be published', { attempt, retryInMs, error: describeError(error) })
        await clock.sleep(retryInMs, stopping)
      }
    }
  }

  async #look(): Promise<void> {
    const names = this.#names
    // Later callers may know more than this run.
    this.#queued = null
    this.#names = new Set()
    try {
      await this.#publish(names)
    } catch (error) {
      if (names === null) this.#names = null
      else for (const name of names) this.#names?.add(name)
      throw error
    }
  }

  async #publish(names: ReadonlySet<string> | null): Promise<void> {
    const { store, clock, log } = this.#deps
    const suspensions = await listSuspensions(store)
    // Lifted suspensions are taken from clusters by the read of all of them.
    if (suspensions.length === 0 && (names !== null || !(await this.#isSomewhere()))) return
    const clusters: readonly ClusterRecord[] = names === null ? await store.listClusters() : await store.findClusters({ names: [...names] })
    const shared = rowsOf(suspensions.filter(({ cluster }) => cluster === null))
    const apart = new Set(suspensions.flatMap(({ cluster }) => cluster ?? []))
    const publications = clusters.map(({ clusterId, name }): Publication => {
      const objects = apart.has(name) ? rowsOf(suspensions.filter(({ cluster }) => cluster === null || cluster === name)) : shared
      return { ...SUSPENSIONS, clusterId, doc: null, objects, placedBy: '' }
    })
    const changed = await publishRevisions({ ...this.#deps, pace: createPace(clock) }, publications)
    const count = changed.filter(Boolean).length
    if (count > 0) log.info('suspensions published', { clusters: count, suspensions: suspensions.length })
  }

  async #isSomewhere(): Promise<boolean> {
    return (await this.#deps.store.desiredOfService(SUSPENSIONS)).some(({ setSha }) => setSha !== null)
  }
}

const rowsOf = (suspensions: readonly OrderedSuspension[]): ReadonlyMap<string, string> =>
  new Map(suspensions.map((one) => [suspensionRowId(one), canonicalJson({ by: one.by, why: one.why, sinceMs: one.sinceMs })]))
