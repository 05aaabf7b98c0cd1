// What a service renders to now: the content of its folder at the commit that was read last. Asked again with nothing changed, it reads nothing.
import { objectRowPrefix } from '../../shared/model/desired.ts'
import type { ServiceId } from '../../shared/model/ids.ts'
import { parseServiceKey, serviceKey } from '../../shared/model/ids.ts'
import { placeOf, repositorySpecSchema, type ServiceSpec, sourcesOf } from '../../shared/model/resources.ts'
import { AppError } from '../../shared/protocol/error.ts'
import type { TargetCluster } from '../fleet/targeting.ts'
import { isManifestPath } from '../render/manifest-path.ts'
import { readManifests } from '../render/manifests.ts'
import { type RenderResult, rowsOf } from '../render/object-rows.ts'
import type { Source } from '../sources/source.ts'
import type { Sources } from '../sources/sources.ts'
import type { Store } from '../store/store.ts'
import type { GoodRender, NamingService, Rendering } from './rendering.ts'

interface Entry {
  commit: string
  path: string
  namespace: string | undefined
  treeId: string | null
  result: RenderResult
  bytes: number
}

/** Rendered sets kept in memory; beyond it the ones longest unused are rendered again when they are needed. */
const CACHE_BYTES_MAX = 64 * 1024 * 1024

export class ServiceRenderer {
  private readonly store: Pick<Store, 'getResource' | 'repositoryState'>
  private readonly sources: Sources
  private readonly entries = new Map<string, Entry>()
  private bytes = 0
  /** Services whose content could not be read when they were rendered last. */
  private readonly unread = new Set<string>()

  constructor(store: Pick<Store, 'getResource' | 'repositoryState'>, sources: Sources) {
    this.store = store
    this.sources = sources
  }

  /** `at`: other revisions than those that were read last, by repository; nothing of such a render is remembered. */
  async render(
    id: ServiceId,
    spec: ServiceSpec,
    clusters: readonly TargetCluster[],
    at?: Readonly<Record<string, string>>,
  ): Promise<Rendering> {
    this.unread.add(serviceKey(id))
    return this.renderRead(id, spec, clusters, at)
  }

  private async renderRead(
    id: ServiceId,
    spec: ServiceSpec,
    clusters: readonly TargetCluster[],
    at?: Readonly<Record<string, string>>,
  ): Promise<Rendering> {
    const { project } = id
    const name = sourcesOf(spec)[0]?.repository ?? ''
    const repository = await this.store.getResource({ kind: 'Repository', project, name })
    if (repository === null) {
      const message = `there is no repository ${name} in project ${project}`
      return { kind: 'failed', commit: null, error: { code: 'not_found', message, problems: [] } }
    }
    const commit = at?.[name] ?? (await this.store.repositoryState(project, name)).commit
    if (commit === null) return { kind: 'no_content' }
    const place = placeOf(repositorySpecSchema.parse(JSON.parse(repository.spec)))
    const source = this.sources.open({ uid: repository.uid, project, place })
    try {
      const result = await this.resultAt(id, spec, source, commit)
      if (result === null) return { kind: 'no_content' }
      this.unread.delete(serviceKey(id))
      if (result.kind === 'rendered') {
        const { objects, digest, count, hooks, warnings } = result
        const render: GoodRender = { kind: 'rendered', objects, digest, count, hooks }
        return {
          kind: 'good',
          release: { commit, revisions: { [name]: commit }, tools: {} },
          clusters: new Map(clusters.map(({ clusterId }) => [clusterId, render])),
          forNobody: clusters.length === 0 ? render : null,
          warnings,
        }
      }
      return { kind: 'failed', commit, error: { code: result.code, message: result.message, problems: result.problems } }
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      // Replaced by a fresh folder in the midst of reading; the repository's next commit is on its way.
      if (error.code === 'git_failed' && !(await source.has(commit))) return { kind: 'no_content' }
      const { code, message, data } = error
      return { kind: 'failed', commit, error: { code, message, problems: [...(data.problems ?? [])] } }
    }
  }

  /** Whether another commit changes what the service renders to, as far as that is known. */
  async changedBy(id: ServiceId, spec: ServiceSpec, source: Source, commit: string): Promise<boolean> {
    const entry = this.entries.get(serviceKey(id))
    if (entry === undefined || this.unread.has(serviceKey(id)) || entry.path !== pathOf(spec)) return true
    return (await treeId(source, commit, entry.path).catch(() => undefined)) !== entry.treeId
  }

  /** Services whose last render names one of these objects, by key; of the renders that are kept. */
  rendersNaming(objects: ReadonlySet<string>): NamingService[] {
    if (objects.size === 0) return []
    const found: NamingService[] = []
    for (const [key, { result }] of this.entries) {
      if (result.kind !== 'rendered') continue
      const id = parseServiceKey(key)
      const prefix = objectRowPrefix(id)
      // Whichever is less to look at.
      const isNaming =
        result.objects.size < objects.size
          ? [...result.objects.keys()].some((rowId) => objects.has(rowId.slice(prefix.length)))
          : [...objects].some((object) => result.objects.has(prefix + object))
      if (isNaming) found.push({ id, objectsIn: () => result.objects })
    }
    return found
  }

  forget(id: ServiceId): void {
    this.unread.delete(serviceKey(id))
    this.drop(serviceKey(id))
  }

  private async resultAt(id: ServiceId, spec: ServiceSpec, source: Source, commit: string): Promise<RenderResult | null> {
    const key = serviceKey(id)
    const { namespace } = spec
    const path = pathOf(spec)
    const held = this.entries.get(key)
    const fits = held !== undefined && held.path === path && held.namespace === namespace
    if (fits && held.commit === commit) return this.use(key, held)
    if (!(await source.has(commit))) return null
    const { tree } = await source.open(commit, { path })
    const id_ = await tree.id(path)
    if (fits && held.treeId === id_) return this.use(key, { ...held, commit })
    const found = await tree.files(path, isManifestPath)
    const files = new Map([...found].map(([file, { bytes }]) => [file, bytes]))
    const result = rowsOf({ ...id, namespace, path, commit }, readManifests(files))
    let bytes = 0
    if (result.kind === 'rendered') for (const [rowId, doc] of result.objects) bytes += rowId.length + doc.length
    return this.use(key, { commit, path, namespace, treeId: id_, result, bytes })
  }

  private use(key: string, entry: Entry): RenderResult {
    this.drop(key)
    this.entries.set(key, entry) // last: most lately used
    this.bytes += entry.bytes
    for (const oldest of this.entries.keys()) {
      if (this.bytes <= CACHE_BYTES_MAX || oldest === key) break
      this.drop(oldest)
    }
    return entry.result
  }

  private drop(key: string): void {
    this.bytes -= this.entries.get(key)?.bytes ?? 0
    this.entries.delete(key)
  }
}

const pathOf = (spec: ServiceSpec): string => sourcesOf(spec)[0]?.path ?? '.'

const treeId = async (source: Source, commit: string, path: string): Promise<string | null> =>
  (await source.open(commit, { path })).tree.id(path)
