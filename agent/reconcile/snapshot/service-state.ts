// The state of a service as a whole, in values of one subject each. Each has one room that changes it, by the methods
// here; all other code only reads.
import type { PruneRefusal, ServiceStatus } from '../../../shared/model/status.ts'
import type { ServiceState } from '../../state/agent-state.ts'
import type { ActiveHold, SiteConfirmation } from './kept-notes.ts'
import type { Closed } from './situation.ts'

/** The work that the next round plans, and the facts that the report at the end uses. */
export class ObjectQueue {
  readonly #dirty = new Set<string>()
  readonly #touched = new Set<string>()
  readonly #unbegun = new Set<string>()
  /** Time of the last check of the retries. */
  #turnBeganMs = 0

  /** Keys that the next round plans. */
  get dirty(): ReadonlySet<string> {
    return this.#dirty
  }

  /** Keys whose status is reported again. */
  get touched(): ReadonlySet<string> {
    return this.#touched
  }

  /** Keys whose step was planned, and not begun when the turn was cut. */
  get unbegun(): ReadonlySet<string> {
    return this.#unbegun
  }

  get turnBeganMs(): number {
    return this.#turnBeganMs
  }

  began(atMs: number): void {
    this.#turnBeganMs = atMs
  }

  plan(key: string): void {
    this.#dirty.add(key)
  }

  touch(key: string): void {
    this.#touched.add(key)
  }

  mark(key: string): void {
    this.#dirty.add(key)
    this.#touched.add(key)
  }

  /** RC30: its step was not begun. */
  putBack(key: string): void {
    this.mark(key)
    this.#unbegun.add(key)
  }

  takePlanned(): string[] {
    const keys = [...this.#dirty]
    this.#dirty.clear()
    this.#unbegun.clear()
    return keys
  }

  allSaid(): void {
    this.#touched.clear()
  }
}

/** UIDs of deleted objects that are remembered of a service. */
const DELETED_UIDS_MAX = 1_000

/** PR13: the last UIDs that this process deleted. An object with one of them returned with a snapshot of etcd. */
export class DeletedUids {
  readonly #uids = new Set<string>()

  has(uid: string): boolean {
    return this.#uids.has(uid)
  }

  add(uid: string): void {
    this.#uids.add(uid)
    const [oldest] = this.#uids
    if (this.#uids.size > DELETED_UIDS_MAX && oldest !== undefined) this.#uids.delete(oldest)
  }
}

/** Progress of a removal order, identified by its `atMs`. The loop and the search for remaining objects change it. */
export class Removal {
  #carriedOutMs: number | null = null
  #recalledMs: number | null = null
  #attempts = 0
  #keepsNamespace: boolean

  constructor(keepsNamespace: boolean) {
    this.#keepsNamespace = keepsNamespace
  }

  /** NS2: an object in the namespace of the service was released and has to stay. */
  get keepsNamespace(): boolean {
    return this.#keepsNamespace
  }

  keepNamespace(): void {
    this.#keepsNamespace = true
  }

  /** The service is forgotten. */
  startOver(): void {
    this.#keepsNamespace = false
  }

  isCarriedOut({ atMs }: { atMs: number }): boolean {
    return this.#carriedOutMs === atMs
  }

  /** Every kind was searched for this order. */
  isRecalled({ atMs }: { atMs: number }): boolean {
    return this.#recalledMs === atMs
  }

  /** Failed searches since the last completed one. */
  get attempts(): number {
    return this.#attempts
  }

  carriedOut({ atMs }: { atMs: number }): void {
    this.#carriedOutMs = atMs
  }

  recalled({ atMs }: { atMs: number }): void {
    this.#recalledMs = atMs
    this.#attempts = 0
  }

  lookedInVain(): void {
    this.#attempts += 1
  }

  /** The order was revoked. */
  clear(): void {
    this.#carriedOutMs = null
    this.#recalledMs = null
  }
}

/** Why nothing new begins; changed by apply/begin.ts. */
export class Gating {
  #hold: ActiveHold | null = null
  #held: Closed | null = null
  #begun: string | null = null
  #begunBefore: string | null
  #wasShut = false

  constructor(begunBefore: string | null) {
    this.#begunBefore = begunBefore
  }

  /** Digest of the revision that had begun before this process. Null means none. */
  get begunBefore(): string | null {
    return this.#begunBefore
  }

  /** A hold: a person at the site ordered to change nothing until it is lifted. */
  get hold(): ActiveHold | null {
    return this.#hold
  }

  /** Why the revision that the row names has not begun. */
  get held(): Closed | null {
    return this.#held
  }

  /** Digest of the revision that no gate holds as a whole any more; '': none had begun before this start. Null means
   *  not checked yet. */
  get begun(): string | null {
    return this.#begun
  }

  heldBy(hold: ActiveHold | null): void {
    this.#hold = hold
  }

  waits(why: Closed | null): void {
    this.#held = why
  }

  begin(digest: string): void {
    this.#begun = digest
  }

  /** `digest` is in the file. Null means none is. */
  kept(digest: string | null): void {
    this.#begunBefore = digest
  }

  nothingBegan(): void {
    this.#begun = ''
  }

  /** True: a hold or window has just opened. */
  opens(isShut: boolean): boolean {
    const opened = this.#wasShut && !isShut
    this.#wasShut = isShut
    return opened
  }
}

/** The obstacles of deletions; changed by the prune, and by a person who confirms. */
export class PruneState {
  #refusal: PruneRefusal | null = null
  #why: string | null = null
  #isOverdue = false
  #confirmedHere: string | null = null
  #confirmation: SiteConfirmation | null

  constructor(confirmation: SiteConfirmation | null) {
    this.#confirmation = confirmation
  }

  get refusal(): PruneRefusal | null {
    return this.#refusal
  }

  /** Why leaving objects still exist. Null means none leaves. */
  get why(): string | null {
    return this.#why
  }

  /** It waits for longer than `sync.healthDeadline`. */
  get isOverdue(): boolean {
    return this.#isOverdue
  }

  /** The revision or removal order (`confirmationToken`) that a person confirmed at the site since this process began.
   */
  get confirmedHere(): string | null {
    return this.#confirmedHere
  }

  /** Evaluates the prune again. A refusal stays until then. */
  begin(): void {
    this.#why = null
    this.#isOverdue = false
  }

  refused(refusal: PruneRefusal | null): void {
    this.#refusal = refusal
  }

  waits(why: string | null): void {
    this.#why = why
  }

  overdue(isOverdue: boolean): void {
    this.#isOverdue = isOverdue
  }

  /** The confirmation of a person at the site, also from before this process. */
  get confirmation(): SiteConfirmation | null {
    return this.#confirmation
  }

  confirm(confirmation: SiteConfirmation): void {
    this.#confirmation = confirmation
    this.#confirmedHere = confirmation.digest
  }

  forgetConfirmedHere(): void {
    this.#confirmedHere = null
  }

  forgetConfirmation(): void {
    this.#confirmation = null
  }
}

/** RC15: the progress of the service; changed by apply/remember.ts. */
export class Progress {
  #reached: ServiceState

  constructor(reached: ServiceState) {
    this.#reached = reached
  }

  get reached(): ServiceState {
    return this.#reached
  }

  reaches(reached: ServiceState): void {
    this.#reached = reached
  }
}

/** The service's last status; changed by report/publish.ts. */
export class Told {
  #status: ServiceStatus | null = null
  #degraded: boolean
  #last: ServiceStatus | null

  /** `last`: the report of a former process. */
  constructor(last: ServiceStatus | null, degraded: boolean) {
    this.#last = last
    this.#degraded = degraded
  }

  /** Also before this process began. */
  get last(): ServiceStatus | null {
    return this.#last
  }

  get status(): ServiceStatus | null {
    return this.#status
  }

  /** HE11: it was Degraded and has not been well since. */
  get degraded(): boolean {
    return this.#degraded
  }

  said(status: ServiceStatus | null): void {
    this.#status = status
    this.#last = status
  }

  isDegraded(degraded: boolean): void {
    this.#degraded = degraded
  }
}

const FACT = 'health/degraded'
export const recallDegraded = (facts: ReadonlyMap<string, unknown>): boolean => facts.has(FACT)

/** The fact to store or to delete. Null means unchanged. */
export function degradedFacts({ told }: { told: Told }, isDegraded: boolean): ReadonlyMap<string, unknown> | null {
  if (told.degraded === isDegraded) return null
  told.isDegraded(isDegraded)
  return new Map([[FACT, isDegraded ? {} : null]])
}
