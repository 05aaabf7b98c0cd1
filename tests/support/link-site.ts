// One site in virtual time: a real server, a real agent's sync loop, and between them a link that a test bends.
import { expect } from 'bun:test'
import type { Fetcher } from '../../agent/link/server-client.ts'
import type { SyncOptions } from '../../agent/sync/sync-loop.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { type AppError, problemBody } from '../../shared/runtime/error.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { WEB } from './sync-kit.ts'
import { SyncAgent, SyncServer } from './sync-world.ts'
import { tempDir } from './temp-dir.ts'
import { createVirtualClock } from './virtual-clock.ts'

const agents: SyncAgent[] = []
/** After each test. */
export async function killAgents(): Promise<void> {
  for (const agent of agents.splice(0)) await agent.kill()
}

export type Body = Record<string, unknown>

/** What stands between agent and server. */
export interface Link {
  /** In the server's place. */
  answer(path: string, url: URL): Response | 'down' | null
  loseAnswer(path: string): boolean
  /** On its way back, by whoever sits between. */
  tamper: ((path: string, body: Body) => Body) | null
  /** The last one that the agent signed. */
  nonce: string
  cutAfterMs: number | null
  /** Before `answer` is asked. */
  delayMs(path: string, url: URL): number
  frozen: boolean
}

export async function site(options: { joins?: number; sync?: Partial<SyncOptions> } = {}) {
  const clock = createVirtualClock()
  const world = { dir: tempDir(), clock, random: seededRandom(5) }
  const server = new SyncServer(world)
  await server.open()
  await server.createJoinToken(options.joins ?? 1)
  const asked: string[] = []
  const link: Link = {
    answer: () => null,
    loseAnswer: () => false,
    tamper: null,
    nonce: '',
    cutAfterMs: null,
    delayMs: () => 0,
    frozen: false,
  }
  const fetcher: Fetcher = async (url, init) => {
    const { pathname } = new URL(url)
    asked.push(pathname)
    if (pathname === ROUTES.session) link.nonce = /"nonce":"([^"]+)"/.exec(String(Buffer.from((init.body ?? []) as Uint8Array)))?.[1] ?? ''
    const ask = async (): Promise<Response> => {
      const delayMs = link.delayMs(pathname, new URL(url))
      if (delayMs > 0) await clock.sleep(delayMs)
      const response = link.answer(pathname, new URL(url)) ?? (await server.handle(new Request(url, init as RequestInit)))
      if (response === null || response === 'down' || link.loseAnswer(pathname)) throw new Error('connection refused')
      if (link.tamper === null || !response.ok || (pathname !== ROUTES.join && pathname !== ROUTES.session)) return response
      return Response.json(link.tamper(pathname, (await response.json()) as Body))
    }
    const aborted = new Promise<never>((_, reject) => init.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
    const cut = link.cutAfterMs === null ? aborted : clock.sleep(link.cutAfterMs).then(() => Promise.reject(new Error('ECONNRESET')))
    return Promise.race([link.frozen ? aborted : ask(), aborted, cut])
  }
  const agent = new SyncAgent(world, server, 'site', fetcher)
  agents.push(agent)
  const status = () => agent.loop?.status()
  const publish = (value: string) =>
    agent.clusterId === null ? Promise.resolve(false) : server.publish(agent.clusterId, WEB, { a: value })
  return { clock, server, agent, asked, link, status, publish, world }
}

export const problem = (error: AppError) => Response.json(problemBody(error), { status: problemBody(error).status })
export const joined = async (options: Parameters<typeof site>[0] = {}) => {
  const made = await site(options)
  made.agent.sync = options.sync ?? {}
  made.agent.start()
  await made.clock.advance(5_000)
  expect(made.status()?.state).toBe('following')
  return made
}
export const report = (agent: SyncAgent, message: string, key = 'shop/web') =>
  agent.state?.report([
    { kind: 'service', key, doc: { sync: 'Synced', health: 'Healthy', reason: 'r', message, sinceMs: 1, objectCount: 0, healthyCount: 0 } },
  ])

export const shown = async ({ server, agent }: Pick<Awaited<ReturnType<typeof site>>, 'server' | 'agent'>) =>
  (await server.store.listStatus({ clusterId: agent.clusterId ?? ('' as never), kind: 'service' })).map(({ key, doc }) => [
    key,
    (doc as Body)['message'],
  ])
