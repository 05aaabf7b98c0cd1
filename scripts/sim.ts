// Plays seeded histories of sync and prints what happened in them. `scripts/sim --help` lists the options.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { noFaults } from '../tests/sim/fault-kinds.ts'
import { type SimReport, simulate } from '../tests/sim/simulate.ts'
import { startLoad } from '../tests/sim/twice.ts'
import { failureText } from '../tests/support/trace.ts'
import { linesOf } from './lines-of.ts'

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    processes: { type: 'string', default: '2' },
    steps: { type: 'string' },
    /** Folder for the trace of each history. */
    trace: { type: 'string' },
    /** Beside loops that take the processors. */
    load: { type: 'boolean', default: false },
    /** Set in a process that runs a part: each history is one line of output. */
    part: { type: 'boolean', default: false },
  },
})
const [histories, firstSeed, processes] = [Number(values.histories), Number(values.seed), Number(values.processes)]
const steps = values.steps === undefined ? undefined : Number(values.steps)
if (
  ![histories, processes, steps ?? 1].every((n) => Number.isSafeInteger(n) && n >= 1) ||
  !Number.isSafeInteger(firstSeed) ||
  firstSeed < 0
) {
  process.stderr.write('usage: scripts/sim [--histories N] [--seed S] [--steps N] [--processes N] [--trace DIR] [--load] [--json]\n')
  process.exit(2)
}

/** Histories are about files, not about disks. */
const ramDisk = '/dev/shm'
const base = existsSync(ramDisk) ? ramDisk : tmpdir()

/** A report as one line of JSON. */
interface Played extends Omit<SimReport, 'trace'> {
  /** The description of a history that went wrong, for people; otherwise empty. */
  failure: string
}

async function runHere(): Promise<Played[]> {
  const reports: Played[] = []
  if (values.trace !== undefined) mkdirSync(values.trace, { recursive: true })
  for (let seed = firstSeed; seed < firstSeed + histories; seed++) {
    const dir = mkdtempSync(join(base, 'skerry-sim-'))
    try {
      const { trace, ...counts } = await simulate({ seed, dir, ...(steps === undefined ? {} : { steps }) })
      const problems = counts.broken.map(({ kind, what }) => `${kind}: ${what}`)
      const report = { ...counts, failure: problems.length === 0 ? '' : failureText(seed, problems, trace) }
      reports.push(report)
      if (values.trace !== undefined) writeFileSync(join(values.trace, `sync-${seed}`), `${trace.lines().join('\n')}\n`)
      if (values.part) process.stdout.write(`${JSON.stringify(report)}\n`)
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  }
  return reports
}

let done = 0
let toldMs = performance.now()
const PROGRESS_MS = 15_000

function tellProgress(): void {
  done++
  if (performance.now() - toldMs < PROGRESS_MS) return
  toldMs = performance.now()
  process.stderr.write(`  ${done} of ${histories} histories\n`)
}

const passedOn = (['steps', 'trace'] as const).flatMap((name) => (values[name] === undefined ? [] : [`--${name}`, values[name]]))

/**
 * A killed agent closes nothing, so a process with many histories grows: after this number another process continues.
 */
const HISTORIES_OF_A_PROCESS = 500

async function runInProcesses(): Promise<Played[]> {
  const size = Math.min(HISTORIES_OF_A_PROCESS, Math.ceil(histories / processes))
  let next = 0
  const worker = async (): Promise<Played[]> => {
    const reports: Played[] = []
    while (next < histories) {
      const [from, count] = [firstSeed + next, Math.min(size, histories - next)]
      next += count
      const args = ['--part', '--histories', String(count), '--seed', String(from), '--processes', '1', ...passedOn]
      const child = Bun.spawn([process.execPath, import.meta.path, ...args], { stdout: 'pipe', stderr: 'inherit' })
      for await (const line of linesOf(child.stdout)) {
        reports.push(JSON.parse(line) as Played)
        tellProgress()
      }
      if ((await child.exited) !== 0) throw new Error('a part of the histories did not end')
    }
    return reports
  }
  const parts = Array.from({ length: processes }, worker)
  return (await Promise.all(parts)).flat()
}

/** Seldom a pause: as a machine on which other work runs. */
const LOAD = { busyMs: 50, pauseMs: 5, forMs: 86_400_000 }

const startMs = performance.now()
const endLoad = values.load ? startLoad(LOAD) : () => {}
process.on('exit', endLoad)
const reports = values.part || processes === 1 || histories < 4 ? await runHere() : await runInProcesses()
if (!values.part) {
  const faults = noFaults()
  const totals: Record<string, number> = {}
  const kinds = { diverged: 0, unintended_deletes: 0, lost_status: 0 }
  const failures: string[] = []
  for (const { seed: _, faults: met, broken, failure, ...counts } of reports) {
    for (const [fault, count] of Object.entries(met)) faults[fault as keyof typeof faults] += count
    for (const [name, count] of Object.entries(counts))
      totals[name] = name.startsWith('largest') ? Math.max(totals[name] ?? 0, count) : (totals[name] ?? 0) + count
    for (const { kind } of broken) {
      if (kind === 'unintended_delete') kinds.unintended_deletes++
      else if (kind === 'lost_status') kinds.lost_status++
      else kinds.diverged++
    }
    if (broken.length > 0) failures.push(failure)
  }
  const seconds = Math.round(performance.now() - startMs) / 1000
  const failed = reports.filter(({ broken }) => broken.length > 0).map(({ seed }) => seed)
  const summary = { histories, seed: firstSeed, faults_by_kind: faults, ...kinds, seeds_failed: failed, seconds, ...totals, failures }
  const lines = [
    `${reports.length - failed.length} histories passed, ${failed.length} failed, ${seconds} s`,
    JSON.stringify({ ...totals, faults }),
    ...failures,
  ]
  process.stdout.write(`${values.json ? JSON.stringify(summary) : lines.join('\n')}\n`)
  process.exit(failed.length === 0 ? 0 : 1)
}
