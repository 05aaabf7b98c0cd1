// One process of tests/sim/mutations.test.ts: histories of a mutation's kind until one goes wrong, as many as it is
// told at most. Prints which, and what was found.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MUTATIONS, type Mutation, type MutationName } from './mutations.ts'
import { simulate } from './simulate.ts'

const mutation: Mutation = MUTATIONS[process.argv[2] as MutationName]
const { histories, options, firstSeed = 1 } = mutation
const most = Math.min(histories, Number(process.argv[3] ?? histories))
let found: { seed: number; what: string } | null = null
for (let seed = firstSeed; seed < firstSeed + most && found === null; seed++) {
  const dir = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'skerry-sim-'))
  const { broken } = await simulate({ ...options, seed, dir, restMinutes: 30 })
  rmSync(dir, { recursive: true, force: true })
  const [first] = broken
  if (first !== undefined) found = { seed, what: `${first.kind}: ${first.what}` }
}
process.stdout.write(`${JSON.stringify(found)}\n`)
process.exit(0)
