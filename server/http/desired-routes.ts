// GET desired (polls, parts of pages) and POST desired/buckets. The cluster always comes from the credential; whose it
// is is asked again after every wait.
import type { Position } from '../../shared/crdt/position.ts'
import { HEAD_HEADER, headBytes } from '../../shared/protocol/head.ts'
import { BUCKET_COUNTS, type RefetchHead, refetchHeadSchema, SUM_BYTES } from '../../shared/protocol/refetch.ts'
import { REFETCH_BODY_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { TRANSFER_HEADER, transferText } from '../../shared/protocol/transfer.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { ServerKeys } from '../access/server-keys.ts'
import type { Sessions } from '../access/sessions.ts'
import type { RestoreGate } from '../actions/restore-gate.ts'
import type { AskPoll, Asks } from '../ask/asks.ts'
import type { Accept, PullResult, Shards } from '../desired/shards.ts'
import { parseJson, readInflated } from './agent-body.ts'
import type { AgentTurn, AgentTurns } from './agent-turns.ts'
import { bucketsQuery, type DesiredQuery, desiredQuery } from './desired-query.ts'
import type { Drain } from './drain.ts'

/** The HTTP server's services for one request. */
export interface RequestContext {
  /** Seconds without bytes after which the connection is cut; 0 never. */
  setIdleTimeout(seconds: number): void
  /** The caller's address. Null if it is not known. */
  address(): string | null
}

/** The idle limit of a connection between requests. A poll that waits has none. */
export const IDLE_TIMEOUT_SECONDS = 30
/** A person has to decide: no agent hurries. */
const RESTORE_RETRY_AFTER_MS = 60_000

export interface DesiredRoutesDeps {
  sessions: Pick<Sessions, 'authorize'>
  shards: Shards
  restoreGate: Pick<RestoreGate, 'pending' | 'offer'>
  /** `waitSeconds`: of a poll. */
  onSeen(clusterId: ClusterId, waitSeconds?: number): void
  /** Absent means that questions to clusters are off. */
  asks?: Asks
  clock: Clock
}

/** The dependencies of one API, with the turns of its agents (AR1). */
type Deps = DesiredRoutesDeps & { pulls: AgentTurns; sign: ServerKeys['sign'] }

export function getDesired(request: Request, query: string, context: RequestContext, deps: Deps, drain: Drain): Promise<Response> {
  const asked = desiredQuery(query)
  return asked.kind === 'part' ? part(request, asked, deps) : timed(context, () => poll(request, asked, deps, drain))
}

async function poll(request: Request, asked: Extract<DesiredQuery, { kind: 'poll' }>, deps: Deps, drain: Drain): Promise<Response> {
  const { agentId, clusterId } = deps.sessions.authorize(request.headers.get('authorization'))
  const turn = deps.pulls.begin(agentId, () => deps.shards.wake(clusterId))
  let asking: AskPoll | undefined
  try {
    await turn.go()
    asking = deps.asks?.poll(clusterId, asked.asks)
    return await pullOrWait(request, asked, deps, drain, { turn, asking })
  } finally {
    asking?.end()
    turn.end()
  }
}

async function pullOrWait(
  request: Request,
  { cursor, waitSeconds, sliceBytes, head, features }: Extract<DesiredQuery, { kind: 'poll' }>,
  { sessions, shards, restoreGate, onSeen, clock, sign }: Deps,
  drain: Drain,
  { turn, asking }: { turn: AgentTurn; asking: AskPoll | undefined },
): Promise<Response> {
  const authorization = request.headers.get('authorization')
  const accept = { zstd: acceptsZstd(request), ...features, sliceBytes }
  const waitMs = waitSeconds * 1_000
  const untilMs = clock.nowMs() + waitMs
  for (;;) {
    // Again after every wait: the agent may have been revoked or superseded meanwhile.
    const { clusterId } = sessions.authorize(authorization)
    onSeen(clusterId, waitSeconds)
    drain.admit()
    if (restoreGate.pending() && isBeyond(cursor, shards.head(clusterId))) return pageResponse({ kind: 'refetch', reason: 'restored' })
    refuseWhileRestoring(restoreGate)
    const pulled = await shards.pull(clusterId, cursor, accept)
    refuseWhileRestoring(restoreGate) // it may have been found out meanwhile
    if (pulled.kind !== 'nothing_new') return pageResponse(pulled)
    const leftMs = Math.min(untilMs - clock.nowMs(), waitMs) // a clock that was set back makes no poll longer
    if (cursor === null) return new Response(null, { status: 204 })
    if (!request.signal.aborted && turn.current()) {
      const frames = asking?.take() ?? null // a page goes first: questions never hold up sync
      if (frames !== null) return new Response(frames, { headers: { 'content-type': 'application/x-ndjson' } })
    }
    if (leftMs <= 0 || request.signal.aborted || !turn.current()) {
      const headers = head === null ? {} : { [HEAD_HEADER]: sign(headBytes(clusterId, head, cursor)) }
      return new Response(null, { status: 204, headers })
    }
    await shards.waitForChange(clusterId, cursor, leftMs, request.signal)
  }
}

async function part(request: Request, { transfer, part }: Extract<DesiredQuery, { kind: 'part' }>, deps: DesiredRoutesDeps) {
  const { clusterId } = deps.sessions.authorize(request.headers.get('authorization'))
  deps.onSeen(clusterId)
  refuseWhileRestoring(deps.restoreGate)
  const found = deps.shards.part(clusterId, transfer, part)
  if (found.kind === 'gone') throw new AppError('transfer_gone')
  return new Response(bodyOf(found.bytes))
}

export async function postBuckets(request: Request, query: string, context: RequestContext, deps: Deps): Promise<Response> {
  const { sessions, shards, restoreGate, onSeen, pulls } = deps
  const authorization = request.headers.get('authorization')
  const { agentId, clusterId } = sessions.authorize(authorization)
  onSeen(clusterId)
  const replaced = new AbortController()
  const turn = pulls.begin(agentId, () => {
    replaced.abort()
    shards.wake(clusterId)
  })
  const ready = async () => {
    await turn.go()
    sessions.authorize(authorization) // it may have been revoked or superseded meanwhile
  }
  try {
    const { sliceBytes, features } = bucketsQuery(query)
    const { head, sums } = refetchBody(await readInflated(request, REFETCH_BODY_BYTES_MAX, { ready, signal: replaced.signal }))
    if (head.proof !== undefined) await restoreGate.offer(clusterId, head.proof, head.keyLinks)
    refuseWhileRestoring(restoreGate)
    const accept: Accept = { zstd: acceptsZstd(request), ...features, sliceBytes }
    const page = await timed(context, () => shards.refetch(clusterId, sums, accept))
    refuseWhileRestoring(restoreGate) // it may have been found out meanwhile
    return pageResponse(page)
  } finally {
    turn.end()
  }
}

/** PL9: a line of JSON, then 0, 1, 16 or 256 sums. */
function refetchBody(bytes: Uint8Array): { head: RefetchHead; sums: Uint8Array } {
  const end = bytes.indexOf(0x0a)
  if (end < 0) throw new AppError('bad_request', { detail: 'the body must be a line of JSON followed by sums' })
  const sums = bytes.subarray(end + 1)
  if (!BUCKET_COUNTS.some((count) => count * SUM_BYTES === sums.length))
    throw new AppError('bad_request', { detail: `the line is followed by ${BUCKET_COUNTS.join(', ')} sums of ${SUM_BYTES} bytes` })
  return { head: parseJson(bytes.subarray(0, end), refetchHeadSchema), sums }
}

/** Long work has no idle limit; afterwards the connection has the usual one, or idle ones would pile up. */
async function timed<T>(context: RequestContext, work: () => Promise<T>): Promise<T> {
  context.setIdleTimeout(0)
  try {
    return await work()
  } finally {
    context.setIdleTimeout(IDLE_TIMEOUT_SECONDS)
  }
}

/** RP2: such an agent has a proof to show, which goes with its next request. */
const isBeyond = (cursor: Position | null, head: Position): boolean => cursor !== null && (cursor.dbId !== head.dbId || cursor.dv > head.dv)

function refuseWhileRestoring(gate: DesiredRoutesDeps['restoreGate']): void {
  if (gate.pending()) throw new AppError('restore_pending', { retryAfterMs: RESTORE_RETRY_AFTER_MS })
}

const acceptsZstd = (request: Request): boolean => /(^|[\s,])zstd($|[\s,;])/.test(request.headers.get('accept-encoding') ?? '')

function pageResponse(pulled: PullResult): Response {
  if (pulled.kind === 'nothing_new') return new Response(null, { status: 204 })
  if (pulled.kind === 'refetch') throw new AppError('must_refetch', { detail: pulled.reason, extra: { reason: pulled.reason } })
  const { bytes, zstd, transfer } = pulled
  const headers: Record<string, string> = { 'content-type': 'application/x-ndjson' }
  if (transfer !== null) headers[TRANSFER_HEADER] = transferText(transfer)
  else if (zstd) headers['content-encoding'] = 'zstd'
  return new Response(bodyOf(bytes), { headers })
}

/** The types of bodies ask for a buffer that is surely not shared. */
const bodyOf = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => bytes as Uint8Array<ArrayBuffer>
