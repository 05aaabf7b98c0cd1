// Answers on this machine: the report of the agent on a socket in the data folder, and liveness probes on loopback. The
// socket also takes the commands of a person at the site; only users who may read the folder can open it.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../shared/runtime/clock.ts'
import { describeError } from '../shared/runtime/loop.ts'
import { refusedOrder } from './messages/site-messages.ts'
import type { AgentMetrics } from './metrics.ts'
import { createLocalProfiles } from './observe/local-profiles.ts'
import { type AgentReport, agentReportSchema } from './observe/report.ts'
import { createOrderLog } from './order-log.ts'
import { type EdgeAnswer, type EdgeOrder, edgeAnswerSchema, edgeOrderSchema } from './reconcile/edge-orders.ts'

export const socketPath = (dataDir: string): string => join(dataDir, 'agent.sock')

export interface LocalApi {
  stop(): Promise<void>
}

export interface LocalHandlers {
  report(): AgentReport
  order(order: EdgeOrder): EdgeAnswer
  /** Names work that does not end, for /readyz. Absent means that nobody watches. */
  stuck?(): readonly string[]
}

/** Without `probes` nothing listens on the network. An agent is ready when it enforces its replica. */
export function serveLocalApi(dataDir: string, agent: LocalHandlers, probes?: { hostname: string; port: number }): LocalApi {
  const handle = (request: Request): Response => {
    const { pathname } = new URL(request.url)
    if (pathname === '/healthz') return new Response('ok\n')
    if (pathname === '/readyz') {
      const { enforcement } = agent.report()
      const lines = [enforcement.state, ...(agent.stuck?.() ?? [])]
      return new Response(`${lines.join('\n')}\n`, { status: enforcement.state === 'enforcing' ? 200 : 503 })
    }
    return new Response('not found\n', { status: 404 })
  }
  const log = createOrderLog(dataDir, systemClock)
  /** AU8: an order that cannot be recorded is not carried out. */
  const recorded = (order: EdgeOrder): EdgeAnswer => {
    try {
      log.record(order)
    } catch (error) {
      return refusedOrder('audit_log_unwritable', { folder: dataDir, failure: describeError(error) })
    }
    const answer = agent.order(order)
    if (answer.kind === 'refused') log.record(order, answer.message)
    return answer
  }
  let metrics: Promise<AgentMetrics> | undefined
  const probe = async (request: Request): Promise<Response> => {
    if (new URL(request.url).pathname !== '/metrics') return handle(request)
    // The library takes 2 MB of memory that an agent without scrapes does not need.
    metrics ??= import('./metrics.ts').then(({ createAgentMetrics }) => createAgentMetrics())
    return (await metrics).scrape(agent.report())
  }
  const profiles = createLocalProfiles()
  rmSync(socketPath(dataDir), { force: true }) // left by a killed agent; the data folder's lock says that it is gone
  const servers = [
    Bun.serve({
      unix: socketPath(dataDir),
      fetch: async (request) => {
        const { pathname } = new URL(request.url)
        if (pathname === '/report') return Response.json(agent.report())
        const profile = await profiles(request)
        if (profile !== null) return profile
        if (pathname !== '/order' || request.method !== 'POST') return handle(request)
        const read = edgeOrderSchema.safeParse(await request.json().catch(() => null))
        return Response.json(read.success ? recorded(read.data) : refusedOrder('order_unreadable'))
      },
    }),
  ]
  if (probes !== undefined)
    servers.push(Bun.serve({ hostname: probes.hostname, port: probes.port, fetch: probe }) as (typeof servers)[number])
  return {
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop(true)))
      rmSync(socketPath(dataDir), { force: true })
    },
  }
}

/** The report of the agent that runs on this data folder, or null when none does. */
export async function askRunningAgent(dataDir: string): Promise<AgentReport | null> {
  try {
    const response = await fetch('http://agent/report', { unix: socketPath(dataDir), signal: AbortSignal.timeout(5_000) })
    return agentReportSchema.parse(await response.json())
  } catch {
    return null
  }
}

/** The answer of the agent that runs on this data folder to an order, or null when none does. */
export async function orderRunningAgent(dataDir: string, order: EdgeOrder): Promise<EdgeAnswer | null> {
  try {
    const body = JSON.stringify(order)
    const response = await fetch('http://agent/order', {
      unix: socketPath(dataDir),
      method: 'POST',
      body,
      signal: AbortSignal.timeout(5_000),
    })
    return edgeAnswerSchema.parse(await response.json())
  } catch {
    return null
  }
}
