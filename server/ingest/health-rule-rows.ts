// The HealthRules for each cluster's agent, as rows beside those of its services: the rules of the fleet, and those of
// the projects that have services there. Level-triggered, like a reconciliation: equal rows are not written, and
// clusters with the same projects share one set.
import { HEALTH_RULES, healthRuleRowId } from '../../shared/model/desired.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { type Publication, type PublishDeps, publishRevisions } from '../desired/publisher.ts'
import type { Store } from '../store/store.ts'

export interface HealthRuleRowsDeps extends Omit<PublishDeps, 'store' | 'pace'> {
  store: PublishDeps['store'] & Pick<Store, 'listResources' | 'listClusters' | 'findClusters' | 'clustersOfProject' | 'desiredOfService'>
  clock: Clock
  random: Random
  log: Logger
  stopping: AbortSignal
}

const LIST_LIMIT = 500
const RETRY = { baseMs: 1_000, capMs: 60_000 }

type Rows = ReadonlyMap<string, string>
/** Row id → document, by project. */
type Rules = ReadonlyMap<string, Rows>

export class HealthRuleRows {
  readonly #deps: HealthRuleRowsDeps
  /** One at a time: an older look must not write over a newer one. */
  #last: Promise<unknown> = Promise.resolve()
  /** A run that was requested and has not begun. */
  #queued: Promise<void> | null = null
  /** The same for clusters that joined, and their names. */
  #queuedJoined: Promise<void> | null = null
  readonly #joined = new Set<string>()

  constructor(deps: HealthRuleRowsDeps) {
    this.#deps = deps
  }

  /** HR4: a rule was written or deleted, clusters came, or the server starts. Tried again until every cluster has what
   *  it shall have, or the server stops. Never rejects. */
  changed(): Promise<void> {
    this.#queued ??= this.#untilDone()
    return this.#queued
  }

  /** HR4: clusters of these names joined. As `changed`, for them alone. */
  joined(names: readonly string[]): Promise<void> {
    for (const name of names) this.#joined.add(name)
    this.#queuedJoined ??= this.#retried(async () => {
      this.#queuedJoined = null
      const names = [...this.#joined]
      this.#joined.clear()
      try {
        await this.#publishJoined(names)
      } catch (error) {
        for (const name of names) this.#joined.add(name)
        throw error
      }
    })
    return this.#queuedJoined
  }

  async #publishJoined(names: readonly string[]): Promise<void> {
    const rules = await this.#rules()
    if (rules.size === 0) return
    const clusters = await this.#deps.store.findClusters({ names })
    await this.#publish(
      rules,
      clusters.map(({ clusterId }) => clusterId),
      null,
    )
  }

  #untilDone(): Promise<void> {
    return this.#retried(() => {
      this.#queued = null // whoever comes from now on may know more than this look
      return this.#publishAll()
    })
  }

  async #retried(work: () => Promise<void>): Promise<void> {
    const { clock, random, log, stopping } = this.#deps
    for (let attempt = 0; !stopping.aborted; attempt += 1) {
      try {
        await this.#inTurn(work)
        return
      } catch (error) {
        const retryInMs = backoffMs(attempt, RETRY, random)
        log.warn('health rules could not be published', { attempt, retryInMs, error: describeError(error) })
        await clock.sleep(retryInMs, stopping)
      }
    }
  }

  /** HR4: services of `project` come to these clusters, whose agents shall know its rules before. */
  coming(project: string, clusterIds: readonly ClusterId[]): Promise<void> {
    if (clusterIds.length === 0) return Promise.resolve()
    return this.#inTurn(async () => {
      const rules = await this.#rules()
      if (rules.size > 0) await this.#publish(rules, clusterIds, project)
    })
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => {})
    return done
  }

  async #publishAll(): Promise<void> {
    const { store } = this.#deps
    const rules = await this.#rules()
    if (rules.size === 0 && !(await store.desiredOfService(HEALTH_RULES)).some(({ setSha }) => setSha !== null)) return
    await this.#publish(
      rules,
      (await store.listClusters()).map(({ clusterId }) => clusterId),
      null,
    )
  }

  async #rules(): Promise<Rules> {
    const rules = new Map<string, Map<string, string>>()
    let after: string | undefined
    do {
      const page = await this.#deps.store.listResources('HealthRule', { limit: LIST_LIMIT, ...(after === undefined ? {} : { after }) })
      for (const { project, name, spec } of page.items) {
        const ofProject = rules.get(project) ?? new Map<string, string>()
        rules.set(project, ofProject.set(healthRuleRowId(project, name), spec))
      }
      after = page.next ?? undefined
    } while (after !== undefined)
    return rules
  }

  /** `coming`: a project whose services these clusters do not have yet, and will. */
  async #publish(rules: Rules, clusterIds: readonly ClusterId[], coming: string | null): Promise<void> {
    const { store, clock } = this.#deps
    const holders = new Map<string, ReadonlySet<ClusterId>>()
    for (const project of [...rules.keys()].filter((of) => of !== FLEET && of !== coming).sort())
      holders.set(project, await store.clustersOfProject(project, clusterIds))
    const sets = new Map<string, Rows>()
    const publications = clusterIds.map((clusterId): Publication => {
      const projects = [
        FLEET,
        ...(coming === null ? [] : [coming]),
        ...[...holders].flatMap(([of, ids]) => (ids.has(clusterId) ? [of] : [])),
      ]
      const key = projects.join('/')
      const objects = sets.get(key) ?? new Map(projects.flatMap((project) => [...(rules.get(project) ?? [])]))
      sets.set(key, objects)
      return { ...HEALTH_RULES, clusterId, doc: null, objects, placedBy: '' }
    })
    const changed = await publishRevisions({ ...this.#deps, pace: createPace(clock) }, publications)
    const clusters = changed.filter(Boolean).length
    if (clusters > 0) this.#deps.log.info('health rules published', { clusters, sets: sets.size })
  }
}
