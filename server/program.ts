// The program of `skerry` as people start it: arguments and environment in, exit code out.
import { writeSync } from 'node:fs'
import { onReaderGone, readerGone } from '../shared/adapters/closed-pipe.ts'
import { runTrial, TRIAL_VERB } from '../shared/adapters/crdt-trial.ts'
import { versionInfo, versionText } from '../shared/adapters/version-info.ts'
import { systemClock } from '../shared/runtime/clock.ts'
import {
  BACKUP_CREATE_OPTIONS,
  BACKUP_RESTORE_OPTIONS,
  BACKUP_VERIFY_OPTIONS,
  runBackupCreate,
  runBackupRestore,
  runBackupVerify,
} from './backup/backup-verbs.ts'
import { runCli } from './cli/cli.ts'
import { SERVER_OPTIONS } from './config.ts'
import { DOCTOR_OPTIONS, runDoctor } from './doctor/doctor-verb.ts'
import { LOCAL_RENDER_OPTIONS, runLocalRender } from './local-render/render-verb.ts'
import { serve } from './serve.ts'

if (process.argv[2] === TRIAL_VERB) {
  const [libraryDir = '', ...paths] = process.argv.slice(3)
  runTrial(libraryDir, paths, (line) => writeSync(process.stdout.fd, line))
  process.exit(0)
}

const onStop = (listener: (signal: string) => void) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => listener(signal))
}

const verbIo = {
  env: process.env,
  out: (text: string) => void process.stdout.write(text),
  err: (text: string) => void process.stderr.write(text),
  errIsTty: process.stderr.isTTY,
  onStop,
  clock: systemClock,
}

let serves = false
onReaderGone([process.stdout, process.stderr], () => {
  if (!serves) process.exit(0)
})

export const runProgram = (): Promise<number> =>
  runCli({
    local: {
      server: {
        table: SERVER_OPTIONS,
        run: (flags) => {
          serves = true
          return serve(flags, verbIo)
        },
      },
      doctor: { table: DOCTOR_OPTIONS, run: (flags) => runDoctor(flags, verbIo) },
      render: { table: LOCAL_RENDER_OPTIONS, run: (flags, service) => runLocalRender(flags, verbIo, service) },
      backup: {
        create: { table: BACKUP_CREATE_OPTIONS, run: (flags) => runBackupCreate(flags, verbIo) },
        verify: { table: BACKUP_VERIFY_OPTIONS, run: (flags, folder) => runBackupVerify(flags, verbIo, folder) },
        restore: { table: BACKUP_RESTORE_OPTIONS, run: (flags, folder) => runBackupRestore(flags, verbIo, folder) },
      },
    },
    version: () => {
      const info = versionInfo()
      return { info: { ...info }, text: versionText('skerry', info) }
    },
    io: {
      argv: process.argv.slice(2),
      env: process.env,
      stdin: process.stdin,
      stdout: process.stdout,
      stderr: process.stderr,
      fetch,
      isTty: process.stdout.isTTY && process.stdin.isTTY,
      clock: systemClock,
      // Asked for by what goes on without an end.
      get signal() {
        return readerGone(1)
      },
    },
  })
