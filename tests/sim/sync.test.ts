import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FAULT_KINDS, noFaults } from './fault-kinds.ts'
import { type SimOptions, type SimReport, simulate } from './simulate.ts'

const HISTORIES = 200
/** Another day, other histories; a failure prints its seed, and `scripts/sim --seed N --histories 1 --trace` tells its story. */
const FIRST_SEED = Math.floor(Date.now() / 86_400_000) * 1_000

/** Histories are about files, not about disks. */
async function live(options: Omit<SimOptions, 'dir'>): Promise<SimReport> {
  const dir = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'skerry-sim-'))
  try {
    return await simulate({ ...options, dir })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

test('CU4 PL5 PL7 PU2 RP1 RC8 whatever network, disks, servers and clusters do, every site ends as its rows, no status is lost and nothing is deleted that nobody dropped', async () => {
  const met = noFaults()
  const failed: string[] = []
  let deletes = 0
  for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed++) {
    const { faults, broken, deletes: deleted } = await live({ seed })
    for (const kind of FAULT_KINDS) met[kind] += faults[kind]
    deletes += deleted
    if (broken.length > 0) failed.push(`seed ${seed}: ${broken.map(({ kind, what }) => `${kind}: ${what}`).join('; ')}`)
  }
  expect(failed).toEqual([])
  // A simulation in which nothing happened proves nothing.
  expect(FAULT_KINDS.filter((kind) => met[kind] === 0)).toEqual([])
  expect(deletes).toBeGreaterThan(HISTORIES / 10)
}, 180_000)

test('the same seed is the same history, to the last request', async () => {
  for (const seed of [1, 2, 3, 4, 5, 6]) expect((await live({ seed })).trace).toBe((await live({ seed })).trace)
}, 60_000)
