// /auth/: sign-in by browser, by CLI and by pipelines, and sign-out. These routes take callers without a credential, so
// bodies and attempts are bounded.
import type { z } from 'zod'
import { deviceRequestSchema, exchangeRequestSchema, SIGN_IN, tokenRequestSchema } from '../../shared/model/sign-in.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { ERRORS } from '../../shared/runtime/error-table.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { type Callers, cookieOf, sessionCookie } from '../access/callers.ts'
import { type CliTarget, LOGIN_MS, type LoginTarget } from '../access/oidc/flows.ts'
import type { IdentityProvider } from '../access/oidc/provider.ts'
import type { SignIn } from '../access/oidc/sign-in.ts'
import { noteDenial } from '../store/audit/caller.ts'
import { createAttempts } from './attempts.ts'
import { readBody } from './body.ts'
import { networkOf } from './caller-address.ts'
import { invalidInput, isRefusal, problemResponse } from './problem.ts'
import { choicePage, failurePage } from './sign-in-pages.ts'
import type { StrangerBodies } from './stranger-bodies.ts'

const BODY_BYTES_MAX = 20 * 1_024
const NEXT_MAX = 1_000

export interface SignInRoutesDeps {
  signIn: SignIn
  callers: Callers
  /** URL under which browsers know this server. */
  url(): string
  addressOf(request: Request): string | null
  bodies: StrangerBodies
  clock: Clock
  log: Logger
}

type Route = (request: Request, url: URL, from: string | null) => Promise<Response>

/** The route below /auth/, or null for other paths. */
export function createSignInRoutes(deps: SignInRoutesDeps): (request: Request) => Promise<Response | null> {
  const { signIn, callers, url, addressOf, bodies, clock, log } = deps
  const { sessions, flows, providers, workloads } = signIn
  const attempts = createAttempts(clock)
  const loginCookie = () => `${sessionCookie(url())}-login`
  const setCookie = (name: string, value: string, maxAgeMs: number): string =>
    `${name}=${value}; Path=/; Max-Age=${Math.floor(maxAgeMs / 1_000)}; HttpOnly; SameSite=Lax${url().startsWith('https://') ? '; Secure' : ''}`

  const bodyOf = async <T extends z.ZodType>(request: Request, schema: T, from: string | null, doing: string): Promise<z.infer<T>> => {
    // A form of another site cannot send this type without asking first.
    if (!/^application\/json\b/i.test(request.headers.get('content-type') ?? ''))
      throw new AppError('bad_request', { doing, detail: 'expected the content type application/json' })
    const text = new TextDecoder().decode(await readBody(request, BODY_BYTES_MAX, bodies(from)))
    let input: unknown
    try {
      input = JSON.parse(text)
    } catch {
      throw new AppError('bad_request', { doing, detail: 'the body is not JSON' })
    }
    const parsed = schema.safeParse(input)
    if (!parsed.success) throw invalidInput(schema, input, parsed.error, doing)
    return parsed.data
  }
  const providerNamed = (name: string | undefined): IdentityProvider => {
    const [only] = providers.values()
    const found = name === undefined ? (providers.size === 1 ? only : undefined) : providers.get(name)
    if (found !== undefined) return found
    const detail =
      providers.size === 0
        ? 'the server has no identity provider'
        : name === undefined
          ? 'several identity providers: name one'
          : 'no identity provider has this name'
    throw new AppError('not_found', {
      detail,
      remedy: `Known providers: ${[...providers.keys()].join(', ') || 'none; see --oidc-config'}.`,
    })
  }

  const login: Route = async (_, { searchParams }) => {
    const target = targetOf(searchParams)
    const name = searchParams.get('provider') ?? undefined
    if (name === undefined && providers.size > 1) {
      const links = [...providers.keys()].map((one) => {
        const query = new URLSearchParams(searchParams)
        query.set('provider', one)
        return [one, `${SIGN_IN}/login?${query}`] as const
      })
      return choicePage(links)
    }
    const started = await flows.start(providerNamed(name), target)
    return redirect(302, started.url.href, [setCookie(loginCookie(), started.sealed, LOGIN_MS)])
  }

  const callback: Route = async (request, { search }, from) => {
    const { grant, target } = await flows.finish(cookieOf(request, loginCookie()), search)
    const spent = setCookie(loginCookie(), '', 0)
    if (target.kind === 'cli') {
      const { port, state } = target.cli
      const query = new URLSearchParams({ code: flows.codeFor(grant, target.cli), state })
      return redirect(303, `http://127.0.0.1:${port}/callback?${query}`, [spent])
    }
    // SI5: the session before it ends, and the new one has a new id.
    const before = cookieOf(request, sessionCookie(url()))
    const principal = before === null ? null : await sessions.authenticate('cookie', before, from)
    if (principal !== null) await sessions.replace(principal.id)
    const { cookie, maxAgeMs } = await sessions.openBrowser(grant, from)
    return redirect(303, target.next, [spent, setCookie(sessionCookie(url()), cookie, maxAgeMs)])
  }

  const logout: Route = async (request, _, from) => {
    const principal = await callers.authenticate(request, from)
    if (principal === null) throw new AppError('unauthorized')
    const page = principal.kind === 'token' ? null : await sessions.signOut(principal.id, `${url()}/`)
    const gone = setCookie(sessionCookie(url()), '', 0)
    if ((request.headers.get('accept') ?? '').includes('text/html')) return redirect(303, page ?? '/', [gone])
    return json({ redirect: page }, 200, [gone])
  }

  const token: Route = async (request, _, from) => {
    const asked = await bodyOf(request, tokenRequestSchema, from, 'sign in')
    if (asked.grant === 'refresh') return json(await sessions.renewCli(asked.refreshToken, from))
    const grant = asked.grant === 'code' ? flows.redeem(asked.code, asked.verifier) : flows.pollDevice(asked.device)
    return json(await sessions.openCli(grant, from))
  }

  const device: Route = async (request, _, from) => {
    const asked = await bodyOf(request, deviceRequestSchema, from, 'sign in by device code')
    const provider = providerNamed(asked.provider)
    const { device: handle, login: started } = await flows.startDevice(provider, networkOf(from ?? ''))
    const { userCode, verificationUri, verificationUriComplete, expiresInMs, intervalMs } = started
    return json({ device: handle, provider: provider.name, userCode, verificationUri, verificationUriComplete, expiresInMs, intervalMs })
  }

  const exchange: Route = async (request, _, from) => {
    const asked = await bodyOf(request, exchangeRequestSchema, from, 'exchange a JWT')
    const verified = await workloads.verify(asked.token)
    return json({ ...(await sessions.openWorkload(verified, from)), name: verified.identity.name })
  }

  const routes: Readonly<Record<string, Route>> = {
    [`GET ${SIGN_IN}/providers`]: async () => json({ items: [...providers.keys()].map((name) => ({ name })) }),
    [`GET ${SIGN_IN}/login`]: login,
    [`GET ${SIGN_IN}/callback`]: callback,
    [`POST ${SIGN_IN}/logout`]: logout,
    [`POST ${SIGN_IN}/token`]: token,
    [`POST ${SIGN_IN}/device`]: device,
    [`POST ${SIGN_IN}/exchange`]: exchange,
  }

  return async (request) => {
    const at = new URL(request.url)
    if (!at.pathname.startsWith(`${SIGN_IN}/`)) return null
    const from = addressOf(request)
    const isPage = request.method === 'GET' && (request.headers.get('accept') ?? '').includes('text/html')
    try {
      const route = routes[`${request.method} ${at.pathname}`]
      if (route === undefined) throw new AppError('not_found', { detail: 'no such route' })
      // Any caller of a device code makes the server ask the provider for minutes.
      return await attempts.guard(from, () => route(request, at, from), route === device ? 'always' : 'failure')
    } catch (error) {
      const told = error instanceof AppError ? error : new AppError('internal')
      if (isRefusal(ERRORS[told.code].status)) noteDenial({ verb: 'sign-in', kind: 'Session', detail: told.message })
      if (told !== error) log.error('sign-in failed', { path: at.pathname, error: String(error) })
      else if (told.code === 'sign_in_refused') log.warn('sign-in refused', { path: at.pathname, from, error: told.message })
      return isPage ? failurePage(ERRORS[told.code].status, told.code, told.message, told.remedy) : problemResponse(told)
    }
  }
}

const HEADERS = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

function withCookies(headers: Headers, cookies: readonly string[]): Headers {
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return headers
}
const redirect = (status: 302 | 303, location: string, cookies: readonly string[]): Response =>
  new Response(null, { status, headers: withCookies(new Headers({ ...HEADERS, location }), cookies) })
const json = (body: unknown, status = 200, cookies: readonly string[] = []): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: withCookies(new Headers({ ...HEADERS, 'content-type': 'application/json' }), cookies),
  })

function targetOf(query: URLSearchParams): LoginTarget {
  const port = query.get('cli_port')
  if (port === null) return { kind: 'browser', next: nextPath(query.get('next') ?? '/') }
  const cli: CliTarget = { port: Number(port), challenge: query.get('cli_challenge') ?? '', state: query.get('cli_state') ?? '' }
  const isUsable =
    /^\d{4,5}$/.test(port) &&
    cli.port >= 1_024 &&
    cli.port <= 65_535 &&
    /^[\w-]{43}$/.test(cli.challenge) &&
    /^[\w-]{20,128}$/.test(cli.state)
  if (!isUsable)
    throw new AppError('bad_request', {
      doing: 'sign in',
      detail: 'cli_port, cli_challenge or cli_state is wrong',
      remedy: 'Sign in with `skerry login`.',
    })
  return { kind: 'cli', cli }
}

/** SI4: a path of this server. Browsers read `//host`, `/\host` and control characters in other ways than servers do.
 *  Throws `bad_request`. */
export function nextPath(next: string): string {
  const base = 'https://skerry.invalid'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: browsers drop these from URLs.
  const isPath = next.length <= NEXT_MAX && /^\/(?![/\\])/.test(next) && !/[\\\u0000-\u0020\u007f]/.test(next)
  if (!isPath || !URL.canParse(next, base) || new URL(next, base).origin !== base || new URL(next, base).pathname.startsWith('//'))
    throw new AppError('bad_request', {
      doing: 'sign in',
      detail: 'next is not a path of this server',
      remedy: 'Use a path such as /services.',
    })
  return next
}
