// Compiled programs of earlier builds become those of this one, server first and agents first: no change is missed and
// nothing is written twice.
import { expect, test } from 'bun:test'
import { EARLIER, earlierBuild, lacksEarlier, startUpgradeRun, THIS_BUILD } from '../../scripts/benchmarks/upgrade-run.ts'

/** Number of agents. Each has a real API server, which takes 280 MB and two seconds of a processor to start: 50 of them
 *  want 20 GB. */
const ASKED = process.env['SKERRY_UPGRADE_AGENTS']

const VARIANTS = [
  ['the previous build, server first', Number(ASKED ?? 10), EARLIER.previous, ['skerry', 'skerry-agent']],
  ['the previous build, agents first', Number(ASKED ?? 4), EARLIER.previous, ['skerry-agent', 'skerry']],
  ['the build before it, server first', 4, EARLIER.before, ['skerry', 'skerry-agent']],
  ['the build before it, agents first', 4, EARLIER.before, ['skerry-agent', 'skerry']],
] as const

for (const [what, agents, commit, halves] of VARIANTS) {
  const lack = lacksEarlier(commit)
  test.skipIf(lack !== null)(
    `IK20 ${what}, ${agents} agents: every change arrives, and no agent writes an unchanged document${lack === null ? '' : ` (${lack})`}`,
    async () => {
      const earlier = earlierBuild(commit)
      const run = await startUpgradeRun({ agents, server: earlier, agent: earlier })
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
        expect([...written, run.writes()]).toEqual([0, agents, 0, agents, agents])
        await run.stopServer()
        const { code, log } = await run.tryServer(earlier)
        expect(code).not.toBe(0)
        expect(log).toMatch(/it has schema \d+/)
      } finally {
        await run.stop()
      }
    },
    300_000 + agents * 24_000,
  )
}
