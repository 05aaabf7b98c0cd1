// scripts/bench NAME [--only PART] [--json]: one JSON object of named figures. Never a test: figures are read by people
// and go into docs/reference/figures.md with the machine's description.
import { cpus, totalmem } from 'node:os'
import { helpText, readOrder } from './benchmarks/order.ts'
import type { Say } from './benchmarks/parts.ts'
import type { BenchmarkName } from './benchmarks/table.ts'

type Benchmark = (say: Say, only: string | null, corpus: string) => Promise<Record<string, number>>
/** Loaded late, because wrong arguments and `--help` are answered before anything is set up. */
const BENCHMARKS: Record<BenchmarkName, () => Promise<Benchmark>> = {
  api: async () => (await import('./benchmarks/api.ts')).benchApi,
  chain: async () => (await import('./benchmarks/chain.ts')).benchChain,
  dashboard: async () => (await import('./benchmarks/dashboard.ts')).benchDashboard,
  health: async () => (await import('./benchmarks/health-verdicts.ts')).benchHealth,
  observe: async () => (await import('./benchmarks/observe.ts')).benchObserve,
  install: async () => (await import('./benchmarks/install.ts')).benchInstall,
  reconcile: async () => (await import('./benchmarks/reconcile.ts')).benchReconcile,
  render: async () => (await import('./benchmarks/render.ts')).benchRender,
  secrets: async () => (await import('./benchmarks/secrets.ts')).benchSecrets,
  store: async () => (await import('./benchmarks/store.ts')).benchStore,
  sync: async () => (await import('./benchmarks/sync.ts')).benchSync,
}

/** `--check`: only looks at the arguments. */
const [first, ...rest] = process.argv.slice(2)
const isCheck = first === '--check'
const order = readOrder(isCheck ? rest : process.argv.slice(2))
if (order.kind === 'wrong') {
  process.stderr.write(`bench: ${order.why}\n`)
  process.exit(2)
}
if (order.kind === 'help') process.stdout.write(helpText())
else if (!isCheck) {
  const { name, only, json, corpus = '' } = order
  const say = (text: string) => void process.stderr.write(`  ${text}\n`)
  say(`${name} on ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 1e9)} GB, Bun ${Bun.version}`)
  const benchmark = await BENCHMARKS[name]()
  const figures = await benchmark(say, only, corpus)
  if (json) process.stdout.write(`${JSON.stringify(figures)}\n`)
  else for (const [figure, value] of Object.entries(figures)) process.stdout.write(`${figure.padEnd(42)} ${value}\n`)
}
process.exit()
