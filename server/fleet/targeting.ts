// Which clusters a service is meant for, and what makes one leave. Pure.

import { z } from 'zod'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { type LabelSelector, type Labels, labelSelectorSchema, matchesSelector } from '../../shared/model/labels.ts'
import type { ProjectSpec } from '../../shared/model/projects.ts'
import type { ClusterOverride, ConfigData } from '../../shared/model/render.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import type { SiteConfig } from '../../shared/model/site-config.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { DesiredService } from './records.ts'

export interface TargetCluster {
  clusterId: ClusterId
  name: string
  labels: Labels
  /** Deviations from its spec. */
  config?: ConfigData
  overrides?: readonly ClusterOverride[]
  siteConfig?: SiteConfig
}
export type Targets = ServiceSpec['targets'] & {
  /** PJ3: of the project. Absent means that it has no boundary. */
  destinations?: readonly LabelSelector[]
}

export const withDestinations = (targets: ServiceSpec['targets'], project: { spec: ProjectSpec } | null | undefined): Targets =>
  project == null ? targets : { ...targets, destinations: project.spec.destinations.map(({ clusters }) => clusters) }

/** TG1: the selector matches, and no exclude does. */
export const isTarget = (labels: Labels, { selector, exclude, destinations }: Targets): boolean =>
  matchesSelector(labels, selector) &&
  !exclude.some((rule) => matchesSelector(labels, rule)) &&
  (destinations === undefined || destinations.some((rule) => matchesSelector(labels, rule)))

export type TargetTest = typeof isTarget

/** `isTarget` that evaluates each pair of targets and labels once. It knows both by identity: labels that are equal
 *  should be one object. */
export function createTargetMemo(evaluate: TargetTest = isTarget): TargetTest {
  const known = new WeakMap<Targets, Map<Labels, boolean>>()
  return (labels, targets) => {
    const ofTargets = known.get(targets) ?? new Map<Labels, boolean>()
    known.set(targets, ofTargets)
    const held = ofTargets.get(labels)
    if (held !== undefined) return held
    const value = evaluate(labels, targets)
    ofTargets.set(labels, value)
    return value
  }
}

/** By name, so that plans and messages do not depend on the order of reads. */
export const targetsOf = (targets: Targets, clusters: readonly TargetCluster[]): TargetCluster[] =>
  clusters.filter(({ labels }) => isTarget(labels, targets)).sort((a, b) => (a.name < b.name ? -1 : 1))

/** The clusters for which a service is rendered: those that should have it, and those that still have it. */
export function renderedFor<Cluster extends TargetCluster>(
  targets: Targets,
  clusters: readonly Cluster[],
  current: readonly DesiredService[],
): Cluster[] {
  const holding = new Set(current.flatMap(({ clusterId, doc }) => (doc === null || doc.removal !== undefined ? [] : [clusterId])))
  return clusters.filter(({ clusterId, labels }) => isTarget(labels, targets) || holding.has(clusterId))
}

/** The targets that placed a desired row, as the row remembers them. */
export const placedByText = ({ selector, exclude }: Targets): string => canonicalJson({ selector, exclude })

const placedBySchema = z.object({ selector: labelSelectorSchema, exclude: z.array(labelSelectorSchema) })

/** TG2: a cluster that its old targets would still take was not relabelled: the service's targets changed under it. */
export function leftByNewTargets(
  placedBy: string,
  labels: Labels,
  read: (placedBy: string) => Targets | null = readPlacedBy,
  takes: TargetTest = isTarget,
): boolean {
  const targets = read(placedBy)
  return targets === null || takes(labels, targets)
}

/** Null for what is none. */
export const readPlacedBy = (placedBy: string): Targets | null => placedBySchema.safeParse(safeJson(placedBy)).data ?? null

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
