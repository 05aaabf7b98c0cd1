// One process of tests/sim/mutations.test.ts: histories of a mutation's kind until one goes wrong, or only the one with
// the seed that it is told. Prints which went wrong, and what was found.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MUTATIONS, type Mutation, type MutationName } from './mutations.ts'
import { simulate } from './simulate.ts'

const mutation: Mutation = MUTATIONS[process.argv[2] as MutationName]
const { histories, options, firstSeed = 1 } = mutation
const only = process.argv[3]
const [first, most] = only === undefined ? [firstSeed, histories] : [Number(only), 1]
let found: { seed: number; what: string } | null = null
for (let seed = first; seed < first + most && found === null; seed++) {
  const dir = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'skerry-sim-'))
  const { broken } = await simulate({ ...options, seed, dir, restMinutes: 30 })
  rmSync(dir, { recursive: true, force: true })
  const [problem] = broken
  if (problem !== undefined) found = { seed, what: `${problem.kind}: ${problem.what}` }
}
process.stdout.write(`${JSON.stringify(found)}\n`)
process.exit(0)
