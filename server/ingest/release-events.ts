// Events of a service reconciliation: renders that began or stopped to fail, and publications. Pure.
import type { WrittenBy } from '../../shared/model/commits.ts'
import { type ServiceSpec, sourcesOf } from '../../shared/model/resources.ts'
import { revisionWords, shortRevision } from '../../shared/model/revision-text.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { withTrace } from '../../shared/runtime/trace-id.ts'
import { fleetEvent, type NewEvent } from '../fleet/fleet-event.ts'
import type { PlannedPublish } from '../fleet/plan-service.ts'
import type { RenderState } from '../fleet/records.ts'
import { waitsForSync } from '../fleet/sync-plan.ts'
import { failedAtText, keptText } from '../fleet/unrendered.ts'
import { news, warning } from '../messages/event-messages.ts'
import { type GoodRender, type Rendering, releaseDigest, renderOf } from './render/rendering.ts'
import { sameFault } from './render-state.ts'

const WARNINGS_TOLD_MAX = 10
const COMMIT_LENGTH = 12

/** RL1, RL4; none as long as the same fault continues. */
export function renderEvents(
  before: RenderState,
  after: RenderState,
  rendering: Rendering,
  nowMs: number,
  service: ServiceId,
  trace: string | undefined,
  /** The author and subject of the commit that renders again. */
  by: WrittenBy = {},
): NewEvent[] {
  if (after.error !== null) {
    if (sameFault(before.error, after.error)) return []
    const [first] = after.error.problems
    const where = first === undefined ? '' : `: ${first.path}: ${first.message}`
    const failure = `${after.error.message}${where}${failedAtText(after.error)}`
    return [fleetEvent(nowMs, warning('RenderFailed', { failure, kept: keptText(before.digest, after.error) }), { service, trace })]
  }
  const events: NewEvent[] = []
  if (before.error !== null) {
    const code = before.digest === null ? 'RenderRecovered.first' : 'RenderRecovered'
    const said = news(code, { revision: revisionWords(after.commit ?? '', COMMIT_LENGTH), written: writtenText(by) })
    events.push(fleetEvent(nowMs, said, { service, trace }))
  }
  const warnings = rendering.kind === 'good' ? rendering.warnings : []
  for (const { path, message } of warnings.slice(0, WARNINGS_TOLD_MAX))
    events.push(fleetEvent(nowMs, warning('ManifestWarning', { path, message }), { service, trace }))
  return events
}

export interface Published {
  /** Clusters that have another revision now. */
  revised: number
  /** For the log. Null means none has. */
  note: { service: string; commit: string; digest: string | null; objects: number; clusters: number; trace?: string } | null
  events: NewEvent[]
}

/** `changed`: of each of them, whether anything was written. */
export function publishEvents(
  { id, spec }: { id: ServiceId; spec: ServiceSpec },
  rendering: Rendering,
  publishes: readonly PlannedPublish[],
  changed: readonly boolean[],
  nowMs: number,
  by: WrittenBy = {},
): Published {
  const events: NewEvent[] = []
  const revised: string[] = []
  let note: Published['note'] = null
  let trace: string | undefined
  const brought = new Set<GoodRender>()
  for (const [index, { clusterId, cluster, doc, what }] of publishes.entries()) {
    if (changed[index] !== true) continue
    const about = { service: id, cluster }
    if (what === 'placed' || what === 'updated') {
      revised.push(cluster)
      trace ??= doc?.trace
      const render = renderOf(rendering, clusterId)
      if (render !== null) brought.add(render)
    } else if (what === 'removed') events.push(fleetEvent(nowMs, news('ServiceRemoved', { cluster }), about))
    else if (doc?.removal !== undefined) {
      const { policy, by, why } = doc.removal
      events.push(fleetEvent(nowMs, news('RemovalOrdered', { policy, cluster, by, why }), about))
    }
  }
  const waiting = publishes.some(({ doc }) => doc !== null && waitsForSync(doc))
  if (revised.length > 0 && rendering.kind === 'good') {
    const { commit } = rendering.release
    const digest = releaseDigest([...brought])
    const most = Math.max(...[...brought].map(({ count, hooks }) => count - hooks))
    const hooks = Math.max(...[...brought].map((render) => render.hooks))
    const variants = new Set([...brought].map((render) => render.digest)).size
    note = { service: serviceKey(id), commit, digest, objects: most, clusters: revised.length, ...withTrace(trace) }
    const revision = {
      objects: most,
      ...{ hooks, variants, revision: releaseText(rendering, spec), written: writtenText(by), clusters: clusterNames(revised) },
    }
    const said = waiting ? news('RevisionPublished.waits', { ...revision, ...id }) : news('RevisionPublished', revision)
    events.push(fleetEvent(nowMs, said, { service: id, trace }))
  }
  return { revised: revised.length, note, events }
}

/** ` (fix the port, by Ana)`. */
function writtenText({ author, subject }: WrittenBy): string {
  const words = [...(subject === undefined ? [] : [subject]), ...(author === undefined ? [] : [`by ${author}`])]
  return words.length === 0 ? '' : ` (${words.join(', ')})`
}

/** With several sources, the text covers each but the first. */
function releaseText({ release }: Extract<Rendering, { kind: 'good' }>, spec: ServiceSpec): string {
  const [first, ...others] = sourcesOf(spec)
  const names = new Set(
    others.flatMap(({ repository, chart }) => (chart === undefined && repository !== first?.repository ? [repository] : [])),
  )
  const more = [...names].flatMap((name) => {
    const revision = release.revisions[name]
    return revision === undefined ? [] : [`${name} at ${shortRevision(revision, COMMIT_LENGTH)}`]
  })
  return [revisionWords(release.commit, COMMIT_LENGTH), ...more].join(', ')
}
const clusterNames = (names: readonly string[]): string =>
  names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more clusters`
