// Plays seeded histories of pruning: `scripts/sim --prune`. Exit code 1 after an unintended deletion.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { describeError } from '../shared/runtime/loop.ts'
import type { PruneReport } from '../tests/sim/prune-history.ts'
import { pruneHistory } from '../tests/sim/prune-sim.ts'
import { failureText } from '../tests/support/trace.ts'

const { values } = parseArgs({
  options: {
    prune: { type: 'boolean', default: true },
    histories: { type: 'string', default: '500' },
    seed: { type: 'string', default: '1' },
    processes: { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
    /** Folder for the trace of each history. */
    trace: { type: 'string' },
    /** Set in a process that runs a part. */
    part: { type: 'boolean', default: false },
    /** Ends at the first that is wrong. */
    first: { type: 'boolean', default: false },
  },
})
const [histories, firstSeed, processes] = [Number(values.histories), Number(values.seed), Number(values.processes)]
const HISTORIES_OF_A_PROCESS = 250
const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

interface Sum {
  histories: number
  deletes: number
  let_go: number
  crashes: number
  rows_with_handover: number
  broken: Array<{ seed: number; what: string }>
}
const nothing = (): Sum => ({ histories: 0, deletes: 0, let_go: 0, crashes: 0, rows_with_handover: 0, broken: [] })

function add(sum: Sum, { deletes, orphans, crashes, handovers, broken, seed }: PruneReport): void {
  sum.histories += 1
  sum.deletes += deletes
  sum.let_go += orphans
  sum.crashes += crashes
  sum.rows_with_handover += handovers
  for (const what of broken) sum.broken.push({ seed, what })
}

async function runHere(): Promise<Sum> {
  const sum = nothing()
  if (values.trace !== undefined) mkdirSync(values.trace, { recursive: true })
  for (let seed = firstSeed; seed < firstSeed + histories; seed += 1) {
    const dir = mkdtempSync(join(base, 'skerry-prune-'))
    try {
      const report = await pruneHistory(seed, dir)
      add(sum, report)
      if (values.trace !== undefined) writeFileSync(join(values.trace, `prune-${seed}`), `${report.trace.lines().join('\n')}\n`)
      if (report.broken.length > 0) process.stderr.write(`${failureText(seed, report.broken, report.trace)}\n`)
    } catch (error) {
      sum.broken.push({ seed, what: describeError(error) })
      process.stderr.write(`${describeError(error)}\n`)
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
    if (values.first && sum.broken.length > 0) break
  }
  return sum
}

/** A crashed agent frees nothing: after some histories another process continues. */
async function runInProcesses(): Promise<Sum> {
  const sum = nothing()
  let next = 0
  const worker = async () => {
    while (next < histories) {
      const [from, count] = [firstSeed + next, Math.min(HISTORIES_OF_A_PROCESS, histories - next)]
      next += count
      const args = [
        '--part',
        '--histories',
        String(count),
        '--seed',
        String(from),
        ...(values.trace === undefined ? [] : ['--trace', values.trace]),
      ]
      const child = Bun.spawn([process.execPath, import.meta.path, ...args], { stdout: 'pipe', stderr: 'inherit' })
      const part = JSON.parse(await new Response(child.stdout).text()) as Sum
      for (const key of ['histories', 'deletes', 'let_go', 'crashes', 'rows_with_handover'] as const) sum[key] += part[key]
      sum.broken.push(...part.broken)
    }
  }
  await Promise.all(Array.from({ length: processes }, worker))
  return sum
}

const sum = values.part || values.first ? await runHere() : await runInProcesses()
if (values.json || values.part || values.first) process.stdout.write(`${JSON.stringify({ ...sum, unintended: sum.broken.length })}\n`)
else process.stdout.write(`${sum.histories} histories, ${sum.deletes} deletes, ${sum.broken.length} unintended\n`)
process.exit(!values.part && sum.broken.length > 0 ? 1 : 0)
