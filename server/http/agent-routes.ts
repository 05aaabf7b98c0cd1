// The agent API as a plain function of a request. The cluster always comes from the credential, never from URL or body; everything an agent sends is
// bounded before it is parsed.
import { z } from 'zod'
import { cursorText, type Position, parseCursor } from '../../shared/crdt/position.ts'
import type { ClusterId } from '../../shared/model/ids.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { joinRequestSchema } from '../../shared/protocol/join.ts'
import {
  AGENT_API,
  JOIN_BODY_BYTES_MAX,
  ROUTES,
  STATUS_BODY_BYTES_MAX,
  STATUS_ROWS_MAX,
  WAIT_SECONDS_DEFAULT,
  WAIT_SECONDS_MAX,
} from '../../shared/protocol/routes.ts'
import { sessionRequestSchema } from '../../shared/protocol/session.ts'
import { REV_INCARNATION, type StatusAnswer, statusRequestSchema } from '../../shared/protocol/status.ts'
import { TRANSFER_HEADER, transferText } from '../../shared/protocol/transfer.ts'
import { PROTOCOL_HEADER } from '../../shared/protocol/version.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { checkProtocol, type JoinDeps, joinAgent } from '../access/join.ts'
import type { Sessions } from '../access/sessions.ts'
import type { PullResult, Shards } from '../desired/shards.ts'
import type { AgentRecord, StatusWrite, Store } from '../store/store.ts'
import { readJson } from './agent-body.ts'
import { problemResponse } from './problem.ts'
import { inventoryOf, sortStatusRows } from './status-rows.ts'

/** What the HTTP server lends to one request. */
export interface RequestContext {
  /** Seconds without bytes after which the connection is cut; 0 never. */
  setIdleTimeout(seconds: number): void
}

export interface AgentRoutesDeps {
  join: JoinDeps
  sessions: Sessions
  shards: Shards
  store: Pick<Store, 'upsertStatus'>
  /** After the rows are in the store; must not throw. */
  onStatus(agent: AgentRecord, changed: readonly StatusWrite[]): void
  onSeen(clusterId: ClusterId): void
  clock: Clock
  log: Logger
}

export type AgentRoutes = (request: Request, context: RequestContext) => Promise<Response | null>

/** Of a connection between requests; a poll that waits has none. */
export const IDLE_TIMEOUT_SECONDS = 30

const statusEnvelope = statusRequestSchema.extend({ rows: z.array(z.unknown()).max(STATUS_ROWS_MAX) })

/** Null for a path that is not of this API. */
export function createAgentRoutes(deps: AgentRoutesDeps): AgentRoutes {
  const routes: Record<string, (request: Request, context: RequestContext) => Promise<Response>> = {
    [`POST ${ROUTES.join}`]: async (request) =>
      Response.json(await joinAgent(await readJson(request, JOIN_BODY_BYTES_MAX, joinRequestSchema), deps.join)),
    [`POST ${ROUTES.session}`]: async (request) =>
      Response.json(await deps.sessions.open(await readJson(request, JOIN_BODY_BYTES_MAX, sessionRequestSchema))),
    [`GET ${ROUTES.desired}`]: (request, context) => desired(request, context, deps),
    [`POST ${ROUTES.status}`]: (request) => status(request, deps),
  }
  return async (request, context) => {
    const { pathname } = new URL(request.url)
    if (!pathname.startsWith(`${AGENT_API}/`)) return null
    try {
      const route = routes[`${request.method} ${pathname}`]
      if (route === undefined) throw new AppError('not_found', { detail: `${request.method} ${pathname.slice(0, 200)}` })
      checkProtocolHeader(request)
      return await route(request, context)
    } catch (error) {
      return problemResponse(toAppError(error, deps.log))
    }
  }
}

async function desired(request: Request, context: RequestContext, { sessions, shards, onSeen, clock }: AgentRoutesDeps): Promise<Response> {
  const query = new URL(request.url).searchParams
  const cursor = cursorOf(query.get('cursor'))
  const untilMs = clock.nowMs() + waitSecondsOf(query.get('wait')) * 1000
  for (;;) {
    // Again after every wait: the agent may have been revoked or superseded meanwhile.
    const { clusterId } = sessions.authorize(request.headers.get('authorization'))
    onSeen(clusterId)
    const pulled = await shards.pull(clusterId, cursor, acceptOf(request))
    if (pulled.kind === 'page') return pageResponse(pulled)
    if (pulled.kind === 'refetch') throw new AppError('must_refetch', { detail: pulled.reason, extra: { reason: pulled.reason } })
    const leftMs = untilMs - clock.nowMs()
    if (cursor === null || leftMs <= 0 || request.signal.aborted) return new Response(null, { status: 204 })
    context.setIdleTimeout(0)
    await shards.waitForChange(clusterId, cursor, leftMs, request.signal)
    context.setIdleTimeout(IDLE_TIMEOUT_SECONDS) // else it would outlive the answer, and the idle connection with it
  }
}

async function status(request: Request, { sessions, store, onStatus, onSeen, clock }: AgentRoutesDeps): Promise<Response> {
  const agent = sessions.authorize(request.headers.get('authorization'))
  const push = await readJson(request, STATUS_BODY_BYTES_MAX, statusEnvelope)
  if (push.incarnation !== agent.incarnation) throw new AppError('superseded', { doing: 'take status' })
  onSeen(agent.clusterId)
  const { taken, reject } = sortStatusRows(push.rows, agent.incarnation)
  const { ack, changed } = await store.upsertStatus(agent.clusterId, taken, {
    // A refused row is unknown here, not absent there: its inventory may not be swept (PU4).
    complete: reject.length === 0 && inventoryOf(push.complete, taken),
    olderThan: agent.incarnation * REV_INCARNATION,
    nowMs: clock.nowMs(),
  })
  if (changed.length > 0) onStatus(agent, changed)
  return Response.json({ ack, reject } satisfies StatusAnswer)
}

function cursorOf(text: string | null): Position | null {
  if (text === null) return null
  const cursor = parseCursor(text)
  if (cursor === null || cursorText(cursor) !== text) throw new AppError('bad_cursor')
  return cursor
}

export function waitSecondsOf(text: string | null): number {
  if (text === null) return WAIT_SECONDS_DEFAULT
  if (!/^\d{1,6}$/.test(text)) throw new AppError('bad_request', { detail: 'wait is a number of seconds' })
  return Math.min(Number(text), WAIT_SECONDS_MAX)
}

function checkProtocolHeader(request: Request): void {
  const text = request.headers.get(PROTOCOL_HEADER) ?? '1'
  if (!/^\d{1,6}$/.test(text)) throw new AppError('bad_request', { detail: `${PROTOCOL_HEADER} is a number` })
  checkProtocol({ min: Number(text), max: Number(text) })
}

const acceptOf = (request: Request) => ({ zstd: /(^|[\s,])zstd($|[\s,;])/.test(request.headers.get('accept-encoding') ?? '') })

function pageResponse({ bytes, zstd, transfer }: Extract<PullResult, { kind: 'page' }>): Response {
  const headers: Record<string, string> = { 'content-type': 'application/x-ndjson' }
  if (transfer !== null) headers[TRANSFER_HEADER] = transferText(transfer)
  else if (zstd) headers['content-encoding'] = 'zstd'
  return new Response(bodyOf(bytes), { headers })
}

/** The types of bodies ask for a buffer that is surely not shared. */
const bodyOf = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => bytes as Uint8Array<ArrayBuffer>

function toAppError(error: unknown, log: Logger): AppError {
  if (error instanceof AppError) return error
  log.error('agent request failed', { error: describeError(error) })
  return new AppError('internal', { doing: 'answer an agent' }, { cause: error })
}
