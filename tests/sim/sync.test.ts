import { expect, test } from 'bun:test'
import { tempDir } from '../support/temp-dir.ts'
import { FAULTS, noFaults } from './faults.ts'
import { type SimReport, simulate } from './simulate.ts'

const HISTORIES = 45
/** Another day, other histories; a failure prints its seed, and `scripts/sim --seed N` repeats it. */
const FIRST_SEED = Math.floor(Date.now() / 86_400_000) * 1_000

test('CU4 PL5 PL7 PU2 RP1 whatever the network, the disk and the kernel do, every replica ends as its cluster’s rows and no status is lost', async () => {
  const reports: SimReport[] = []
  for (let index = 0; index < HISTORIES; index++) reports.push(await simulate({ seed: FIRST_SEED + index, dir: tempDir() }))
  // A simulation in which nothing happened proves nothing.
  const total = (count: (report: SimReport) => number) => reports.reduce((sum, report) => sum + count(report), 0)
  const met = noFaults()
  for (const fault of FAULTS) met[fault] = total(({ faults }) => faults[fault])
  expect(Object.entries(met).filter(([, count]) => count === 0)).toEqual([])
  for (const work of ['revisions', 'pages', 'statuses', 'agentKills', 'serverKills', 'rebuilds', 'rogueEdits', 'damagedFiles'] as const) {
    expect([work, total((report) => report[work]) > 0]).toEqual([work, true])
  }
  expect(total(({ revisions }) => revisions)).toBeGreaterThan(HISTORIES * 5)
}, 60_000)

test('seed 1088: a bent byte in a session token made a header that no request could carry, for half an hour (PL10)', () => repeat(1088))
test('seed 1135: an old answer to a push was taken for the answer to this one, and a status was lost (PU5)', () => repeat(1135))
test('seed 1159: the same token, met while the first page was fetched (PL8)', () => repeat(1159))

const repeat = async (seed: number) => {
  expect((await simulate({ seed, dir: tempDir() })).pages).toBeGreaterThan(0)
}
