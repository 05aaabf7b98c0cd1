// The verbs that work on the machine of a server: the server itself, backups, the doctor, local renders. Loaded only
// when one of them was typed.

import type { LocalCommands } from './cli/local-commands.ts'
import { packFolder } from './local-render/pack-folder.ts'
import { serve } from './serve.ts'
import { ADMIN_TOKEN_OPTIONS, runAdminToken } from './verbs/admin-token-verb.ts'
import {
  BACKUP_CREATE_OPTIONS,
  BACKUP_LIST_OPTIONS,
  BACKUP_RESTORE_OPTIONS,
  BACKUP_VERIFY_OPTIONS,
  runBackupCreate,
  runBackupList,
  runBackupRestore,
  runBackupVerify,
} from './verbs/backup-verbs.ts'
import { DEV_OPTIONS, runDev } from './verbs/dev-verb.ts'
import { DOCTOR_OPTIONS, runDoctor } from './verbs/doctor-verb.ts'
import { LOCAL_RENDER_OPTIONS, runLocalRender } from './verbs/render-verb.ts'
import { SERVER_OPTIONS } from './verbs/server-options.ts'
import type { VerbIo } from './verbs/verb-io.ts'

/** For verbs that run until they are stopped. The others end at once when nobody reads their output. */
export interface LongVerbs {
  /** The process becomes a server, which outlives the readers of its output. */
  onServe(): void
  /** Calls the listener when the last reader of the output closed it, or when the terminal was closed. The listener
   *  ends the process. It may be called more than once. */
  onLeft(listener: () => void): void
}

export const localVerbs = (io: VerbIo, { onServe, onLeft }: LongVerbs): LocalCommands => ({
  server: {
    table: SERVER_OPTIONS,
    run: (flags) => {
      onServe()
      return serve(flags, io)
    },
  },
  dev: { table: DEV_OPTIONS, run: (flags) => runDev(flags, io, onLeft) },
  adminToken: { table: ADMIN_TOKEN_OPTIONS, run: (flags) => runAdminToken(flags, io) },
  doctor: { table: DOCTOR_OPTIONS, run: (flags) => runDoctor(flags, io) },
  render: { table: LOCAL_RENDER_OPTIONS, run: (flags, service) => runLocalRender(flags, io, service) },
  pack: packFolder,
  backup: {
    create: { table: BACKUP_CREATE_OPTIONS, run: (flags) => runBackupCreate(flags, io) },
    verify: { table: BACKUP_VERIFY_OPTIONS, run: (flags, folder) => runBackupVerify(flags, io, folder) },
    list: { table: BACKUP_LIST_OPTIONS, run: (flags, place) => runBackupList(flags, io, place) },
    restore: { table: BACKUP_RESTORE_OPTIONS, run: (flags, folder) => runBackupRestore(flags, io, folder) },
  },
})
