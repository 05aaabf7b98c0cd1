// A process of its own for backup.test.ts: restores the backup given into the folder given, and dies at the step given. Without so many steps it ends by itself.
import { restoreBackup } from '../../server/backup/restore.ts'
import { openDataFolder } from '../../shared/adapters/data-folder.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

const [folder = '', dataDir = '', step = ''] = process.argv.slice(2)
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
await restoreBackup({ folder, dataDir, keysFrom: null, newKeys: false }, deps)
