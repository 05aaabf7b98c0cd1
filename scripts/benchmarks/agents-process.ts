// A process of simulated agents from the outside: an order in, a report out, one at a time.
import { join } from 'node:path'
import type { FanoutOrder, FanoutReport } from './fanout-agents.ts'

export interface OrderedProcess<Order, Report> {
  pid: number
  order(order: Order): Promise<Report>
  end(): void
}
export type AgentsProcess = OrderedProcess<FanoutOrder, FanoutReport>

export const startAgents = (): AgentsProcess => startOrdered('fanout-agents.ts')

/** `file`: of this folder. A report of failures is thrown. */
export function startOrdered<Order, Report extends { failures: string[] }>(file: string): OrderedProcess<Order, Report> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, file)], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const lines = linesOf(child.stdout)
  let last: Promise<unknown> = Promise.resolve()
  return {
    pid: child.pid,
    order(order) {
      const answer = last.then(async () => {
        child.stdin.write(`${JSON.stringify(order)}\n`)
        await child.stdin.flush()
        const line = await lines.next()
        if (line.done === true) throw new Error('a process of agents ended')
        const report = JSON.parse(line.value) as Report
        if (report.failures.length > 0) throw new Error(`${report.failures.length} agents failed: ${report.failures[0]}`)
        return report
      })
      last = answer.catch(() => {})
      return answer
    },
    end: () => child.kill(),
  }
}

export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}
