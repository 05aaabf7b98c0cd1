// RP2: while a server that was set back waits for a person, no agent gets a page from it.
import type { ClusterId } from '../../shared/model/ids.ts'
import type { HeadProof } from '../../shared/protocol/frames.ts'

export interface RestoreGate {
  /** Pulls are answered 503 `restore_pending`. Asked at every poll: no I/O. */
  pending(): boolean
  /** What an agent that must refetch shows of this server's own past. A proof of this server that is newer than the fleet store sets `pending`. */
  offer(clusterId: ClusterId, proof: HeadProof): Promise<void>
}
