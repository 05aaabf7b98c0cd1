// Plays histories of every kind twice and compares their traces: `scripts/sim --twice`.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isKind, KIND_NAMES } from '../tests/sim/kinds.ts'
import { playTwice, type TwiceReport } from '../tests/sim/twice.ts'

const { values } = parseArgs({
  options: {
    twice: { type: 'boolean', default: true },
    histories: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    kind: { type: 'string' },
    steps: { type: 'string' },
    trace: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const [histories, firstSeed, steps] = [Number(values.histories), Number(values.seed), Number(values.steps ?? 24)]
if (![histories, steps].every((n) => Number.isSafeInteger(n) && n >= 1) || !Number.isSafeInteger(firstSeed) || firstSeed < 0) {
  process.stderr.write('usage: scripts/sim --twice [--histories N] [--seed S] [--kind KIND] [--steps N] [--trace DIR] [--json]\n')
  process.exit(2)
}
if (values.kind !== undefined && !isKind(values.kind)) {
  process.stderr.write(`sim: unknown kind ${JSON.stringify(values.kind)}: use ${KIND_NAMES.join(', ')}\n`)
  process.exit(2)
}
const kinds = values.kind === undefined ? KIND_NAMES : KIND_NAMES.filter((kind) => kind === values.kind)

/** A process that lives through many histories grows. */
const HISTORIES_OF_A_PROCESS = 250

const all = kinds.flatMap((kind) => Array.from({ length: histories }, (_, index) => [kind, firstSeed + index] as const))
const sum: TwiceReport = { differences: [], realUses: [] }
const dir = values.trace ?? mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'skerry-twice-'))
try {
  for (let start = 0; start < all.length; start += HISTORIES_OF_A_PROCESS) {
    const { differences, realUses } = await playTwice({ histories: all.slice(start, start + HISTORIES_OF_A_PROCESS), steps, dir })
    sum.differences.push(...differences)
    sum.realUses.push(...realUses.filter((use) => !sum.realUses.includes(use)))
  }
} finally {
  if (values.trace === undefined) rmSync(dir, { recursive: true, force: true })
}
const lines = [
  `${all.length} histories twice, ${sum.differences.length} differ`,
  ...sum.differences.map(
    ({ kind, seed, line, alone, underLoad }) => `${kind} ${seed}, line ${line}:\n  alone:      ${alone}\n  under load: ${underLoad}`,
  ),
  ...sum.realUses.map((use) => `depends on more than the seed: ${use}`),
]
process.stdout.write(`${values.json ? JSON.stringify({ histories: all.length, ...sum }) : lines.join('\n')}\n`)
process.exit(sum.differences.length + sum.realUses.length > 0 ? 1 : 0)
