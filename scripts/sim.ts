// Runs seeded histories of sync and prints what happened in them: `scripts/sim --histories 200 --seed 1 --json`. Each core does a part of them.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { noFaults } from '../tests/sim/fault-kinds.ts'
import { type SimReport, simulate } from '../tests/sim/simulate.ts'

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    processes: { type: 'string', default: '2' },
    /** Of a process that does a part: each history is one line. */
    part: { type: 'boolean', default: false },
    /** Prints the last lines of the history. */
    trace: { type: 'boolean', default: false },
  },
})
const [histories, firstSeed, processes] = [Number(values.histories), Number(values.seed), Number(values.processes)]
if (![histories, processes].every((n) => Number.isSafeInteger(n) && n >= 1) || !Number.isSafeInteger(firstSeed) || firstSeed < 0) {
  process.stderr.write('usage: scripts/sim [--histories N] [--seed S] [--processes N] [--json] [--trace]\n')
  process.exit(2)
}

/** Histories are about files, not about disks. */
const ramDisk = '/dev/shm'
const base = existsSync(ramDisk) ? ramDisk : tmpdir()

async function runHere(): Promise<SimReport[]> {
  const reports: SimReport[] = []
  for (let seed = firstSeed; seed < firstSeed + histories; seed++) {
    const dir = mkdtempSync(join(base, 'skerry-sim-'))
    try {
      const report = await simulate({ seed, dir })
      reports.push(report)
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

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncIterable<string> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}

/** A killed agent closes nothing, so a process that lives through many histories grows: after so many another one goes on. */
const HISTORIES_OF_A_PROCESS = 500

async function runInProcesses(): Promise<SimReport[]> {
  const size = Math.min(HISTORIES_OF_A_PROCESS, Math.ceil(histories / processes))
  let next = 0
  const worker = async (): Promise<SimReport[]> => {
    const reports: SimReport[] = []
    while (next < histories) {
      const [from, count] = [firstSeed + next, Math.min(size, histories - next)]
      next += count
      const args = ['--part', '--histories', String(count), '--seed', String(from), '--processes', '1']
      const child = Bun.spawn([process.execPath, import.meta.path, ...args], { stdout: 'pipe', stderr: 'inherit' })
      for await (const line of linesOf(child.stdout)) {
        reports.push(JSON.parse(line) as SimReport)
        tellProgress()
      }
      if ((await child.exited) !== 0) throw new Error('a part of the histories did not end')
    }
    return reports
  }
  const parts = Array.from({ length: processes }, worker)
  return (await Promise.all(parts)).flat()
}

const startMs = performance.now()
const reports = values.part || processes === 1 || histories < 4 ? await runHere() : await runInProcesses()
if (!values.part) {
  const faults = noFaults()
  const totals: Record<string, number> = {}
  const kinds = { diverged: 0, unintended_deletes: 0, lost_status: 0 }
  const failures: string[] = []
  for (const { seed, faults: met, broken, trace: _, tail, ...counts } of reports) {
    for (const [fault, count] of Object.entries(met)) faults[fault as keyof typeof faults] += count
    for (const [name, count] of Object.entries(counts))
      totals[name] = name.startsWith('largest') ? Math.max(totals[name] ?? 0, count) : (totals[name] ?? 0) + count
    for (const { kind } of broken) {
      if (kind === 'unintended_delete') kinds.unintended_deletes++
      else if (kind === 'lost_status') kinds.lost_status++
      else kinds.diverged++
    }
    if (broken.length > 0)
      failures.push(
        `seed ${seed}: ${broken.map(({ kind, what }) => `${kind}: ${what}`).join('\n    ')}${values.trace ? `\n  ${tail.join('\n  ')}` : ''}`,
      )
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
