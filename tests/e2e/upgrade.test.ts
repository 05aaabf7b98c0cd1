// Compiled programs of earlier builds become those of this one, server first and agents first: no change is missed and nothing is written twice.
import { expect, test } from 'bun:test'
import { EARLIER, earlierBuild, startUpgradeRun, THIS_BUILD } from '../../scripts/benchmarks/upgrade-run.ts'

const AGENTS = 4

test.each([
  ['the previous build, server first', EARLIER.previous, ['skerry', 'skerry-agent']],
  ['the previous build, agents first', EARLIER.previous, ['skerry-agent', 'skerry']],
  ['the build before it, server first', EARLIER.before, ['skerry', 'skerry-agent']],
] as const)(
  'IK12 %s: every change arrives, and no agent writes an unchanged document',
  async (_, commit, halves) => {
    const earlier = earlierBuild(commit)
    const run = await startUpgradeRun({ agents: AGENTS, server: earlier, agent: earlier })
    try {
      const written: number[] = []
      for (const half of halves) {
        await run.replace(half, THIS_BUILD)
        written.push(run.writes())
        await run.change(`after ${half}`)
        written.push(run.writes())
      }
      // A commit while there is no server.
      await run.change('last', async () => {
        await run.stopServer()
        await Bun.sleep(500)
        await run.startServer()
      })
      expect([...written, run.writes()]).toEqual([0, AGENTS, 0, AGENTS, AGENTS])
      await run.stopServer()
      const { code, log } = await run.tryServer(earlier)
      expect(code).not.toBe(0)
      expect(log).toContain('schema')
    } finally {
      await run.stop()
    }
  },
  400_000,
)
