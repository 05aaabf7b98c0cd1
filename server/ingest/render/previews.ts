// Comparisons of proposed content of a service with its current content: uploaded files, another revision of its
// repository, or another spec. Renders run in the workers, with a cache of their own, and leave nothing behind. The
// author of the content may be anybody who may render. The content therefore never gets the secrets of Configs: both
// sides render with marks in their place, and the worker puts marks in place of the contents of Secrets. It gets no
// remote bases either, because it could name any with the credentials of the service.

import type { DiffView } from '../../../shared/model/diff-views.ts'
import { placeOf, repositorySpecSchema, type ServiceSpec, sourcesOf } from '../../../shared/model/resources.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { ServiceId } from '../../../shared/runtime/ids.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import type { ClusterRecord } from '../../fleet/records.ts'
import { isTarget, withDestinations } from '../../fleet/targeting.ts'
import { createRenderCache } from '../../render/cache/renders.ts'
import type { SourceKey } from '../../sources/sources.ts'
import type { Store } from '../../store/store.ts'
import type { Renders } from '../content-port.ts'
import { parseServiceSpec } from '../known-specs.ts'
import { readProject } from '../projects.ts'
import { type Compared, compareRenders } from './compare-renders.ts'
import type { ClusterRender, Rendering } from './rendering.ts'
import { ServiceRenderer, type ServiceRendererDeps } from './service-render.ts'

export interface PreviewsDeps extends Omit<ServiceRendererDeps, 'store' | 'cache' | 'bases' | 'instead' | 'signal'> {
  store: ServiceRendererDeps['store'] & Pick<Store, 'listClusters'>
  clock: Pick<Clock, 'nowMs' | 'monotonicMs' | 'sleep'>
  macOf(text: string): string
  newId(): string
  /** The server stops. */
  stopping: AbortSignal
  log: Logger
}

/** Content of a repository: base64 of an archive, or another ref. */
export type ProposedContent = { archive: string } | { ref: string }

export interface Proposal {
  id: ServiceId
  /** Null for the present spec. */
  spec: ServiceSpec | null
  /** By repository. */
  content: ReadonlyMap<string, ProposedContent>
  /** Clusters to compare. */
  selects(cluster: ClusterRecord): boolean
}

export interface Previews {
  /** Null if the service neither exists nor is proposed. */
  diff(proposal: Proposal): Promise<DiffView | null>
}

/** Deadline of one comparison. The command line waits for 60 seconds. */
const DEADLINE_MS = 50_000
/** Variants of one comparison, of both sides together. */
const RENDERS_MAX = 100
/** Comparisons at the same time. */
const AT_ONCE_MAX = 4
const BUSY_MS = 2_000

export function createPreviews(deps: PreviewsDeps): Previews {
  let running = 0
  return {
    async diff(proposal) {
      if (running >= AT_ONCE_MAX)
        throw new AppError('too_many_requests', { detail: `${running} comparisons are running`, retryAfterMs: BUSY_MS })
      running += 1
      const ended = new AbortController()
      const keys: SourceKey[] = []
      // Work in a worker is not interrupted and counts until it ends, so that deadlines free no capacity.
      const work = compare(deps, proposal, keys, ended.signal).finally(() => {
        running -= 1
        for (const { uid } of keys)
          void deps.sources
            .forget(uid)
            .catch((error: unknown) =>
              deps.log.warn('cannot remove the files of a comparison before the next start', { uid, error: String(error) }),
            )
      })
      work.catch(() => {})
      try {
        return await Promise.race([work, deadline(deps.clock, ended.signal)])
      } finally {
        ended.abort()
      }
    },
  }
}

async function deadline(clock: Pick<Clock, 'sleep'>, ended: AbortSignal): Promise<never> {
  await clock.sleep(DEADLINE_MS, ended)
  throw new AppError('unavailable', {
    doing: 'compare',
    detail: `timeout after ${DEADLINE_MS / 1_000} s`,
    remedy: 'Compare fewer clusters with --cluster or -l, or try again when fewer renders are running.',
  })
}

async function compare(
  deps: PreviewsDeps,
  { id, spec, content, selects }: Proposal,
  keys: SourceKey[],
  ended: AbortSignal,
): Promise<DiffView | null> {
  const { store } = deps
  const { project, service } = id
  const held = await store.getResource({ kind: 'Service', project, name: service })
  const current = held === null || held.deletingMs !== null ? null : parseServiceSpec(held.spec)
  const proposed = spec ?? current
  if (proposed === null) return null
  refuseUnused(proposed, content)
  const instead = new Map<string, { key: SourceKey; revision: string }>()
  for (const [name, one] of content) {
    const key = await keyOf(deps, project, name, one)
    keys.push(key)
    instead.set(name, { key, revision: 'archive' in one ? await deps.sources.put(key, one.archive) : await deps.sources.open(key).fetch() })
  }
  const boundary = await readProject(store, project)
  const clusters = (await store.listClusters()).filter(selects)
  const placed = (of: ServiceSpec | null) => {
    const targets = of === null ? null : withDestinations(of.targets, boundary)
    return targets === null ? [] : clusters.filter(({ labels }) => isTarget(labels, targets))
  }
  const own = ownDeps(deps, ended)
  const [before, after] = [placed(current), placed(proposed)]
  const base = current === null || before.length === 0 ? null : await rendererOf(own).render(id, current, before, {})
  const next = after.length === 0 ? null : await rendererOf({ ...own, instead }).render(id, proposed, after, {})
  const isBefore = new Set(before)
  const isAfter = new Set(after)
  const compared = clusters.flatMap((cluster): Compared[] => {
    if (!isBefore.has(cluster) && !isAfter.has(cluster)) return []
    return [
      {
        cluster,
        before: isBefore.has(cluster) ? renderIn(base, cluster) : null,
        after: isAfter.has(cluster) ? renderIn(next, cluster) : null,
      },
    ]
  })
  const { isCut, baseless, ...view } = compareRenders(compared)
  return {
    ...{ project, service, ...view },
    warnings: next?.kind === 'good' ? [...next.warnings] : [],
    notes: [
      ...(current === null ? ['the service does not exist yet; every object is new'] : []),
      ...(compared.length === 0 ? ['no selected cluster has the service or would get it'] : []),
      ...(baseless === null
        ? []
        : [
            `the current content does not render for ${baseless.clusters} of the clusters, so all objects count as new there: ${baseless.error}`,
          ]),
      ...(isCut ? ['the differences are too large to show all of them; compare one cluster with --cluster'] : []),
    ],
  }
}

/** A name that the service does not read is a mistake, and its content would not be compared. */
function refuseUnused(spec: ServiceSpec, content: ReadonlyMap<string, unknown>): void {
  const used = [...new Set(sourcesOf(spec).map(({ repository }) => repository))]
  const unused = [...content.keys()].filter((name) => !used.includes(name))
  if (unused.length === 0) return
  throw new AppError('invalid_resource', {
    doing: 'compare',
    detail: `the service does not read ${unused.join(', ')}; its repositories are ${used.join(', ')}`,
    problems: unused.map((name) => ({ path: `content.${name}`, message: 'no source of the service names this repository' })),
  })
}

async function keyOf({ store, newId }: PreviewsDeps, project: string, name: string, content: ProposedContent): Promise<SourceKey> {
  const uid = `preview-${newId()}`
  if ('archive' in content) return { uid, project, place: { kind: 'upload', spec: { url: `upload:${name}` } } }
  const held = await store.getResource({ kind: 'Repository', project, name })
  if (held === null) throw new AppError('not_found', { detail: `repository ${name} does not exist in project ${project}` })
  const place = placeOf(repositorySpecSchema.parse(JSON.parse(held.spec)))
  if (place.kind !== 'git')
    throw new AppError('invalid_resource', {
      doing: 'compare',
      detail: `repository ${name} is not a Git repository and has no branches`,
      problems: [{ path: `content.${name}.ref`, message: 'expected the name of a Git repository' }],
    })
  const { semver: _, ...spec } = place.spec
  return { uid, project, place: { kind: 'git', spec: { ...spec, ref: content.ref } } }
}

/** Shared by both sides of a comparison only. */
function ownDeps(deps: PreviewsDeps, ended: AbortSignal): ServiceRendererDeps {
  let rendered = 0
  const { config, renders, macOf, stopping, ...others } = deps
  const counted: Renders = {
    version: (program) => renders.version(program),
    async run(request) {
      if (ended.aborted) throw new AppError('unavailable', { detail: 'the comparison ended' })
      if (++rendered > RENDERS_MAX)
        throw new AppError('too_large', {
          doing: 'compare',
          detail: `the clusters need more than ${RENDERS_MAX} different renders`,
          remedy: 'Compare fewer clusters with --cluster or -l.',
        })
      return renders.run(request)
    },
  }
  return {
    ...others,
    renders: counted,
    cache: createRenderCache({ mac: macOf, files: null }),
    config: async (project, name) => {
      const read = await config(project, name)
      if (read === null) return null
      const marks = Object.entries(read.secrets).map(([key, value]) => [
        key,
        `hmac:${macOf(['diff', project, name, key, value].join('\0'))}`,
      ])
      return { data: read.data, secrets: Object.fromEntries(marks) }
    },
    signal: AbortSignal.any([stopping, ended]),
  }
}

const rendererOf = (deps: ServiceRendererDeps) => new ServiceRenderer(deps)

function renderIn(rendering: Rendering | null, { clusterId }: ClusterRecord): ClusterRender {
  const found = rendering?.kind === 'good' ? rendering.clusters.get(clusterId) : undefined
  if (found !== undefined) return found
  if (rendering?.kind === 'failed') return rendering
  return { kind: 'failed', error: { code: 'no_content', message: NO_CONTENT, problems: [] } }
}

const NO_CONTENT = 'its repository was not read yet, or cannot be read; `skerry get repositories` shows the reason'
