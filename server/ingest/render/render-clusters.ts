// One service for all of its clusters with as few renders as there are differences. Clusters go together from look to
// look; where what is there differs, they part. Those that end together get one render: one that was made before, or
// one that is made now and shows where to look next.
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { Pace } from '../../../shared/runtime/pace.ts'
import { type DependencyPaths, dependencyText, type Spot, type Step } from '../../render/cache/paths.ts'
import type { RenderCache } from '../../render/cache/renders.ts'
import type { ClusterFacts, Dependency, InputRead, Reads } from '../../render/inputs.ts'
import type { RenderResult } from '../../render/object-rows.ts'
import type { RenderSettings } from '../../render/overrides-of.ts'
import type { PipelineOutcome } from '../../render/pipeline.ts'
import { type DependedOn, DependencyValues, isFile, type Wanted } from './dependency-values.ts'
import type { InForce } from './in-force.ts'

export interface Subject {
  cluster: Wanted
  settings: RenderSettings
  facts: ClusterFacts
}

export interface ClusterRun extends DependedOn {
  /** Names all that is the same for every cluster. */
  spec: string
  /** The same without the build of this server (RL6). */
  lastingSpec: string
  inForce: InForce
  render(subject: Subject): Promise<PipelineOutcome>
  /** Reads the content ids that `fileId` is asked for next. Absent means that each is read by itself. */
  filesAhead?(files: Places['files']): Promise<void>
}

/** Where a render looked. */
interface Places {
  files: ReadonlyArray<Exclude<Dependency, InputRead>>
  inputs: readonly InputRead[]
}

export interface ClusterOutcome {
  /** Null if it was not kept. */
  key: string | null
  shape: Places
  /** A failure of this server or of reading a source is an error, and not kept. */
  result: RenderResult | AppError
  /** The programs that took part. */
  tools: Readonly<Record<string, string>>
  /** Names the values at all places where it looked, by whatever build. Null means no program took part. */
  renderedFrom: string | null
  /** It failed, and a program had run out of time. */
  late: boolean
  /** An input of the cluster was read. */
  ofCluster: boolean
  /** Its facts were. */
  ofFacts: boolean
  /** A variable that its site may set was. */
  ofSite: boolean
}

export interface ClusterOutcomes {
  clusters: ReadonlyMap<Wanted, ClusterOutcome>
  /** Renderers that ran. */
  renders: number
}

export interface ClusterRunDeps {
  cache: RenderCache
  /** Runs at most so many at a time, of all services. */
  slots<T>(run: () => Promise<T>): Promise<T>
  /** Ten thousand clusters are processed in slices. */
  pace: Pace
}

/** An outcome for each cluster, with as few renders as their looks allow (IC3). What fails is the outcome of the
 *  clusters that share it, and not thrown. */
export async function renderClusters(deps: ClusterRunDeps, run: ClusterRun, clusters: readonly Wanted[]): Promise<ClusterOutcomes> {
  const paths = await deps.cache.paths(run.spec)
  try {
    return await new ClusterRenders(deps, run, paths).of(clusters)
  } finally {
    await deps.cache.savePaths(run.spec, paths)
  }
}

/** Clusters for which the same is there at all places so far. */
interface Group extends End {
  clusters: readonly Wanted[]
}

interface End extends Spot {
  trail: Trail | null
}

/** How a point was reached, the last look first. */
interface Trail {
  step: Step
  before: Trail | null
}

class ClusterRenders {
  private readonly deps: ClusterRunDeps
  private readonly run: ClusterRun
  private readonly paths: DependencyPaths
  private readonly values: DependencyValues
  private readonly outcomes = new Map<Wanted, ClusterOutcome>()
  /** The end points of the clusters that share it. */
  private readonly byPoint = new Map<string, ClusterOutcome>()
  /** Rows of the renders so far: what is equal is held once. */
  private readonly rows = new Map<string, string>()
  private renders = 0
  /** A program has changed since this reconciliation began: it renders nothing more. */
  private changed: AppError | null = null

  constructor(deps: ClusterRunDeps, run: ClusterRun, paths: DependencyPaths) {
    this.deps = deps
    this.run = run
    this.paths = paths
    this.values = new DependencyValues(run, deps.pace)
  }

  async of(clusters: readonly Wanted[]): Promise<ClusterOutcomes> {
    await this.answer({ ...this.paths.start, clusters, trail: null })
    const inOrder = clusters.flatMap((cluster): Array<[Wanted, ClusterOutcome]> => {
      const outcome = this.outcomes.get(cluster)
      return outcome === undefined ? [] : [[cluster, outcome]]
    })
    return { clusters: new Map(inOrder), renders: this.renders }
  }

  private async answer(all: Group): Promise<void> {
    const unknown: Group[] = []
    const open = [all]
    for (let group = open.pop(); group !== undefined; group = open.pop()) {
      await this.deps.pace()
      const step = this.paths.stepAt(group)
      const parts = step === undefined ? null : await this.values.split(step, group.clusters)
      if (step !== undefined && parts !== null)
        for (const [value, clusters] of parts) open.push({ ...this.onward(group, step, value), clusters })
      else {
        const known = this.byPoint.get(this.paths.pointOf(group)) ?? (step === undefined ? await this.keptAt(group) : null)
        if (known === null) unknown.push(group)
        else for (const cluster of group.clusters) this.outcomes.set(cluster, known)
      }
    }
    await Promise.all(unknown.map((group) => this.renderGroup(group)))
  }

  private onward(from: End, step: Step, value: string): End {
    return { ...this.paths.next(from, step, value), trail: { step, before: from.trail } }
  }

  private async keptAt(end: End): Promise<ClusterOutcome | null> {
    const key = this.paths.pointOf(end)
    const kept = await this.deps.cache.get(key, this.rows)
    if (kept === null) return null
    this.hold(kept.result)
    return this.enter(end, { key, late: false, ...kept })
  }

  private hold(result: RenderResult): void {
    if (result.kind === 'rendered') for (const [id, doc] of result.objects) this.rows.set(id, doc)
  }

  private enter(end: End, made: Pick<ClusterOutcome, 'key' | 'late' | 'result' | 'renderedFrom'>): ClusterOutcome {
    const { shape, tools } = placesOf(end.trail, this.values.tools)
    const ofCluster = shape.inputs.some(([first]) => first === 'cluster')
    const isOfSite = ([first, second]: InputRead): boolean =>
      first === 'config' && (second === undefined || this.run.siteNames?.has(second) === true)
    const outcome = { ...made, shape, tools, ofCluster, ofFacts: shape.inputs.some(isOfFacts), ofSite: shape.inputs.some(isOfSite) }
    this.byPoint.set(this.paths.pointOf(end), outcome)
    return outcome
  }

  /** One of them goes ahead and shows where to look next; the others follow as far as they see the same. */
  private async renderGroup({ clusters: [first, ...others], ...from }: Group): Promise<void> {
    if (first === undefined) return
    await this.deps.slots(async () => this.stopped(first, from) || (await this.renderFor(first, from)))
    if (others.length > 0) await this.answer({ clusters: others, ...from })
  }

  private stopped(cluster: Wanted, end: End): boolean {
    if (this.changed === null) return false
    this.outcomes.set(cluster, this.enter(end, { key: null, late: false, result: this.changed, renderedFrom: null }))
    return true
  }

  private async renderFor(cluster: Wanted, from: End): Promise<void> {
    const { cache, pace } = this.deps
    const subject = { cluster, settings: this.values.settingsOf(cluster), facts: this.values.factsOf(cluster) }
    const { result: rendered, reads, late } = await this.run.render(subject)
    this.renders += 1
    await this.run.filesAhead?.(reads.dependencies.filter(isFile))
    await pace()
    const { isWhole, ...end } = await this.place(cluster, from, reads.dependencies)
    const tool = await this.values.changedTool(reads.inputs)
    if (tool !== null) this.changed ??= new AppError('renderer_missing', { detail: `${tool} was replaced during a render`, remedy: AGAIN })
    // It may be of the other one, though the point names the first.
    if (tool !== null && this.stopped(cluster, end)) return
    // An input cannot be read again, so it is unknown which other clusters share this render: no cluster gets it.
    const made = isWhole || rendered instanceof AppError ? rendered : new AppError('git_failed', { detail: UNREADABLE })
    const renderedFrom = await this.renderedFrom(made, cluster, reads)
    const result = await this.orInForce(made, renderedFrom, reads.secret)
    const key = this.paths.pointOf(end)
    const isKept = !(result instanceof AppError)
    const isLate = isKept && result.kind === 'failed' && late
    this.outcomes.set(cluster, this.enter(end, { key: isKept ? key : null, late: isLate, result, renderedFrom }))
    if (!isKept) return
    this.hold(result)
    await cache.put(key, { result, renderedFrom }, reads.secret)
    if (this.paths.isDue()) await cache.savePaths(this.run.spec, this.paths)
  }

  /**
   * Enters the reads beyond the point that its group had reached. Renders with equal values so far read the same next.
   * A render that did not (its reads have no fixed order) takes the known path: additional reads are always safe, they
   * only make fewer clusters equal.
   */
  private async place(cluster: Wanted, from: End, dependencies: readonly Dependency[]): Promise<End & { isWhole: boolean }> {
    const left = new Map(dependencies.map((dependency) => [dependencyText(dependency), dependency]))
    for (let trail = from.trail; trail !== null; trail = trail.before) left.delete(trail.step.text)
    // One iterator for all: each new one would pass over every deleted entry, of which a template can make 60,000.
    const inOrder = left.entries()
    let next = inOrder.next().value
    let end = from
    let isKnown = true
    for (;;) {
      while (next !== undefined && !left.has(next[0])) next = inOrder.next().value
      // Beyond what is known all its looks come together, as one run.
      const known: Step | undefined = isKnown || next === undefined ? this.paths.stepAt(end) : undefined
      isKnown = known !== undefined
      const step = known ?? (next === undefined ? undefined : this.paths.add(end, next[1]))
      if (step === undefined) return { ...end, isWhole: true }
      left.delete(step.text)
      const value = await this.values.at(step, cluster)
      if (value === undefined) return { ...end, trail: { step, before: end.trail }, isWhole: false }
      end = this.onward(end, step, value)
    }
  }

  private async renderedFrom(result: RenderResult | AppError, cluster: Wanted, { files, inputs }: Reads): Promise<string | null> {
    if (result instanceof AppError || result.kind === 'failed') return null
    if (!inputs.some(([first, tool = '']) => first === 'tools' && this.values.tools.has(tool))) return null
    return this.deps.cache.mac(canonicalJson(['made', this.run.lastingSpec, await this.values.all([...files, ...inputs], cluster)]))
  }

  /** RL6: a render by another build that changes nothing keeps what is published. */
  private async orInForce(result: RenderResult | AppError, renderedFrom: string | null, secret: boolean): Promise<RenderResult | AppError> {
    if (result instanceof AppError || result.kind === 'failed' || renderedFrom === null) return result
    return { ...result, ...(await this.run.inForce(renderedFrom, secret)) }
  }
}

const AGAIN = 'No action needed: it is rendered again with the new program.'
const UNREADABLE = 'cannot read files of a render again'

function placesOf(trail: Trail | null, versions: ReadonlyMap<string, string>): { shape: Places; tools: Record<string, string> } {
  const files: Array<Places['files'][number]> = []
  const inputs: InputRead[] = []
  const tools: Record<string, string> = {}
  for (let at = trail; at !== null; at = at.before) {
    const { dependency } = at.step
    if (isFile(dependency)) files.push(dependency)
    else inputs.push(dependency)
    const [first, tool = ''] = isFile(dependency) ? [] : dependency
    const version = first === 'tools' ? versions.get(tool) : undefined
    if (version !== undefined) tools[tool] = version
  }
  return { shape: { files, inputs }, tools }
}

const isOfFacts = ([first, second]: InputRead): boolean => first === 'cluster' && (second === undefined || second === 'facts')
