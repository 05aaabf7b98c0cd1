// SC1: which keys of which ConfigMaps each cluster's agent reports, as rows beside those of its services.
// Level-triggered: equal rows are not written. A fleet in which nothing names a ConfigMap costs nothing.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import { SITE_CONFIG_PREFIX, SITE_CONFIGS, type SiteConfig, siteMapId, wantedKey } from '../../shared/model/site-config.ts'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import { type Publication, publishRevisions } from '../desired/publisher.ts'
import type { NamedProject } from '../fleet/project-rules.ts'
import type { ClusterRecord, StoredResource } from '../fleet/records.ts'
import { isTarget, withDestinations } from '../fleet/targeting.ts'
import type { Store } from '../store/store.ts'
import type { HealthRuleRowsDeps } from './health-rule-rows.ts'
import { parseServiceSpec } from './known-specs.ts'
import { readProject } from './projects.ts'
import { mayReadSite } from './render/site-layers.ts'

export interface SiteConfigRowsDeps extends HealthRuleRowsDeps {
  store: HealthRuleRowsDeps['store'] & Pick<Store, 'getResource'>
  services(): Promise<readonly StoredResource[]>
}

interface WantingService {
  id: ServiceId
  spec: ServiceSpec & { siteConfig: SiteConfig }
  project: NamedProject | null
}

const RETRY = { baseMs: 1_000, capMs: 60_000 }

export class SiteConfigRows {
  readonly #deps: SiteConfigRowsDeps
  /** One at a time: an older look must not write over a newer one. */
  #last: Promise<unknown> = Promise.resolve()
  #queued: Promise<void> | null = null
  /** Services that name a ConfigMap, as of the last look. */
  #wanting: ReadonlySet<string> = new Set()
  /** A cluster names one, or has rows. */
  #hasClusters = false

  constructor(deps: SiteConfigRowsDeps) {
    this.#deps = deps
  }

  /** The server starts, or a Project changed. Never rejects. */
  changed(): Promise<void> {
    this.#queued ??= this.#untilDone()
    return this.#queued
  }

  /** A service was written or deleted. */
  async serviceChanged({ project, service }: ServiceId): Promise<void> {
    const held = await this.#deps.store.getResource({ kind: 'Service', project, name: service })
    if (this.#wanting.has(serviceKey({ project, service })) || held?.spec.includes('"siteConfig"') === true) await this.changed()
  }

  /** Clusters of these names joined, or were written. */
  async clustersChanged(names: readonly string[]): Promise<void> {
    if (this.#wanting.size > 0 || this.#hasClusters) return this.changed()
    const clusters = await this.#deps.store.findClusters({ names: [...names] })
    if (clusters.some(({ siteConfig }) => siteConfig !== undefined)) await this.changed()
  }

  async #untilDone(): Promise<void> {
    const { clock, random, log, stopping } = this.#deps
    for (let attempt = 0; !stopping.aborted; attempt += 1) {
      const look = this.#last.then(() => {
        this.#queued = null // whoever comes from now on may know more than this look
        return this.#publish()
      })
      this.#last = look.catch(() => {})
      try {
        return await look
      } catch (error) {
        const retryInMs = backoffMs(attempt, RETRY, random)
        log.warn('ConfigMaps of sites could not be published', { attempt, retryInMs, error: describeError(error) })
        await clock.sleep(retryInMs, stopping)
      }
    }
  }

  async #publish(): Promise<void> {
    const { store, clock, log } = this.#deps
    const services = await this.#wantingServices()
    const clusters: readonly ClusterRecord[] = await store.listClusters()
    this.#wanting = new Set(services.map(({ id }) => serviceKey(id)))
    this.#hasClusters = clusters.some(({ siteConfig }) => siteConfig !== undefined)
    const isSomewhere = async () => (await store.desiredOfService(SITE_CONFIGS)).some(({ setSha }) => setSha !== null)
    if (services.length === 0 && !this.#hasClusters && !(await isSomewhere())) return
    const pace = createPace(clock)
    const publications: Publication[] = []
    for (const cluster of clusters) {
      await pace()
      publications.push({ ...SITE_CONFIGS, clusterId: cluster.clusterId, doc: null, objects: rowsFor(cluster, services), placedBy: '' })
    }
    const changed = await publishRevisions({ ...this.#deps, pace }, publications)
    const count = changed.filter(Boolean).length
    if (count > 0) log.info('ConfigMaps of sites published', { clusters: count, services: services.length })
  }

  async #wantingServices(): Promise<WantingService[]> {
    const found: WantingService[] = []
    for (const { project, name, spec: text, deletingMs } of await this.#deps.services()) {
      if (deletingMs !== null || !text.includes('"siteConfig"')) continue
      const spec = parseServiceSpec(text)
      const { siteConfig } = spec
      if (siteConfig === undefined) continue
      found.push({ id: { project, service: name }, spec: { ...spec, siteConfig }, project: await readProject(this.#deps.store, project) })
    }
    return found
  }
}

/** The keys that a cluster reports, by row. */
function rowsFor(cluster: ClusterRecord, services: readonly WantingService[]): ReadonlyMap<string, string> {
  const keys = new Map<string, Set<string>>()
  const want = (site: SiteConfig) => {
    const held = keys.get(siteMapId(site)) ?? new Set()
    for (const { key } of site.keys.map(wantedKey)) held.add(key)
    keys.set(siteMapId(site), held)
  }
  if (cluster.siteConfig !== undefined) want(cluster.siteConfig)
  for (const { spec, project } of services) {
    if (!isTarget(cluster.labels, withDestinations(spec.targets, project))) continue
    if (mayReadSite(project, cluster.labels, spec.siteConfig)) want(spec.siteConfig)
  }
  return new Map(
    [...keys]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, of]) => [`${SITE_CONFIG_PREFIX}${id}`, canonicalJson({ keys: [...of].sort() })]),
  )
}
