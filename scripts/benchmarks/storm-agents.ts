// A process of agents that come back at once, told by lines of JSON on its input what to do; each is answered by one line. It ends when its input does.
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { StormAgent, type StormCounts, type StormMember } from './storm-agent.ts'

export type StormOrder =
  /** A file of StormMembers, of which every `of`-th is played here; `round` of what they have to tell. */
  { do: 'load'; file: string; port: number; part: number; of: number; round: number } | { do: 'come back' } | { do: 'report' }

export interface StormReport extends StormCounts {
  /** When each was acknowledged, ms of the machine's clock. */
  doneAtMs: number[]
  polling: number
}

const counts: StormCounts = { timeouts: 0, refused: {}, cuts: 0, latenciesMs: [], failures: [] }
let agents: StormAgent[] = []

function obey(order: StormOrder): void {
  if (order.do === 'load') {
    const members = JSON.parse(readFileSync(order.file, 'utf8')) as StormMember[]
    agents = members
      .filter(({ number }) => number % order.of === order.part)
      .map((member) => new StormAgent(order.port, member, order.round, counts))
  } else if (order.do === 'come back')
    for (const agent of agents) agent.comeBack().catch((error: unknown) => void counts.failures.push(String(error)))
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as StormOrder
  obey(order)
  const report: StormReport = {
    ...counts,
    latenciesMs: order.do === 'report' ? counts.latenciesMs : [],
    doneAtMs: agents.flatMap(({ doneAtMs }) => doneAtMs ?? []),
    polling: agents.filter(({ polling }) => polling).length,
  }
  process.stdout.write(`${JSON.stringify(report)}\n`)
}
process.exit(0)
