// A server's data folder with clusters, revisions and reports in it, made by the server's own parts.
import { join } from 'node:path'
import { loadSealing } from '../../server/access/sealing.ts'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import { raiseEpochs } from '../../server/desired/epochs.ts'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { SHARD_COUNT } from '../../server/desired/shard-files.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import type { Store } from '../../server/store/store.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { joinCluster } from './store-fixtures.ts'
import { objectRows, openTestShards, serviceDoc } from './sync-kit.ts'

export type DataFolderServer = Awaited<ReturnType<typeof openDataFolderServer>>

/** All of a server that writes to the folder, without its doors and loops; its store may be elsewhere. */
export async function openDataFolderServer(dir: string, otherStore?: Store) {
  const keys = loadServerKeys(join(dir, 'keys'))
  const sealing = loadSealing(join(dir, 'keys'))
  if (sealing.begin()) sealing.isClean(systemClock.nowMs())
  const store = otherStore ?? (await openSqliteStore(join(dir, 'fleet.sqlite'), { clock: systemClock, random: seededRandom(3) }))
  const content = createFileContentStore(join(dir, 'content'), systemClock)
  const opened = openTestShards(join(dir, 'shards'), { shardCount: SHARD_COUNT, sign: keys.sign })
  await raiseEpochs({ store, opened, log: silentLogger })
  const { shards } = opened
  return {
    keys,
    store,
    content,
    opened,
    shards,
    join: (digit: string): Promise<ClusterId> => joinCluster(store, digit, { env: 'prod' }),
    /** Null objects: a tombstone. */
    async publish(clusterIds: readonly ClusterId[], service: ServiceId, values: Record<string, string> | null): Promise<void> {
      const objects = objectRows(service, values ?? {})
      const doc = values === null ? null : serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
      const rows = clusterIds.map((clusterId) => ({ clusterId, ...service, doc, placedBy: '{}', objects }))
      await publishRevisions({ store, content, shards }, rows)
    },
    async close(): Promise<void> {
      shards.close()
      await store.close()
    },
  }
}

export const WEB: ServiceId = { project: 'shop', service: 'web' }
export const DB: ServiceId = { project: 'shop', service: 'db' }

/** Three clusters with two services, and what their agents reported of one. */
export async function fillDataFolder(dir: string, otherStore?: Store): Promise<ClusterId[]> {
  const server = await openDataFolderServer(dir, otherStore)
  const clusters: ClusterId[] = []
  for (const digit of ['1', '2', '3']) clusters.push(await server.join(digit))
  await server.publish(clusters, WEB, { a: '1', b: '1' })
  await server.publish(clusters, WEB, { a: '2', b: '2' })
  await server.publish(clusters.slice(1), DB, { data: '1' })
  for (const clusterId of clusters) {
    const doc = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: 1 }
    const key = 'shop/web/apps/Deployment/default/a'
    await server.store.upsertStatus(clusterId, [{ kind: 'object', key, rev: 4_294_967_297, doc }], { complete: false, nowMs: 1 })
  }
  await server.close()
  return clusters
}
