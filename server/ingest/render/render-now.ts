// The render of a service for a person: from the content that was read last, and without any consequence.
import { objectRowPrefix } from '../../../shared/model/desired.ts'
import type { OriginView, RenderView, VariantsView } from '../../../shared/model/render-views.ts'
import { type ServiceSpec, serviceSpecSchema, sourcesOf } from '../../../shared/model/resources.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { ServiceId } from '../../../shared/runtime/ids.ts'
import type { Configs } from '../../access/configs.ts'
import type { Sealing } from '../../access/sealing.ts'
import type { ClusterRecord } from '../../fleet/records.ts'
import { isTarget, type Targets, targetsOf, withDestinations } from '../../fleet/targeting.ts'
import { createRenderCache } from '../../render/cache/renders.ts'
import type { ConfigLayer } from '../../render/config-merge.ts'
import { explainValues } from '../../render/explain-values.ts'
import { markBy, markKeyOf, mayShowSecret, whyWithoutContents, withoutContents } from '../../render/for-people.ts'
import { settingsFor } from '../../render/overrides-of.ts'
import type { JsonMap } from '../../render/patch/merge.ts'
import type { Store } from '../../store/store.ts'
import { configsOf } from '../config-users.ts'
import type { Renders } from '../content-port.ts'
import type { Ingest } from '../ingest-port.ts'
import { readProject } from '../projects.ts'
import type { ClusterRender, Rendering } from './rendering.ts'
import { siteLayers } from './site-layers.ts'

export interface RenderNowDeps {
  store: Pick<Store, 'getResource' | 'listClusters' | 'revisions'>
  /** `helmValues`: CG9; `originOf`: RH8; `siteOf`: SC3. */
  ingest: Pick<Ingest, 'render' | 'renderBy' | 'helmValues' | 'originOf' | 'siteOf'>
  /** Renders with marks in place of all secrets. */
  rendersForPeople: Renders
  configs: Pick<Configs, 'read'>
  macOf(text: string): string
  sealing: Pick<Sealing, 'current'>
}

/** `at` {}: nothing of it is remembered. */
type Render = (
  id: ServiceId,
  spec: ServiceSpec,
  clusters: readonly ClusterRecord[],
  at: Readonly<Record<string, string>>,
) => Promise<Rendering>
type Deps = RenderNowDeps & { render: Render; renderForPeople: Render }
/** Renders for people that are kept: somebody looks several times. */
const CACHE_BYTES = 16 * 1024 * 1024

export interface RenderNow {
  /**
   * Null cluster: for no cluster, or if that is not possible for the first of its targets. Null means that there is no
   * such service. Throws `not_found` for an unknown cluster.
   */
  render(id: ServiceId, cluster: string | null, explain?: boolean): Promise<RenderView | null>
  variants(id: ServiceId): Promise<VariantsView | null>
  /**
   * `object`: as agents name it. `number`: of the revision; null, or a revision that is no longer kept, stands for what
   * was read last. Null: there is no such service.
   */
  origin(id: ServiceId, cluster: string, object: string, number: number | null): Promise<OriginView | null>
  /** Renders a proposed spec for a proposed cluster: documents by row id. */
  objects(id: ServiceId, spec: ServiceSpec, cluster: ClusterRecord): Promise<RenderedObjects>
}

export type RenderedObjects = { kind: 'rendered'; objects: ReadonlyMap<string, string> } | { kind: 'failed'; message: string }

export function createRenderNow(given: RenderNowDeps): RenderNow {
  const { store, ingest, rendersForPeople, macOf } = given
  const cache = createRenderCache({ mac: macOf, files: null, memoryBytesMax: CACHE_BYTES })
  const deps: Deps = { ...given, render: ingest.render, renderForPeople: ingest.renderBy({ renders: rendersForPeople, cache }) }
  const specOf = async ({ project, service }: ServiceId): Promise<ServiceSpec | null> => {
    const held = await store.getResource({ kind: 'Service', project, name: service })
    return held === null ? null : serviceSpecSchema.parse(JSON.parse(held.spec))
  }
  /** PJ3: only clusters that are destinations of the project. */
  const boundedTargets = async ({ project }: ServiceId, { targets }: ServiceSpec): Promise<Targets> =>
    withDestinations(targets, await readProject(store, project))
  return {
    async render(id, name, explain = false) {
      const spec = await specOf(id)
      if (spec === null) return null
      const clusters = await store.listClusters()
      const wanted = await boundedTargets(id, spec)
      if (name === null)
        return viewOf(deps, id, spec, explain, await withoutCluster(deps, id, spec, targetsOf(wanted, clusters) as ClusterRecord[]))
      const cluster = clusters.find((one) => one.name === name)
      if (cluster === undefined) throw unknownCluster(name)
      const leavesOut = isTarget(cluster.labels, spec.targets) ? 'no destination of its project selects it' : 'its targets leave it out'
      const note = isTarget(cluster.labels, wanted) ? null : `the service is not placed in ${name}: ${leavesOut}`
      return viewOf(deps, id, spec, explain, { rendering: await deps.render(id, spec, [cluster], {}), cluster, note })
    },
    async objects(id, spec, cluster) {
      const found = renderOf(await deps.render(id, spec, [cluster], {}), cluster)
      return found.kind === 'failed' ? { kind: 'failed', message: found.error.message } : { kind: 'rendered', objects: found.objects }
    },
    async origin(id, name, object, number) {
      const spec = await specOf(id)
      if (spec === null) return null
      const cluster = (await store.listClusters()).find((one) => one.name === name)
      if (cluster === undefined) throw unknownCluster(name)
      const at = number === null ? {} : await revisionsOf(store, id, spec, number)
      const found = await ingest.originOf({ id, spec, at }, cluster, objectRowPrefix(id) + object)
      const head = { ...id, cluster: name, object, version: found?.version ?? null, repository: found?.repository ?? null }
      const { file = null, line = null } = found?.origin ?? {}
      return { ...head, file, line, note: file === null ? whyNoFile(found) : null }
    },
    async variants(id) {
      const spec = await specOf(id)
      if (spec === null) return null
      const targets = targetsOf(await boundedTargets(id, spec), await store.listClusters()) as ClusterRecord[]
      return { ...id, ...variantsOf(await deps.render(id, spec, targets, {}), targets) }
    },
  }
}

/** Revisions of the sources of a revision, by repository. Empty: they are no longer known. */
async function revisionsOf({ revisions }: Pick<Store, 'revisions'>, id: ServiceId, spec: ServiceSpec, number: number) {
  const [found] = await revisions(id, { before: number + 1, limit: 1 })
  if (found?.number !== number) return {}
  const { revisions: read, commit } = found
  const [source] = sourcesOf(spec)
  // The history keeps no list for a single repository.
  return Object.keys(read).length > 0 || source === undefined || commit === null ? read : { [source.repository]: commit }
}

function whyNoFile(found: { origin: { file: string | null } | null; failed: string | null } | null): string {
  if (found === null) return 'the source of the service was not read yet, or cannot be read'
  if (found.failed !== null) return `the service does not render: ${found.failed}`
  return found.origin === null ? 'the service does not render this object' : 'a program makes this object'
}

export const unknownCluster = (name: string): AppError =>
  new AppError('not_found', { detail: `cluster ${name} does not exist`, remedy: '`skerry get clusters` lists them.' })

interface Asked {
  rendering: Rendering
  cluster: ClusterRecord | null
  note: string | null
}

async function withoutCluster(deps: Deps, id: ServiceId, spec: ServiceSpec, targets: readonly ClusterRecord[]): Promise<Asked> {
  const rendering = await deps.render(id, spec, [], {})
  const [cluster = null] = targets
  const isRendered = rendering.kind === 'good' && rendering.forNobody !== null
  if (isRendered || rendering.kind === 'no_content' || cluster === null) return { rendering, cluster: null, note: null }
  const note = `it does not render without a cluster: rendered for ${cluster.name}, the first of its targets`
  return { rendering: await deps.render(id, spec, [cluster], {}), cluster, note }
}

async function viewOf(
  deps: Deps,
  id: ServiceId,
  spec: ServiceSpec,
  explain: boolean,
  { rendering, cluster, note }: Asked,
): Promise<RenderView> {
  const found = renderOf(rendering, cluster)
  const mark = markBy(markKeyOf(deps.macOf, id))
  const variables = explain ? explainValues(await layersOf(deps, id, spec, cluster), mark) : []
  const values = explain ? { values: [...variables, ...(await deps.ingest.helmValues(id, spec, cluster))] } : {}
  const head = { project: id.project, service: id.service, cluster: cluster?.name ?? null, note, ...values }
  const release = rendering.kind === 'good' ? { version: rendering.release.commit, tools: { ...rendering.release.tools } } : { version: rendering.kind === 'failed' ? rendering.commit : null, tools: {} } // biome-ignore format: two of a kind
  const warnings = rendering.kind === 'good' && found.kind === 'rendered' ? rendering.warnings : []
  if (found.kind === 'failed') {
    const { message, problems } = found.error
    return { ...head, ...release, digest: null, objects: [], warnings, error: message, problems }
  }
  const shown = await shownOf(deps, id, spec, cluster, found.objects)
  const notes = [note, shown.note].filter((one) => one !== null).join('; ')
  const objects = [...shown.objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => JSON.parse(text) as JsonMap)
  return { ...head, ...release, note: notes === '' ? null : notes, digest: found.digest, objects, warnings, error: null, problems: [] }
}

/**
 * RH2: objects that may hold secrets are rendered anew with marks in place of these, so that whatever was made of them
 * shows marks. Where that is not possible, they are shown without contents.
 */
async function shownOf(
  deps: Deps,
  id: ServiceId,
  spec: ServiceSpec,
  cluster: ClusterRecord | null,
  real: ReadonlyMap<string, string>,
): Promise<{ objects: ReadonlyMap<string, string>; note: string | null }> {
  const isSecret = [...real].some(([row, text]) => mayShowSecret(id, row, text))
  if (!isSecret && (deps.sealing.current() !== null || !(await hasSecrets(deps, id, spec)))) return { objects: real, note: null }
  const marked = renderOf(await deps.renderForPeople(id, spec, cluster === null ? [] : [cluster], {}), cluster)
  if (marked.kind === 'rendered') return { objects: marked.objects, note: null }
  return { objects: withoutContents(real), note: whyWithoutContents(marked.error.message) }
}

function renderOf(rendering: Rendering, cluster: ClusterRecord | null): ClusterRender {
  if (rendering.kind === 'failed') return rendering
  if (rendering.kind === 'no_content') return { kind: 'failed', error: { code: 'no_content', message: NO_CONTENT, problems: [] } }
  const found = cluster === null ? rendering.forNobody : rendering.clusters.get(cluster.clusterId)
  return found ?? { kind: 'failed', error: { code: 'render_failed', message: FOR_NOBODY, problems: [...(rendering.lacking ?? [])] } }
}

const FOR_NOBODY = 'no cluster matches its targets, and it does not render without a cluster; use --cluster NAME to render it for any'
const NO_CONTENT = 'its repository was not read yet, or cannot be read; `skerry get repositories` shows the reason'

async function layersOf(
  { store, configs, ingest }: RenderNowDeps,
  id: ServiceId,
  spec: ServiceSpec,
  cluster: ClusterRecord | null,
): Promise<readonly ConfigLayer[]> {
  const layers: ConfigLayer[] = []
  for (const { name } of spec.configFrom ?? []) {
    const held = await configs.read(id.project, name)
    if (held === null) continue
    const { data, secrets } = held
    layers.push({ from: `Config/${name}`, values: { ...data, ...secrets }, secrets: new Set(Object.keys(secrets)) })
  }
  if (cluster === null) return settingsFor(id, spec, layers)({ labels: {}, isNobody: true }).layers ?? []
  const project = await readProject(store, id.project)
  const site = siteLayers(spec, project, [cluster], await ingest.siteOf([cluster.clusterId])).of(cluster.clusterId)
  return settingsFor(id, spec, layers)({ ...cluster, site }).layers ?? []
}

async function hasSecrets({ configs }: RenderNowDeps, { project }: ServiceId, spec: ServiceSpec): Promise<boolean> {
  for (const name of configsOf(spec)) if (Object.keys((await configs.read(project, name))?.secrets ?? {}).length > 0) return true
  return false
}

/** Pure. */
function variantsOf(rendering: Rendering, targets: readonly ClusterRecord[]): Pick<VariantsView, 'variants' | 'failing'> {
  const variants = new Map<string, VariantsView['variants'][number]>()
  const failing = new Map<string, VariantsView['failing'][number]>()
  for (const cluster of targets) {
    const found = renderOf(rendering, cluster)
    if (found.kind === 'rendered') {
      const held = variants.get(found.digest) ?? { digest: found.digest, objects: found.count - found.hooks, clusters: [] }
      held.clusters.push(cluster.name)
      variants.set(found.digest, held)
    } else {
      const { message, problems } = found.error
      const held = failing.get(message) ?? { error: message, clusters: [], problems }
      held.clusters.push(cluster.name)
      failing.set(message, held)
    }
  }
  const most = <T extends { clusters: string[] }>(all: Map<string, T>) =>
    [...all.values()].sort((a, b) => b.clusters.length - a.clusters.length)
  return { variants: most(variants), failing: most(failing) }
}
