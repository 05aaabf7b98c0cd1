// The whole chain, live: two real clusters, a Git server, a Skerry server, two agents, and the story that the README
// tells, with measured times.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type DemoPlan, planDemo } from './demo-story/plan.ts'
import { tellStory } from './demo-story/story.ts'
import { bold, dim, say } from './demo-story/terminal.ts'
import { startWorld, type World } from './demo-story/world.ts'

const USAGE = `Usage: scripts/demo [--once] [--context NAME [--kubeconfig FILE]] [--repo URL --path DIR [--ref BRANCH]]

Examples:
  scripts/demo                                  two real clusters on this machine, then the story; stays up until Ctrl-C
  scripts/demo --once                           the same, and ends after the story: exit code 0 or 1
  scripts/demo --context kind-dev               with the cluster of that kubeconfig context (a small shop in namespaces of its own)
  scripts/demo --repo https://git.example.com/apps.git --path deploy    with manifests of yours
`

function options(): DemoPlan | null {
  try {
    const { values } = parseArgs({
      options: {
        once: { type: 'boolean', default: false },
        context: { type: 'string' },
        kubeconfig: { type: 'string' },
        repo: { type: 'string' },
        path: { type: 'string' },
        ref: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help) {
      process.stdout.write(USAGE)
      process.exit(0)
    }
    return planDemo(values)
  } catch (error) {
    process.stderr.write(`scripts/demo: ${error instanceof Error ? error.message : error}\n\n${USAGE}`)
    return null
  }
}

const plan = options()
if (plan === null) process.exit(2)
const gitDir = mkdtempSync(join(tmpdir(), 'skerry-demo-'))
let world: World | undefined
let leaving: Promise<void> | undefined
const leave = (): Promise<void> => {
  leaving ??= (async () => {
    await world?.stop()
    rmSync(gitDir, { recursive: true, force: true })
  })()
  return leaving
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    say(dim('\n      cleaning up …'))
    void leave().then(() => process.exit(signal === 'SIGINT' ? 130 : 143))
  })
}

try {
  say(bold('Skerry: from a commit to a real cluster and back'))
  world = await startWorld(plan, gitDir, (started) => {
    world = started
  })
  const told = await tellStory(world)
  if (!plan.once) {
    say(told.next)
    await new Promise(() => {}) // until Ctrl-C
  }
  await leave()
  process.exit(0)
} catch (error) {
  if (leaving === undefined) {
    process.stderr.write(`\nscripts/demo: ${error instanceof Error ? error.message : error}\n`)
    if (world !== undefined) process.stderr.write(`${dim('server log:')}\n${world.fleet.serverLog().split('\n').slice(-8).join('\n')}\n`)
    for (const { agent } of world?.sites ?? [])
      process.stderr.write(`${dim(`log of agent ${agent.name}:`)}\n${agent.log().split('\n').slice(-8).join('\n')}\n`)
  }
  await leave()
  process.exit(1)
}
