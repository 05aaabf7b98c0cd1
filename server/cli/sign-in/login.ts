// login, logout and whoami: the caller's identity on a server, kept in a context.
import { resolve } from 'node:path'
import { toYaml } from '../../../shared/adapters/yaml.ts'
import { deviceAnswerSchema, providersAnswerSchema, type TokenAnswer, tokenAnswerSchema } from '../../../shared/model/sign-in.ts'
import { type WhoamiAnswer, whoamiAnswerSchema } from '../../../shared/model/views.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { type Client, createClient } from '../client.ts'
import { plainText } from '../columns.ts'
import { SERVER_DEFAULT } from '../command-options.ts'
import type { Context, Output } from '../context.ts'
import { type ConnectionFlags, contextsOf, readAuthority, sameServer } from '../contexts/connection.ts'
import { changeContexts, contextsPath, isContextName, type SavedContext } from '../contexts/file.ts'
import { UsageError } from '../io.ts'
import { signInByLoopback } from './loopback.ts'
import { exchangeJwt, type SavedLogin } from './saved-login.ts'

export interface LoginOptions {
  provider?: string | undefined
  device?: true | undefined
  jwtFile?: string | undefined
  /** False: only the address is printed. */
  browser: boolean
}

interface Target {
  name: string
  server: string
  ca: string | undefined
}

export async function login({ io }: Context, flags: ConnectionFlags, options: LoginOptions): Promise<void> {
  const path = contextsPath(io.env)
  if (path === null) throw new UsageError('neither XDG_CONFIG_HOME nor HOME is set: cannot store the login')
  if (options.device === true && options.jwtFile !== undefined) throw new UsageError('use --device or --jwt-file, not both')
  const target = targetOf(flags, io.env)
  const { name, server, ca } = target
  const open = createClient(io, { server, token: undefined, ca })
  const nowMs = () => io.clock.nowMs()
  let saved: { token: string; login: SavedLogin }
  if (options.jwtFile !== undefined) saved = await exchangeJwt(open, resolve(options.jwtFile), {}, nowMs)
  else {
    const provider = await providerOf(open, options.provider)
    const answer = options.device === true ? await byDevice(io, open, provider) : await byBrowser(io, open, provider, options.browser)
    saved = { token: answer.token, login: { provider, refreshToken: answer.refreshToken, expiresMs: nowMs() + answer.expiresInMs } }
  }
  const who = await createClient(io, { server, token: saved.token, ca }).get('/whoami', whoamiAnswerSchema)
  const login = { ...saved.login, ...(who.provider === null ? {} : { provider: who.provider }), user: who.name }
  changeContexts(path, (file) => {
    const before = Object.hasOwn(file.contexts, name) ? file.contexts[name] : undefined
    const context: SavedContext = { ...before, server, ...(ca === undefined ? {} : { ca }), token: saved.token, login }
    return { ...file, currentContext: name, contexts: { ...file.contexts, [name]: context } }
  })
  io.stdout.write(`signed in to ${server} as ${plainText(who.name)} (${plainText(who.provider ?? '')}); context ${name}\n`)
}

/** The context that the login is saved in: `--context`, else the one of the server, else a new one with the name of the
 *  host. */
function targetOf(flags: ConnectionFlags, env: Context['io']['env']): Target {
  const file = contextsOf(env)
  const wanted = flags.context ?? (env['SKERRY_CONTEXT'] || undefined)
  if (wanted !== undefined && !isContextName(wanted)) throw new UsageError(`invalid context name "${wanted}"`)
  const known = (name: string | undefined) => (name !== undefined && Object.hasOwn(file.contexts, name) ? file.contexts[name] : undefined)
  const given = flags.server ?? (flags.context === undefined ? env['SKERRY_SERVER'] || undefined : undefined)
  if (wanted !== undefined && known(wanted) === undefined && given === undefined)
    throw new UsageError(`the context "${wanted}" is new: set its --server`)
  const server = given ?? known(wanted ?? file.currentContext)?.server ?? SERVER_DEFAULT
  const names = [file.currentContext, ...Object.keys(file.contexts)]
  const name = wanted ?? names.find((one) => sameServer(known(one)?.server ?? '', server)) ?? hostOf(server)
  const saved = known(name)
  const caFile = flags.serverCa ?? (env['SKERRY_SERVER_CA'] || undefined)
  const kept = saved !== undefined && sameServer(saved.server, server) ? saved.ca : undefined
  return { name, server, ca: caFile === undefined ? kept : readAuthority(caFile) }
}

const hostOf = (server: string): string => {
  const host = URL.canParse(server) ? new URL(server).hostname : ''
  return isContextName(host) ? host : 'default'
}

async function providerOf(client: Client, wanted: string | undefined): Promise<string> {
  const { items } = await client.signIn('/providers', providersAnswerSchema)
  const names = items.map(({ name }) => name)
  const [only, ...others] = names
  if (only === undefined)
    throw new AppError('not_found', {
      doing: 'sign in',
      detail: 'the server has no identity provider',
      remedy: 'Use an API token, or ask an admin to set --oidc-config.',
    })
  if (wanted === undefined && others.length === 0) return only
  if (wanted !== undefined && names.includes(wanted)) return wanted
  const problem =
    wanted === undefined ? 'the server has several identity providers: use --provider' : `identity provider "${wanted}" does not exist`
  throw new UsageError(`${problem} (${names.map(plainText).join(', ')})`)
}

async function byBrowser(io: Context['io'], client: Client, provider: string, opens: boolean): Promise<TokenAnswer> {
  if (client.url.startsWith('unix:'))
    throw new UsageError('a browser cannot sign in through a unix socket: set --server to the URL of the server, or use --device')
  const { openBrowser, ...rest } = io
  const { code, verifier } = await signInByLoopback(
    { ...rest, ...(opens && openBrowser !== undefined ? { openBrowser } : {}) },
    (query) => `${client.url}/auth/login?${new URLSearchParams({ provider })}&${query}`,
    (url) => io.stderr.write(`Open this address in a browser of this machine to sign in:\n\n  ${url}\n\n`),
  )
  return client.signIn('/token', tokenAnswerSchema, { grant: 'code', code, verifier })
}

async function byDevice(io: Context['io'], client: Client, provider: string): Promise<TokenAnswer> {
  const { device, userCode, verificationUri, verificationUriComplete, expiresInMs, intervalMs } = await client.signIn(
    '/device',
    deviceAnswerSchema,
    { provider },
  )
  const address = plainText(verificationUriComplete ?? verificationUri)
  io.stderr.write(`Open ${address} in any browser, and check that it shows this code: ${plainText(userCode)}\n`)
  const untilMs = io.clock.nowMs() + expiresInMs
  while (io.clock.nowMs() < untilMs && io.signal?.aborted !== true) {
    await io.clock.sleep(intervalMs, io.signal)
    try {
      return await client.signIn('/token', tokenAnswerSchema, { grant: 'device', device })
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'sign_in_pending') throw error
    }
  }
  throw new AppError('sign_in_expired', { doing: 'sign in', detail: 'the code was not entered in time' })
}

export async function logout(context: Context): Promise<void> {
  const { io } = context
  const { context: name, server } = context.connection()
  const path = contextsPath(io.env)
  const saved = path === null || name === null ? undefined : contextsOf(io.env).contexts[name]
  if (path === null || name === null || saved?.login === undefined)
    throw new UsageError(`no login for ${server}; see \`skerry config get-contexts\``)
  try {
    await context.client().signOut()
  } catch (error) {
    // The login is forgotten in any case; on the server it ends by itself.
    const code = error instanceof AppError ? error.code : ''
    if (code !== 'unauthorized')
      io.stderr.write(`the server did not end the session: ${error instanceof Error ? plainText(error.message) : String(error)}\n`)
  }
  changeContexts(path, (file) => {
    const { token: _, login: __, ...rest } = file.contexts[name] ?? saved
    return { ...file, contexts: { ...file.contexts, [name]: rest } }
  })
  io.stdout.write(`signed out of ${server}\n`)
}

export async function whoami(context: Context, { output }: { output?: Output }): Promise<void> {
  const { io } = context
  const who = await context.client().get('/whoami', whoamiAnswerSchema)
  if (output === 'json') io.stdout.write(`${JSON.stringify(who, null, 2)}\n`)
  else if (output === 'yaml') io.stdout.write(toYaml(who))
  else if (output === 'name') io.stdout.write(`${plainText(who.name)}\n`)
  else
    io.stdout.write(
      linesOf(who)
        .map(([title, value]) => `${`${title}:`.padEnd(12)}${plainText(value)}\n`)
        .join(''),
    )
}

function linesOf({ kind, name, id, role, provider, subject, email, groups }: WhoamiAnswer): Array<readonly [string, string]> {
  return [
    ['Name', name],
    ['Kind', kind === 'token' ? 'API token' : kind],
    ['Id', id],
    ['Role', role ?? 'by role bindings only'],
    ...(provider === null ? [] : [['Provider', provider] as const]),
    ...(subject === null ? [] : [['Subject', subject] as const]),
    ...(email === null ? [] : [['E-mail', email] as const]),
    ...(provider === null ? [] : [['Groups', groups.join(', ') || 'none'] as const]),
  ]
}
