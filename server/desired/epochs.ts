// CU2a: an agent obeys no epoch below the greatest it has seen. Whatever made a shard file another one (damage, loss, a
// restore), its clusters get a higher epoch before the file is served. The fleet store holds which files that was done
// for, so that a crash in between is made good at the next start.
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Store } from '../store/store.ts'
import type { OpenedShards } from './shard-files.ts'

export interface RaiseEpochsDeps {
  store: Pick<Store, 'clusterOrdinals' | 'adoptShards' | 'distrustLogs'>
  opened: Pick<OpenedShards, 'dbIds' | 'indexOf' | 'suspect'>
  log: Logger
}

/** The clusters whose epoch was raised. */
export async function raiseEpochs({ store, opened, log }: RaiseEpochsDeps): Promise<ClusterId[]> {
  const ofFile = opened.dbIds.map((dbId, index) => ({ index, dbId, clusterIds: [] as ClusterId[] }))
  for (const clusterId of (await store.clusterOrdinals()).keys()) ofFile[opened.indexOf(clusterId)]?.clusterIds.push(clusterId)
  if (opened.suspect) await store.distrustLogs()
  const raised = await store.adoptShards(ofFile)
  if (raised.length > 0) log.warn('epochs raised: these clusters fetch everything again', { clusters: raised.length })
  return raised
}
