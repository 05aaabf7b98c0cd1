import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** The kubectl of the test cluster's binaries (`SKERRY_CLUSTER_BIN`: their folder, set by scripts/check); null: there is none. */
export function findKubectl(): string | null {
  const folder = process.env['SKERRY_CLUSTER_BIN']
  const path = folder === undefined ? '' : join(folder, 'kubectl')
  return path !== '' && existsSync(path) ? path : null
}
