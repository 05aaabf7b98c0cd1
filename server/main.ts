// The process of `skerry`: arguments and environment in, exit code out.
import { versionInfo, versionText } from '../shared/adapters/version-info.ts'
import { systemClock } from '../shared/runtime/clock.ts'
import { runCli } from './cli/cli.ts'
import { SERVER_OPTIONS } from './config.ts'
import { serve } from './serve.ts'

const onStop = (listener: (signal: string) => void) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => listener(signal))
}

process.exitCode = await runCli({
  serverCommand: {
    table: SERVER_OPTIONS,
    run: (flags) =>
      serve(flags, {
        env: process.env,
        out: (text) => void process.stdout.write(text),
        err: (text) => void process.stderr.write(text),
        onStop,
      }),
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
  },
})
