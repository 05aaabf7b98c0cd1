// Runs the stages of scripts/check one after the other, says how each went and how long it took, and shows the output of those
// that failed. A failed stage does not stop the later ones: CI should tell everything at once.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addCounts, type Counts, countsLine, countsOf, inLanes, NO_COUNTS } from './check-report.ts'
import { ON_EACH_STORE, WITH_SERVER } from './end-to-end.ts'

type Stage =
  /** Passes by its exit code alone. `long`: with --long only. */
  | { kind: 'command'; name: string; command: string[]; fast: boolean; long?: true; timeoutMs?: number }
  /** Test files of one folder, in one process, or each in its own because they start clusters. `only`: these of them, by name.
   *  `beside`: these run beside the others, because they wait and hardly do anything. */
  | {
      kind: 'tests'
      name: string
      folder: string
      eachAlone: boolean
      timeoutMs: number
      fast: boolean
      /** So many processes beside each other. They take the files in parts, so that none ends long before the others. */
      lanes?: number
      /** Files that begin first, by name, because they take longest. */
      first?: readonly string[]
      only?: readonly string[]
      beside?: readonly string[]
      env?: Record<string, string>
    }

const args = process.argv.slice(2)
const unknown = args.filter((arg) => arg !== '--fast' && arg !== '--long')
if (unknown.length > 0 || args.length > 1) {
  process.stderr.write(`check: cannot take ${args.join(' ')}; there are --fast and --long, one of them at a time\n`)
  process.exit(2)
}
const isFast = args.includes('--fast')
const isLong = args.includes('--long')

const MINUTE_MS = 60_000
/** Time limit of a test that sets none itself. Tests wait for real programs that share two cores with those of another lane; one that hangs is found all the same. */
const PATIENCE = ['--timeout', '20000']
/** In which a lane takes its files: few enough that what a process sets up once is not set up often. */
const PARTS_PER_LANE = 5
const STAGES: readonly Stage[] = [
  { kind: 'command', name: 'format and lint', command: ['biome', 'ci', '--error-on-warnings', '--colors=off'], fast: true },
  { kind: 'command', name: 'types', command: ['tsc', '--noEmit', '-p', '.'], fast: true },
  { kind: 'command', name: 'unused code', command: ['bun', '--bun', 'run', 'knip'], fast: true },
  { kind: 'tests', name: 'structure', folder: 'tests', eachAlone: false, timeoutMs: MINUTE_MS, fast: true },
  { kind: 'tests', name: 'unit', folder: 'tests/unit', eachAlone: false, timeoutMs: 6 * MINUTE_MS, fast: true },
  { kind: 'tests', name: 'contract', folder: 'tests/contract', eachAlone: false, lanes: 2, timeoutMs: 20 * MINUTE_MS, fast: false },
  {
    kind: 'tests',
    name: 'simulation',
    folder: 'tests/sim',
    eachAlone: true,
    lanes: 2,
    timeoutMs: 10 * MINUTE_MS,
    fast: false,
    first: ['sync', 'prune'],
  },
  {
    kind: 'command',
    name: 'damaged data folders',
    command: ['scripts/damage', '--histories', '2000'],
    fast: false,
    long: true,
    timeoutMs: 60 * MINUTE_MS,
  },
  { kind: 'command', name: 'build', command: ['scripts/build', '--check'], fast: false },
  {
    kind: 'tests',
    name: 'end to end',
    folder: 'tests/e2e',
    eachAlone: true,
    lanes: 2,
    timeoutMs: 10 * MINUTE_MS,
    fast: false,
    beside: ['idle'],
  },
  {
    kind: 'tests',
    name: 'end to end on PostgreSQL',
    folder: 'tests/e2e',
    eachAlone: true,
    lanes: 2,
    timeoutMs: 10 * MINUTE_MS,
    fast: false,
    only: isLong ? WITH_SERVER : ON_EACH_STORE,
    beside: ['idle'],
    env: { SKERRY_TEST_STORE: 'postgres' },
  },
]

const root = join(import.meta.dir, '..')
const say = (text: string) => process.stdout.write(text)
const seconds = (sinceMs: number) => `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`

interface Outcome {
  exitCode: number
  output: string
}

/** In a folder of its own for temporary files, so that whatever a test or a killed process leaves is gone with the stage. */
async function run(command: string[], timeoutMs: number, temp?: string, own: Record<string, string> = {}): Promise<Outcome> {
  const child = Bun.spawn(['sh', '-c', 'exec "$@" 2>&1', 'sh', ...command], {
    cwd: root,
    stdin: 'ignore',
    stdout: 'pipe',
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    env: { ...process.env, NO_COLOR: '1', ...(temp === undefined ? {} : { TMPDIR: temp }), ...own },
  })
  const output = await Bun.readableStreamToText(child.stdout)
  const exitCode = await child.exited
  return {
    exitCode,
    output: child.signalCode === null ? output : `${output}\nended by ${child.signalCode}, allowed were ${timeoutMs} ms\n`,
  }
}

function showFailure({ output }: Outcome): void {
  const lines = output.trimEnd().split('\n')
  const shown = lines.slice(-400)
  if (shown.length < lines.length) say(`  | … ${lines.length - shown.length} lines before\n`)
  for (const line of shown) say(`  | ${line}\n`)
}

const testFiles = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: folder !== 'tests', encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .sort()
    .map((file) => `./${folder}/${file}`)

async function runTests(
  name: string,
  files: string[],
  { timeoutMs, env }: { timeoutMs: number; env?: Record<string, string> },
): Promise<Counts> {
  const started = performance.now()
  const temp = mkdtempSync(join(tmpdir(), 'skerry-check-'))
  try {
    const report = join(temp, 'report.xml')
    const outcome = await run(
      ['bun', 'test', ...files, ...PATIENCE, '--reporter=junit', `--reporter-outfile=${report}`],
      timeoutMs,
      temp,
      env,
    )
    const file = Bun.file(report)
    const counts = countsOf((await file.exists()) ? await file.text() : null, outcome.exitCode)
    say(`check: ${name}: ${countsLine(counts)}, ${seconds(started)}\n`)
    if (counts.failed > 0) showFailure(outcome)
    return counts
  } finally {
    rmSync(temp, { recursive: true, force: true })
  }
}

async function runStage(stage: Stage): Promise<Counts> {
  if (stage.kind === 'tests') {
    const { lanes = 1, first = [], beside = [] } = stage
    const nameOf = (file: string) => file.slice(file.lastIndexOf('/') + 1, -'.test.ts'.length)
    const rank = (file: string) => (first.includes(nameOf(file)) ? first.indexOf(nameOf(file)) : first.length)
    const files = testFiles(stage.folder)
      .filter((file) => stage.only?.includes(nameOf(file)) ?? true)
      .sort((a, b) => rank(a) - rank(b))
    if (!stage.eachAlone) {
      const parts = lanes === 1 ? 1 : lanes * PARTS_PER_LANE
      const shares = Array.from({ length: parts }, (_, part) => files.filter((_, index) => index % parts === part))
      return inLanes(
        shares.filter((share) => share.length > 0),
        lanes,
        (share, part) => runTests(parts === 1 ? stage.name : `${stage.name} ${part + 1} of ${parts}`, share, stage),
      )
    }
    const alone = (file: string) => runTests(`${stage.name}: ${nameOf(file)}`, [file], stage)
    const isBeside = (file: string) => beside.includes(nameOf(file))
    const [waiting, others] = await Promise.all([
      inLanes(files.filter(isBeside), beside.length, alone),
      inLanes(
        files.filter((file) => !isBeside(file)),
        lanes,
        alone,
      ),
    ])
    return addCounts(waiting, others)
  }
  const started = performance.now()
  const outcome = await run(stage.command, stage.timeoutMs ?? 15 * MINUTE_MS)
  say(`check: ${stage.name}: ${outcome.exitCode === 0 ? 'ok' : 'FAILED'}, ${seconds(started)}\n`)
  if (outcome.exitCode === 0) return NO_COUNTS
  showFailure(outcome)
  return { ...NO_COUNTS, failed: 1 }
}

const started = performance.now()
let total = NO_COUNTS
const isDue = (stage: Stage) => (stage.fast || !isFast) && (isLong || !(stage.kind === 'command' && stage.long === true))
for (const stage of STAGES.filter(isDue)) total = addCounts(total, await runStage(stage))
say(`check: all stages after ${seconds(started)}\n${countsLine(total)}\n`)
process.exit(total.failed > 0 ? 1 : 0)
