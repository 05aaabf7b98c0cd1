// One service for all of its clusters with as few renders as there are differences: what was rendered before is known again by where that render looked and what is there
// now; the rest is grouped by the same, and each group rendered once.
import type { ClusterId } from '../../shared/model/ids.ts'
import { AppError } from '../../shared/protocol/error.ts'
import type { Pace } from '../../shared/runtime/pace.ts'
import type { TargetCluster } from '../fleet/targeting.ts'
import type { RenderCache } from '../render/cache/renders.ts'
import { type Shape, shapeOf, shapeText } from '../render/cache/shapes.ts'
import type { ConfigLayer } from '../render/config-merge.ts'
import type { ClusterFacts, InputRead } from '../render/inputs.ts'
import type { RenderResult } from '../render/object-rows.ts'
import type { ClusterSettings, RenderSettings, SettingsOf } from '../render/overrides-of.ts'
import type { PipelineOutcome } from '../render/pipeline.ts'
import { valueAt } from '../render/record/reads.ts'
import type { InForce } from './in-force.ts'

export type RenderCluster = TargetCluster & ClusterSettings
/** Null: for nobody. */
export type Wanted = RenderCluster | null
export interface Subject {
  cluster: Wanted
  settings: RenderSettings
  facts: ClusterFacts
}

export interface ClusterRun {
  /** Names all that is the same for every cluster. */
  spec: string
  /** The same without the build of this server (RL6). */
  lastingSpec: string
  inForce: InForce
  settingsOf: SettingsOf
  configs: ReadonlyMap<string, ConfigLayer>
  /** Of each source, at the revision that is rendered. */
  versions: readonly string[]
  /** Content id; undefined: it cannot be read. */
  fileId(source: number, path: string): Promise<string | null | undefined>
  toolVersion(tool: string): Promise<string | null>
  factsOf(clusterId: ClusterId): ClusterFacts
  render(subject: Subject): Promise<PipelineOutcome>
}

export interface ClusterOutcome {
  /** Null: it was not kept. */
  key: string | null
  /** Where it looked. */
  shape: Shape
  /** What is wrong with this server or with reading a source is an error, and not kept. */
  result: RenderResult | AppError
  /** Of programs that took part. */
  tools: Readonly<Record<string, string>>
  /** Names the values at all places where it looked, by whatever build; null: no program took part. */
  renderedFrom: string | null
  /** It failed, and a program had run out of time. */
  late: boolean
  /** Something of the cluster was looked at. */
  ofCluster: boolean
  /** Its facts were. */
  ofFacts: boolean
}

export interface ClusterOutcomes {
  clusters: ReadonlyMap<Wanted, ClusterOutcome>
  /** Renderers that ran. */
  renders: number
}

export const NO_FACTS: ClusterFacts = { kubernetesVersion: '', apiVersions: {} }

export interface ClusterRunDeps {
  cache: RenderCache
  /** Runs at most so many at a time, of all services. */
  slots<T>(run: () => Promise<T>): Promise<T>
  /** Ten thousand clusters are looked at in slices. */
  pace: Pace
}

export function renderClusters(deps: ClusterRunDeps, run: ClusterRun, clusters: readonly Wanted[]): Promise<ClusterOutcomes> {
  return new ClusterRenders(deps, run).of(clusters)
}

/** A shape with what is the same for all clusters looked up already. */
interface Prepared {
  shape: Shape
  /** Null: something of it cannot be read, so nothing can be known by it. */
  common: string | null
  ofSettings: readonly InputRead[]
  ofCluster: readonly InputRead[]
  ofFacts: boolean
  bySettings: Map<RenderSettings, string>
  keyOf(values: readonly string[]): string
  lastingKeyOf(values: readonly string[]): string
  /** By the values. */
  keys: Map<string, Keys>
  tools: Record<string, string>
}

interface Keys {
  key: string
  renderedFrom: string | null
}

const looksOf = ({ shape, ofCluster, ofFacts }: Prepared) => ({ shape, ofCluster: ofCluster.length > 0, ofFacts })

class ClusterRenders {
  private readonly deps: ClusterRunDeps
  private readonly run: ClusterRun
  private readonly outcomes = new Map<Wanted, ClusterOutcome>()
  private readonly prepared = new Map<string, Prepared>()
  private readonly byKey = new Map<string, ClusterOutcome | null>()
  /** Rows of the renders so far: what is equal is held once. */
  private readonly rows = new Map<string, string>()
  /** Met last. */
  private last: Prepared | null = null
  private renders = 0

  constructor(deps: ClusterRunDeps, run: ClusterRun) {
    this.deps = deps
    this.run = run
  }

  async of(clusters: readonly Wanted[]): Promise<ClusterOutcomes> {
    let pending = clusters
    for (const shape of await this.deps.cache.shapes(this.run.spec)) {
      const prepared = await this.prepare(shape)
      this.last ??= prepared
      pending = await this.knownBy(prepared, pending)
    }
    await this.renderAll(pending)
    return { clusters: this.outcomes, renders: this.renders }
  }

  /** Answers those that are not. */
  private async knownBy(prepared: Prepared, pending: readonly Wanted[]): Promise<readonly Wanted[]> {
    if (prepared.common === null) return pending
    const left: Wanted[] = []
    for (const cluster of pending) {
      const keys = this.keysOf(prepared, cluster)
      const known = this.byKey.has(keys.key) ? this.byKey.get(keys.key) : await this.lookUp(keys, prepared)
      if (known == null) left.push(cluster)
      else this.outcomes.set(cluster, known)
      const turn = this.deps.pace()
      if (turn !== undefined) await turn
    }
    return left
  }

  private async lookUp({ key, renderedFrom }: Keys, prepared: Prepared): Promise<ClusterOutcome | null> {
    const { tools } = prepared
    const result = await this.deps.cache.get(key, this.rows)
    const outcome = result === null ? null : { key, result, tools, renderedFrom, late: false, ...looksOf(prepared) }
    this.byKey.set(key, outcome)
    if (result !== null) this.hold(result)
    return outcome
  }

  private hold(result: RenderResult): void {
    if (result.kind === 'rendered') for (const [id, doc] of result.objects) this.rows.set(id, doc)
  }

  /** Groups by the shape that was met last; without one, the first cluster stands for all until it is known where it looked. */
  private async renderAll(pending: readonly Wanted[]): Promise<void> {
    if (pending.length === 0) return
    const prepared = this.last === null || this.last.common === null ? null : this.last
    const groups = new Map<string, Wanted[]>()
    for (const cluster of pending) {
      const key = prepared === null ? '' : this.keysOf(prepared, cluster).key
      const group = groups.get(key)
      if (group === undefined) groups.set(key, [cluster])
      else group.push(cluster)
    }
    // One goes ahead: if it looked elsewhere, the others are grouped anew by that, or more would be rendered than differs.
    const [first = [], ...others] = groups.values()
    const left = await this.deps.slots(() => this.renderGroup(first))
    if (this.last !== prepared) return this.renderAll([...left, ...others.flat()])
    await Promise.all([left, ...others].map((group) => this.renderRest(group)))
  }

  private async renderRest(group: readonly Wanted[]): Promise<void> {
    await this.renderAll(await this.deps.slots(() => this.renderGroup(group)))
  }

  /** Renders for the first of them; answers those that it does not stand for after all. */
  private async renderGroup(group: readonly Wanted[]): Promise<readonly Wanted[]> {
    // While this group waited, another one may have shown where to look.
    const [cluster, ...others] = this.last === null ? group : await this.knownBy(this.last, group)
    if (cluster === undefined) return []
    const rendered = await this.renderOne(cluster)
    this.last = rendered
    const outcome = this.outcomes.get(cluster)
    if (rendered.common !== null || outcome === undefined) return this.knownBy(rendered, others)
    // What it looked at cannot be read again: there is nothing to tell the others apart by, and no sense in trying each.
    for (const other of others) this.outcomes.set(other, outcome)
    return []
  }

  private async renderOne(cluster: Wanted): Promise<Prepared> {
    const { cache } = this.deps
    const subject = { cluster, settings: this.settingsOf(cluster), facts: this.factsOf(cluster) }
    const { result: rendered, reads, late } = await this.run.render(subject)
    this.renders += 1
    await this.deps.pace()
    const looked = shapeOf(reads)
    const isKept = !(rendered instanceof AppError)
    const prepared = await this.prepare(isKept ? await cache.addShape(this.run.spec, looked) : looked)
    const { tools } = prepared
    if (prepared.common === null) {
      this.outcomes.set(cluster, { key: null, result: rendered, tools, renderedFrom: null, late: false, ...looksOf(prepared) })
      return prepared
    }
    const { key, renderedFrom } = this.keysOf(prepared, cluster)
    const result = await this.orInForce(rendered, renderedFrom)
    const isLate = isKept && rendered.kind === 'failed' && late
    const outcome = { key: isKept ? key : null, result, tools, renderedFrom, late: isLate, ...looksOf(prepared) }
    this.byKey.set(key, outcome)
    this.outcomes.set(cluster, outcome)
    if (result instanceof AppError) return prepared
    this.hold(result)
    await cache.put(key, result, reads.secret)
    return prepared
  }

  /** RL6 */
  private async orInForce(result: RenderResult | AppError, renderedFrom: string | null): Promise<RenderResult | AppError> {
    if (result instanceof AppError || result.kind === 'failed' || renderedFrom === null) return result
    return { ...result, ...(await this.run.inForce(renderedFrom)) }
  }

  private keysOf(prepared: Prepared, cluster: Wanted): Keys {
    const { tools, common, ofSettings, ofCluster, bySettings, keys } = prepared
    const settings = this.settingsOf(cluster)
    let settled = bySettings.get(settings)
    if (settled === undefined) {
      const places = { config: settings.config.values, values: settings.helmValues, patches: settings.patches }
      settled = ofSettings.map((path) => valueAt(places, path)).join('\n')
      bySettings.set(settings, settled)
    }
    const own = ofCluster.length === 0 ? '' : this.ownTexts(ofCluster, cluster)
    const text = `${settled}\n\n${own}`
    const known = keys.get(text)
    if (known !== undefined) return known
    const values = [common ?? '', settled, own]
    const renderedFrom = Object.keys(tools).length === 0 ? null : prepared.lastingKeyOf(values)
    const found = { key: prepared.keyOf(values), renderedFrom }
    keys.set(text, found)
    return found
  }

  private ownTexts(paths: readonly InputRead[], cluster: Wanted): string {
    const { name = '', labels = {} } = cluster ?? {}
    const places = { cluster: cluster === null ? null : { name, labels, facts: this.factsOf(cluster) } }
    return paths.map((path) => valueAt(places, path)).join('\n')
  }

  private async prepare(shape: Shape): Promise<Prepared> {
    const text = shapeText(shape)
    const held = this.prepared.get(text)
    if (held !== undefined) return held
    const { common, tools } = await this.commonOf(shape)
    const prepared: Prepared = {
      ...{ shape, common, tools, bySettings: new Map(), keys: new Map() },
      keyOf: this.deps.cache.keysOf(this.run.spec, shape),
      lastingKeyOf: this.deps.cache.keysOf(this.run.lastingSpec, shape),
      ofSettings: shape.inputs.filter(([first = '']) => OF_SETTINGS.includes(first)),
      ofCluster: shape.inputs.filter(([first]) => first === 'cluster'),
      ofFacts: shape.inputs.some(([first, second]) => first === 'cluster' && (second === undefined || second === 'facts')),
    }
    this.prepared.set(text, prepared)
    return prepared
  }

  private async commonOf({ files, inputs }: Shape): Promise<{ common: string | null; tools: Record<string, string> }> {
    const { versions, configs } = this.run
    const tools: Record<string, string> = {}
    const texts: string[] = []
    for (const { source, path } of files) {
      const id = await this.run.fileId(source, path)
      if (id === undefined) return { common: null, tools }
      texts.push(id ?? 'none')
    }
    for (const path of inputs) {
      const [first, second = ''] = path
      if (first === 'source')
        texts.push(valueAt({ source: Object.fromEntries(versions.map((version, index) => [index, { version }])) }, path))
      else if (first === 'configs') texts.push(valueAt(configs.get(second)?.values, path.slice(2)))
      else if (first === 'tools') {
        const version = await this.run.toolVersion(second)
        if (version !== null) tools[second] = version
        texts.push(version ?? 'none')
      }
    }
    return { common: texts.join('\n'), tools }
  }

  private factsOf = (cluster: Wanted): ClusterFacts => (cluster === null ? NO_FACTS : this.run.factsOf(cluster.clusterId))

  private settingsOf = (cluster: Wanted): RenderSettings => this.run.settingsOf(cluster ?? NOBODY)
}

const OF_SETTINGS = ['config', 'values', 'patches']
const NOBODY = { labels: {} }
