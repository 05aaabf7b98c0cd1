// Actions of the subcommands of `config`.
import { readFile } from 'node:fs/promises'
import { toYaml } from '../../../shared/adapters/yaml.ts'
import type { Column } from '../columns.ts'
import { type Context, type Output, printItems } from '../context.ts'
import { readAll, UsageError } from '../io.ts'
import { documentText } from '../printing/documents.ts'
import { contextsOf, readAuthority, savedContext } from './connection.ts'
import { type ContextsFile, changeContexts, contextsPath, isContextName, type SavedContext } from './file.ts'

interface NamedContext {
  name: string
  current: boolean
  server: string
  project: string | null
  user: string | null
  /** How requests are authenticated. Null means that the context has no credential. */
  credential: 'token' | 'login' | null
}

const COLUMNS: Column<NamedContext>[] = [
  { title: 'CURRENT', value: ({ current }) => (current ? '*' : null) },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'SERVER', value: ({ server }) => server },
  { title: 'PROJECT', value: ({ project }) => project },
  { title: 'CREDENTIAL', value: ({ credential }) => credential },
  { title: 'USER', value: ({ user }) => user },
]

export function getContexts(context: Context, options: { output?: Output; headers?: boolean }): void {
  const file = contextsOf(context.io.env)
  const items = Object.entries(file.contexts).map(([name, saved]) => ({
    name,
    current: name === file.currentContext,
    server: saved.server,
    project: saved.project ?? null,
    user: saved.login?.user ?? null,
    credential: saved.login !== undefined ? ('login' as const) : saved.token !== undefined ? ('token' as const) : null,
  }))
  printItems(context, items, { columns: COLUMNS, nameOf: ({ name }) => name, single: false, none: 'no contexts' }, options)
}

export function currentContext({ io }: Context): void {
  const { currentContext: name } = contextsOf(io.env)
  if (name === undefined) throw new UsageError('no current context; choose one with `skerry config use-context NAME`')
  io.stdout.write(`${name}\n`)
}

export function useContext({ io }: Context, name: string): void {
  changeContexts(pathOf(io.env), (file) => {
    savedContext(file, name)
    return { ...file, currentContext: name }
  })
  io.stdout.write(`context/${name} is current\n`)
}

export interface SetContextOptions {
  tokenFile?: string | undefined
  project?: string | undefined
  /** False: forget the CA. */
  ca: boolean
  use?: true | undefined
}

export async function setContext(
  { io }: Context,
  name: string,
  options: SetContextOptions,
  global: { server?: string | undefined; token?: string | undefined; serverCa?: string | undefined },
): Promise<void> {
  if (!isContextName(name))
    throw new UsageError(`invalid context name "${name}": use letters, digits and . _ @ : - (at most 63, a letter or digit first)`)
  if (!options.ca && global.serverCa !== undefined) throw new UsageError('use either --server-ca or --no-ca')
  const token = options.tokenFile === undefined ? global.token : await readToken(io, options.tokenFile)
  const ca = global.serverCa === undefined ? undefined : readAuthority(global.serverCa)
  const { server } = global
  if (server !== undefined && !(/^https?:\/\/[^/]/.test(server) && URL.canParse(server)) && !/^unix:\/./.test(server))
    throw new UsageError(`--server "${server}" is not an address: expected https://…, http://… or unix:/path`)
  let what = 'created'
  changeContexts(pathOf(io.env), (file) => {
    const before = Object.hasOwn(file.contexts, name) ? file.contexts[name] : undefined
    if (before === undefined && server === undefined) throw new UsageError(`the context "${name}" is new: set its --server`)
    if (before !== undefined) what = 'changed'
    const saved = withoutUndefined({
      ...before,
      server: server ?? before?.server ?? '',
      project: options.project ?? before?.project,
      ca: options.ca ? (ca ?? before?.ca) : undefined,
      token: token ?? keptToken(before, server),
      login: token === undefined ? keptLogin(before, server) : undefined,
    })
    const isCurrent = options.use === true || file.currentContext === undefined
    return { ...file, ...(isCurrent ? { currentContext: name } : {}), contexts: { ...file.contexts, [name]: saved } }
  })
  io.stdout.write(`context/${name} ${what}\n`)
}

/** A credential belongs to its server: it is dropped when the address changes. */
const keptToken = (before: SavedContext | undefined, server: string | undefined) =>
  before === undefined || (server !== undefined && server !== before.server) ? undefined : before.token
const keptLogin = (before: SavedContext | undefined, server: string | undefined) =>
  before === undefined || (server !== undefined && server !== before.server) ? undefined : before.login

export function deleteContext({ io }: Context, name: string): void {
  let wasCurrent = false
  changeContexts(pathOf(io.env), (file) => {
    savedContext(file, name)
    wasCurrent = file.currentContext === name
    const { [name]: _, ...contexts } = file.contexts
    const { currentContext: current, ...rest } = file
    return { ...rest, ...(current === undefined || wasCurrent ? {} : { currentContext: current }), contexts }
  })
  io.stdout.write(`context/${name} deleted\n`)
  if (wasCurrent) io.stderr.write('deleted the current context; choose another one with `skerry config use-context NAME`\n')
}

export function viewConfig({ io }: Context, { raw, output }: { raw?: true | undefined; output?: Output }): void {
  const file = contextsOf(io.env)
  const shown = raw === true ? file : withoutSecrets(file)
  io.stdout.write(documentText(shown, output) ?? toYaml(shown))
}

const HIDDEN = 'REDACTED'
/** Only members known to be harmless are shown: a newer program may have saved other secrets. */
function withoutSecrets(file: ContextsFile): ContextsFile {
  const contexts = Object.entries(file.contexts).map(([name, saved]) => [name, hidden(saved, ['server', 'project', 'ca'])] as const)
  return { ...file, contexts: Object.fromEntries(contexts) }
}

function hidden(saved: SavedContext, known: readonly string[]): SavedContext {
  const { login } = saved
  const members = Object.entries(saved).map(([key, value]) => [key, known.includes(key) ? value : HIDDEN] as const)
  const open = ['provider', 'user', 'expiresMs']
  const shownLogin = Object.entries(login ?? {}).map(([key, value]) => [key, open.includes(key) ? value : HIDDEN] as const)
  return { ...Object.fromEntries(members), server: saved.server, ...(login === undefined ? {} : { login: Object.fromEntries(shownLogin) }) }
}

function pathOf(env: Context['io']['env']): string {
  const path = contextsPath(env)
  if (path === null) throw new UsageError('neither XDG_CONFIG_HOME nor HOME is set: cannot store contexts')
  return path
}

async function readToken(io: Context['io'], file: string): Promise<string> {
  let text: string
  try {
    text = file === '-' ? await readAll(io) : await readFile(file, 'utf8')
  } catch (error) {
    throw new UsageError(`cannot read --token-file ${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
  const token = text.trim()
  if (token === '' || /\s/.test(token)) throw new UsageError(`--token-file ${file} does not hold exactly one token`)
  return token
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T
}
