// scripts/bench NAME [--json]: one JSON object of named figures. Never a test: figures are read by people and go into the README with the machine's description.
import { cpus, totalmem } from 'node:os'
import { benchChain } from './benchmarks/chain.ts'

const BENCHMARKS = { chain: benchChain } as const

const [name = ''] = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
if (!Object.hasOwn(BENCHMARKS, name)) {
  process.stderr.write(`usage: scripts/bench NAME [--json]\nbenchmarks: ${Object.keys(BENCHMARKS).join(', ')}\n`)
  process.exit(2)
}
const say = (text: string) => void process.stderr.write(`  ${text}\n`)
say(`${name} on ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 1e9)} GB, Bun ${Bun.version}`)
const figures = await BENCHMARKS[name as keyof typeof BENCHMARKS](say)
if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify(figures)}\n`)
else for (const [figure, value] of Object.entries(figures)) process.stdout.write(`${figure.padEnd(32)} ${value}\n`)
process.exit(0)
