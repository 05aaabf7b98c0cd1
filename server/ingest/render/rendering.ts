// The present render of a service for each of its clusters. Clusters that get the same share one object.
import { canonicalJson, sha256Hex } from '../../../shared/kube/canonical.ts'
import type { WrittenBy } from '../../../shared/model/commits.ts'
import { type AppError, isErrorCode, type Problem } from '../../../shared/runtime/error.ts'
import { ERRORS } from '../../../shared/runtime/error-table.ts'
import type { ClusterId, ServiceId } from '../../../shared/runtime/ids.ts'
import type { StoredError, Variant } from '../../fleet/records.ts'

export interface GoodRender {
  kind: 'rendered'
  /** Row id → canonical JSON. Equal sets are one and the same map. */
  objects: ReadonlyMap<string, string>
  digest: string
  count: number
  /** RL5: names all facts of the cluster at that time, whichever of them were read. Absent means none was. */
  factsKey?: string
  /** RL6: names the values at all places where it looked, facts among them, by whatever build of the server. Absent
   *  means no program took part. */
  renderedFrom?: string
  /** The part of `count` that is not objects of the revision: hooks, and skipped ones. */
  hooks: number
}
/** `retryAfterMs`: the other side asks for so much time. */
export type RenderError = Omit<StoredError, 'sinceMs'> & { retryAfterMs?: number }
export type ClusterRender = GoodRender | { kind: 'failed'; error: RenderError }

/** The rendered sources, and the programs that rendered them. */
export interface Release {
  /** Goes where people look for a commit: of the first source. */
  commit: string
  /** By repository: the revision that was read. */
  revisions: Readonly<Record<string, string>>
  /** The programs that took part: `{ helm: '4.3.1' }`. */
  tools: Readonly<Record<string, string>>
}

/** `written`: of the revision of the first source, if a render of it failed. Absent means that no render failed. */
export type Rendering =
  | {
      kind: 'good'
      release: Release
      /** Every cluster that was asked for. At least one is `rendered`, or none was asked for. */
      clusters: ReadonlyMap<ClusterId, ClusterRender>
      /** Without a cluster, when none was asked for: shows errors before anybody is hurt. Null means that it does not
       *  render without one, and perhaps with one (RD10). */
      forNobody: GoodRender | null
      /** All that it would need a cluster for, where it is null; what may be wrong all the same is in `warnings`, too.
       */
      lacking?: readonly Problem[]
      warnings: Problem[]
      written?: WrittenBy
    }
  /** Nothing could be rendered for anybody. `clusters`: the error of each, where they differ. */
  | { kind: 'failed'; commit: string | null; written?: WrittenBy; error: RenderError; clusters?: ReadonlyMap<ClusterId, RenderError> }
  /** A repository was not read yet, or cannot be: its own state says why. */
  | { kind: 'no_content' }

/** Null if nothing of it can be published there. */
export function renderOf(rendering: Rendering, clusterId: ClusterId): GoodRender | null {
  const render = rendering.kind === 'good' ? rendering.clusters.get(clusterId) : undefined
  return render?.kind === 'rendered' ? render : null
}

/** `remedy` is the error's own, if it has one; else that of its code counts. */
export function renderErrorOf({ code, message, data }: AppError): RenderError {
  const { problems = [], remedy, retryAfterMs } = data
  return {
    ...{ code, message, problems: [...problems] },
    ...(remedy === undefined ? {} : { remedy }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }
}

/** Failures of the service, or of each cluster. Empty if there are none. */
export const failuresOf = (rendering: Rendering): RenderError[] =>
  rendering.kind === 'failed'
    ? [rendering.error]
    : rendering.kind === 'good'
      ? [...rendering.clusters.values()].flatMap((one) => (one.kind === 'failed' ? [one.error] : []))
      : []

/** SO21: temporary errors. */
export const mayPass = ({ code }: Pick<RenderError, 'code'>): boolean => isErrorCode(code) && ERRORS[code].retryable

/** Each once. */
export function goodRenders(rendering: Rendering): GoodRender[] {
  if (rendering.kind !== 'good') return []
  const found = new Set<GoodRender>(rendering.forNobody === null ? [] : [rendering.forNobody])
  for (const render of rendering.clusters.values()) if (render.kind === 'rendered') found.add(render)
  return [...found]
}

/** The digest of a release: that of its only render, or one of all its renders together, whatever their order. Null
 *  means that nothing was rendered. */
export function releaseDigest(renders: readonly Pick<GoodRender, 'digest'>[]): string | null {
  const digests = [...new Set(renders.map(({ digest }) => digest))].sort()
  const [only] = digests
  return only === undefined || digests.length === 1 ? (only ?? null) : sha256Hex(canonicalJson(digests))
}

/** By digest, sorted; objects without hooks. `among`: of these clusters only. */
export function variantsOf(rendering: Rendering, among?: ReadonlySet<ClusterId>): Variant[] {
  const renders = among === undefined ? goodRenders(rendering) : [...among].flatMap((clusterId) => renderOf(rendering, clusterId) ?? [])
  const counts = new Map(renders.map(({ digest, count, hooks }) => [digest, count - hooks]))
  return [...counts].map(([digest, objectCount]) => ({ digest, objectCount })).sort((a, b) => (a.digest < b.digest ? -1 : 1))
}

/** The objects of a service's last render for a cluster. Null if it was not rendered for it, or if that failed. */
export interface NamingService {
  id: ServiceId
  objectsIn(clusterId: ClusterId): ReadonlyMap<string, string> | null
}
