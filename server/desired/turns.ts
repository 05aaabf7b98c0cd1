// Who writes to the shard files: one at a time. Were a later ordinal in a shard before an earlier one, a crash between them would hide the earlier from replay (CU7).
import type { ClusterId } from '../../shared/model/ids.ts'
import type { Shards } from './shards.ts'

interface Turns {
  last: Promise<unknown>
  /** Clusters of which the fleet store holds more than the shard, because writing the shard failed (a full disk). */
  behind: Set<ClusterId>
}
const turnsOf = new WeakMap<Shards, Turns>()

export function inTurn<T>(shards: Shards, work: (behind: Set<ClusterId>) => Promise<T>): Promise<T> {
  const turns: Turns = turnsOf.get(shards) ?? { last: Promise.resolve(), behind: new Set() }
  const mine = turns.last.catch(() => {}).then(() => work(turns.behind))
  turnsOf.set(shards, { ...turns, last: mine })
  return mine
}
