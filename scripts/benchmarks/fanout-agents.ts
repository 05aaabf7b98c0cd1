// A process of simulated agents, controlled by lines of JSON on its input; each is answered by one line. It ends when
// its input does.
import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { joinRequest } from '../../agent/link/join.ts'
import { type JoinAnswer, joinAnswerSchema, parseJoinToken } from '../../shared/protocol/join.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { generateKey } from '../../shared/runtime/keys.ts'
import type { BareServerHead } from './bare-server.ts'
import { openSession } from './open-session.ts'
import { PollingAgent, type PollingAgentOptions } from './polling-agent.ts'

export type FanoutOrder =
  /** Each name with one of the tokens, in turn. */
  | { do: 'join'; serverUrl: string; joinTokens: string[]; names: string[] }
  /** Those that joined begin to poll: `everyMs` as in PollingAgentOptions. */
  | { do: 'connect'; everyMs?: number }
  /** So many agents of one cluster, on a server that asks for no session. */
  | ({ do: 'connect bare'; count: number } & BareServerHead)
  /** Forgets what was received. */
  | { do: 'reset' }
  | { do: 'report' }

export interface FanoutReport {
  /** Agents whose poll waits now. */
  waiting: number
  /** When each page was checked since the reset, ms of the machine's clock. */
  pagesAtMs: number[]
  /** How long each answer without news took since the reset. */
  emptyTookMs: number[]
  failures: string[]
}

const AT_ONCE = 16

interface Member {
  keys: { signing: ReturnType<typeof generateKey>; recipient: ReturnType<typeof generateKey> }
  joined: JoinAnswer
}

const members: Member[] = []
const agents: PollingAgent[] = []
let serverUrl = ''
let pagesAtMs: number[] = []
let emptyTookMs: number[] = []
let failures: string[] = []

async function join(order: FanoutOrder & { do: 'join' }): Promise<void> {
  serverUrl = order.serverUrl
  const secrets = order.joinTokens.map((token) => parseJoinToken(token)?.secret ?? '')
  await inParallel([...order.names.entries()], async ([index, clusterName]) => {
    const secret = secrets[index % secrets.length] ?? ''
    const keys = { signing: generateKey('ed25519'), recipient: generateKey('x25519') }
    const input = { joinToken: null, clusterName, clusterUid: randomBytes(8).toString('hex'), agentVersion: 'bench' }
    const response = await fetch(serverUrl + ROUTES.join, { method: 'POST', body: JSON.stringify(joinRequest(keys, input, secret)) })
    if (!response.ok) throw new Error(`join: HTTP ${response.status} ${await response.text()}`)
    members.push({ keys, joined: joinAnswerSchema.parse(await response.json()) })
  })
}

async function connectBare({ url, clusterId, serverKeys, count }: FanoutOrder & { do: 'connect bare' }): Promise<void> {
  const port = Number(new URL(url).port)
  await inParallel(Array.from({ length: count }), () => startAgent({ port, clusterId, serverKeys, token: 'x'.repeat(43) }))
}

async function startAgent(options: Omit<PollingAgentOptions, 'onPage' | 'onEmpty' | 'onFailure'>): Promise<void> {
  const agent = new PollingAgent({
    ...options,
    onPage: (atMs) => void pagesAtMs.push(atMs),
    onEmpty: (tookMs) => void emptyTookMs.push(tookMs),
    onFailure: (why) => void failures.push(why),
  })
  agents.push(agent)
  await agent.start()
}

async function connect({ everyMs }: FanoutOrder & { do: 'connect' }): Promise<void> {
  const port = Number(new URL(serverUrl).port)
  await inParallel(members, async (member) => {
    const { joined, keys } = member
    const token = await openSession(serverUrl, { ...joined, privateKey: keys.signing.privateKey })
    const { clusterId, serverKeys } = joined
    await startAgent({ port, clusterId, serverKeys, token, ...(everyMs === undefined ? {} : { everyMs }) })
  })
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++) {
      const item = items[index]
      await work(item as T)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

async function obey(order: FanoutOrder): Promise<FanoutReport> {
  if (order.do === 'join') await join(order)
  else if (order.do === 'connect') await connect(order)
  else if (order.do === 'connect bare') await connectBare(order)
  else if (order.do === 'reset') {
    pagesAtMs = []
    emptyTookMs = []
    failures = []
  }
  const isReport = order.do === 'report'
  return {
    waiting: agents.filter(({ waiting }) => waiting).length,
    pagesAtMs: isReport ? pagesAtMs : [],
    emptyTookMs: isReport ? emptyTookMs : [],
    failures,
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await obey(JSON.parse(line) as FanoutOrder).catch((error: unknown) => ({
    waiting: 0,
    pagesAtMs: [],
    emptyTookMs: [],
    failures: [String(error)],
  }))
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}
process.exit(0)
