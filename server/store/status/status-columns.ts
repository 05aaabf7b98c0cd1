// Maps an agent's report of a key to its columns and back: parts that most rows share are a state, stored once. Pure;
// docs are restored exactly.
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import { HEALTH_WORDS, type HealthWord } from '../../../shared/kube/health-object.ts'
import { type StatusKind, SYNC_WORDS, type SyncWord } from '../../../shared/model/status.ts'
import type { Tables } from '../tables.ts'

/** Events are a stream, not rows. */
export type RowKind = Exclude<StatusKind, 'event'>
export type NameParts = Omit<Tables['names'], 'id' | 'refs'>
export type StateParts = Pick<Tables['states'], 'sync' | 'health' | 'reason' | 'message' | 'images'>

/** Kinds of which a cluster has one row. */
export const isOfCluster = (kind: RowKind): boolean => kind === 'cluster' || kind === 'facts' || kind === 'site' || kind === 'agent'

export interface StatusColumns {
  state: StateParts | null
  sinceMs: number | null
  doc: string | null
}

/** `<project>/<service>` of a service, `<project>/<service>/<group>/<kind>/<namespace>/<name>` of objects and drifts.
 *  What has fewer parts leaves the last ones empty. */
export function nameParts(kind: RowKind, key: string): NameParts {
  if (isOfCluster(kind)) return { kind, key, project: '', service: '', api_group: '', object_kind: '', namespace: '', name: key }
  const [project = '', service = '', api_group = '', object_kind = '', namespace = '', ...rest] = key.split('/')
  return { kind, key, project, service, api_group, object_kind, namespace, name: rest.join('/') }
}

const REMOVED: StatusColumns = { state: null, sinceMs: null, doc: null }

/** The state of a drift, besides its time. */
export const driftState = (action: string): StateParts => ({ sync: '', health: '', reason: action, message: '', images: null })

/** An object has no `doc`, unless its report holds something that only a newer version knows. */
export function statusColumns(kind: RowKind, doc: unknown): StatusColumns {
  if (doc === null || doc === undefined) return REMOVED
  if (isOfCluster(kind)) return { state: null, sinceMs: null, doc: JSON.stringify(doc) }
  const said = doc as Record<string, unknown>
  if (kind === 'drift') {
    const { action, detectedMs } = said
    return { state: driftState(textOf(action)), sinceMs: numberOf(detectedMs), doc: JSON.stringify(doc) }
  }
  const { sync, health, reason, message, sinceMs, images } = said
  const state: StateParts = {
    sync: isSync(sync) ? sync : '',
    health: isHealth(health) ? health : '',
    reason: textOf(reason),
    message: textOf(message),
    images: kind === 'object' && Array.isArray(images) ? JSON.stringify(images) : null,
  }
  const columns = { state, sinceMs: numberOf(sinceMs), doc: null }
  return kind === 'object' && isWhole(said, state) ? columns : { ...columns, doc: JSON.stringify(doc) }
}

/** Null if its agent removed it. */
export function statusDoc({ state, sinceMs, doc }: StatusColumns): unknown {
  if (doc !== null) return JSON.parse(doc)
  if (state === null) return null
  const { sync, health, reason, message, images } = state
  const said = { sync, health, reason, message, sinceMs: sinceMs ?? 0 }
  return images === null ? said : { ...said, images: JSON.parse(images) }
}

/** Whether the state and a time are all that it says. */
function isWhole(said: Record<string, unknown>, state: StateParts): boolean {
  if (state.sync === '' || state.health === '' || typeof said['reason'] !== 'string' || typeof said['message'] !== 'string') return false
  const { sinceMs } = said
  if (typeof sinceMs !== 'number' || !Number.isSafeInteger(sinceMs)) return false
  let members = 0
  for (const name in said) if (said[name] !== undefined) members += 1
  return members === (state.images === null ? 5 : 6)
}

const syncWords = new Set<unknown>(SYNC_WORDS)
const healthWords = new Set<unknown>(HEALTH_WORDS)
const isSync = (value: unknown): value is SyncWord => syncWords.has(value)
const isHealth = (value: unknown): value is HealthWord => healthWords.has(value)
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const numberOf = (value: unknown): number => (typeof value === 'number' && Number.isSafeInteger(value) ? value : 0)

/** Tells states apart: equal only of equal ones. */
export const stateText = ({ sync, health, reason, message, images }: StateParts): string =>
  `${sync} ${health} ${reason.length} ${reason} ${message.length} ${message}${images ?? ''}`
/** The digest of `stateText`. */
export const stateDigest = (text: string): string => sha256Hex(text)
