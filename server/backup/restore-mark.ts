// The mark of a data folder that a restore is filling. While it is there, what is in the folder is no server's.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../shared/runtime/error.ts'

export const RESTORE_MARK = 'restore-unfinished'

/** BK5: a server with half of its keys, content and store would tell agents less than the truth, or be unknown to them.
 */
export function refuseUnfinishedRestore(dataDir: string): void {
  if (!existsSync(join(dataDir, RESTORE_MARK))) return
  throw new AppError('data_unusable', {
    doing: 'open the data folder',
    detail: `a restore into ${dataDir} was interrupted`,
    remedy: 'Run `skerry backup restore` again with the same --data folder.',
  })
}
