// CO1: the correlation id of a change. It is derived from what was read, so that a repeated reconciliation, also after
// a restart, finds the same id and changes no row.
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { RecordSpan } from '../../shared/runtime/spans.ts'
import { traceIdOf } from '../../shared/runtime/trace-id.ts'
import type { RenderState } from '../fleet/records.ts'
import type { Rendering } from './render/rendering.ts'

export interface CorrelationDeps {
  /** Absent means that traces are off. */
  recordSpan?: RecordSpan
  /** Names this server: two that follow the same repository have different ids. */
  traceSalt?: string
}

export const traceOfCommit = ({ traceSalt = '' }: CorrelationDeps, project: string, commit: string): string =>
  traceIdOf(traceSalt, [project, commit])

/** All that one commit changes has one id. A spec that changed at the same commit has an id of its own. Undefined:
 *  nothing was read. */
export function traceOfRender(
  deps: CorrelationDeps,
  { id, generation, before }: { id: ServiceId; generation: number; before: RenderState },
  rendering: Rendering,
): string | undefined {
  const commit = rendering.kind === 'good' ? rendering.release.commit : rendering.kind === 'failed' ? rendering.commit : null
  if (commit === null) return undefined
  const revisions = rendering.kind === 'good' ? Object.values(rendering.release.revisions).filter((revision) => revision !== commit) : []
  const isOfSpec = before.commit === commit && before.generation !== generation
  if (revisions.length === 0 && !isOfSpec) return traceOfCommit(deps, id.project, commit)
  const spec = isOfSpec ? [id.service, String(generation)] : []
  return traceIdOf(deps.traceSalt ?? '', [id.project, commit, ...revisions.sort(), ...spec])
}
