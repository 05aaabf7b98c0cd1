import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inLong } from '../support/extent.ts'
import { failureText } from '../support/trace.ts'
import { FAULT_KINDS, noFaults } from './fault-kinds.ts'
import { type SimOptions, type SimReport, simulate } from './simulate.ts'

const HISTORIES = inLong(300, 75)
/** Always the same ones: a change that breaks one is found by the change, not by the day. `scripts/sim --seed N` looks
 *  for new ones. */
const FIRST_SEED = 21_600

/** Histories are about files, not about disks. */
async function live(options: Omit<SimOptions, 'dir'>): Promise<SimReport> {
  const dir = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'skerry-sim-'))
  try {
    return await simulate({ ...options, dir })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const failureOf = ({ seed, broken, trace }: SimReport): string[] => {
  const problems = broken.map(({ kind, what }) => `${kind}: ${what}`)
  return problems.length === 0 ? [] : [failureText(seed, problems, trace)]
}

test('CU4 PL5 PL7 PU2 RP1 RC8 whatever network, disks, servers and clusters do, every site ends as its rows, no status is lost and nothing is deleted that nobody dropped', async () => {
  const met = noFaults()
  const failed: string[] = []
  let deletes = 0
  for (let seed = FIRST_SEED; seed < FIRST_SEED + HISTORIES; seed++) {
    const report = await live({ seed })
    for (const kind of FAULT_KINDS) met[kind] += report.faults[kind]
    deletes += report.deletes
    failed.push(...failureOf(report))
  }
  expect(failed).toEqual([])
  // A simulation in which nothing happened proves nothing.
  expect(FAULT_KINDS.filter((kind) => met[kind] === 0)).toEqual([])
  expect(deletes).toBeGreaterThan(HISTORIES / 10)
}, 480_000)

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
      failed.push(...failureOf(await live({ seed, weights: { ...ORDINARY, ...weights } })))
    }
    expect(failed).toEqual([])
  },
  60_000,
)

test('PR13 seed 80: a server and an agent whose disks came back older together pruned what neither of them had ever heard of', async () => {
  const setBack = { backup: 8, 'restore server': 6, snapshot: 4, 'agent set back': 6, 'power loss agent': 6, 'power loss server': 4 }
  const weights = { publish: 30, wait: 10, operate: 5, weather: 6, 'start agent': 8, 'start server': 8, ...setBack }
  expect(failureOf(await live({ seed: 80, weights, restMinutes: 30 }))).toEqual([])
}, 60_000)
