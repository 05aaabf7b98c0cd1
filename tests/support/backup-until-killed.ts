// A process of its own for backup.test.ts: makes a backup, or restores one, and dies at the step given. Without so many
// steps it ends by itself.
import { createBackup } from '../../server/backup/create.ts'
import { restoreBackup } from '../../server/backup/restore.ts'
import { openDataFolder } from '../../shared/adapters/data-folder.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

const [verb = '', from = '', to = '', step = ''] = process.argv.slice(2)
const running = new AbortController().signal
let left = Number(step)
/** It asks before each step whether it shall go on. */
const deps = {
  clock: systemClock,
  progress: () => {},
  openFolder: openDataFolder,
  get signal() {
    if (left-- === 0) process.kill(process.pid, 'SIGKILL')
    return running
  },
}
if (verb === 'create') await createBackup({ dataDir: from, to, withoutKeys: false, postgres: false }, deps)
else await restoreBackup({ folder: from, dataDir: to, keysFrom: null, newKeys: false }, deps)
