// Renders a service for each of its clusters, from its sources at the revisions that were read last. Asked again with
// nothing changed, it reads and renders nothing.
import { canonicalJson, sha256Hex } from '../../../shared/kube/canonical.ts'
import type { ExplainedValue } from '../../../shared/model/render-views.ts'
import { type ServiceSpec, sourcesOf } from '../../../shared/model/resources.ts'
import type { SiteStatus } from '../../../shared/model/site-config.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../../shared/runtime/ids.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { createPace } from '../../../shared/runtime/pace.ts'
import type { Sealing } from '../../access/sealing.ts'
import type { NamedProject } from '../../fleet/project-rules.ts'
import type { RenderCache } from '../../render/cache/renders.ts'
import type { ConfigLayer } from '../../render/config-merge.ts'
import type { ClusterFacts } from '../../render/inputs.ts'
import { REMOTE_DEPTH_MAX } from '../../render/kustomize/remote.ts'
import { settingsFor } from '../../render/overrides-of.ts'
import { renderBounds } from '../../render/render-bounds.ts'
import { createSlots } from '../../render/sandbox/slots.ts'
import type { ContentStore } from '../../store/content/content-store.ts'
import type { Store } from '../../store/store.ts'
import type { ContentSource, ContentSources, OriginAnswer, RenderRequest, Renders, ServiceSource } from '../content-port.ts'
import type { BasesOfPass, RemoteBases } from '../remote-bases.ts'
import { NO_FACTS, type RenderCluster } from './dependency-values.ts'
import { inForceOf } from './in-force.ts'
import { LastDependencies, lastDependenciesOf, readAhead } from './last-dependencies.ts'
import { LateRenders } from './late-renders.ts'
import { type OpenSourcesDeps, openSources } from './open-sources.ts'
import { type ClusterOutcomes, renderClusters, type Subject } from './render-clusters.ts'
import { failuresOf, type NamingService, type Rendering } from './rendering.ts'
import { renderingOf } from './rendering-of.ts'
import { configsOfService, type ReadConfig } from './service-configs.ts'
import { type SiteLayers, siteLayers } from './site-layers.ts'
import { ToolVersions } from './tool-versions.ts'

export interface ServiceRendererDeps {
  store: Pick<Store, 'getResource' | 'repositoryState' | 'listResources' | 'desiredOfService'>
  content: Pick<ContentStore, 'get'>
  sources: ContentSources
  cache: RenderCache
  renders: Renders
  config: ReadConfig
  facts(clusters: readonly ClusterId[]): Promise<ReadonlyMap<ClusterId, ClusterFacts>>
  /** SC3. Absent means that no cluster reports a ConfigMap. */
  site?: ((clusters: readonly ClusterId[]) => Promise<ReadonlyMap<ClusterId, SiteStatus>>) | undefined
  /** The build of this program: another build may render the same to something else. */
  build: string
  /** Names the age keys that this server has for a project (SP7). Absent means none. */
  sopsVersion?(project: string): string
  /** Absent means that rows stay in clear. */
  sealing?: Pick<Sealing, 'current' | 'keysFor' | 'keysOf' | 'proofKey'> | undefined
  /** Absent means that remote bases are refused. */
  bases?: RemoteBases | undefined
  /** Other content in place of that of Repositories, by name. */
  instead?: OpenSourcesDeps['instead']
  clock: Pick<Clock, 'nowMs'>
  log: Logger
  signal: AbortSignal
}

/** The limit of one service: more would only wait, and hold memory meanwhile. */
const RENDERS_AT_ONCE = 4

/** For the name that was meant. */
const CONFIGS_LOOKED_MAX = 1_000

export class ServiceRenderer {
  private readonly deps: ServiceRendererDeps
  private readonly dependencies: LastDependencies
  private readonly lates = new LateRenders()
  /** One render of a service at a time: the second one finds what the first one made. */
  private readonly lanes = new Map<string, Promise<unknown>>()
  /** A spec belongs to one service. */
  /** By service: two services whose specs have equal texts have the same spec object. */
  private readonly specTexts = new WeakMap<ServiceSpec, Map<string, string>>()

  constructor(deps: ServiceRendererDeps) {
    this.deps = deps
    this.dependencies = new LastDependencies((key) => deps.cache.peek(key))
  }

  /** `at`: other revisions than those that were read last, by repository; nothing of such a render is remembered. */
  render(id: ServiceId, spec: ServiceSpec, clusters: readonly RenderCluster[], at?: Readonly<Record<string, string>>): Promise<Rendering> {
    if (at === undefined) this.dependencies.begin(id)
    return this.inLane(id, () => this.renderNow(id, spec, clusters, at === undefined ? { kind: 'all' } : { kind: 'at', revisions: at }))
  }

  /** For a few more clusters, at what its last render rendered. Null means something else would be rendered now, or is
   *  not known; then all of its clusters are to be rendered. */
  renderMore(id: ServiceId, spec: ServiceSpec, clusters: readonly RenderCluster[]): Promise<Rendering | null> {
    return this.inLane(id, () => this.renderNow(id, spec, clusters, { kind: 'more' }))
  }

  /** The same by other workers and with another cache, which remembers nothing for passes; rows are not sealed. */
  renderBy(by: Pick<ServiceRendererDeps, 'renders' | 'cache'>): ServiceRenderer['render'] {
    const renderer = new ServiceRenderer({ ...this.deps, sealing: undefined, ...by })
    return renderer.render.bind(renderer)
  }

  private inLane<T>(id: ServiceId, work: () => Promise<T>): Promise<T> {
    const key = serviceKey(id)
    const before = this.lanes.get(key) ?? Promise.resolve()
    const rendering = before.then(work, work)
    this.lanes.set(key, rendering)
    const leave = () => void (this.lanes.get(key) === rendering && this.lanes.delete(key))
    rendering.then(leave, leave)
    return rendering
  }

  /** When to reconcile it again without a change. Null means not by itself. */
  againMs(id: ServiceId): number | null {
    return this.lates.againMs(serviceKey(id))
  }

  /** Whether its last render finished and read no label of any cluster. */
  ignoresLabels(id: ServiceId, { overrides = [] }: ServiceSpec): boolean {
    return overrides.length === 0 && this.dependencies.ignoresLabels(id)
  }

  /** Whether its last render lacked something, perhaps of a Repository that is not one of the service's. */
  isLacking(id: ServiceId): boolean {
    return this.dependencies.isLacking(id)
  }

  /** Whether another revision of a repository changes what each service renders to, as far as that is known. */
  changedBy(
    services: ReadonlyArray<{ id: ServiceId; spec: ServiceSpec }>,
    repository: string,
    source: ContentSource,
    revision: string,
  ): Promise<boolean[]> {
    const looked = services.map(({ id, spec }) => ({ id, spec, specText: this.specText(id, spec) }))
    return this.dependencies.changedBy(looked, repository, source, revision)
  }

  rendersNaming(objects: ReadonlySet<string>): NamingService[] {
    return this.dependencies.rendersNaming(objects)
  }

  /** Clusters that have it no more. */
  forgetClusters(id: ServiceId, clusterIds: ReadonlySet<ClusterId>): void {
    this.dependencies.forgetClusters(id, clusterIds)
  }

  forget(id: ServiceId): void {
    this.dependencies.forget(id)
    this.deps.bases?.forget(id)
    this.lates.forget(serviceKey(id))
  }

  private renderNow(id: ServiceId, spec: ServiceSpec, clusters: readonly RenderCluster[], extent: WholeExtent): Promise<Rendering>
  private renderNow(id: ServiceId, spec: ServiceSpec, clusters: readonly RenderCluster[], extent: Extent): Promise<Rendering | null>
  private async renderNow(id: ServiceId, spec: ServiceSpec, clusters: readonly RenderCluster[], extent: Extent): Promise<Rendering | null> {
    for (let round = 0; ; round++) {
      const bases = this.basesFor(id, spec, extent)
      const rendering = await this.renderWith(bases, id, spec, clusters, extent)
      if (bases?.isPending() !== true) return rendering
      // A person waits for the answer; a reconciliation is woken when the bases are there.
      if (extent.kind !== 'at' || round > REMOTE_DEPTH_MAX) return extent.kind === 'more' ? null : { kind: 'no_content' }
      await bases.settled()
    }
  }

  private basesFor(id: ServiceId, spec: ServiceSpec, extent: Extent): BasesOfPass | null {
    const renders = [spec.render, ...sourcesOf(spec).map(({ render }) => render)]
    if (renders.some((render) => render?.kustomize?.remoteBases === true))
      return this.deps.bases?.forPass(id, spec, extent.kind === 'at' ? extent.revisions : null) ?? null
    if (extent.kind === 'all') this.deps.bases?.forget(id)
    return null
  }

  private async renderWith(
    bases: BasesOfPass | null,
    id: ServiceId,
    spec: ServiceSpec,
    clusters: readonly RenderCluster[],
    extent: Extent,
  ): Promise<Rendering | null> {
    const opening = await openSources(this.deps, id, spec, extent.kind === 'at' ? extent.revisions : undefined)
    if (opening.kind !== 'opened') return opening
    const { sources, release, project } = opening
    const versions = sources.map(({ opened }) => opened.version)
    if (extent.kind === 'more' && !this.dependencies.isCurrent(id, this.specText(id, spec), versions)) return null
    if (extent.kind === 'more')
      for (const [name, revision] of this.dependencies.basesOf(id)) if ((await bases?.valueOf(name)) !== revision) return null
    const names = async (project: string) =>
      (await this.deps.store.listResources('Config', { limit: CONFIGS_LOOKED_MAX, project })).items.map(({ name }) => name)
    const found = await configsOfService(this.deps.config, names, id, spec)
    if (found.kind === 'failed') {
      if (extent.kind === 'all') this.dependencies.end(id, null)
      return { kind: 'failed', commit: release.commit, written: await opening.writtenBy(), error: found.error }
    }
    const known = await this.deps.facts(clusters.map(({ clusterId }) => clusterId))
    const factsOf = (clusterId: ClusterId) => known.get(clusterId) ?? NO_FACTS
    const site = siteLayers(spec, project, clusters, (await this.deps.site?.(clusters.map(({ clusterId }) => clusterId))) ?? NO_SITES)
    await this.dependencies.ahead(id, sources)
    const fileId = fileIds(sources)
    const outcomes = await this.renderAll(
      { id, spec, sources, project, configs: found.configs, factsOf, site, fileId, bases, isRemembered: extent.kind === 'all' },
      clusters,
    )
    if (outcomes.renders > 0)
      this.deps.log.info('service rendered', {
        service: serviceKey(id),
        commit: release.commit,
        renders: outcomes.renders,
        clusters: clusters.length,
      })
    if (bases?.isPending() === true || (await opening.isGone(outcomes))) return { kind: 'no_content' }
    const named = basesIn(outcomes)
    if (extent.kind !== 'at') {
      const dependency = await lastDependenciesOf(this.specText(id, spec), sources, outcomes, fileId, bases?.valueOf)
      if (extent.kind === 'all' && allRendered(outcomes)) bases?.end(named)
      if (extent.kind === 'all') this.dependencies.end(id, dependency)
      else
        this.dependencies.extend(
          id,
          dependency,
          clusters.map(({ clusterId }) => clusterId),
        )
    }
    const rendering = renderingOf({
      release: { ...release, revisions: { ...release.revisions, ...bases?.revisions(named) } },
      outcomes: outcomes.clusters,
      factsKey: (cluster, { ofFacts, ofSite }) => {
        const facts = factsKeyOf(cluster === null ? NO_FACTS : factsOf(cluster.clusterId))
        if (!ofSite) return facts
        const text = cluster === null ? '' : (site.of(cluster.clusterId)?.text ?? '')
        return text === '' && ofFacts ? facts : sha256Hex(`${ofFacts ? facts : ''} ${text}`).slice(0, 32)
      },
    })
    return rendering.kind === 'no_content' || failuresOf(rendering).length === 0
      ? rendering
      : { ...rendering, written: await opening.writtenBy() }
  }

  private async renderAll(run: ServiceRun, clusters: readonly RenderCluster[]): Promise<ClusterOutcomes> {
    const { cache, clock, signal } = this.deps
    const { id, spec, sources, project, configs, factsOf, site, fileId, bases, isRemembered } = run
    // A render without a boundary has no dependency on one, so it cannot be reused here.
    const bound = (text: string) => (project === null ? text : `${text}\nbounded`)
    const key = serviceKey(id)
    const due = isRemembered ? this.lates.due(key, clock.nowMs()) : new Set<string>()
    for (const late of due) cache.drop(late)
    const tools = new ToolVersions(this.deps.renders)
    const slots = createSlots(RENDERS_AT_ONCE)
    const layers = (spec.configFrom ?? []).flatMap(({ name }) => configs.get(name) ?? [])
    const settings = settingsFor(id, spec, layers, project === null ? undefined : (labels) => renderBounds(project, labels))
    const ready = clusters.filter(({ clusterId }) => !site.lacking.has(clusterId))
    const isNone = clusters.length > 0 && ready.length === 0
    const outcomes = await renderClusters(
      { cache, slots: (work) => slots.run(work, signal), pace: createPace(clock) },
      {
        spec: bound(this.specText(id, spec)),
        lastingSpec: bound(lastingText(id, spec)),
        inForce: inForceOf(this.deps, id),
        versions: sources.map(({ opened }) => opened.version),
        settingsOf: (cluster) => settings('clusterId' in cluster ? { ...cluster, site: site.of(cluster.clusterId as ClusterId) } : cluster),
        siteNames: site.names,
        tools,
        render: (subject) => this.runOne(run, subject, tools),
        ...{ configs, fileId, factsOf, baseOf: bases?.valueOf, filesAhead: (files) => readAhead(sources, files).catch(() => {}) },
        sopsVersion: this.deps.sopsVersion?.(id.project) ?? '',
      },
      isNone ? [] : ready.length === 0 ? [null] : ready,
    )
    const late = [...outcomes.clusters.values()].flatMap((one) => (one.late && one.key !== null ? [one.key] : []))
    if (isRemembered) this.lates.note(key, new Set(late), due, clock.nowMs())
    else for (const one of late) cache.drop(one) // else a pass that comes to the same would find it failed, and not try it again
    return { ...outcomes, clusters: withLacking(outcomes.clusters, clusters, site) }
  }

  /** CG9: for one cluster, at what was read last. */
  async helmValues(id: ServiceId, spec: ServiceSpec, cluster: RenderCluster | null): Promise<ExplainedValue[]> {
    const { renders } = this.deps
    if (renders.helmValues === undefined) return []
    const asked = await this.requestOf(id, spec, cluster, {})
    return asked === null ? [] : renders.helmValues(asked.request)
  }

  /**
   * RH8: the origin of the object of a row. `at` gives revisions by repository; the last one that was read is used if
   * they are no longer kept. Null means that there is nothing to render.
   */
  async originOf(
    { id, spec, at }: { id: ServiceId; spec: ServiceSpec; at: Readonly<Record<string, string>> },
    cluster: RenderCluster,
    row: string,
  ): Promise<(OriginAnswer & { repository: string | null; version: string }) | null> {
    const { renders } = this.deps
    const asked = (await this.requestOf(id, spec, cluster, at)) ?? (await this.requestOf(id, spec, cluster, {}))
    if (asked === null || renders.originOf === undefined) return null
    const answer = await renders.originOf(asked.request, row)
    const source = sourcesOf(spec).find(({ name, repository }) => (name ?? repository) === answer.origin?.source)
    return { ...answer, repository: source?.repository ?? null, version: asked.version }
  }

  /** The render of one cluster, to be asked about. Null: there is no content, or a Config is missing. */
  private async requestOf(
    id: ServiceId,
    spec: ServiceSpec,
    cluster: RenderCluster | null,
    at: Readonly<Record<string, string>>,
  ): Promise<{ request: RenderRequest; version: string } | null> {
    const { config, facts } = this.deps
    const opening = await openSources(this.deps, id, spec, at)
    if (opening.kind !== 'opened') return null
    const found = await configsOfService(config, async () => [], id, spec)
    if (found.kind === 'failed') return null
    const clusters = cluster === null ? [] : [cluster]
    const ids = clusters.map(({ clusterId }) => clusterId)
    const site = siteLayers(spec, opening.project, clusters, (await this.deps.site?.(ids)) ?? NO_SITES)
    const layers = (spec.configFrom ?? []).flatMap(({ name }) => found.configs.get(name) ?? [])
    const settings = settingsFor(id, spec, layers)
    const request: RenderRequest = {
      ...{ id, sources: opening.sources, configs: found.configs, namespace: spec.namespace, render: spec.render ?? {} },
      settings: cluster === null ? settings({ labels: {}, isNobody: true }) : settings({ ...cluster, site: site.of(cluster.clusterId) }),
      cluster:
        cluster === null
          ? null
          : { name: cluster.name, labels: cluster.labels, facts: (await facts(ids)).get(cluster.clusterId) ?? NO_FACTS },
      base: this.basesFor(id, spec, { kind: 'at', revisions: at })?.state,
    }
    return { request, version: opening.release.commit }
  }

  private async runOne({ id, spec, sources, configs, bases }: ServiceRun, { cluster, settings, facts }: Subject, tools: ToolVersions) {
    const answer = await this.deps.renders.run({
      ...{ id, sources, configs, settings, base: bases?.state },
      namespace: spec.namespace,
      render: spec.render ?? {},
      cluster: cluster === null ? null : { name: cluster.name, labels: cluster.labels, facts },
    })
    for (const [tool, version] of Object.entries(answer.tools)) tools.note(tool, version)
    return answer
  }

  private specText(id: ServiceId, spec: ServiceSpec): string {
    const texts = this.specTexts.get(spec) ?? new Map<string, string>()
    this.specTexts.set(spec, texts)
    const known = texts.get(serviceKey(id)) ?? `${this.deps.build}\n${lastingText(id, spec)}`
    texts.set(serviceKey(id), known)
    const sealing = this.deps.sealing?.current() ?? null
    return sealing === null ? known : `${known}\nsealed ${sealing}` // rows in clear, or under another key, are not to be found again
  }
}

/** All of its clusters at what was read last; more of them, as of the last such render; or some at other revisions, by
 *  repository, of which nothing is remembered. */
type WholeExtent = { kind: 'all' } | { kind: 'at'; revisions: Readonly<Record<string, string>> }
type Extent = WholeExtent | { kind: 'more' }

interface ServiceRun {
  id: ServiceId
  spec: ServiceSpec
  sources: readonly ServiceSource[]
  /** Null if the project has no boundary. */
  project: NamedProject | null
  configs: ReadonlyMap<string, ConfigLayer>
  factsOf(clusterId: ClusterId): ClusterFacts
  site: SiteLayers
  fileId: FileIds
  /** Null if the service has no remote bases. */
  bases: BasesOfPass | null
  isRemembered: boolean
}

const NO_SITES: ReadonlyMap<ClusterId, SiteStatus> = new Map()

/** Clusters whose agents have not reported what siteConfig names fail, so that they keep their revisions. */
function withLacking(
  made: ClusterOutcomes['clusters'],
  clusters: readonly RenderCluster[],
  { lacking }: SiteLayers,
): ClusterOutcomes['clusters'] {
  if (lacking.size === 0) return made
  const none = { key: null, shape: { files: [], inputs: [] }, tools: {}, renderedFrom: null, late: false }
  const failed = clusters.flatMap((cluster) => {
    const result = lacking.get(cluster.clusterId)
    return result === undefined ? [] : [[cluster, { ...none, result, ofCluster: true, ofFacts: false, ofSite: true }] as const]
  })
  return new Map([...made, ...failed])
}

/** A render that failed may not have come to all of its remote bases. */
const allRendered = ({ clusters }: ClusterOutcomes): boolean =>
  [...clusters.values()].every(({ result }) => !(result instanceof AppError) && result.kind === 'rendered')

/** Names of remote bases at which any of the renders looked. */
function basesIn({ clusters }: ClusterOutcomes): Set<string> {
  const shapes = new Set([...clusters.values()].map(({ shape }) => shape))
  return new Set([...shapes].flatMap(({ inputs }) => inputs.flatMap(([first, name = '']) => (first === 'bases' ? [name] : []))))
}

/**
 * IC3: the parts that are equal for all clusters of the service, for any build. Variables and overrides are not
 * included: they count by the reads.
 */
function lastingText({ project, service }: ServiceId, spec: ServiceSpec): string {
  const { namespace = null, render = {} } = spec
  const sources = sourcesOf(spec).map(({ repository, path, chart, version, name, render, filesOnly }) => ({
    ...{ repository, path, chart, version, name, render, filesOnly },
  }))
  return canonicalJson({ id: { project, service }, namespace, render, sources })
}

/** Made once for facts that many clusters share. */
const factsKeys = new WeakMap<ClusterFacts, string>()
function factsKeyOf(facts: ClusterFacts): string {
  const known = factsKeys.get(facts) ?? sha256Hex(canonicalJson(facts)).slice(0, 32)
  factsKeys.set(facts, known)
  return known
}

/** Content ids, each read once. Undefined means that it cannot be read. */
type FileIds = (source: number, path: string) => Promise<string | null | undefined>
function fileIds(sources: readonly ServiceSource[]): FileIds {
  const ids = new Map<string, Promise<string | null | undefined>>()
  const read = async (source: number, path: string) => sources[source]?.opened.tree.id(path).catch(() => undefined)
  return (source, path) => {
    const key = `${source}\0${path}`
    const id = ids.get(key) ?? read(source, path)
    ids.set(key, id)
    return id
  }
}
