// Runs the jobs of scripts/check in lanes, says how each went and how long it took, and shows the output of those that
// failed. A failed job does not stop the later ones: CI should tell everything at once.
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Extent, type Job, quickJobs, slowJobs, type TestFiles } from './check-jobs.ts'
import { addCounts, type Counts, countsLine, countsOf, type Duration, durationsOf, inLanes, NO_COUNTS, slowest } from './check-report.ts'

const EXTENTS: Readonly<Record<string, Extent>> = { '--fast': 'fast', '--long': 'long' }
const args = process.argv.slice(2)
const record = args.includes('--record')
const words = args.filter((arg) => arg !== '--record')
const asked = words.length === 0 ? 'whole' : words.length === 1 ? EXTENTS[words[0] ?? ''] : undefined
if (asked === undefined) {
  process.stderr.write(`check: cannot take ${args.join(' ')}; there are --fast and --long, one of them at a time, and --record\n`)
  process.exit(2)
}
const extent: Extent = asked

const root = join(import.meta.dir, '..')
/** Processor cores of the smallest machine that it is meant for. */
const CORES = 2
/**
 * Jobs with clusters, servers and agents use about two thirds of a core each: they wait for time and for each other.
 */
const SLOW_LANES = 3
/** Time limit of a test that sets none itself: tests wait for real programs that share two cores with those of the
 *  other lane. */
const PATIENCE = ['--timeout', '20000']
/** Seconds of each test file, as `scripts/check --record` measured them: what is long begins first. */
const durationsFile = Bun.file(join(root, 'tests/durations.json'))
const SLOWEST_SHOWN = 10
/** A file that takes less is not worth a line in the table of durations. */
const RECORDED_FROM_SECONDS = 2

const say = (text: string) => process.stdout.write(text)
const secondsSince = (startedMs: number) => (performance.now() - startedMs) / 1000
const inSeconds = (seconds: number) => `${seconds.toFixed(1)} s`
const took = (startedMs: number, { processorSeconds }: Outcome) =>
  `${inSeconds(secondsSince(startedMs))} (processor ${inSeconds(processorSeconds)})`

interface Outcome {
  exitCode: number
  output: string
  /** Processor seconds of the process and of what it started and waited for. */
  processorSeconds: number
}

/** In a folder of its own for temporary files, so that whatever a test or a killed process leaves is gone with the job.
 */
async function run(
  command: readonly string[],
  timeoutMs: number,
  temp: string,
  own: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const child = Bun.spawn(['sh', '-c', 'exec "$@" 2>&1', 'sh', ...command], {
    cwd: root,
    stdin: 'ignore',
    stdout: 'pipe',
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    env: { ...process.env, NO_COLOR: '1', TMPDIR: temp, SKERRY_TEST_EXTENT: extent, ...own },
  })
  const output = await Bun.readableStreamToText(child.stdout)
  const exitCode = await child.exited
  return {
    exitCode,
    processorSeconds: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6,
    output: child.signalCode === null ? output : `${output}\nended by ${child.signalCode}, allowed were ${timeoutMs} ms\n`,
  }
}

function showFailure({ output }: Outcome): void {
  const lines = output.trimEnd().split('\n')
  const shown = lines.slice(-400)
  if (shown.length < lines.length) say(`  | … ${lines.length - shown.length} lines before\n`)
  for (const line of shown) say(`  | ${line}\n`)
}

const testDurations: Duration[] = []
const fileDurations: Duration[] = []

async function runJob({ name, command, files = [], env, timeoutMs }: Job): Promise<Counts> {
  const started = performance.now()
  const temp = mkdtempSync(join(tmpdir(), 'skerry-check-'))
  try {
    if (command !== undefined) {
      const outcome = await run(command, timeoutMs, temp, env)
      say(`check: ${name}: ${outcome.exitCode === 0 ? 'ok' : 'FAILED'}, ${took(started, outcome)}\n`)
      if (outcome.exitCode === 0) return NO_COUNTS
      showFailure(outcome)
      return { ...NO_COUNTS, failed: 1 }
    }
    const report = join(temp, 'report.xml')
    const test = ['bun', 'test', ...files.map((file) => `./${file}`), ...PATIENCE, '--reporter=junit', `--reporter-outfile=${report}`]
    const outcome = await run(test, timeoutMs, temp, env)
    const text = (await Bun.file(report).exists()) ? await Bun.file(report).text() : null
    const counts = countsOf(text, outcome.exitCode)
    const durations = durationsOf(text ?? '')
    const isSqlite = env?.['SKERRY_TEST_STORE'] === undefined
    testDurations.push(...durations.tests.map((test) => (isSqlite ? test : { ...test, name: `${test.name} (PostgreSQL)` })))
    fileDurations.push(...durations.files)
    say(`check: ${name}: ${countsLine(counts)}, ${took(started, outcome)}\n`)
    if (counts.failed > 0) showFailure(outcome)
    return counts
  } finally {
    rmSync(temp, { recursive: true, force: true })
  }
}

const testFiles = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: folder !== 'tests', encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .sort()
    .map((file) => `${folder}/${file}`)

async function runAll(): Promise<Counts> {
  const files: TestFiles = {
    structure: testFiles('tests'),
    unit: testFiles('tests/unit'),
    contract: testFiles('tests/contract'),
    simulation: testFiles('tests/sim'),
    endToEnd: testFiles('tests/e2e'),
    seconds: await durationsFile.json(),
  }
  const quick = await inLanes(quickJobs(files), Array(CORES).fill({}), runJob)
  if (extent === 'fast') return quick
  let isBuilt = false
  const runSlow = async (job: Job) => {
    const counts = await runJob(job)
    if (job.name === 'build') isBuilt = true
    return counts
  }
  const isBeside = (job: Job) => job.beside === true
  const lanes = [{ takes: isBeside }, ...Array(SLOW_LANES).fill({ takes: (job: Job) => !isBeside(job) })]
  const slow = await inLanes(slowJobs(files, extent), lanes, runSlow, (job) => isBuilt || job.needsBuild !== true)
  return addCounts(quick, slow)
}

const started = performance.now()
const total = await runAll()
say(`check: the slowest tests:\n`)
for (const { name, seconds } of slowest(testDurations, SLOWEST_SHOWN)) say(`check:   ${inSeconds(seconds).padStart(7)}  ${name}\n`)
if (record) {
  const held = (await durationsFile.json()) as Record<string, number>
  const measured = Object.fromEntries(fileDurations.map(({ name, seconds }) => [name, Math.round(seconds)]))
  const all = Object.entries({ ...held, ...measured }).map(([name, seconds]) => ({ name, seconds }))
  const worth = all.filter(({ name, seconds }) => seconds >= RECORDED_FROM_SECONDS && existsSync(join(root, name)))
  const table = Object.fromEntries(slowest(worth, worth.length).map(({ name, seconds }) => [name, seconds]))
  await Bun.write(durationsFile, `${JSON.stringify(table, null, 2)}\n`)
}
if (total.skipped > 0) say(`check: ${total.skipped} skipped\n`)
say(`check: all stages after ${inSeconds(secondsSince(started))}\n${countsLine(total)}\n`)
process.exit(total.failed > 0 ? 1 : 0)
