// Differences between two renders of a service, for each cluster. Clusters with the same pair of renders are one group.
// Pure.
import { deletionName } from '../../../shared/kube/data-loss.ts'
import { parseRowId } from '../../../shared/model/desired.ts'
import type { DiffObject, DiffView } from '../../../shared/model/diff-views.ts'
import type { Problem } from '../../../shared/runtime/error.ts'
import type { ClusterRecord } from '../../fleet/records.ts'
import type { ClusterRender } from './rendering.ts'

/** Null means that the service has no place in the cluster. */
export interface Compared {
  cluster: Pick<ClusterRecord, 'name'>
  before: ClusterRender | null
  after: ClusterRender | null
}

export interface ComparedView extends Pick<DiffView, 'clusters' | 'objects' | 'groups' | 'failing'> {
  /** Not every document is in the answer. */
  isCut: boolean
  /** Clusters whose current content does not render, and why. */
  baseless: { clusters: number; error: string } | null
}

const CLUSTERS_NAMED_MAX = 20
/** Groups, and failures, of one answer. */
const GROUPS_MAX = 100
/** Documents of one answer. */
const DOCUMENT_BYTES_MAX = 6 * 1024 * 1024

interface Group {
  clusters: string[]
  before: ClusterRender | null
  after: ClusterRender | null
}

/** The renders have marks in place of secrets. */
export function compareRenders(compared: readonly Compared[]): ComparedView {
  const failing = new Map<string, { clusters: string[]; error: string; problems: readonly Problem[] }>()
  const groups = new Map<string, Group>()
  const idOf = (render: ClusterRender | null): string => (render === null ? 'none' : render.kind === 'failed' ? 'failed' : render.digest)
  const baseless: string[] = []
  for (const { cluster, before, after } of compared) {
    if (after?.kind === 'failed') {
      const { message, problems } = after.error
      const held = failing.get(message) ?? { clusters: [], error: message, problems }
      held.clusters.push(cluster.name)
      failing.set(message, held)
      continue
    }
    if (before?.kind === 'failed') baseless.push(before.error.message)
    const key = `${idOf(before)} ${idOf(after)}`
    const held = groups.get(key) ?? { clusters: [], before, after }
    held.clusters.push(cluster.name)
    groups.set(key, held)
  }
  const budget = { bytes: DOCUMENT_BYTES_MAX, isCut: false }
  const differing = [...groups.values()].map((group) => ({ group, changes: changesOf(group) })).filter(({ changes }) => changes.length > 0)
  differing.sort((a, b) => b.group.clusters.length - a.group.clusters.length)
  const names = { create: new Set<string>(), change: new Set<string>(), delete: new Set<string>() }
  for (const { changes } of differing) for (const { action, name } of changes) names[action].add(name)
  const mostFirst = [...failing.values()].sort((a, b) => b.clusters.length - a.clusters.length)
  return {
    clusters: {
      compared: compared.length,
      differing: differing.reduce((sum, { group }) => sum + group.clusters.length, 0),
      failing: mostFirst.reduce((sum, { clusters }) => sum + clusters.length, 0),
    },
    objects: { create: names.create.size, change: names.change.size, delete: names.delete.size },
    groups: differing.slice(0, GROUPS_MAX).map(({ group: { clusters, before, after }, changes }) => ({
      clusters: named(clusters),
      placement: before === null ? 'added' : after === null ? 'removed' : 'kept',
      objects: changes.map((change) => shownChange(change, budget)),
    })),
    failing: mostFirst
      .slice(0, GROUPS_MAX)
      .map(({ clusters, error, problems }) => ({ clusters: named(clusters), error, problems: [...problems] })),
    isCut: budget.isCut || differing.length > GROUPS_MAX || mostFirst.length > GROUPS_MAX,
    baseless: baseless[0] === undefined ? null : { clusters: baseless.length, error: baseless[0] },
  }
}

const named = (clusters: readonly string[]) => ({ count: clusters.length, first: [...clusters].sort().slice(0, CLUSTERS_NAMED_MAX) })

interface Change {
  action: DiffObject['action']
  name: string
  before: string | null
  after: string | null
}

function changesOf({ before, after }: Group): Change[] {
  const was = objectsOf(before)
  const is = objectsOf(after)
  const changes: Change[] = []
  for (const [id, text] of is) {
    const old = was.get(id) ?? null
    if (old !== text) changes.push({ action: old === null ? 'create' : 'change', name: nameOf(id), before: old, after: text })
  }
  for (const [id, text] of was) if (!is.has(id)) changes.push({ action: 'delete', name: nameOf(id), before: text, after: null })
  return changes.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

const objectsOf = (render: ClusterRender | null): ReadonlyMap<string, string> => (render?.kind === 'rendered' ? render.objects : new Map())

function nameOf(id: string): string {
  const row = parseRowId(id)
  return row.kind === 'object' ? deletionName(row.ref) : id
}

function shownChange({ action, name, before, after }: Change, budget: { bytes: number; isCut: boolean }): DiffObject {
  const bytes = (before?.length ?? 0) + (after?.length ?? 0)
  if (bytes > budget.bytes) {
    budget.isCut = true
    return { action, name, before: null, after: null }
  }
  budget.bytes -= bytes
  const one = (text: string | null) => (text === null ? null : (JSON.parse(text) as DiffObject['before']))
  return { action, name, before: one(before), after: one(after) }
}
