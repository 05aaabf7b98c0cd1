// Sign-in links: the admin API creates one, and /auth/link exchanges its code, which is in no address that a server or
// proxy logs, for a token.
import { Elysia } from 'elysia'
import { type SignInLink, signInLinkCodeSchema, signInLinkSchema, signInLinkTokenSchema } from '../../shared/model/sign-in.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError, statusOf } from '../../shared/runtime/error.ts'
import { actorOf } from '../access/principal.ts'
import type { SignInLinks } from '../access/sign-in-links.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import { news } from '../messages/event-messages.ts'
import { identifyCaller, noteDenial } from '../store/audit/caller.ts'
import type { Store } from '../store/store.ts'
import { createAttempts } from './attempts.ts'
import { readBody } from './body.ts'
import type { AdminDeps } from './deps.ts'
import { isRefusal, problemResponse } from './problem.ts'
import type { StrangerBodies } from './stranger-bodies.ts'

const BODY_BYTES_MAX = 1_024
const NO_STORE = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

export function signInLinkRoutes(
  { principal, trail }: Pick<AdminDeps, 'principal' | 'trail'>,
  links: SignInLinks,
  dashboardUrl: () => string,
) {
  return new Elysia({ tags: ['access'] }).post(
    '/sign-in-links',
    async ({ request, set }): Promise<SignInLink> => {
      const { code, expiresMs } = links.offer(principal(request))
      await trail.record({ verb: 'create', kind: 'SignInLink', detail: `expires ${new Date(expiresMs).toISOString()}` })
      set.status = 201
      set.headers['cache-control'] = 'no-store'
      // Behind the #, a browser keeps it to itself.
      return { url: `${dashboardUrl()}/#sign-in=${code}`, expiresMs }
    },
    {
      response: { 201: signInLinkSchema },
      detail: { summary: 'Create a link that opens the dashboard once, signed in with the rights of the API token of this request' },
    },
  )
}

interface RedeemDeps {
  links: SignInLinks
  store: Pick<Store, 'appendEvents'>
  clock: Clock
  addressOf(request: Request): string | null
  bodies: StrangerBodies
}

/** POST /auth/link, which takes callers without a credential. */
export function createLinkExchange({ links, store, clock, addressOf, bodies }: RedeemDeps): (request: Request) => Promise<Response> {
  const attempts = createAttempts(clock)
  const exchange = async (request: Request): Promise<Response> => {
    // A form of another site cannot send this type without asking first.
    if (!/^application\/json\b/i.test(request.headers.get('content-type') ?? ''))
      throw new AppError('bad_request', { doing: 'sign in', detail: 'expected the content type application/json' })
    const text = new TextDecoder().decode(await readBody(request, BODY_BYTES_MAX, bodies(addressOf(request))))
    const parsed = signInLinkCodeSchema.safeParse(parseJson(text))
    if (!parsed.success) throw new AppError('bad_request', { doing: 'sign in', detail: 'the body is not {"code": …}' })
    const made = await links.redeem(parsed.data.code, (by) => identifyCaller(actorOf(by)))
    await store.appendEvents([fleetEvent(clock.nowMs(), news('SignInLinkUsed'), {})])
    return Response.json(signInLinkTokenSchema.parse(made), { headers: NO_STORE })
  }
  return async (request) => {
    try {
      return await attempts.guard(addressOf(request), () => exchange(request))
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      if (isRefusal(statusOf(error))) noteDenial({ verb: 'sign-in', kind: 'Session', detail: error.message })
      return problemResponse(error)
    }
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
