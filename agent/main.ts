// The agent's process: arguments and environment in, exit code out.
import { writeSync } from 'node:fs'
import { onReaderGone } from '../shared/adapters/closed-pipe.ts'
import { runTrial } from '../shared/adapters/crdt-trial.ts'
import { TRIAL_VERB } from '../shared/runtime/build-info.ts'
import { runAgentCli } from './cli/agent-cli.ts'

if (process.argv[2] === TRIAL_VERB) {
  const [libraryDir = '', ...paths] = process.argv.slice(3)
  runTrial(libraryDir, paths, (line) => writeSync(process.stdout.fd, line))
  process.exit(0)
}

onReaderGone([process.stdout, process.stderr], () => {
  if (!process.argv.includes('run')) process.exit(0)
})

process.exitCode = await runAgentCli(process.argv, {
  env: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  onStop: (listener) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => listener(signal))
  },
})
