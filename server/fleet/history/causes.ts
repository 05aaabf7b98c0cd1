// The causes of changes in a history: the commit that was applied, or the event that explains the change best. Pure:
// equal rows and events give equal causes.
import { commitText, type WrittenBy } from '../../../shared/model/commits.ts'
import type { HistoryCause } from '../../../shared/model/history.ts'
import { shortRevision } from '../../../shared/model/revision-text.ts'
import type { FleetEvent, HistoryEntry, KeptCause } from '../records.ts'

/** An event this long before a change may be its cause. */
export const CAUSE_BEFORE_MS = 10 * 60_000
/** Agents and the server have different clocks, and a state is reported before its event. */
export const CAUSE_AFTER_MS = 60_000
/** A rollout that takes longer than this is no longer attributed to its commit. */
const FOLLOWS_MS = 6 * 3_600_000

type Kind = HistoryCause['kind']

const KINDS: Readonly<Partial<Record<Kind, readonly string[]>>> = {
  person: [
    ...['Suspended', 'Resumed', 'Held', 'Released', 'Confirmed', 'PruneConfirmed', 'SyncAllowed', 'DeletionRequested'],
    ...['DeletionTakenBack', 'ClusterRevoked', 'ClusterReadmitted', 'RestoreConfirmed'],
  ],
  relabel: ['ClusterRelabelled'],
  drift: ['Drifted', 'DriftHealed', 'Restored', 'Contested', 'FieldsTaken', 'TakenOver', 'DeletionConflict'],
  hook: ['HookFailed', 'HookSucceeded'],
  removal: ['RemovalOrdered', 'ServiceRemoved', 'Removed'],
  gate: ['ConfirmationPending', 'ConfirmationNeeded', 'PruneBlocked'],
  apply: ['Failed', 'Pruned', 'Recreated', 'NullRefused'],
  cluster: [
    'ClusterOffline',
    'ClusterOnline',
    'ClusterRemoved',
    'ClusterJoined',
    'AnotherAgentActive',
    'AnotherAgentWaits',
    'ClaimUnclear',
  ],
}
const KIND_OF: ReadonlyMap<string, Kind> = new Map(
  Object.entries(KINDS).flatMap(([kind, reasons]) => reasons.map((reason) => [reason, kind as Kind] as const)),
)
/** Reasons of a placement that is held back on purpose. */
const GATES: ReadonlySet<string> = new Set([
  ...['ManualSync', 'OutsideWindow', 'BlockedBy', 'ConfirmationPending', 'PruneBlocked', 'WaitingForHook', 'WaitingForWave'],
])
/** Reasons that a person causes, where no event says who. */
const BY_PERSON: ReadonlySet<string> = new Set(['Suspended', 'Held', 'Resuming'])

/** The owner of an event: what a caller may not read explains nothing for it. */
const originOf = ({ service, cluster }: FleetEvent): KeptCause['of'] =>
  service === null ? 'cluster' : cluster === null ? 'service' : 'placement'

export const isCause = ({ reason }: Pick<FleetEvent, 'reason'>): boolean => KIND_OF.has(reason)

export interface CausedEntry extends Omit<HistoryEntry, 'kept'> {
  cause: HistoryCause | null
}
/** Before it is decided what a caller sees of it. */
export interface KeptEntry extends Omit<HistoryEntry, 'kept'> {
  cause: KeptCause | null
}

/** An entry as a caller may read it. */
export const seenEntry = (entry: KeptEntry, mayRead: (of: KeptCause['of']) => boolean): CausedEntry => {
  const { cause, ...rest } = entry
  if (cause === null || !mayRead(cause.of)) return { ...rest, cause: null }
  const { of: _, ...seen } = cause
  return { ...rest, cause: seen }
}

/**
 * `rows`: the history of one placement, newest first. `before`: the row before the oldest one, if there is one.
 * `events`: of the placement, its service and its cluster. Events that explain no row become entries of their own with
 * the state of that time, because a drift that is corrected at once changes no state. A row whose events expired has
 * the cause that was kept with it.
 */
export function withCauses(
  rows: readonly HistoryEntry[],
  before: HistoryEntry | null,
  events: readonly FleetEvent[],
  noteOf: (commit: string) => WrittenBy,
): KeptEntry[] {
  const facts = events.filter(isCause).sort((a, b) => a.atMs - b.atMs || a.id - b.id)
  const used = new Set<number>()
  const entries: KeptEntry[] = []
  let last: KeptEntry | null = before === null ? null : withCause(before, before.kept ?? null)
  for (const row of [...rows].reverse()) {
    const cause: KeptCause | null = row.kept === undefined ? causeOf(row, last, facts, used, noteOf) : taken(row.kept, facts, used)
    last = withCause(row, cause)
    entries.push(last)
  }
  const known = before === null ? entries.slice() : [withCause(before, null), ...entries]
  for (const event of facts) {
    const at = used.has(event.id) ? null : stateAt(known, event.atMs)
    if (at !== null) entries.push({ ...at, atMs: event.atMs, cause: ofEvent(event) })
  }
  return entries.sort((a, b) => b.atMs - a.atMs)
}

const withCause = ({ kept: _, ...row }: HistoryEntry, cause: KeptCause | null): KeptEntry => ({ ...row, cause })

/** A kept cause, whose event may still be there and is no entry of its own then. */
function taken(cause: KeptCause | null, facts: readonly FleetEvent[], used: Set<number>): KeptCause | null {
  const event = cause === null ? undefined : facts.find((one) => one.atMs === cause.atMs && ofEvent(one).text === cause.text)
  if (event !== undefined) used.add(event.id)
  return cause
}

function causeOf(
  row: HistoryEntry,
  before: KeptEntry | null,
  facts: readonly FleetEvent[],
  used: Set<number>,
  noteOf: (commit: string) => WrittenBy,
): KeptCause | null {
  if (row.commit !== null && row.commit !== before?.commit && !BY_PERSON.has(row.reason)) {
    const written = noteOf(row.commit)
    const note = commitText(written)
    const text = `commit ${shortRevision(row.commit)}${note === null ? '' : `: ${note}`}`
    const relabel = before === null ? nearest(row, facts, ({ reason }) => reason === 'ClusterRelabelled') : null
    return relabel === null
      ? { kind: 'commit', text, by: written.author ?? null, atMs: null, object: null, of: 'placement' }
      : take(relabel, used)
  }
  const found = nearest(row, facts, ({ reason }) => reason === row.reason) ?? nearest(row, facts, isCause)
  if (found !== null) return take(found, used)
  const plain = (kind: Kind): KeptCause => ({ kind, text: row.reason, by: null, atMs: null, object: null, of: 'placement' })
  if (BY_PERSON.has(row.reason)) return plain('person')
  if (GATES.has(row.reason)) return plain('gate')
  // A placement that was on its way arrives, or fails to: the cause is still that of the movement.
  const moved = before !== null && (before.health === 'Progressing' || before.sync !== 'Synced') && row.atMs - before.atMs < FOLLOWS_MS
  if (moved && before.cause !== null) return before.cause
  return row.reason === '' || row.reason === 'Synced' ? null : plain('workload')
}

function take(event: FleetEvent, used: Set<number>): KeptCause {
  used.add(event.id)
  return ofEvent(event)
}

/** The last one before the change, or else the first one after it. */
function nearest(row: HistoryEntry, facts: readonly FleetEvent[], fits: (event: FleetEvent) => boolean): FleetEvent | null {
  const near = facts.filter((event) => event.atMs >= row.atMs - CAUSE_BEFORE_MS && event.atMs <= row.atMs + CAUSE_AFTER_MS && fits(event))
  return near.findLast(({ atMs }) => atMs <= row.atMs) ?? near[0] ?? null
}

function stateAt(entries: readonly KeptEntry[], atMs: number): KeptEntry | null {
  const rows = entries.filter((entry) => entry.atMs <= atMs)
  return rows.reduce<KeptEntry | null>((newest, entry) => (newest === null || entry.atMs > newest.atMs ? entry : newest), null)
}

export function ofEvent(event: FleetEvent): KeptCause {
  const { reason, message, atMs, object } = event
  return { kind: KIND_OF.get(reason) ?? 'cluster', text: `${reason}: ${message}`, by: byOf(message), atMs, object, of: originOf(event) }
}

/** The person or the field manager that a message names: `by ana: too loud`, `changed by kubectl-edit; restored`. */
const byOf = (message: string): string | null => /\bby (?:user |token )?([\w@.:/-]*\w)/.exec(message)?.[1] ?? null
