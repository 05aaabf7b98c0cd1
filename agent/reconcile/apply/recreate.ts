// When an object may be deleted to be made again, because the API server refuses to change a field of it. Pure, but for the note that is kept of it: written
// before the delete, so that no restart makes it twice, and gone when the new object is there.
import { z } from 'zod'
import type { ApplyOptions } from '../../../shared/kube/apply-options.ts'
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import type { ObjectRef } from '../../../shared/kube/object.ts'
import type { ServiceId } from '../../../shared/model/ids.ts'
import type { AgentState } from '../../state/agent-state.ts'
import { isPrecious } from '../prune/prune-guard.ts'
import type { LiveObject } from '../watch/live-object.ts'

const recreateSchema = z.object({
  /** Which document it is deleted for. */
  sent: z.string(),
  /** Of the object that goes; asked for again it is the same attempt. */
  uid: z.string(),
  /** Objects of this name that went for this document. */
  count: z.number().int(),
  /** What the API server said to the new one, if it can never take it. */
  refused: z.string().optional(),
})
export type Recreate = z.infer<typeof recreateSchema>

/** Somebody who makes the object again before us, each time, is not outrun by deleting more. */
export const RECREATES_MAX = 3
const REFUSED_CHARS_MAX = 300
const FACT = 'recreate/'

export const documentId = (sent: string): string => sha256Hex(sent).slice(0, 16)

export interface RecreateCase {
  ref: ObjectRef
  recreate: ApplyOptions['recreate']
  sent: string
  /** Null: what is there is not watched, so not ours. */
  live: LiveObject | null
  isOurs: boolean
  protect: boolean
  before: Recreate | undefined
}

/** AO4, AO5: null: delete it. Else why not, for people; '' when nobody asked for it. */
export function whyNotAgain({ ref, recreate, sent, live, isOurs, protect, before }: RecreateCase): string | null {
  if (recreate === 'never') return ''
  if (live === null || !isOurs) return 'it is not made again, because it is not ours yet: delete it by hand if that is meant'
  if (recreate === 'foreign' && (isPrecious(ref) || (ref.group === 'apps' && ref.kind === 'StatefulSet')))
    return `a ${ref.kind} is not made again by another tool's option, because data or other objects go with it: annotate it with skerry.dev/sync-options: Force if that is meant`
  if (protect) return 'it is not made again, because the service is protected: delete it by hand if that is meant'
  if (live.keep !== null) return `it is not made again, because it carries ${live.keep}: delete it by hand if that is meant`
  if (before?.sent !== documentId(sent)) return null
  if (before.refused !== undefined) return `it was made again once for this document, and the new one was refused: ${before.refused}`
  if (before.count >= RECREATES_MAX && before.uid !== live.uid)
    return `it was deleted ${before.count} times to be made again, and each time somebody else made it first: stop them`
  return null
}

/** The note of one more delete. */
export function nextRecreate(before: Recreate | undefined, sent: string, uid: string): Recreate {
  const same = before?.sent === documentId(sent) ? before : undefined
  return { sent: documentId(sent), uid, count: same === undefined ? 1 : same.count + (same.uid === uid ? 0 : 1) }
}

export function readRecreates(state: AgentState, id: ServiceId): Map<string, Recreate> {
  const notes = new Map<string, Recreate>()
  for (const [key, fact] of state.facts(id, FACT)) {
    const parsed = recreateSchema.safeParse(fact)
    if (parsed.success) notes.set(key.slice(FACT.length), parsed.data)
  }
  return notes
}

function writeRecreates(state: AgentState, id: ServiceId, notes: ReadonlyMap<string, Recreate | null>): void {
  state.setFacts(id, new Map([...notes].map(([key, note]) => [FACT + key, note])))
}

/** Kinds whose Pods must be gone before the next one: they hold host ports, volumes and names. */
const OWN_PODS: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job', 'ReplicationController'])
export const takesPodsAlong = ({ group, kind }: ObjectRef): boolean => ['', 'apps', 'batch'].includes(group) && OWN_PODS.has(kind)

interface Remembering {
  readonly id: ServiceId
  readonly recreates: Map<string, Recreate>
  readonly wanted: ReadonlyMap<string, { sent: string }>
}

/** Before the first of these deletes goes out. */
export function rememberRecreates(
  model: Remembering,
  state: AgentState,
  steps: ReadonlyArray<{ kind: string; key: string; uid?: string }>,
): void {
  const notes = new Map<string, Recreate>()
  for (const { kind, key, uid = '' } of steps) {
    const sent = kind === 'recreate' ? model.wanted.get(key)?.sent : undefined
    if (sent !== undefined) notes.set(key, nextRecreate(model.recreates.get(key), sent, uid))
  }
  if (notes.size === 0) return
  writeRecreates(state, model.id, notes)
  for (const [key, note] of notes) model.recreates.set(key, note)
}

/** True: it was being made again; that is over. */
export function forgetRecreate(model: Remembering, state: AgentState, key: string): boolean {
  if (!model.recreates.delete(key)) return false
  writeRecreates(state, model.id, new Map([[key, null]]))
  return true
}

/** The API server can never take the one that was to follow: no further object goes for it. */
export function refuseRecreate(model: Remembering, state: AgentState, key: string, message: string): void {
  const before = model.recreates.get(key)
  if (before === undefined || before.refused !== undefined) return
  const note = { ...before, refused: message.slice(0, REFUSED_CHARS_MAX) }
  model.recreates.set(key, note)
  writeRecreates(state, model.id, new Map([[key, note]]))
}
