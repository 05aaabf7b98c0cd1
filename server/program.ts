// The program of `skerry` as people start it: arguments and environment in, exit code out.
import { writeSync } from 'node:fs'
import { onReaderGone, readerGone } from '../shared/adapters/closed-pipe.ts'
import { TRIAL_VERB } from '../shared/runtime/build-info.ts'
import { systemClock } from '../shared/runtime/clock.ts'
import { runCli } from './cli/cli.ts'
import { openBrowser } from './cli/open-browser.ts'
import { runProgramOf } from './cli/run-program.ts'

if (process.argv[2] === TRIAL_VERB) {
  const { runTrial } = await import('../shared/adapters/crdt-trial.ts')
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

let readerWent: () => void = () => process.exit(0)
onReaderGone([process.stdout, process.stderr], () => readerWent())

export const runProgram = (): Promise<number> =>
  runCli({
    local: async () =>
      (await import('./local-verbs.ts')).localVerbs(verbIo, {
        onServe: () => {
          readerWent = () => {}
        },
        onLeft: (listener) => {
          readerWent = listener
          readerGone(process.stdout.fd).addEventListener('abort', listener)
          process.on('SIGHUP', listener)
        },
      }),
    version: async () => {
      const { versionInfo, versionText } = await import('../shared/adapters/version-info.ts')
      const info = versionInfo({ loads: false })
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
      columns: process.stdout.columns,
      clock: systemClock,
      openBrowser,
      run: runProgramOf,
      // Read by work that runs without an end.
      get signal() {
        return readerGone(1)
      },
    },
  })
