// A process of agents that return at once, controlled by lines of JSON on its input; each is answered by one line. It
// ends when its input does.
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { StormAgent, type StormCounts, type StormMember } from './storm-agent.ts'

export type StormOrder =
  /** A file of StormMembers, of which every `of`-th is played here. */
  | { do: 'load'; file: string; port: number; part: number; of: number }
  | { do: 'come back' }
  /** Each of them pushes once in so many ms. */
  | { do: 'keep telling'; everyMs: number }
  | { do: 'stop' }
  | { do: 'report' }

export interface StormReport extends StormCounts {
  /** When each was acknowledged, ms of the machine's clock. */
  doneAtMs: number[]
  polling: number
  /** Pushes of those that keep telling. */
  told: number
}

const counts: StormCounts = { timeouts: 0, refused: {}, cuts: 0, latenciesMs: [], failures: [] }
let agents: StormAgent[] = []

function obey(order: StormOrder): void {
  if (order.do === 'load') {
    const members = JSON.parse(readFileSync(order.file, 'utf8')) as StormMember[]
    agents = members.filter(({ number }) => number % order.of === order.part).map((member) => new StormAgent(order.port, member, counts))
  } else if (order.do === 'come back') for (const agent of agents) follow(agent.comeBack())
  else if (order.do === 'keep telling') for (const agent of agents) follow(agent.keepTelling(order.everyMs))
  else if (order.do === 'stop') for (const agent of agents) agent.stop()
}

function follow(work: Promise<void>): void {
  work.catch((error: unknown) => void counts.failures.push(String(error)))
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as StormOrder
  obey(order)
  const report: StormReport = {
    ...counts,
    latenciesMs: order.do === 'report' ? counts.latenciesMs : [],
    doneAtMs: agents.flatMap(({ doneAtMs }) => doneAtMs ?? []),
    polling: agents.filter(({ polling }) => polling).length,
    told: agents.reduce((sum, { told }) => sum + told, 0),
  }
  process.stdout.write(`${JSON.stringify(report)}\n`)
}
process.exit(0)
