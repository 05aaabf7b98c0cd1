// A server with two services and a replica that holds them: what tests of the replica begin with.
import { join } from 'node:path'
import type { CheckedReplica } from '../../agent/replica/crdt-replica.ts'
import type { Shards } from '../../server/desired/shards.ts'
import type { Position } from '../../shared/crdt/position.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { pullPage, refetchPage } from './page-kit.ts'
import { CLUSTER, DB, openTestReplica, openTestShards, revision, WEB } from './sync-kit.ts'
import { tempDir } from './temp-dir.ts'

export const pull = async (shards: Shards, cursor: Position | null, cluster: ClusterId = CLUSTER): Promise<Uint8Array> =>
  (await pullPage(shards, cluster, cursor)).frames

/** PL9: what the server sends of everything that the replica does not show. */
export const refetch = async (shards: Shards, replica: CheckedReplica): Promise<Uint8Array> =>
  (await refetchPage(shards, CLUSTER, replica.bucketSums())).frames

/** What the server would send of everything, by id. */
export const serverRows = async (shards: Shards): Promise<Array<[string, string]>> =>
  (await pullPage(shards, CLUSTER, null)).rows.map(({ id, doc }): [string, string] => [id, doc ?? '']).sort(([a], [b]) => (a < b ? -1 : 1))

export interface InSync {
  shards: Shards
  replica: CheckedReplica
  path: string
  dir: string
}

export async function inSync(): Promise<InSync> {
  const dir = tempDir()
  const { shards } = openTestShards(join(dir, 'shards'), { shardCount: 1 })
  shards.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1', b: '1' })])
  shards.writeRevisions([revision(CLUSTER, DB, 2, { d: '1' })])
  const path = join(dir, 'replica.db')
  const replica = openTestReplica(path)
  const applied = replica.applyPage(await pull(shards, null))
  if (applied.kind !== 'applied') throw new Error(`the first page is ${JSON.stringify(applied)}`)
  return { shards, replica, path, dir }
}

export const position = (replica: CheckedReplica): Position => {
  const held = replica.position()
  if (held === null) throw new Error('it holds no position')
  return held
}
