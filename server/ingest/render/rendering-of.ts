// The results for the clusters of a service, as one Rendering: equal sets are one map, an error without any set is an
// error of the service. Pure.

import { AppError, type Problem } from '../../../shared/runtime/error.ts'
import type { ClusterId } from '../../../shared/runtime/ids.ts'
import { asksForCluster, mayNeedCluster } from '../../render/for-nobody.ts'
import {
  type FailedRender,
  failedRender,
  ofVersion,
  RENDER_PROBLEMS_MAX,
  type RenderedObjects,
  type RenderResult,
  sortedProblems,
} from '../../render/object-rows.ts'
import { specRemedy } from '../../render/spec-problems.ts'
import type { Wanted } from './dependency-values.ts'
import type { ClusterOutcome } from './render-clusters.ts'
import { type ClusterRender, type GoodRender, mayPass, type Release, type RenderError, type Rendering, renderErrorOf } from './rendering.ts'

export interface RenderedFor {
  release: Omit<Release, 'tools'>
  outcomes: ReadonlyMap<Wanted, ClusterOutcome>
  /** Names the facts, and the values of the site, that its render looked at. */
  factsKey(cluster: Wanted, outcome: Pick<ClusterOutcome, 'ofFacts' | 'ofSite'>): string
}

/**
 * Combines the outcomes of all clusters: a release with its renders, or one error when nothing could be rendered for
 * any. Renders with equal digests become one.
 */
export function renderingOf({ release, outcomes, factsKey }: RenderedFor): Rendering {
  const { commit } = release
  const good = sharedRenders()
  const errors = sharedErrors(commit)
  const clusters = new Map<ClusterId, ClusterRender>()
  const results = new Set<RenderResult | AppError>()
  const tools: Record<string, string> = {}
  let forNobody: GoodRender | null = null
  for (const [cluster, outcome] of outcomes) {
    const { result } = outcome
    results.add(result)
    const rendered = result instanceof AppError || result.kind === 'failed' ? null : result
    if (rendered !== null) for (const [tool, version] of Object.entries(outcome.tools)) tools[tool] = versionOf(tool, version)
    const render =
      rendered === null ? null : good(rendered, outcome.ofFacts || outcome.ofSite ? factsKey(cluster, outcome) : null, outcome.renderedFrom)
    if (cluster === null) forNobody = render
    else clusters.set(cluster.clusterId, render ?? { kind: 'failed', error: errors(result) })
  }
  const failed = [...results].filter((result) => result instanceof AppError || result.kind === 'failed')
  const doubts = doubtsOf(outcomes.get(null), (result) => errors(result).message)
  if (failed.length === results.size && doubts === null) {
    const ofClusters = new Map([...clusters].flatMap(([id, one]) => (one.kind === 'failed' ? [[id, one.error] as const] : [])))
    return { kind: 'failed', commit, error: joined(failed.map(errors)), ...(failed.length > 1 ? { clusters: ofClusters } : {}) }
  }
  if (doubts?.kind === 'failed') return { kind: 'failed', commit, error: errors(doubts) }
  if (doubts?.kind === 'doubts') {
    const warnings = doubts.problems.filter((problem) => mayNeedCluster(problem) && !asksForCluster(problem))
    return { kind: 'good', release: { ...release, tools }, clusters, forNobody, warnings, lacking: doubts.problems }
  }
  const warnings = [...results].flatMap((result) => (result instanceof AppError || result.kind === 'failed' ? [] : result.warnings))
  return {
    kind: 'good',
    release: { ...release, tools },
    clusters,
    forNobody,
    warnings: sortedProblems(warnings).slice(0, RENDER_PROBLEMS_MAX),
  }
}

/**
 * RD10, for the render without a cluster: the errors that every cluster has, or else those that a cluster may solve.
 * Null means that it renders, or all errors may come from the missing cluster.
 */
function doubtsOf(
  nobody: ClusterOutcome | undefined,
  messageOf: (result: RenderResult) => string,
): FailedRender | { kind: 'doubts'; problems: Problem[] } | null {
  if (nobody === undefined) return null
  const { result, ofCluster } = nobody
  if (result instanceof AppError || result.kind !== 'failed') return null
  const { problems } = result
  // Manifests for some clusters only are as they should be.
  if (problems.length === 0) return ofCluster ? { kind: 'doubts', problems: [{ path: '', message: messageOf(result) }] } : null
  const certain = problems.filter((problem) => !mayNeedCluster(problem))
  if (certain.length === problems.length) return null
  return certain.length > 0 ? failedRender(certain) : { kind: 'doubts', problems }
}

/** `helm 4.3.1` of helm is 4.3.1. */
const versionOf = (tool: string, text: string): string => (text.startsWith(`${tool} `) ? text.slice(tool.length + 1) : text)

function sharedRenders(): (result: RenderedObjects, factsKey: string | null, renderedFrom: string | null) => GoodRender {
  const maps = new Map<string, ReadonlyMap<string, string>>()
  const renders = new Map<string, GoodRender>()
  return ({ objects, digest, count, hooks }, factsKey, renderedFrom) => {
    const key = `${digest} ${factsKey ?? ''} ${renderedFrom ?? ''}`
    const known = renders.get(key)
    if (known !== undefined) return known
    const shared = maps.get(digest) ?? objects
    maps.set(digest, shared)
    const render: GoodRender = {
      ...{ kind: 'rendered', objects: shared, digest, count, hooks },
      ...(factsKey === null ? {} : { factsKey }),
      ...(renderedFrom === null ? {} : { renderedFrom }),
    }
    renders.set(key, render)
    return render
  }
}

/** Clusters that fail alike share one error. */
function sharedErrors(version: string): (result: RenderResult | AppError) => RenderError {
  const made = new Map<RenderResult | AppError, RenderError>()
  return (result) => {
    const known = made.get(result) ?? errorOf(result, version)
    made.set(result, known)
    return known
  }
}

function errorOf(result: RenderResult | AppError, version: string): RenderError {
  if (result instanceof AppError) return renderErrorOf(result)
  if (result.kind === 'rendered') return { code: 'render_failed', message: '', problems: [] }
  const { code, message, problems } = result
  return withRemedy({ code, message: code === 'no_manifests' ? ofVersion(message, version) : message, problems })
}

/** All errors of all clusters at once. A temporary one gives its code, or nothing would retry. */
function joined(errors: readonly RenderError[]): RenderError {
  const passing = errors.find(mayPass)
  const first = passing ?? errors[0]
  if (first === undefined) return { code: 'render_failed', message: 'nothing was rendered', problems: [] }
  const problems: Problem[] = errors.flatMap((error) => error.problems)
  if (errors.length === 1 || problems.length === 0 || passing !== undefined) return { ...first, problems }
  const { code, message, problems: sorted } = failedRender(problems)
  return withRemedy({ code, message, problems: sorted })
}

function withRemedy(error: RenderError): RenderError {
  const remedy = error.code === 'render_failed' ? specRemedy(error.problems) : null
  return remedy === null ? error : { ...error, remedy }
}
