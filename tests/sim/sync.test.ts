import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FAULT_KINDS, noFaults } from './fault-kinds.ts'
import { type SimOptions, type SimReport, simulate } from './simulate.ts'

const HISTORIES = 300
/** Always the same ones: a change that breaks one is found by the change, not by the day. `scripts/sim --seed N` looks for new ones. */
const FIRST_SEED = 21_000

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

const ORDINARY = { publish: 30, wait: 10, operate: 5, 'start agent': 10, 'start server': 10, drift: 5 }

/** What the simulation found once, each with more of its kind than chance would bring. */
test.each([
  [
    'CM3 copies of one agent had the same claim, both enforced, and the one with the older rows deleted what the newer ones brought',
    { 'two agents': 8, 'stop clone': 4, weather: 4 },
  ],
  [
    'PR7 an agent whose disk came back older pruned what its old rows had never heard of',
    { 'power loss agent': 8, 'agent set back': 8, snapshot: 4, weather: 4 },
  ],
  ['RP4 a report of the cluster that found no space ended the agent', { 'disk full agent': 12, kube: 6, 'kill agent': 6 }],
  ['RC17 after its clock was set back an agent waited years for its next try', { 'agent clock': 12, kube: 12 }],
  [
    'PU7 a push to a server that was set back hid that the one before it was lost',
    { 'restore server': 5, backup: 6, 'fork server': 2, 'cross over': 4 },
  ],
] as const)(
  '%s',
  async (_, weights) => {
    const failed: string[] = []
    for (let seed = 1; seed <= 12; seed++) {
      const { broken } = await live({ seed, weights: { ...ORDINARY, ...weights } })
      if (broken.length > 0) failed.push(`seed ${seed}: ${broken.map(({ kind, what }) => `${kind}: ${what}`).join('; ')}`)
    }
    expect(failed).toEqual([])
  },
  60_000,
)
