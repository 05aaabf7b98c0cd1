// Which server a command talks to, and with which credential: flags, then environment, then the contexts file.
import { readFileSync } from 'node:fs'
import { nearest } from '../../../shared/runtime/edit-distance.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { SERVER_DEFAULT } from '../command-options.ts'
import { type CliIo, UsageError } from '../io.ts'
import { type ContextsFile, contextsPath, emptyContexts, readContexts, type SavedContext } from './file.ts'

export interface ConnectionFlags {
  server?: string | undefined
  token?: string | undefined
  serverCa?: string | undefined
  context?: string | undefined
}

export interface Connection {
  server: string
  token: string | undefined
  /** PEM. Undefined means the public certificate authorities. */
  ca: string | undefined
  project: string | undefined
  /** Context that gave the server. Null means none did. */
  context: string | null
  /** The token is that of the context's login, which renews it. */
  isLogin?: true
}

/**
 * --server and --token win over --context, it over SKERRY_SERVER and SKERRY_TOKEN, they over SKERRY_CONTEXT and the
 * current context. The token and the CA of a context go to its own server only.
 */
export function resolveConnection(flags: ConnectionFlags, env: CliIo['env'], read: () => ContextsFile = () => contextsOf(env)): Connection {
  const given = { server: set(flags.server) ?? serverOfEnv(flags, env), token: set(flags.token) ?? tokenOfEnv(flags, env) }
  const caFile = set(flags.serverCa) ?? set(env['SKERRY_SERVER_CA'])
  const ca = caFile === undefined ? undefined : readAuthority(caFile)
  // A pipeline that sets both needs no file, and none that it cannot read.
  const isComplete = given.server !== undefined && given.token !== undefined && flags.context === undefined
  const chosen = isComplete ? null : chooseContext(flags.context ?? set(env['SKERRY_CONTEXT']), read())
  const server = given.server ?? chosen?.saved.server ?? SERVER_DEFAULT
  const own = chosen !== null && sameServer(chosen.saved.server, server) ? chosen : null
  return {
    server,
    token: given.token ?? own?.saved.token,
    ca: ca ?? own?.saved.ca,
    project: own?.saved.project,
    context: own?.name ?? null,
    ...(given.token === undefined && own?.saved.login !== undefined ? { isLogin: true } : {}),
  }
}

const set = (text: string | undefined): string | undefined => (text === '' ? undefined : text)
const serverOfEnv = ({ context }: ConnectionFlags, env: CliIo['env']) => (context === undefined ? set(env['SKERRY_SERVER']) : undefined)
const tokenOfEnv = ({ context }: ConnectionFlags, env: CliIo['env']) => (context === undefined ? set(env['SKERRY_TOKEN']) : undefined)

export function contextsOf(env: CliIo['env']): ContextsFile {
  const path = contextsPath(env)
  return path === null ? emptyContexts() : readContexts(path)
}

function chooseContext(name: string | undefined, file: ContextsFile): { name: string; saved: SavedContext } | null {
  const wanted = name ?? file.currentContext
  if (wanted === undefined || wanted === '') return null
  return { name: wanted, saved: savedContext(file, wanted) }
}

export function savedContext(file: ContextsFile, name: string): SavedContext {
  const saved = Object.hasOwn(file.contexts, name) ? file.contexts[name] : undefined
  if (saved !== undefined) return saved
  const known = Object.keys(file.contexts)
  const near = nearest(name, known)
  const hint =
    near !== null ? `; did you mean "${near}"?` : known.length === 0 ? '; no contexts exist yet' : `; contexts: ${known.join(', ')}`
  throw new UsageError(`context "${name}" does not exist${hint}`)
}

export const sameServer = (a: string, b: string): boolean => canonical(a) === canonical(b)
const canonical = (address: string): string => (URL.canParse(address) ? new URL(address).href : address).replace(/\/+$/, '')

/** The certificates of a `--server-ca` file. */
export function readAuthority(path: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new AppError('bad_options', { detail: `--server-ca ${path} cannot be read`, remedy: 'Name a readable PEM file.' }, { cause })
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw new AppError('bad_options', { detail: `--server-ca ${path} has no PEM certificate`, remedy: 'Name a PEM file.' })
}
