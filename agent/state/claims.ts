// The agent's claim on its cluster, as it is written into the cluster and remembered on the disk; claim.ts of the
// reconciler decides by it.

export interface Claim {
  agent: string
  incarnation: number
  /** Drawn before each first write of a start, and kept with the place where that was. */
  instance: string
  /** Id of the registration at the server; absent in claims of older agents. */
  cluster?: string
  /** For people: the server of that registration. */
  server?: string
  /** UID of the Namespace kube-system. '' or absent means not known. Tells a claim that was copied from another
   *  cluster. */
  uid?: string
  /** Earlier registrations of this very cluster (CM8). */
  former?: readonly string[]
}

/** Identifies one claim: each is written under an instance of its own. */
export type ClaimName = Pick<Claim, 'agent' | 'incarnation' | 'instance'>
export type PastClaim = ClaimName & Pick<Claim, 'cluster' | 'uid'>

/** The claim that was written last, kept on the disk (CM5). */
export interface WrittenClaim {
  /**
   * The place of the process that wrote it. One place never has two processes (shared/adapters/data-folder.ts). Null:
   * unknown.
   */
  place: string | null
  claim: Claim
  /** Claims that this agent wrote before, or took over; the newest first (CM11). */
  over: readonly PastClaim[]
}
