// The last render of each service: its dependencies, and its result. In memory only, and bounded: a service that is not
// remembered is rendered with the next commit of a repository that it uses. After a start, every service is.

import { keyOutsideNamespaces } from '../../../shared/kube/object.ts'
import { objectRowPrefix } from '../../../shared/model/desired.ts'
import { type ServiceSpec, sourcesOf } from '../../../shared/model/resources.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { type ClusterId, parseServiceKey, type ServiceId, serviceKey } from '../../../shared/runtime/ids.ts'
import { isOfUnknownScope, objectNames } from '../../fleet/named-objects.ts'
import type { RenderCache } from '../../render/cache/renders.ts'
import type { InputRead } from '../../render/inputs.ts'
import { createSlots } from '../../render/sandbox/slots.ts'
import type { SourcePick } from '../../sources/source.ts'
import type { ContentSource, OpenedContent, ServiceSource } from '../content-port.ts'
import { type KnownNames, NameIndex } from './name-index.ts'
import { pickOf } from './open-sources.ts'
import type { ClusterOutcomes } from './render-clusters.ts'
import type { NamingService } from './rendering.ts'

/** `id` is undefined if the file could not be read. */
interface LookedFile {
  source: number
  path: string
  id: string | null | undefined
}

interface LastDependencySet {
  /** All but what is of the clusters. */
  spec: string
  /** Where renders looked, with what was there. */
  files: readonly LookedFile[]
  /** By source, whether its version was read. */
  versioned: ReadonlySet<number>
  versions: readonly string[]
  /** Keys of what it rendered to: of most clusters, and of the others. */
  most: string | null
  others: ReadonlyMap<ClusterId, string | null>
  /** A label of a cluster was read. */
  labels: boolean
  /** Something could not be had, perhaps of a Repository that is not one of theirs: a chart that theirs depends on. */
  lacking: boolean
  /** Names of remote bases, with their revisions. */
  bases: ReadonlyMap<string, string>
}

interface LookedService {
  id: ServiceId
  spec: ServiceSpec
  /** Names all of it but what is of the clusters. */
  specText: string
}

/** Reads of the last render of a service in one of its sources. */
interface LookedPlace {
  pick: SourcePick
  /** Null if it was not read. */
  version: string | null
  files: LastDependencySet['files']
}

interface Last {
  /** Null if there was none yet that came to its end. */
  recorded: LastDependencySet | null
  /** A later one has begun, and did not come to its end: perhaps the content could not be read. */
  unread: boolean
}

export class LastDependencies {
  private readonly peek: RenderCache['peek']
  private readonly lasts = new Map<string, Last>()
  /** By names without their namespaces: for some kinds it is unknown here whether they have one. */
  private readonly naming = new NameIndex((service) => this.namesOf(service))

  private readonly entriesMax: number
  private entries = 0

  constructor(peek: RenderCache['peek'], entriesMax = ENTRIES_MAX) {
    this.peek = peek
    this.entriesMax = entriesMax
  }

  begin(id: ServiceId): void {
    this.remember(serviceKey(id), { recorded: this.readTimesOf(id), unread: true })
  }

  /** Null if it failed before it looked anywhere, for a reason that no commit changes. */
  end(id: ServiceId, recorded: LastDependencySet | null): void {
    this.remember(serviceKey(id), { recorded: recorded ?? this.readTimesOf(id), unread: false })
    this.naming.changed(serviceKey(id))
  }

  /** Whether it rendered all of its clusters, at these versions of its sources, and lacked nothing: what more clusters
   *  render to is the same release. */
  isCurrent(id: ServiceId, specText: string, versions: readonly string[]): boolean {
    const { recorded = null, unread = true } = this.lasts.get(serviceKey(id)) ?? {}
    if (recorded === null || unread || recorded.lacking || recorded.spec !== specText) return false
    return recorded.versions.length === versions.length && recorded.versions.every((version, index) => version === versions[index])
  }

  /** Adds a few clusters, after `isCurrent`; the others stay as they are. */
  extend(id: ServiceId, more: LastDependencySet, clusters: readonly ClusterId[]): void {
    const { recorded = null, unread = true } = this.lasts.get(serviceKey(id)) ?? {}
    if (recorded === null) return
    const others = new Map(recorded.others)
    for (const clusterId of clusters) {
      const key = more.others.has(clusterId) ? (more.others.get(clusterId) ?? null) : more.most
      if (key === recorded.most) others.delete(clusterId)
      else others.set(clusterId, key)
    }
    const placeOf = ({ source, path }: LastDependencySet['files'][number]) => `${source}\0${path}`
    const known = new Map(recorded.files.map((file) => [placeOf(file), file.id]))
    const files = more.files.filter((file) => !known.has(placeOf(file)))
    // An input that it read elsewhere before, it may still read elsewhere.
    const isOther = more.files.some((file) => known.has(placeOf(file)) && known.get(placeOf(file)) !== file.id)
    const versioned = recorded.versioned.union(more.versioned)
    const all = files.length === 0 ? recorded.files : [...recorded.files, ...files]
    const bases = new Map([...recorded.bases, ...more.bases])
    const both = { ...recorded, files: all, versioned, others, bases, labels: recorded.labels || more.labels }
    this.remember(serviceKey(id), { recorded: both, unread: unread || isOther })
  }

  forgetClusters(id: ServiceId, clusterIds: ReadonlySet<ClusterId>): void {
    const last = this.lasts.get(serviceKey(id))
    if (last?.recorded == null || ![...clusterIds].some((clusterId) => last.recorded?.others.has(clusterId))) return
    const others = new Map([...last.recorded.others].filter(([clusterId]) => !clusterIds.has(clusterId)))
    this.remember(serviceKey(id), { ...last, recorded: { ...last.recorded, others } })
  }

  forget(id: ServiceId): void {
    this.drop(serviceKey(id))
  }

  /** Services that were rendered the longest time ago are forgotten for it. */
  private remember(key: string, last: Last): void {
    this.entries += entriesOf(last) - entriesOf(this.lasts.get(key))
    this.lasts.delete(key)
    this.lasts.set(key, last)
    for (const [oldest] of this.lasts) {
      if (this.entries <= this.entriesMax || oldest === key) return
      this.drop(oldest)
    }
  }

  private drop(key: string): void {
    this.entries -= entriesOf(this.lasts.get(key))
    this.lasts.delete(key)
    this.naming.changed(key)
  }

  /** Where it looked last it will look again: that is read at once. */
  ahead(id: ServiceId, sources: readonly ServiceSource[]): Promise<void> {
    return readAhead(sources, this.readTimesOf(id)?.files ?? [])
  }

  isLacking(id: ServiceId): boolean {
    return this.readTimesOf(id)?.lacking ?? false
  }

  /** Remote bases of the last render, by name. */
  basesOf(id: ServiceId): ReadonlyMap<string, string> {
    return this.readTimesOf(id)?.bases ?? NO_BASES
  }

  ignoresLabels(id: ServiceId): boolean {
    const { recorded = null, unread = true } = this.lasts.get(serviceKey(id)) ?? {}
    return recorded !== null && !unread && !recorded.lacking && !recorded.labels
  }

  /** IC13: whether another revision of a repository changes what each of the services renders to, as far as that is
   *  known. Asks for the ids of all of them together: a repository may have a thousand services. */
  async changedBy(services: readonly LookedService[], repository: string, source: ContentSource, revision: string): Promise<boolean[]> {
    const looked = services.map((service) => this.lookedIn(service, repository))
    const trees = new Map<string, OpenedContent | null>()
    const slots = createSlots(TREES_AT_ONCE)
    const inTrees = Map.groupBy(
      looked.flatMap((places) => places ?? []),
      ({ pick }) => treeOf(pick),
    )
    const read = async (tree: string, places: readonly LookedPlace[]) => {
      const opened = places[0] === undefined ? null : await source.open(revision, places[0].pick).catch(() => null)
      trees.set(tree, opened)
      await opened?.tree.ahead?.(places.flatMap(({ files }) => files.map(({ path }) => path)))
    }
    await Promise.all([...inTrees].map(([tree, places]) => slots.run(() => read(tree, places))))
    const isOther = async ({ pick, version, files }: LookedPlace): Promise<boolean> => {
      const opened = trees.get(treeOf(pick)) ?? null
      if (opened === null || (version !== null && opened.version !== version)) return true
      for (const { path, id } of files) if (id === undefined || (await opened.tree.id(path).catch(() => undefined)) !== id) return true
      return false
    }
    const changed: boolean[] = []
    for (const places of looked) {
      let isChanged = places === null
      for (const place of places ?? []) isChanged ||= await isOther(place)
      changed.push(isChanged)
    }
    return changed
  }

  /** Where the last render of the service looked in that repository. Null means that nobody knows. */
  private lookedIn({ id, spec, specText }: LookedService, repository: string): LookedPlace[] | null {
    const { recorded = null, unread = true } = this.lasts.get(serviceKey(id)) ?? {}
    if (recorded === null || unread || recorded.lacking || recorded.spec !== specText) return null
    const outermost = outermostOf(recorded)
    return sourcesOf(spec).flatMap((named, index) => {
      if (named.repository !== repository) return []
      const version = recorded.versioned.has(index) ? (recorded.versions[index] ?? '') : null
      return [{ pick: pickOf(named), version, files: outermost.filter(({ source }) => source === index) }]
    })
  }

  /** Services whose last render names one of these objects; of the renders that are kept in memory. */
  rendersNaming(objects: ReadonlySet<string>): NamingService[] {
    if (objects.size === 0) return []
    const found: NamingService[] = []
    const names = objectNames(objects)
    const areDoubtful = [...objects].some(isOfUnknownScope)
    for (const key of this.naming.having([...objects].map(keyOutsideNamespaces))) {
      const { recorded = null } = this.lasts.get(key) ?? {}
      if (recorded === null) continue
      const { most, others } = recorded
      const id = parseServiceKey(key)
      const prefix = objectRowPrefix(id)
      const renders = this.rendersOf(recorded)
      // Whichever is less to look at.
      const isNaming = (rows: ReadonlyMap<string, string>) =>
        rows.size < objects.size || areDoubtful
          ? [...rows.keys()].some((rowId) => names.hasAnywhere(rowId.slice(prefix.length)))
          : [...objects].some((object) => rows.has(prefix + object))
      if (!renders.some((rows) => rows !== null && isNaming(rows))) continue
      found.push({ id, objectsIn: (clusterId) => this.objectsOf(others.has(clusterId) ? (others.get(clusterId) ?? null) : most) })
    }
    return found
  }

  /** Null if it is not in memory any more. */
  private rendersOf({ most, others }: LastDependencySet): Array<ReadonlyMap<string, string> | null> {
    return [...new Set([most, ...others.values()])].filter((one) => one !== null).map((one) => this.objectsOf(one))
  }

  private namesOf(service: string): KnownNames {
    const { recorded = null } = this.lasts.get(service) ?? {}
    const renders = recorded === null ? [] : this.rendersOf(recorded)
    const { length } = objectRowPrefix(parseServiceKey(service))
    const names = new Set<string>()
    for (const rows of renders) for (const rowId of rows?.keys() ?? []) names.add(keyOutsideNamespaces(rowId.slice(length)))
    return { names, isComplete: !renders.includes(null) }
  }

  private readTimesOf(id: ServiceId): LastDependencySet | null {
    return this.lasts.get(serviceKey(id))?.recorded ?? null
  }

  private objectsOf(key: string | null): ReadonlyMap<string, string> | null {
    const result = key === null ? null : this.peek(key)
    return result?.kind === 'rendered' ? result.objects : null
  }
}

/** Content ids that are asked for next, with one question to each source. */
export async function readAhead(sources: readonly ServiceSource[], files: ReadonlyArray<{ source: number; path: string }>): Promise<void> {
  for (const [index, { opened }] of sources.entries())
    await opened.tree.ahead?.(files.flatMap(({ source, path }) => (source === index ? [path] : [])))
}

/** Files and clusters that are remembered, of all services together: 100 bytes each. */
const ENTRIES_MAX = 1_000_000
const entriesOf = (last: Last | undefined): number => (last?.recorded == null ? 0 : last.recorded.files.length + last.recorded.others.size)

/** Folders of one revision are read from one tree; each chart has its own. */
const treeOf = (pick: SourcePick): string => ('path' in pick ? '' : JSON.stringify([pick.chart, pick.version]))
const TREES_AT_ONCE = 4

const outermost = new WeakMap<LastDependencySet, LastDependencySet['files']>()

/** Without paths below a folder that was looked at, too: an unchanged folder includes all its content, and most reads
 *  of a render are in the service's own. */
function outermostOf(recorded: LastDependencySet): LastDependencySet['files'] {
  const known = outermost.get(recorded)
  if (known !== undefined) return known
  const paths = new Set(recorded.files.map(({ source, path }) => `${source}\0${path}`))
  const isInside = ({ source, path }: LookedFile) => foldersOf(path).some((folder) => folder !== path && paths.has(`${source}\0${folder}`))
  const found = recorded.files.filter((file) => !isInside(file))
  outermost.set(recorded, found)
  return found
}

/** Those that it lies in: '', `a` and `a/b` of `a/b/c`. */
const foldersOf = (path: string): string[] => ['', ...[...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index))]

const NO_BASES: ReadonlyMap<string, string> = new Map()

/** Its labels, or all of the cluster. They choose the bounds of a project, too. */
const isOfLabels = ([first, second]: InputRead): boolean =>
  first === 'bounds' || (first === 'cluster' && (second === undefined || second === 'labels'))

/** The dependencies of a render that came to its end. */
export async function lastDependenciesOf(
  spec: string,
  sources: readonly ServiceSource[],
  { clusters }: ClusterOutcomes,
  fileId: (source: number, path: string) => Promise<string | null | undefined>,
  baseOf?: (name: string) => Promise<string>,
): Promise<LastDependencySet> {
  // Not where older renders looked, too: one that failed listed the whole repository, which every commit changes.
  const shapes = [...new Set([...clusters.values()].map(({ shape }) => shape))]
  const files = new Map<string, LastDependencySet['files'][number]>()
  for (const { source, path } of shapes.flatMap((shape) => shape.files))
    files.set(`${source}\0${path}`, { source, path, id: await fileId(source, path) })
  const versioned = shapes.flatMap(({ inputs }) => inputs.flatMap(([first, index]) => (first === 'source' ? [Number(index)] : [])))
  const bases = new Map<string, string>()
  for (const [first, name = ''] of shapes.flatMap(({ inputs }) => inputs))
    if (first === 'bases' && baseOf !== undefined) bases.set(name, await baseOf(name))
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
    labels: shapes.some(({ inputs }) => inputs.some(isOfLabels)),
    lacking: [...clusters.values()].some(({ result }) => result instanceof AppError),
    bases,
  }
}
