// A simulation that finds nothing may be blind. Each of these mistakes is made on purpose, and must be found; without
// it the same histories are well.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { MUTATION_NAMES, type MutationName } from './mutations.ts'

/** In most of them the mistake shows in the first few. */
const HISTORIES_WELL = 8

async function run(name: MutationName, mutated: boolean): Promise<{ seed: number; what: string } | null> {
  const most = mutated ? [] : [String(HISTORIES_WELL)]
  const child = Bun.spawn(
    [process.execPath, '--preload', join(import.meta.dir, 'mutate.ts'), join(import.meta.dir, 'mutant-run.ts'), name, ...most],
    {
      env: { ...process.env, SKERRY_SIM_MUTATION: mutated ? name : '' },
      stdout: 'pipe',
      stderr: 'pipe',
    },
  )
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(err)
  return JSON.parse(out) as { seed: number; what: string } | null
}

test.each(MUTATION_NAMES)(
  'CU4 PL3 PL5 PL9 PU2 IV5 it is found when %s',
  async (name) => {
    expect(await run(name, true)).not.toBeNull()
  },
  120_000,
)

test('the histories in which they show are well without them', async () => {
  expect(await Promise.all(MUTATION_NAMES.slice(0, 3).map((name) => run(name, false)))).toEqual([null, null, null])
  expect(await Promise.all(MUTATION_NAMES.slice(3).map((name) => run(name, false)))).toEqual(MUTATION_NAMES.slice(3).map(() => null))
}, 240_000)
