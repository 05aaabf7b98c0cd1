// Runs seeded histories of sync and prints what happened in them: `scripts/sim --histories 200 --seed 1 --json`.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { noFaults } from '../tests/sim/faults.ts'
import { type SimReport, simulate } from '../tests/sim/simulate.ts'

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
})
const [histories, firstSeed] = [Number(values.histories), Number(values.seed)]
if (!Number.isSafeInteger(histories) || histories < 1 || !Number.isSafeInteger(firstSeed) || firstSeed < 0) {
  process.stderr.write('usage: scripts/sim [--histories N] [--seed S] [--json]\n')
  process.exit(2)
}

const reports: SimReport[] = []
const failures: string[] = []
const startMs = performance.now()
for (let seed = firstSeed; seed < firstSeed + histories; seed++) {
  const dir = mkdtempSync(join(tmpdir(), 'skerry-sim-'))
  try {
    reports.push(await simulate({ seed, dir }))
  } catch (error) {
    failures.push(error instanceof Error ? error.message : String(error))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const faults = noFaults()
const totals: Record<string, number> = {}
for (const { seed: _, faults: met, ...counts } of reports) {
  for (const [fault, count] of Object.entries(met)) faults[fault as keyof typeof faults] += count
  for (const [name, count] of Object.entries(counts)) totals[name] = (totals[name] ?? 0) + count
}
const seconds = Math.round(performance.now() - startMs) / 1000
const summary = { histories, seed: firstSeed, passed: reports.length, failed: failures.length, seconds, ...totals, faults, failures }
const lines = [
  `${reports.length} histories passed, ${failures.length} failed, ${seconds} s`,
  JSON.stringify({ ...totals, faults }),
  ...failures,
]
process.stdout.write(`${values.json ? JSON.stringify(summary) : lines.join('\n')}\n`)
process.exit(failures.length === 0 ? 0 : 1)
