// Runs the stages of scripts/check one after the other (those that mostly wait, two at a time), says how each went and how long it took, and shows the output of those that failed.
// A failed stage does not stop the later ones: CI should tell everything at once.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addCounts, type Counts, countsLine, countsOf, NO_COUNTS } from './check-report.ts'
import { WITH_SERVER } from './end-to-end.ts'

type Stage =
  /** Passes by its exit code alone. */
  | { kind: 'command'; name: string; command: string[]; fast: boolean }
  /** Test files of one folder, in one process, or each in its own because they start clusters. `only`: these of them, by name.
   *  `beside`: these run beside the others, because they wait and hardly do anything. */
  | {
      kind: 'tests'
      name: string
      folder: string
      eachAlone: boolean
      timeoutMs: number
      fast: boolean
      /** So many processes beside each other, each with its share of the files. */
      lanes?: number
      only?: readonly string[]
      beside?: readonly string[]
      /** The next stage runs beside this one: clusters start, links are cut, deadlines pass, and most of the time both wait. */
      withNext?: boolean
      env?: Record<string, string>
    }

const MINUTE_MS = 60_000
const STAGES: readonly Stage[] = [
  { kind: 'command', name: 'format and lint', command: ['biome', 'ci', '--error-on-warnings', '--colors=off'], fast: true },
  { kind: 'command', name: 'types', command: ['tsc', '--noEmit', '-p', '.'], fast: true },
  { kind: 'command', name: 'unused code', command: ['bun', '--bun', 'run', 'knip'], fast: true },
  { kind: 'tests', name: 'structure', folder: 'tests', eachAlone: false, timeoutMs: MINUTE_MS, fast: true },
  { kind: 'tests', name: 'unit', folder: 'tests/unit', eachAlone: false, timeoutMs: 3 * MINUTE_MS, fast: true },
  { kind: 'tests', name: 'contract', folder: 'tests/contract', eachAlone: false, lanes: 2, timeoutMs: 20 * MINUTE_MS, fast: false },
  { kind: 'tests', name: 'simulation', folder: 'tests/sim', eachAlone: false, timeoutMs: 10 * MINUTE_MS, fast: false },
  { kind: 'command', name: 'build', command: ['scripts/build', '--check'], fast: false },
  {
    kind: 'tests',
    name: 'end to end',
    folder: 'tests/e2e',
    eachAlone: true,
    timeoutMs: 10 * MINUTE_MS,
    fast: false,
    beside: ['idle'],
    withNext: true,
  },
  {
    kind: 'tests',
    name: 'end to end on PostgreSQL',
    folder: 'tests/e2e',
    eachAlone: true,
    timeoutMs: 10 * MINUTE_MS,
    fast: false,
    only: WITH_SERVER,
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
    const outcome = await run(['bun', 'test', ...files, '--reporter=junit', `--reporter-outfile=${report}`], timeoutMs, temp, env)
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
    const nameOf = (file: string) => file.slice(file.lastIndexOf('/') + 1, -'.test.ts'.length)
    const files = testFiles(stage.folder).filter((file) => stage.only?.includes(nameOf(file)) ?? true)
    if (!stage.eachAlone) {
      const { lanes = 1 } = stage
      const shares = Array.from({ length: lanes }, (_, lane) => files.filter((_, index) => index % lanes === lane))
      const run = (share: string[], lane: number) =>
        runTests(lanes === 1 ? stage.name : `${stage.name} ${lane + 1} of ${lanes}`, share, stage)
      return (await Promise.all(shares.filter((share) => share.length > 0).map(run))).reduce(addCounts, NO_COUNTS)
    }
    const alone = (file: string) => runTests(`${stage.name}: ${nameOf(file)}`, [file], stage)
    const isBeside = (file: string) => stage.beside?.includes(nameOf(file)) ?? false
    const beside = Promise.all(files.filter(isBeside).map(alone))
    let counts = NO_COUNTS
    for (const file of files.filter((each) => !isBeside(each))) counts = addCounts(counts, await alone(file))
    for (const each of await beside) counts = addCounts(counts, each)
    return counts
  }
  const started = performance.now()
  const outcome = await run(stage.command, 15 * MINUTE_MS)
  say(`check: ${stage.name}: ${outcome.exitCode === 0 ? 'ok' : 'FAILED'}, ${seconds(started)}\n`)
  if (outcome.exitCode === 0) return NO_COUNTS
  showFailure(outcome)
  return { ...NO_COUNTS, failed: 1 }
}

function groupsOf(stages: readonly Stage[]): Stage[][] {
  const groups: Stage[][] = []
  let joins = false
  for (const stage of stages) {
    if (joins) groups.at(-1)?.push(stage)
    else groups.push([stage])
    joins = stage.kind === 'tests' && stage.withNext === true
  }
  return groups
}

const args = process.argv.slice(2)
if (args.some((arg) => arg !== '--fast')) {
  process.stderr.write(`check: unknown argument in: ${args.join(' ')}; there is only --fast\n`)
  process.exit(2)
}
const started = performance.now()
let total = NO_COUNTS
for (const group of groupsOf(STAGES.filter((stage) => stage.fast || !args.includes('--fast')))) {
  for (const counts of await Promise.all(group.map(runStage))) total = addCounts(total, counts)
}
say(`check: all stages after ${seconds(started)}\n${countsLine(total)}\n`)
process.exit(total.failed > 0 ? 1 : 0)
