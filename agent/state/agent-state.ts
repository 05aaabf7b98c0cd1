// The port to facts that no server can restore: inventory, applied documents, outbox, identity counters. One plain
// SQLite file. Every write survives the end of the process at once. A power failure is survived by `settled` writes:
// the agent waits for them before a request to the API server that the file must record (IV1), and before a push, so
// that a reported rev is never given out again.
import type { ObjectRef } from '../../shared/kube/object.ts'
import type { StatusKind } from '../../shared/model/status.ts'
import type { KeyLink } from '../../shared/protocol/key-links.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { WrittenClaim } from './claims.ts'

/** One object that a service owns in this cluster. Written before its first apply, dropped only after the API server
 *  confirmed the delete. */
export interface InventoryEntry {
  ref: ObjectRef
  /** API version it was last applied with. */
  apiVersion: string
  /** Null if it was only planned, and is not yet known to exist. */
  uid: string | null
  /** The document to which drift is corrected, canonical JSON as sent; null before the first apply. Stored whole:
   *  the replica may have the next revision already. */
  appliedDoc: string | null
  /** Hash of the owned values that the API server returned for it. */
  ownedHash: string | null
  /** Digest of the revision in which it was last applied. */
  digest: string | null
  /** The commit that brought `appliedDoc` (RC24). Null means not known. */
  commit: string | null
  /** Digest of the revision that brought it. Null means not known, or an agent without this mark applied it. */
  revision: string | null
}

/** For an object that is about to be applied or adopted: no document is known to be applied. */
export const entryOnPaper = (
  { ref, apiVersion }: Pick<InventoryEntry, 'ref' | 'apiVersion'>,
  uid: string | null = null,
): InventoryEntry => ({
  ref,
  apiVersion,
  uid,
  appliedDoc: null,
  ownedHash: null,
  digest: null,
  commit: null,
  revision: null,
})

/** The progress of a service here. */
export interface ServiceProgress {
  digest: string
  commit: string
  atMs: number
  /** CO1: the correlation id of the change that brought it. */
  trace?: string
}
export interface ServiceState {
  applied: ServiceProgress | null
  healthy: ServiceProgress | null
}

/** The result of a reconciliation besides its reports, in one transaction with them: a commit is the greatest cost
 *  of a small service. */
export interface TurnRecord {
  service: ServiceId
  /** As `recordApplied`. */
  applied: readonly InventoryEntry[]
  /** Null if it is unchanged. */
  state: ServiceState | null
}

export interface OutboxRow {
  kind: StatusKind
  key: string
  rev: number
  /** Parsed; null removes the key on the server. */
  doc: unknown
}

/** A join's result, kept with the replica on the disk. */
export interface Identity {
  clusterId: string
  agentId: string
  incarnation: number
  serverKeys: string[]
  /** How the later ones follow from the earlier; shown to a server that may have forgotten (RP2). */
  keyLinks?: KeyLink[]
  /** Registrations of this very cluster that the server knows to be former ones (CM8). */
  formerClusters?: string[]
}

/** CM9: the signed word of the server that it removed this cluster. */
export interface Removal {
  clusterId: string
  atMs: number
}

export interface Inheritance {
  service: ServiceId
  ref: ObjectRef
  apiVersion: string
}

export interface AgentState {
  /** Resolves when all that was written before the call outlives a power loss. Throws `data_unusable` when the disk
   *  refuses. */
  settled(): Promise<void>
  /** The same before it returns; rare writes (identity, claims, facts) do so by themselves. */
  settle(): void

  identity(): Identity | null
  /** Another incarnation: every row is numbered again and waits again (PU1), and an inventory is due. */
  setIdentity(identity: Identity): void
  /** From now until there is another incarnation, also after a restart: the server may have given it out in an answer
   *  that was lost. */
  wantNextIncarnation(): void
  wantsNextIncarnation(): boolean

  /** CM9: null means that the server knows this cluster, as far as is known here. */
  removal(): Removal | null
  setRemoval(removal: Removal | null): void
  /** Hashes of join tokens that belong to this registration. */
  usedTokens(): string[]
  noteToken(hash: string): void
  /** CM10: everything of this registration is deleted except the claim that this place wrote. */
  forgetRegistration(): void

  /** CM5: the claim that this agent wrote last. */
  writtenClaim(): WrittenClaim | null
  setWrittenClaim(written: WrittenClaim): void

  /** `group/kind` of custom kinds to the name of the CRD that was seen to define them. */
  definitions(): ReadonlyMap<string, string>
  noteDefinition(kind: string, crd: string): void

  services(): ServiceId[]
  inventory(service: ServiceId): InventoryEntry[]
  /** The owner of an object in this inventory, or null. Keyed by refKey. */
  ownerOf(refKey: string): ServiceId | null
  /** Adds missing refs, without further facts; one transaction. Refs that another service owns are returned and not
   *  added. To be settled before the first request about them. */
  widenInventory(service: ServiceId, entries: ReadonlyArray<{ ref: ObjectRef; apiVersion: string }>): ObjectRef[]
  recordApplied(service: ServiceId, entries: readonly InventoryEntry[]): void
  /**
   * `heirs`: the new owners of some of them. One transaction, so that no crash leaves an object outside of all
   * inventories.
   */
  narrowInventory(service: ServiceId, refs: readonly ObjectRef[], heirs?: readonly Inheritance[]): void
  serviceState(service: ServiceId): ServiceState
  setServiceState(service: ServiceId, state: ServiceState): void
  /** Other facts of the agent that must survive a restart (outcomes of hooks, holds, confirmations at the site):
   *  small JSON documents by key. They are deleted with the service. The key's first segment (`hook/…`) names their
   *  owner. */
  facts(service: ServiceId, prefix: string): Map<string, unknown>
  /** The facts with this key, by service key; reads the facts of all services. */
  factsOf(key: string): Map<string, unknown>
  /** Null removes. One transaction. */
  setFacts(service: ServiceId, facts: ReadonlyMap<string, unknown>): void
  /** Removes the service with its inventory; only after a removal order was carried out. */
  forgetService(service: ServiceId): void

  /** PU5: the last state for each key; the same document as the last one reported writes nothing (PU6). Equal events
   *  become one with a count, until `outbox` handed them out. */
  report(rows: ReadonlyArray<{ kind: StatusKind; key: string; doc: unknown }>, turns?: readonly TurnRecord[]): void
  /** Oldest rev first. To be sent when it is settled: the server may have these rows from then on. */
  outbox(limit: number): OutboxRow[]
  outboxDepth(): number
  /** One of the waiting rows is urgent: a service became Degraded or Healthy. */
  outboxUrgent(): boolean
  /** Settled by the server: rows with rev ≤ settled leave the outbox, and the counter never falls below it. `ack`:
   *  the greatest rev of the server. */
  acknowledge(settled: number, ack?: number): void
  /** The greatest rev given out. */
  lastRev(): number
  /** PU7: the greatest rev that this file may have sent; `noteSent` precedes the request. Later revs prove nothing
   *  about the server. */
  sentRev(): number
  noteSent(rev: number): void
  /** The greatest rev that the server said it has; 0 in a new incarnation. */
  acknowledgedRev(): number
  /** PU7: every row is numbered again and waits again. */
  reportAnew(): void
  /** PU4: the server may hold rows that this agent does not know of. */
  inventoryDue(): boolean
  inventoryDone(): void
  /** The last state of the keys above `after` (null means of all), sent or not, without events; in code unit order of
   *  `kind/key`, `limit` rows or `bytesMax` of JSON at most, but one at least. `upTo`: null when it reaches the end. */
  inventoryRange(after: string | null, limit: number, bytesMax: number): { rows: OutboxRow[]; upTo: string | null }
  /** Last reported document of a key, acknowledged or not. */
  lastReported(kind: StatusKind, key: string): unknown
  /** Runs after rows entered the outbox. */
  onOutbox(listener: () => void): void

  close(): void
}
