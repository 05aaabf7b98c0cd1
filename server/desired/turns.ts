// Serializes writes to the shard files. If a later ordinal reached a shard before an earlier one, a crash between them
// would hide the earlier from replay (CU7).
import type { Shards } from './shards.ts'

const lastOf = new WeakMap<Shards, Promise<unknown>>()

export function inTurn<T>(shards: Shards, work: () => Promise<T>): Promise<T> {
  const last = lastOf.get(shards) ?? Promise.resolve()
  const mine = last.catch(() => {}).then(work)
  lastOf.set(shards, mine)
  return mine
}
