// Random lives of a site in which much is pruned: nothing is deleted that nobody meant to be deleted. `scripts/sim
// --prune --histories 10000` plays many more.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { inLong } from '../support/extent.ts'
import { PRUNE_MUTATIONS, type PruneMutation } from './prune-mutations.ts'

const ROOT = join(import.meta.dir, '../..')

const LIVES = inLong(200, 100)

const seedOf = (mutation: PruneMutation): number => {
  const found = PRUNE_MUTATIONS[mutation]
  return 'firstSeed' in found ? found.firstSeed : 1
}

/** Of a machine that does much else. A life that never comes to rest ends by itself. */
const PLAY_MS_MAX = 300_000
const TEST_MS_MAX = PLAY_MS_MAX + 10_000

async function play(histories: number, mutation: PruneMutation | null) {
  const child = Bun.spawn(
    [
      process.execPath,
      '--preload',
      join(import.meta.dir, 'prune-mutations.ts'),
      join(ROOT, 'scripts/prune-sim.ts'),
      '--part',
      '--first',
      '--histories',
      String(histories),
      '--seed',
      String(mutation === null ? 1 : seedOf(mutation)),
    ],
    {
      env: { ...process.env, SKERRY_PRUNE_MUTATION: mutation ?? '' },
      stdout: 'pipe',
      stderr: 'pipe',
      timeout: PLAY_MS_MAX,
      killSignal: 'SIGKILL',
    },
  )
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  await child.exited
  if (out === '') throw new Error(`ended by ${child.signalCode ?? child.exitCode}: ${err}`)
  return JSON.parse(out) as {
    deletes: number
    let_go: number
    crashes: number
    rows_with_handover: number
    broken: Array<{ seed: number; what: string }>
  }
}

test(
  'PR1, PR2, PR3, PR6, PR7, PR8, IV4, RV1 in random lives nothing is deleted that nobody meant to be deleted',
  async () => {
    const sum = await play(LIVES, null)
    expect(sum.broken).toEqual([])
    expect(sum.deletes).toBeGreaterThan(2.5 * LIVES)
    for (const often of [sum.let_go, sum.crashes, sum.rows_with_handover]) expect(often).toBeGreaterThan(LIVES / 4)
  },
  TEST_MS_MAX,
)

test.each(Object.keys(PRUNE_MUTATIONS) as PruneMutation[])(
  'PR1, PR8, EC1 it is found when %s',
  async (name) => {
    const { broken } = await play(300, name)
    expect(broken.filter(({ what }) => what.includes('was deleted'))).not.toEqual([])
  },
  TEST_MS_MAX,
)
