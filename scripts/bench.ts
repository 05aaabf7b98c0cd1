// scripts/bench NAME [--only PART] [--json]: one JSON object of named figures. Never a test: figures are read by people and go into docs/reference/figures.md with the machine's description.
import { cpus, totalmem } from 'node:os'
import { benchChain } from './benchmarks/chain.ts'
import { benchReconcile } from './benchmarks/reconcile.ts'
import { benchRender } from './benchmarks/render.ts'
import { benchStore } from './benchmarks/store.ts'
import { benchSync } from './benchmarks/sync.ts'

type Benchmark = (say: (text: string) => void, only: string | null) => Promise<object>
const BENCHMARKS: Record<string, Benchmark> = {
  chain: benchChain,
  reconcile: benchReconcile,
  render: benchRender,
  store: benchStore,
  sync: benchSync,
}

const words = process.argv.slice(2)
const onlyAt = words.indexOf('--only')
const only = onlyAt < 0 ? null : (words.splice(onlyAt, 2)[1] ?? '')
const [name = ''] = words.filter((word) => !word.startsWith('--'))
const benchmark = Object.hasOwn(BENCHMARKS, name) ? BENCHMARKS[name] : undefined
if (benchmark === undefined) {
  process.stderr.write(`usage: scripts/bench NAME [--only PART] [--json]\nbenchmarks: ${Object.keys(BENCHMARKS).join(', ')}\n`)
  process.exit(2)
}
const say = (text: string) => void process.stderr.write(`  ${text}\n`)
say(`${name} on ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 1e9)} GB, Bun ${Bun.version}`)
const figures = await benchmark(say, only)
if (words.includes('--json')) process.stdout.write(`${JSON.stringify(figures)}\n`)
else for (const [figure, value] of Object.entries(figures)) process.stdout.write(`${figure.padEnd(36)} ${value}\n`)
process.exit(0)
