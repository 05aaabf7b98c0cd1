// At start: what the fleet store has and a shard file lacks (CU7), because of a crash between the two or because the file was made anew.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { ClusterId } from '../../shared/model/ids.ts'
import { AppError } from '../../shared/protocol/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { ContentStore } from '../store/content-store.ts'
import type { DesiredService, Store } from '../store/store.ts'
import { decodeRenderedSet } from './rendered-set.ts'
import type { Shards } from './shards.ts'

export interface ReplayDeps {
  store: Pick<Store, 'clusterOrdinals' | 'desiredInCluster'>
  content: ContentStore
  shards: Shards
  log: Logger
}

/** Returns how many revisions were written. Fails when content is missing: serving a shard that lacks a revision would tell agents less than the truth. */
export async function replayShards({ store, content, shards, log }: ReplayDeps): Promise<number> {
  let written = 0
  for (const [clusterId, ordinal] of await store.clusterOrdinals())
    if (shards.ordinal(clusterId) < ordinal) written += await replayCluster({ store, content, shards }, clusterId)
  if (written > 0) log.info('shards replayed from the fleet store', { revisions: written })
  return written
}

/** What one cluster's shard lacks, in order. */
export async function replayCluster(
  { store, content, shards }: Pick<ReplayDeps, 'content' | 'shards'> & { store: Pick<Store, 'desiredInCluster'> },
  clusterId: ClusterId,
): Promise<number> {
  const rows = missing(await store.desiredInCluster(clusterId), shards.ordinal(clusterId))
  for (const row of rows)
    shards.writeRevision({ ...row, serviceDoc: row.doc === null ? null : canonicalJson(row.doc), objects: await objectsOf(row, content) })
  return rows.length
}

const missing = (rows: readonly DesiredService[], held: number): DesiredService[] =>
  rows.filter(({ ordinal }) => ordinal > held).sort((a, b) => a.ordinal - b.ordinal)

async function objectsOf({ setSha, project, service }: DesiredService, content: ContentStore): Promise<Map<string, string>> {
  if (setSha === null) return new Map()
  const bytes = await content.get(setSha)
  if (bytes === null)
    throw new AppError('internal', { doing: 'replay shards', detail: `the content store lacks ${setSha} of ${project}/${service}` })
  return decodeRenderedSet(bytes)
}
