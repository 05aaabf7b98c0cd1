// From clusters that joined, were written or said something new to the services that this concerns: those whose targets
// take them, and those that they have.
import { isFleetRows } from '../../shared/model/desired.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import type { StoredResource } from '../fleet/records.ts'
import { TargetIndex } from '../fleet/target-index.ts'
import type { Store } from '../store/store.ts'
import { KeyedQueue } from './keyed-queue.ts'

export interface ClusterChangesDeps {
  store: Pick<Store, 'findClusters' | 'desiredInCluster' | 'renderErrors' | 'askedServices'>
  clock: Clock
  /** All services; a caller reports a failure of its read. */
  services(): Promise<readonly StoredResource[]>
  /** Resolves when the service was passed in these clusters, or failed. */
  passIn(id: ServiceId, clusterIds: ReadonlySet<ClusterId>): Promise<void>
  /** The store could not tell the affected services: all services must be reconciled. */
  onUnknown(): void
  /** True if the service renders to the same whatever labels a cluster has, as far as is known. */
  ignoresLabels(id: ServiceId, spec: ServiceSpec): boolean
  /** Whether what the service renders to may depend on facts of clusters. */
  dependsOnFacts(id: ServiceId): boolean
}

export interface ClusterChange {
  name: string
  /** Its spec is as it was. */
  labelsOnly: boolean
}

/** How long changes that come gather at most while services are passed for those before them. */
const GATHER_MS_MAX = 1_000

interface Concerned {
  id: ServiceId
  clusterIds: Set<ClusterId>
}

export class ClusterChanges {
  readonly #deps: ClusterChangesDeps
  readonly #targets = new TargetIndex()
  /** By name: whether only labels changed. */
  readonly #changed = new Map<string, boolean>()
  readonly #looks = new KeyedQueue<'clusters'>(1, () => this.#look())
  #passes: Promise<unknown> = Promise.resolve()

  constructor(deps: ClusterChangesDeps) {
    this.#deps = deps
  }

  /** Changes that come while others are looked up are looked up together. Resolves when the services were passed. */
  async changed(changes: readonly ClusterChange[]): Promise<void> {
    for (const { name, labelsOnly } of changes) this.#changed.set(name, labelsOnly && (this.#changed.get(name) ?? true))
    await this.#looks.run('clusters')
    await this.#passes
  }

  /** It is gone, and had these services. */
  async deleted(clusterId: ClusterId, services: readonly ServiceId[]): Promise<void> {
    const concerned = gathering()
    for (const id of [...services, ...(await this.#failing())]) concerned.add(id, clusterId)
    await Promise.all(concerned.all().map(({ id, clusterIds }) => this.#deps.passIn(id, clusterIds)))
  }

  /** FA5: their served APIs changed. Rejects if the store cannot tell the affected services. */
  async factsChanged(clusterIds: ReadonlySet<ClusterId>): Promise<void> {
    const { store, passIn, dependsOnFacts } = this.#deps
    const clusters = await store.findClusters({ ids: [...clusterIds] })
    this.#targets.update(await this.#deps.services())
    const concerned = gathering()
    for (const { clusterId, labels, siteConfig } of clusters)
      for (const { id, spec } of this.#targets.matching(labels))
        if (dependsOnFacts(id) || siteConfig !== undefined || spec.siteConfig !== undefined) concerned.add(id, clusterId)
    await Promise.all(concerned.all().map(({ id, clusterIds: of }) => passIn(id, of)))
  }

  /** When a thousand clusters join, a service is passed a few times for many of them, and not for each. */
  async #gather(): Promise<void> {
    const passed = new AbortController()
    void this.#passes.then(() => passed.abort())
    await this.#deps.clock.sleep(GATHER_MS_MAX, passed.signal)
  }

  async #look(): Promise<void> {
    await this.#gather()
    const changed = new Map(this.#changed)
    this.#changed.clear()
    const concerned = await this.#concernedBy(changed).catch((error: unknown) => {
      this.#deps.onUnknown()
      throw error
    })
    // Together, so that what was written together is judged as one (TG3).
    const passes = concerned.map(({ id, clusterIds }) => this.#deps.passIn(id, clusterIds))
    this.#passes = Promise.all([this.#passes, ...passes])
  }

  async #concernedBy(changed: ReadonlyMap<string, boolean>): Promise<Concerned[]> {
    const { store, clock } = this.#deps
    this.#targets.update(await this.#deps.services())
    const concerned = gathering()
    const pace = createPace(clock)
    const failing = await this.#failing()
    const asked = new Set((await store.askedServices()).map(serviceKey))
    for (const { clusterId, name, labels } of await store.findClusters({ names: [...changed.keys()] })) {
      const held = new Map(
        (await store.desiredInCluster(clusterId)).filter((row) => !isFleetRows(row)).map((row) => [serviceKey(row), row]),
      )
      for (const { id, spec } of this.#targets.matching(labels)) {
        const row = held.get(serviceKey(id))
        const stays = row?.doc != null && row.doc.removal === undefined && changed.get(name) === true
        // A question about the service may name the cluster.
        if (stays && !asked.has(serviceKey(id)) && this.#deps.ignoresLabels(id, spec)) held.delete(serviceKey(id))
        else concerned.add(id, clusterId)
      }
      for (const id of [...held.values(), ...failing]) concerned.add(id, clusterId)
      await pace()
    }
    return concerned.all()
  }

  /** Services that name the clusters for which they cannot be rendered: each cluster may be one of them. */
  async #failing(): Promise<ServiceId[]> {
    const errors = await this.#deps.store.renderErrors()
    return errors.flatMap(({ id, error }) => (error.failing === undefined ? [] : [id]))
  }
}

function gathering() {
  const byKey = new Map<string, Concerned>()
  return {
    add({ project, service }: ServiceId, clusterId: ClusterId): void {
      const key = serviceKey({ project, service })
      const held = byKey.get(key) ?? { id: { project, service }, clusterIds: new Set() }
      byKey.set(key, held)
      held.clusterIds.add(clusterId)
    },
    all: (): Concerned[] => [...byKey.values()],
  }
}
