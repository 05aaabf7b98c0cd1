// What a service renders to now, for each of its clusters: its sources at the revisions that were read last. Asked again with nothing changed, it reads and renders nothing.
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import { objectRowPrefix } from '../../shared/model/desired.ts'
import { type ClusterId, parseServiceKey, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import type { RendererName } from '../../shared/model/render.ts'
import { type ServiceSpec, sourcesOf } from '../../shared/model/resources.ts'
import { AppError, type ErrorCode } from '../../shared/protocol/error.ts'
import type { BackoffLimits } from '../../shared/runtime/backoff.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import type { RenderCache } from '../render/cache/renders.ts'
import type { ConfigLayer } from '../render/config-merge.ts'
import type { ClusterFacts } from '../render/inputs.ts'
import { settingsFor } from '../render/overrides-of.ts'
import { type PipelineSource, runPipeline } from '../render/pipeline.ts'
import { programOf } from '../render/record/sandbox.ts'
import type { Renderer, RenderJob } from '../render/renderer.ts'
import { createSlots } from '../render/sandbox/slots.ts'
import type { Sandbox } from '../render/sandbox.ts'
import type { Source } from '../sources/source.ts'
import type { Sources } from '../sources/sources.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { StoredError } from '../store/records.ts'
import type { Store } from '../store/store.ts'
import { inForceOf } from './in-force.ts'
import { NO_FACTS, type RenderCluster, type Wanted } from './look-values.ts'
import { openSources, pickOf } from './open-sources.ts'
import { type ClusterOutcomes, renderClusters, type Subject } from './render-clusters.ts'
import type { NamingService, Rendering } from './rendering.ts'
import { renderingOf } from './rendering-of.ts'

export interface ServiceRendererDeps {
  store: Pick<Store, 'getResource' | 'repositoryState' | 'listResources' | 'desiredOfService'>
  content: Pick<ContentStore, 'get'>
  sources: Sources
  cache: RenderCache
  renderers: Readonly<Record<RendererName, Renderer>>
  sandbox: Sandbox
  /** Null: the project has none of that name. */
  config(
    project: string,
    name: string,
  ): Promise<{ data: Readonly<Record<string, unknown>>; secrets: Readonly<Record<string, string>> } | null>
  facts(clusters: readonly ClusterId[]): Promise<ReadonlyMap<ClusterId, ClusterFacts>>
  charts?(project: string): NonNullable<RenderJob['charts']>
  /** 32 hex digits that say nothing of the text. */
  mac(text: string): string
  /** Of this program: another one may render the same to something else. */
  build: string
  clock: Pick<Clock, 'nowMs'>
  log: Logger
  signal: AbortSignal
}

/** Of all services together; how many programs run at once is the sandbox's own limit. */
const RENDERS_AT_ONCE = 4

/** What is remembered of the last render of a service. */
interface Known {
  /** All but what is of the clusters. */
  spec: string
  /** Where renders looked, with what was there. */
  files: ReadonlyArray<{ source: number; path: string; id: string | null | undefined }>
  /** By source, whether its version was looked at. */
  versioned: ReadonlySet<number>
  versions: readonly string[]
  /** Keys of what it rendered to: of most clusters, and of the others. */
  most: string | null
  others: ReadonlyMap<ClusterId, string | null>
}

export class ServiceRenderer {
  private readonly deps: ServiceRendererDeps
  private readonly known = new Map<string, Known>()
  /** Services whose content could not be read when they were rendered last. */
  private readonly unread = new Set<string>()
  /** Services whose last render lacked something of a Repository that may not be one of theirs: a chart that theirs depends on. */
  private readonly lacking = new Set<string>()
  /** Services of which a program ran out of time: what that made, and when it is tried again. */
  private readonly late = new Map<string, Late>()
  /** One render of a service at a time: the second one finds what the first one made. */
  private readonly lanes = new Map<string, Promise<unknown>>()
  private readonly slots = createSlots(RENDERS_AT_ONCE)

  constructor(deps: ServiceRendererDeps) {
    this.deps = deps
  }

  /** `at`: other revisions than those that were read last, by repository; nothing of such a render is remembered. */
  render(id: ServiceId, spec: ServiceSpec, clusters: readonly RenderCluster[], at?: Readonly<Record<string, string>>): Promise<Rendering> {
    const key = serviceKey(id)
    if (at === undefined) this.unread.add(key)
    const before = this.lanes.get(key) ?? Promise.resolve()
    const rendering = before.then(
      () => this.renderNow(id, spec, clusters, at),
      () => this.renderNow(id, spec, clusters, at),
    )
    this.lanes.set(key, rendering)
    const leave = () => void (this.lanes.get(key) === rendering && this.lanes.delete(key))
    rendering.then(leave, leave)
    return rendering
  }

  /** When a pass should look at it again, though nothing changed; null: not by itself. */
  againMs(id: ServiceId): number | null {
    return this.late.get(serviceKey(id))?.againMs ?? null
  }

  isLacking(id: ServiceId): boolean {
    return this.lacking.has(serviceKey(id))
  }

  /** Whether another revision of a repository changes what the service renders to, as far as that is known. */
  async changedBy(id: ServiceId, spec: ServiceSpec, repository: string, source: Source, revision: string): Promise<boolean> {
    const known = this.known.get(serviceKey(id))
    if (known === undefined || this.isLacking(id) || this.unread.has(serviceKey(id)) || known.spec !== this.specText(id, spec)) return true
    for (const [index, named] of sourcesOf(spec).entries()) {
      if (named.repository !== repository) continue
      const opened = await source.open(revision, pickOf(named)).catch(() => null)
      if (opened === null || (known.versioned.has(index) && opened.version !== known.versions[index])) return true
      // A folder that is the same is so with all that is in it: most of what a render looked at lies in the service's own.
      const same: string[] = []
      const looks = known.files.filter(({ source: of }) => of === index).sort((a, b) => a.path.length - b.path.length)
      for (const { path, id: held } of looks) {
        if (same.some((folder) => folder === '' || path.startsWith(`${folder}/`))) continue
        if (held === undefined || (await opened.tree.id(path).catch(() => undefined)) !== held) return true
        same.push(path)
      }
    }
    return false
  }

  /** Services whose last render names one of these objects; of the renders that are kept in memory. */
  rendersNaming(objects: ReadonlySet<string>): NamingService[] {
    if (objects.size === 0) return []
    const found: NamingService[] = []
    for (const [key, { most, others }] of this.known) {
      const id = parseServiceKey(key)
      const prefix = objectRowPrefix(id)
      const renders = [...new Set([most, ...others.values()])].map((one) => this.objectsOf(one))
      // Whichever is less to look at.
      const isNaming = (rows: ReadonlyMap<string, string>) =>
        rows.size < objects.size
          ? [...rows.keys()].some((rowId) => objects.has(rowId.slice(prefix.length)))
          : [...objects].some((object) => rows.has(prefix + object))
      if (!renders.some((rows) => rows !== null && isNaming(rows))) continue
      found.push({ id, objectsIn: (clusterId) => this.objectsOf(others.has(clusterId) ? (others.get(clusterId) ?? null) : most) })
    }
    return found
  }

  forget(id: ServiceId): void {
    this.unread.delete(serviceKey(id))
    this.lacking.delete(serviceKey(id))
    this.late.delete(serviceKey(id))
    this.known.delete(serviceKey(id))
  }

  private objectsOf(key: string | null): ReadonlyMap<string, string> | null {
    const result = key === null ? null : this.deps.cache.peek(key)
    return result?.kind === 'rendered' ? result.objects : null
  }

  private async renderNow(
    id: ServiceId,
    spec: ServiceSpec,
    clusters: readonly RenderCluster[],
    at: Readonly<Record<string, string>> | undefined,
  ): Promise<Rendering> {
    const opening = await openSources(this.deps, id, spec, at)
    if (opening.kind !== 'opened') return opening
    const wanted: readonly Wanted[] = clusters.length === 0 ? [null] : clusters
    const { sources, release } = opening
    const specText = this.specText(id, spec)
    const lastingSpec = lastingText(id, spec)
    const found = await this.configsOf(id, spec)
    if ('code' in found) {
      if (at === undefined) this.unread.delete(serviceKey(id))
      return { kind: 'failed', commit: release.commit, error: found }
    }
    const configs = found
    const layers = (spec.configFrom ?? []).flatMap(({ name }) => configs.get(name) ?? [])
    const files = new Map<string, Promise<string | null | undefined>>()
    const fileId = (source: number, path: string) => {
      const key = `${source}\0${path}`
      const held = files.get(key) ?? readId(sources[source], path)
      files.set(key, held)
      return held
    }
    const settingsOf = settingsFor(id, spec, layers)
    const facts = await this.deps.facts(clusters.map(({ clusterId }) => clusterId))
    const factsOf = (clusterId: ClusterId) => facts.get(clusterId) ?? NO_FACTS
    const versions = new Map<string, Promise<string | null>>()
    const toolVersion = (tool: string) => {
      const held = versions.get(tool) ?? knownVersion(this.deps.sandbox, tool)
      versions.set(tool, held)
      return held
    }
    const before = this.late.get(serviceKey(id))
    const isDue = before !== undefined && before.againMs <= this.deps.clock.nowMs()
    if (isDue) for (const key of before.keys) this.deps.cache.drop(key)
    const outcomes = await renderClusters(
      { cache: this.deps.cache, slots: (work) => this.slots.run(work, this.deps.signal, serviceKey(id)), pace: createPace(this.deps.clock) },
      {
        spec: specText,
        lastingSpec,
        inForce: inForceOf(this.deps, id),
        versions: sources.map(({ opened }) => opened.version),
        render: (subject) => this.runOne({ id, spec, sources, configs }, subject),
        ...{ settingsOf, configs, fileId, toolVersion, factsOf },
      },
      wanted,
    )
    if (outcomes.renders > 0)
      this.deps.log.info('service rendered', {
        service: serviceKey(id),
        commit: release.commit,
        renders: outcomes.renders,
        clusters: clusters.length,
      })
    if (await opening.isGone(outcomes)) return { kind: 'no_content' }
    const lateKeys = new Set([...outcomes.clusters.values()].flatMap(({ late, key }) => (late && key !== null ? [key] : [])))
    if (lateKeys.size > 0) this.late.set(serviceKey(id), lateOf(lateKeys, isDue ? before.attempt + 1 : 0, this.deps.clock.nowMs()))
    else if (isDue) this.late.delete(serviceKey(id))
    if (at === undefined) {
      this.unread.delete(serviceKey(id))
      const isOfSource = ({ result }: { result: unknown }) => result instanceof AppError && OF_SOURCES.includes(result.code)
      if ([...outcomes.clusters.values()].some(isOfSource)) this.lacking.add(serviceKey(id))
      else this.lacking.delete(serviceKey(id))
      this.known.set(serviceKey(id), await knownOf(specText, sources, outcomes, fileId))
    }
    const factsKey = (cluster: Wanted) => factsKeyOf(cluster === null ? NO_FACTS : factsOf(cluster.clusterId))
    return renderingOf({ release, outcomes: outcomes.clusters, factsKey, path: sources.map(({ opened }) => opened.root || '.').join(', ') })
  }

  private runOne(
    run: { id: ServiceId; spec: ServiceSpec; sources: readonly PipelineSource[]; configs: ReadonlyMap<string, ConfigLayer> },
    { cluster, settings, facts }: Subject,
  ) {
    const { cache, renderers, sandbox, signal, charts } = this.deps
    const { id, spec, sources, configs } = run
    return runPipeline(
      {
        ...{ renderers, sandbox, signal },
        once: (parts, run, secret) => cache.once(parts, run, secret),
        ...(charts === undefined ? {} : { charts: charts(id.project) }),
      },
      {
        ...{ id, sources, configs, settings },
        namespace: spec.namespace,
        render: spec.render ?? {},
        cluster: cluster === null ? null : { name: cluster.name, labels: cluster.labels, facts },
      },
    )
  }

  /** By name: those of configFrom, and those of Helm's valuesFrom; or why they cannot be had. */
  private async configsOf({ project }: ServiceId, spec: ServiceSpec): Promise<ReadonlyMap<string, ConfigLayer> | RenderError> {
    const { configFrom = [] } = spec
    const renders = [spec.render, ...sourcesOf(spec).map(({ render }) => render)]
    const names = [...configFrom, ...renders.flatMap((render) => render?.helm?.valuesFrom ?? [])].map(({ name }) => name)
    const configs = new Map<string, ConfigLayer>()
    try {
      for (const name of new Set(names)) {
        const config = await this.deps.config(project, name)
        if (config !== null)
          configs.set(name, { values: { ...config.data, ...config.secrets }, secrets: new Set(Object.keys(config.secrets)) })
      }
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      const { code, message, data } = error
      return { code, message, problems: [...(data.problems ?? [])], ...(data.remedy === undefined ? {} : { remedy: data.remedy }) }
    }
    const missing = configFrom.filter(({ name, optional }) => optional !== true && !configs.has(name)).map(({ name }) => name)
    if (missing.length === 0) return configs
    const message = `there is no Config ${missing.join(', ')} in project ${project}; write it, or mark it optional in spec.configFrom`
    return { code: 'not_found', message, problems: [] }
  }

  private specText(id: ServiceId, spec: ServiceSpec): string {
    return `${this.deps.build}\n${lastingText(id, spec)}`
  }
}

interface Late {
  keys: ReadonlySet<string>
  attempt: number
  againMs: number
}

/** IC14 */
const LATE: BackoffLimits = { baseMs: 60_000, capMs: 3_600_000 }
const lateOf = (keys: ReadonlySet<string>, attempt: number, nowMs: number): Late => {
  return { keys, attempt, againMs: nowMs + Math.min(LATE.capMs, LATE.baseMs * 2 ** attempt) }
}

/** IC3: what is the same for all clusters of the service, by whatever build. Variables and overrides are not in it: they count by what is looked at. */
function lastingText({ project, service }: ServiceId, spec: ServiceSpec): string {
  const { namespace = null, render = {} } = spec
  const sources = sourcesOf(spec).map(({ repository, path, chart, version, name, render, filesOnly }) => ({
    ...{ repository, path, chart, version, name, render, filesOnly },
  }))
  return canonicalJson({ id: { project, service }, namespace, render, sources })
}

type RenderError = Omit<StoredError, 'sinceMs'>

const OF_SOURCES: readonly ErrorCode[] = [
  'source_refused',
  'source_unreachable',
  'source_address_refused',
  'credential_missing',
  'credential_refused',
]

/** Of facts that many clusters share it is made once. */
const factsKeys = new WeakMap<ClusterFacts, string>()
function factsKeyOf(facts: ClusterFacts): string {
  const known = factsKeys.get(facts) ?? sha256Hex(canonicalJson(facts)).slice(0, 32)
  factsKeys.set(facts, known)
  return known
}

/** A program that must not run here has no version either: who needs it hears why from its run. */
const knownVersion = (sandbox: Sandbox, tool: string): Promise<string | null> =>
  sandbox.version(programOf(tool)).catch((error: unknown) => {
    if (error instanceof AppError) return null
    throw error
  })

const readId = (source: PipelineSource | undefined, path: string): Promise<string | null | undefined> =>
  source === undefined ? Promise.resolve(undefined) : source.opened.tree.id(path).catch(() => undefined)

async function knownOf(
  spec: string,
  sources: readonly PipelineSource[],
  { clusters }: ClusterOutcomes,
  fileId: (source: number, path: string) => Promise<string | null | undefined>,
): Promise<Known> {
  // Not where older renders looked, too: one that failed listed the whole repository, which every commit changes.
  const shapes = [...new Set([...clusters.values()].map(({ shape }) => shape))]
  const files = new Map<string, Known['files'][number]>()
  for (const { source, path } of shapes.flatMap((shape) => shape.files))
    files.set(`${source}\0${path}`, { source, path, id: await fileId(source, path) })
  const versioned = shapes.flatMap(({ inputs }) => inputs.flatMap(([first, index]) => (first === 'source' ? [Number(index)] : [])))
  const counts = new Map<string | null, number>()
  for (const { key } of clusters.values()) counts.set(key, (counts.get(key) ?? 0) + 1)
  const [[most] = [null]] = [...counts].sort(([, a], [, b]) => b - a)
  const others = new Map<ClusterId, string | null>()
  for (const [cluster, { key }] of clusters) if (cluster !== null && key !== most) others.set(cluster.clusterId, key)
  return {
    spec,
    files: [...files.values()],
    versioned: new Set(versioned),
    versions: sources.map(({ opened }) => opened.version),
    most,
    others,
  }
}
