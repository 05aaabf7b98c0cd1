import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { clusterBinary } from '../../scripts/local-cluster/binaries.ts'

/** The local cluster's kubectl, or the one in the folder that `SKERRY_CLUSTER_BIN` names. Null means that there is
 *  none. */
export function findKubectl(): string | null {
  const folder = process.env['SKERRY_CLUSTER_BIN']
  if (folder !== undefined) return existsSync(join(folder, 'kubectl')) ? join(folder, 'kubectl') : null
  try {
    return clusterBinary('kubectl')
  } catch {
    return null
  }
}
