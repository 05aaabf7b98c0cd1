// A new version of a render tool may render the same manifests to different objects. That is no commit: it waits for a
// person, and the fleet stays unchanged.
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import { refText } from '../../shared/kube/object.ts'
import { parseRowId } from '../../shared/model/desired.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import { type PlannedConfirmation, releaseSubject } from '../fleet/plan-service.ts'
import type { Confirmation, DesiredService, RenderState } from '../fleet/records.ts'
import type { TargetCluster } from '../fleet/targeting.ts'
import { questionText } from '../messages/confirmation-messages.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Rendering } from './render/rendering.ts'
import type { ServiceRenderer } from './render/service-render.ts'

export interface PendingReleaseDeps {
  content: Pick<ContentStore, 'get'>
  renderer: Pick<ServiceRenderer, 'render'>
}

export interface JudgedRelease {
  id: ServiceId
  spec: ServiceSpec
  generation: number
  /** The render state of the published revision. */
  before: RenderState
  rendering: Rendering
  /** That it was rendered for. */
  clusters: readonly TargetCluster[]
  current: readonly DesiredService[]
  /** That was asked before. */
  held: Confirmation | undefined
}

export interface ReleaseVerdict {
  /** Has to be asked before anything is published. Null means that it may be. */
  question: PlannedConfirmation | null
  /** As it may be written down. */
  noted: Rendering
}

/** RL3: decides whether renders of another tool version are taken, or wait for a person. */
export async function judgeRelease(deps: PendingReleaseDeps, release: JudgedRelease): Promise<ReleaseVerdict> {
  const { id, spec, generation, before, rendering, clusters, current, held } = release
  const accepted = { question: null, noted: rendering }
  if (rendering.kind !== 'good') return accepted
  const toolsBefore = before.release?.tools ?? {}
  const moved = movedTools(toolsBefore, rendering.release.tools)
  if (moved.length === 0) return accepted
  // The effect of the tool is judged on the published commit: newer ones are intended changes.
  const published = before.release?.revisions ?? {}
  const isPublished = canonicalJson(published) === canonicalJson(rendering.release.revisions)
  const again = isPublished || Object.keys(published).length === 0 ? rendering : await deps.renderer.render(id, spec, clusters, published)
  const base = again.kind === 'good' ? again : rendering
  const change = await compareRelease(deps, base, current)
  if (change.clusters === 0) return change.unknown ? { question: null, noted: withTools(rendering, toolsBefore) } : accepted
  const token = sha256Hex(canonicalJson([moved, [...change.digests].sort()])).slice(0, 32)
  if (held?.token === token && held.confirmedMs !== null) return accepted
  const names = [...change.objects].sort()
  const asked = {
    tools: moved.join(', '),
    ...{ clusters: change.clusters, holders: current.filter(isHeld).length },
    ...{ objects: names.length, named: Math.min(names.length, NAMES_MAX) },
    isSpecChanged: generation !== before.generation,
  }
  const commit = before.commit?.slice(0, 12) ?? ''
  const why = base === rendering ? questionText('release', asked) : questionText('release_of', { ...asked, commit })
  const about = { kind: 'release', subject: releaseSubject(id), ...id, cluster: null } as const
  return { question: { ...about, token, names: names.slice(0, NAMES_MAX), why }, noted: rendering }
}

/** RL3: with the tools of before, as long as a cluster that has the service cannot be rendered; what the new ones make
 *  for it is compared when it can be. */
function withTools(rendering: Extract<Rendering, { kind: 'good' }>, before: Readonly<Record<string, string>>): Rendering {
  const tools = Object.fromEntries(Object.entries(rendering.release.tools).map(([tool, version]) => [tool, before[tool] ?? version]))
  return { ...rendering, release: { ...rendering.release, tools } }
}

const NAMES_MAX = 500

/** `helm 4.1.0 → 4.2.0`, sorted. A tool that appeared or disappeared with the manifests is an intended change. */
export function movedTools(before: Readonly<Record<string, string>>, after: Readonly<Record<string, string>>): string[] {
  const moved = Object.entries(after).filter(([tool, version]) => before[tool] !== undefined && before[tool] !== version)
  return moved.map(([tool, version]) => `${tool} ${before[tool]} → ${version}`).sort()
}

const isHeld = ({ doc }: DesiredService): boolean => doc !== null && doc.removal === undefined

interface ReleaseChange {
  /** How many get something else. */
  clusters: number
  /** True if it is not known for some. */
  unknown: boolean
  /** That they would get. */
  digests: Set<string>
  objects: Set<string>
}

async function compareRelease(
  { content }: PendingReleaseDeps,
  rendering: Extract<Rendering, { kind: 'good' }>,
  current: readonly DesiredService[],
): Promise<ReleaseChange> {
  const change: ReleaseChange = { clusters: 0, unknown: false, digests: new Set(), objects: new Set() }
  const compared = new Map<ReadonlyMap<string, string>, Set<string | null>>()
  for (const row of current) {
    const render = rendering.clusters.get(row.clusterId)
    if (isHeld(row) && render?.kind === 'failed') change.unknown = true
    if (!isHeld(row) || render?.kind !== 'rendered' || render.digest === row.doc?.digest) continue
    change.clusters += 1
    change.digests.add(render.digest)
    const sets = compared.get(render.objects) ?? new Set()
    compared.set(render.objects, sets)
    if (sets.has(row.setSha)) continue
    sets.add(row.setSha)
    const bytes = row.setSha === null ? null : await content.get(row.setSha)
    const held = bytes === null ? new Map<string, string>() : decodeRenderedSet(bytes)
    for (const [rowId, doc] of render.objects) if (held.get(rowId) !== doc) change.objects.add(nameOf(rowId))
    for (const rowId of held.keys()) if (!render.objects.has(rowId)) change.objects.add(nameOf(rowId))
  }
  return change
}

function nameOf(rowId: string): string {
  const row = parseRowId(rowId)
  return row.kind === 'object' ? refText(row.ref) : rowId
}
