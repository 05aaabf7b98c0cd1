// A simulation that finds nothing may be blind. Each of these mistakes is made on purpose, and must be found; without
// it the history that showed it is well.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { MUTATION_NAMES, type MutationName } from './mutations.ts'

/** `well`: only the history with this seed, without the mistake. */
async function run(name: MutationName, well?: number): Promise<{ seed: number; what: string } | null> {
  const only = well === undefined ? [] : [String(well)]
  const child = Bun.spawn(
    [process.execPath, '--preload', join(import.meta.dir, 'mutate.ts'), join(import.meta.dir, 'mutant-run.ts'), name, ...only],
    {
      env: { ...process.env, SKERRY_SIM_MUTATION: well === undefined ? name : '' },
      stdout: 'pipe',
      stderr: 'pipe',
    },
  )
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(err)
  return JSON.parse(out) as { seed: number; what: string } | null
}

test.each(MUTATION_NAMES)(
  'CU4 PL3 PL5 PL9 PU2 IV5 it is found when %s, in a history that is well without the mistake',
  async (name) => {
    const found = await run(name)
    if (found === null) throw new Error('not found')
    expect(await run(name, found.seed)).toBeNull()
  },
  120_000,
)
