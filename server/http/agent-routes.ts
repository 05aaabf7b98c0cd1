// The agent API as a plain function of a request. The cluster always comes from the credential, never from URL or body;
// everything an agent sends is bounded before it is parsed.
import { z } from 'zod'
import { ANSWER_PART_BYTES_MAX, ANSWERS } from '../../shared/protocol/ask.ts'
import { joinRequestSchema } from '../../shared/protocol/join.ts'
import {
  AGENT_API,
  JOIN_BODY_BYTES_MAX,
  ROUTES,
  SESSION_BODY_BYTES_MAX,
  STATUS_BODY_BYTES_MAX,
  STATUS_ROWS_MAX,
} from '../../shared/protocol/routes.ts'
import { sessionRequestSchema } from '../../shared/protocol/session.ts'
import { REV_INCARNATION, type StatusAnswer, statusRequestSchema } from '../../shared/protocol/status.ts'
import { PROTOCOL_HEADER } from '../../shared/protocol/version.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import { checkProtocol, type JoinDeps, joinAgent, OWN_VERSIONS, type ProtocolRange } from '../access/join.ts'
import type { Sessions } from '../access/sessions.ts'
import type { AgentRecord, StatusWrite } from '../fleet/records.ts'
import type { Store } from '../store/store.ts'
import { parseJson, readInflated, readJson } from './agent-body.ts'
import { type AgentTurns, createAgentTurns } from './agent-turns.ts'
import { answerPart } from './answer-route.ts'
import { type BodyBudget, createBodyBudget, createBodyShares, giveBack } from './body.ts'
import { type DesiredRoutesDeps, getDesired, postBuckets, type RequestContext } from './desired-routes.ts'
import type { Drain } from './drain.ts'
import { createFairPace } from './fair-pace.ts'
import { problemResponse } from './problem.ts'
import { splitUrl } from './request-path.ts'
import { inventoryOf, type SortedRows, sortStatusRows } from './status-rows.ts'
import { createStrangerBodies, type StrangerLimits } from './stranger-bodies.ts'

export interface AgentRoutesDeps extends DesiredRoutesDeps {
  join: JoinDeps
  sessions: Sessions
  drain: Drain
  store: Pick<Store, 'upsertStatus' | 'statusBacklog'>
  /** After the rows are in the store; must not throw. */
  onStatus(agent: AgentRecord, changed: readonly StatusWrite[]): void
  log: Logger
  /** In place of STRANGERS. */
  strangers?: Partial<StrangerLimits>
}

export type AgentRoutes = (request: Request, context: RequestContext) => Promise<Response | null>

const statusEnvelope = statusRequestSchema.extend({ rows: z.array(z.unknown()).max(STATUS_ROWS_MAX) })

/** AR2: for joins and for sessions, each by itself: the fleet that comes back needs no room that strangers with made-up
 *  tokens can take. */
const STRANGERS = { bytesMax: 16 * 1_024 * 1_024, ofOneBytesMax: 4 * 1_024 * 1_024, bodyMs: 10_000 } as const satisfies StrangerLimits
/** AR2: of pushes that still come in. */
const PUSHES_BYTES_MAX = 64 * 1_024 * 1_024
/** Limits for parts of answers that are still arriving: of all clusters together, and of one. An agent sends the parts
 *  of an answer one after the other. */
const ANSWERS_BYTES_MAX = 32 * 1_024 * 1_024
const ANSWERS_OF_ONE_BYTES_MAX = 2 * ANSWER_PART_BYTES_MAX
/** PU9: of pushes that wait for the store, inflated. */
const WAITING_BYTES_MAX = 64 * 1_024 * 1_024

type Route = (request: Request, query: string, context: RequestContext) => Promise<Response>

/** Null for a path that is not of this API. */
export function createAgentRoutes(deps: AgentRoutesDeps): AgentRoutes {
  const { drain } = deps
  const { sign } = deps.join.keys
  const limits = { ...STRANGERS, ...deps.strangers }
  const bodies = { join: createStrangerBodies(limits), session: createStrangerBodies(limits) }
  const pace = createFairPace(deps.clock)
  const pulls = createAgentTurns('pull', pace)
  const pushes = {
    turns: createAgentTurns('push status', pace),
    reading: createBodyBudget(PUSHES_BYTES_MAX),
    waiting: createBodyBudget(WAITING_BYTES_MAX),
  }
  const posted =
    (route: Route): Route =>
    async (...asked) => {
      drain.admit()
      return route(...asked)
    }
  const routes = new Map<string, Route>([
    [`GET ${ROUTES.desired}`, async (request, query, context) => getDesired(request, query, context, { ...deps, pulls, sign }, drain)],
    [`POST ${ROUTES.buckets}`, posted((request, query, context) => postBuckets(request, query, context, { ...deps, pulls, sign }))],
    [`POST ${ROUTES.status}`, posted((request) => pushStatus(request, deps, pushes))],
    [
      `POST ${ROUTES.join}`,
      posted(async (request, _query, context) => {
        const asked = await readJson(request, JOIN_BODY_BYTES_MAX, joinRequestSchema, bodies.join(context.address()))
        await pace() // of a thousand that join at once
        return Response.json(await joinAgent(asked, deps.join))
      }),
    ],
    [
      `POST ${ROUTES.session}`,
      posted(async (request, _query, context) => {
        const reading = { ...bodies.session(context.address()), ready: async () => pace() } // of a fleet that comes back
        const asked = await readJson(request, SESSION_BODY_BYTES_MAX, sessionRequestSchema, reading)
        return Response.json(await deps.sessions.open(asked, pace))
      }),
    ],
  ])
  const answers = createBodyShares(ANSWERS_BYTES_MAX, ANSWERS_OF_ONE_BYTES_MAX)
  const routeOf = (method: string, path: string): Route | undefined =>
    method === 'POST' && path.startsWith(`${ANSWERS}/`)
      ? posted((request, query, context) => answerPart(request, { id: path.slice(ANSWERS.length + 1), query, context }, deps, answers))
      : routes.get(`${method} ${path}`)
  const answer = async (request: Request, path: string, query: string, context: RequestContext) => {
    try {
      const route = routeOf(request.method, path)
      if (route === undefined) throw new AppError('not_found', { detail: `${request.method} ${path.slice(0, 200)}` })
      checkProtocolHeader(request, deps.join.versions ?? OWN_VERSIONS)
      return await route(request, query, context)
    } catch (error) {
      return problemResponse(toAppError(error, deps.log))
    }
  }
  return async (request, context) => {
    const { path, query } = splitUrl(request.url)
    return path.startsWith(`${AGENT_API}/`) ? drain.track(answer(request, path, query, context)) : null
  }
}

interface Pushes {
  turns: AgentTurns
  /** The budget of bodies that are still arriving. */
  reading: BodyBudget
  /** The budget of bodies that were read and are not answered yet. */
  waiting: BodyBudget
}

async function pushStatus(request: Request, deps: AgentRoutesDeps, { turns, reading, waiting }: Pushes): Promise<Response> {
  const authorization = request.headers.get('authorization')
  let agent = deps.sessions.authorize(authorization)
  admitPush(deps.store, agent) // before its body is read…
  const replaced = new AbortController()
  const turn = turns.begin(agent.agentId, () => replaced.abort())
  const ready = async () => {
    await turn.go()
    agent = deps.sessions.authorize(authorization) // it may have been revoked or superseded meanwhile
    admitPush(deps.store, agent) // …and before anything is made of it
  }
  try {
    await turn.go() // of a burst only the last one's body is read at all: dozens of large ones at once are memory that nobody gives back soon
    const bytes = await readInflated(request, STATUS_BODY_BYTES_MAX, { budget: reading, signal: replaced.signal, ready })
    const held = bytes.byteLength
    if (!waiting.take(held)) throw behind(WAITING_RETRY_MS)
    try {
      const push = parseJson(bytes, statusEnvelope)
      giveBack(bytes)
      return await takeStatus(agent, push, deps)
    } finally {
      waiting.give(held)
    }
  } finally {
    turn.end()
  }
}

/** The backlog is counted in rows; this limit is for a few very large pushes. */
const WAITING_RETRY_MS = 5_000

/** PU9: refuses a push while too many rows wait for the store. */
function admitPush(store: Pick<Store, 'statusBacklog'>, { clusterId }: AgentRecord): void {
  const retryAfterMs = store.statusBacklog.retryAfterMs(clusterId)
  if (retryAfterMs !== null) throw behind(retryAfterMs)
}
const behind = (retryAfterMs: number): AppError =>
  new AppError('too_many_requests', { doing: 'take status', detail: 'the store is behind', retryAfterMs })

/** Rows that are processed before other work runs. */
const ROWS_A_TURN = 256

async function takeStatus(
  agent: AgentRecord,
  push: z.infer<typeof statusEnvelope>,
  { store, onStatus, onSeen, clock }: AgentRoutesDeps,
): Promise<Response> {
  if (push.incarnation !== agent.incarnation) throw new AppError('superseded', { doing: 'take status' })
  onSeen(agent.clusterId)
  const sorted: SortedRows = { taken: [], reject: [] }
  const pace = createPace(clock)
  for (let start = 0; start < push.rows.length; start += ROWS_A_TURN) {
    const { taken, reject } = sortStatusRows(push.rows.slice(start, start + ROWS_A_TURN), agent.incarnation)
    sorted.taken.push(...taken)
    sorted.reject.push(...reject)
    await pace()
  }
  const {
    ack,
    had,
    changed,
    tooMany = [],
  } = await store.upsertStatus(agent.clusterId, sorted.taken, {
    // A refused row is unknown here, not absent there: its inventory may not be swept (PU4).
    complete: sorted.reject.length === 0 && inventoryOf(push.complete, sorted.taken),
    olderThan: agent.incarnation * REV_INCARNATION,
    nowMs: clock.nowMs(),
  })
  if (changed.length > 0) onStatus(agent, changed)
  const reject = [...sorted.reject, ...tooMany.map((key) => ({ key, code: 'too_many' as const }))]
  return Response.json({ ack, had, reject } satisfies StatusAnswer)
}

function checkProtocolHeader(request: Request, versions: ProtocolRange): void {
  const given = request.headers.get(PROTOCOL_HEADER)
  if (given === null && request.headers.has('authorization')) return // its session was opened in a version that is served
  const text = given ?? '1'
  if (!/^\d{1,6}$/.test(text)) throw new AppError('bad_request', { detail: `${PROTOCOL_HEADER} is a number` })
  checkProtocol({ min: Number(text), max: Number(text) }, versions)
}

function toAppError(error: unknown, log: Logger): AppError {
  if (error instanceof AppError) return error
  log.error('agent request failed', { error: describeError(error) })
  return new AppError('internal', { doing: 'answer an agent' }, { cause: error })
}
