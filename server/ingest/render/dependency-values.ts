// The present values of the renders' dependencies for each cluster of a service. Values that clusters have in common
// are read once.
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import type { ClusterId } from '../../../shared/runtime/ids.ts'
import type { Pace } from '../../../shared/runtime/pace.ts'
import type { TargetCluster } from '../../fleet/targeting.ts'
import { dependencyText, type Step } from '../../render/cache/paths.ts'
import type { ConfigLayer } from '../../render/config-merge.ts'
import type { ClusterFacts, Dependency, InputRead } from '../../render/inputs.ts'
import type { ClusterSettings, RenderSettings, SettingsOf } from '../../render/overrides-of.ts'
import { valueAt } from '../../render/record/reads.ts'
import type { ToolVersions } from './tool-versions.ts'

export type RenderCluster = TargetCluster & ClusterSettings
/** Null for a render without a cluster. */
export type Wanted = RenderCluster | null

export interface DependedOn {
  settingsOf: SettingsOf
  configs: ReadonlyMap<string, ConfigLayer>
  /** The version of each source, at the revision that is rendered. */
  versions: readonly string[]
  /** Content id. Undefined means that it cannot be read. */
  fileId(source: number, path: string): Promise<string | null | undefined>
  /** Null if it is not there. */
  tools: Pick<ToolVersions, 'held' | 'now'>
  factsOf(clusterId: ClusterId): ClusterFacts
  /** Names of variables that a ConfigMap of a site may set (SC3). */
  siteNames?: ReadonlySet<string> | undefined
  /** Names the age keys that this server has for the project. Absent means none. */
  sopsVersion?: string
  /** Revision of a remote base by its name. Absent means that the service has none. */
  baseOf?: ((name: string) => Promise<string>) | undefined
}

/** FA3: of a cluster that reported none, nothing is served. */
export const NO_FACTS: ClusterFacts = { kubernetesVersion: '', apiVersions: {} }

const OF_SETTINGS: readonly unknown[] = ['config', 'values', 'patches', 'bounds']
/** Longer ones are compared by their digests. */
const VALUE_LENGTH_MAX = 64

export class DependencyValues {
  /** Versions of programs that were read and exist. */
  readonly tools = new Map<string, string>()
  private readonly from: DependedOn
  private readonly pace: Pace
  /** By the text of the look. Undefined means that it cannot be read. */
  private readonly common = new Map<string, string | undefined>()
  private readonly settled = new Map<string, Map<RenderSettings, string>>()

  constructor(from: DependedOn, pace: Pace) {
    this.from = from
    this.pace = pace
  }

  /** Which of the clusters have which value there. Null means that it cannot be read. */
  async split({ dependency, text }: Step, clusters: readonly Wanted[]): Promise<ReadonlyMap<string, readonly Wanted[]> | null> {
    if (isCommon(dependency)) {
      if (!this.common.has(text)) this.common.set(text, await this.commonAt(dependency))
      const value = this.common.get(text)
      return value === undefined ? null : new Map([[value, clusters]])
    }
    const found = new Map<string, Wanted[]>()
    for (const cluster of clusters) {
      const value = this.ownAt(dependency, text, cluster)
      const same = found.get(value)
      if (same === undefined) found.set(value, [cluster])
      else same.push(cluster)
      const turn = this.pace()
      if (turn !== undefined) await turn
    }
    return found
  }

  /** For one of them. Undefined means that it cannot be read. */
  async at(step: Step, cluster: Wanted): Promise<string | undefined> {
    const [value] = (await this.split(step, [cluster]))?.keys() ?? []
    return value
  }

  /** With their places, sorted; of what was read before. */
  async all(dependencies: readonly Dependency[], cluster: Wanted): Promise<string[][]> {
    const found: string[][] = []
    for (const dependency of dependencies) {
      const text = dependencyText(dependency)
      found.push([text, (await this.at({ dependency, text }, cluster)) ?? ''])
    }
    return found.sort(([a = ''], [b = '']) => (a < b ? -1 : 1))
  }

  /** RL3: one of those that has changed since the first read of the reconciliation. Null means none. */
  async changedTool(dependencies: readonly InputRead[]): Promise<string | null> {
    const { tools } = this.from
    for (const [first, tool = ''] of dependencies)
      if (first === 'tools' && (await tools.now(tool)) !== (await tools.held(tool))) return tool
    return null
  }

  settingsOf(cluster: Wanted): RenderSettings {
    return this.from.settingsOf(cluster ?? NOBODY)
  }

  factsOf(cluster: Wanted): ClusterFacts {
    return cluster === null ? NO_FACTS : this.from.factsOf(cluster.clusterId)
  }

  private async commonAt(dependency: Dependency): Promise<string | undefined> {
    const { versions, configs, fileId, tools } = this.from
    if (isFile(dependency)) {
      const id = await fileId(dependency.source, dependency.path)
      return id === null ? 'none' : id
    }
    const [first, second = ''] = dependency
    if (first === 'tools') {
      const version = await tools.held(second)
      if (version !== null) this.tools.set(second, version)
      return version ?? 'none'
    }
    if (first === 'sops') return this.from.sopsVersion ?? ''
    if (first === 'bases') return (await this.from.baseOf?.(second)) ?? 'none'
    if (first === 'configs') return short(valueAt(configs.get(second)?.values, dependency.slice(2)))
    return short(valueAt({ source: Object.fromEntries(versions.map((version, index) => [index, { version }])) }, dependency))
  }

  private ownAt(dependency: Dependency, text: string, cluster: Wanted): string {
    const path = dependency as InputRead
    if (!OF_SETTINGS.includes(path[0])) {
      const { name = '', labels = {} } = cluster ?? {}
      return short(valueAt({ cluster: cluster === null ? null : { name, labels, facts: this.factsOf(cluster) } }, path))
    }
    const settings = this.settingsOf(cluster)
    const known = this.settled.get(text) ?? new Map<RenderSettings, string>()
    this.settled.set(text, known)
    const held = known.get(settings)
    if (held !== undefined) return held
    const places =
      path[0] === 'config'
        ? { config: settings.config.values }
        : { values: settings.helmValues, patches: settings.patches, bounds: settings.bounds }
    const value = short(valueAt(places, path))
    known.set(settings, value)
    return value
  }
}

export const isFile = (dependency: Dependency): dependency is Exclude<Dependency, InputRead> => 'path' in dependency
const isCommon = (dependency: Dependency): boolean =>
  isFile(dependency) || !(dependency[0] === 'cluster' || OF_SETTINGS.includes(dependency[0]))

const short = (value: string): string => (value.length <= VALUE_LENGTH_MAX ? value : `sha256 ${sha256Hex(value)}`)
const NOBODY = { labels: {}, isNobody: true }
