// The agent's process: arguments and environment in, exit code out.
import { onReaderGone } from '../shared/adapters/closed-pipe.ts'
import { runAgentCli } from './cli/agent-cli.ts'

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
