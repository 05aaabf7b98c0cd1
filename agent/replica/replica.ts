// The port to the agent's replica: the desired state of this cluster, held at the site. Rows and cursor change in one
// transaction (CU4); a read returns a complete revision or nothing (RV1).
import type { Position } from '../../shared/crdt/position.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import type { HeadProof } from '../../shared/protocol/frames.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'

/** A service by its row, with all its objects, their hash verified against the row's digest. */
export interface DesiredRevision extends ServiceId {
  row: ServiceRow
  /** Row id → canonical JSON. Empty for a removal order. */
  objects: ReadonlyMap<string, string>
}

export type ServiceRead =
  | { kind: 'complete'; revision: DesiredRevision }
  | { kind: 'incomplete'; why: string } // digest or row does not fit: the last complete revision stays active
  | { kind: 'absent' } // no row: nothing of it is ever pruned

export type ApplyPageResult =
  | { kind: 'applied'; position: Position; changedServices: ServiceId[] }
  | { kind: 'discarded' } // an old answer, or one already applied (PL6)
  | { kind: 'refused'; why: string } // failed a check: nothing changed, refetch (PL5)

export interface Replica {
  /** Null before the first page. */
  position(): Position | null
  /** Last signed epoch; a lower one is refused. */
  epoch(): number
  /** The sums that a refetch shows, for PL9: 0, 1, 16 or 256 sums of 16 bytes. None unless the file verifies. The
   *  next page with `keep` refers to them. */
  bucketSums(): Uint8Array
  /** Hello and checkpoint of the last page that was applied, kept also when the file is lost (RP2). */
  proof(): HeadProof | null
  /** A verified page that continues `position()` merges into this file; a page without `from` is built in a new file,
   *  with the buckets that it keeps, and renamed over this one (PL8, PL9). `frames` is the page, uncompressed. */
  applyPage(frames: Uint8Array): ApplyPageResult
  services(): ServiceId[]
  read(service: ServiceId): ServiceRead
  /** Must resolve before sealed rows of the service can be opened. Null means that it has none. */
  unlock(service: ServiceId): Promise<void> | null
  /** SL4: the document of a sealed row as it was rendered. Null means that it does not open. */
  open(rowId: string, doc: string): string | null
  /** RC34: it takes no object from other services, because its row is a removal order or is gone. */
  isLeaving(service: ServiceId): boolean
  /** Rows of health rules, sorted by id. Null while nothing may be read. */
  healthRules(): Array<readonly [id: string, doc: string]> | null
  /** Rows of suspensions, sorted by id. Null while nothing may be read. */
  suspensions(): Array<readonly [id: string, doc: string]> | null
  /** Rows of ConfigMaps to report (SC1), sorted by id. Null while nothing may be read. */
  siteConfigs(): Array<readonly [id: string, doc: string]> | null
  /** Live rows, as the last page's checkpoint counted them. */
  rowCount(): number
  /** Every live row, sorted by id. */
  dump(): Array<readonly [id: string, doc: string]>
  /** False if the file failed its check at opening: nothing is enforced from it until a refetch replaced it (RP1). */
  verified(): boolean
  close(): void
}
