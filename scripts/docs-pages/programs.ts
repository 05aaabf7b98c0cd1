// The commands and flags of both programs, as tables. No command can be run with them.
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { agentCommand } from '../../agent/cli/agent-cli.ts'
import { createCommandLine } from '../../server/cli/cli.ts'
import { ADMIN_TOKEN_OPTIONS } from '../../server/verbs/admin-token-verb.ts'
import {
  BACKUP_CREATE_OPTIONS,
  BACKUP_LIST_OPTIONS,
  BACKUP_RESTORE_OPTIONS,
  BACKUP_VERIFY_OPTIONS,
} from '../../server/verbs/backup-verbs.ts'
import { DEV_OPTIONS } from '../../server/verbs/dev-verb.ts'
import { DOCTOR_OPTIONS } from '../../server/verbs/doctor-verb.ts'
import { LOCAL_RENDER_OPTIONS } from '../../server/verbs/render-verb.ts'
import { SERVER_OPTIONS } from '../../server/verbs/server-options.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { OptionTable } from '../../shared/runtime/options.ts'

const never = (): never => {
  throw new Error('a command of a document was run')
}
const local = (table: OptionTable) => ({ table, run: never })

/** Where help is written to. */
let written = ''
const write = (text: string): boolean => {
  written += text
  return true
}

const { program: skerry } = await createCommandLine({
  local: async () => ({
    server: local(SERVER_OPTIONS),
    dev: local(DEV_OPTIONS),
    doctor: local(DOCTOR_OPTIONS),
    adminToken: local(ADMIN_TOKEN_OPTIONS),
    render: local(LOCAL_RENDER_OPTIONS),
    pack: never,
    backup: {
      create: local(BACKUP_CREATE_OPTIONS),
      list: local(BACKUP_LIST_OPTIONS),
      verify: local(BACKUP_VERIFY_OPTIONS),
      restore: local(BACKUP_RESTORE_OPTIONS),
    },
  }),
  version: never,
  io: {
    argv: [],
    env: {},
    stdin: (async function* () {})(),
    stdout: { write },
    stderr: { write },
    fetch: never,
    isTty: false,
    clock: systemClock,
  },
})

/** By the name of the program. */
export const PROGRAMS: Readonly<Record<string, CommandUnknownOpts>> = {
  skerry,
  'skerry-agent': agentCommand({ env: {}, out: write, err: write, onStop: () => {} }) as unknown as CommandUnknownOpts,
}

const HELP_WIDTH = 110

/** The output of `--help` for a command, at a fixed width. */
export function helpOf(command: CommandUnknownOpts): string {
  command.configureHelp({ ...command.configureHelp(), helpWidth: HELP_WIDTH })
  written = ''
  command.outputHelp()
  return written
}
