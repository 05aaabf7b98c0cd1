// The contexts file: which servers a person uses, and the credentials for them. `skerry config` and `skerry login`
// write it; nothing else does.
import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { z } from 'zod'
import { parseYamlDocuments, toYaml } from '../../../shared/adapters/yaml.ts'
import { systemClock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'

const FORMAT = 'skerry.dev/cli/v1'

/** Unknown members are kept: a newer program may have written them. */
export const savedContextSchema = z.looseObject({
  /** Address of the server: https://…, http://… or unix:/path. */
  server: z.string().min(1),
  /** Project of commands that name none. */
  project: z.string().optional(),
  /** Certificates in PEM that this server's certificate must lead to, in place of the public ones. */
  ca: z.string().optional(),
  /** Bearer token for the server. */
  token: z.string().optional(),
  /** How `skerry login` got the token, and how it gets the next one. */
  login: z
    .looseObject({
      provider: z.string().optional(),
      user: z.string().optional(),
      expiresMs: z.number().optional(),
      refreshToken: z.string().optional(),
      /** A pipeline's: the file of the JWT that is exchanged. */
      jwtFile: z.string().optional(),
    })
    .optional(),
})
export type SavedContext = z.infer<typeof savedContextSchema>

const fileSchema = z.looseObject({
  apiVersion: z.literal(FORMAT),
  currentContext: z.string().optional(),
  contexts: z.record(z.string(), savedContextSchema),
})
export type ContextsFile = z.infer<typeof fileSchema>

const CONTEXT_NAME = /^[A-Za-z0-9][A-Za-z0-9._@:-]{0,62}$/
export const isContextName = (name: string): boolean => CONTEXT_NAME.test(name)

export const emptyContexts = (): ContextsFile => ({ apiVersion: FORMAT, contexts: {} })

/**
 * Null if neither XDG_CONFIG_HOME nor HOME is set. A relative XDG_CONFIG_HOME is ignored, as its specification says.
 */
export function contextsPath(env: Record<string, string | undefined>): string | null {
  const xdg = env['XDG_CONFIG_HOME'] ?? ''
  if (isAbsolute(xdg)) return join(xdg, 'skerry', 'config.yaml')
  const home = env['HOME'] ?? ''
  return isAbsolute(home) ? join(home, '.config', 'skerry', 'config.yaml') : null
}

/** Empty if there is no file. */
export function readContexts(path: string): ContextsFile {
  let text: string
  try {
    // Windows has no such modes: the folder of the user keeps others out.
    const { mode } = statSync(path)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw unusable(
        path,
        `can be read or written by other users (mode ${(mode & 0o777).toString(8)}), and holds tokens`,
        `Run: chmod 600 ${path}`,
      )
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (isMissing(error)) return emptyContexts()
    if (error instanceof AppError) throw error
    throw unusable(path, `cannot be read: ${messageOf(error)}`, 'Correct the permissions of the file and its folder.')
  }
  const { documents, problems } = parseYamlDocuments(text, { file: path })
  const [problem] = problems
  // The message of a parser may quote a token: the place alone is shown.
  if (problem !== undefined) throw unusable(path, `is not YAML (at ${problem.path})`, REPAIR)
  if (documents.length === 0) return emptyContexts()
  const parsed = fileSchema.safeParse(documents[0]?.value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw unusable(path, `is not a contexts file of this version: ${issue?.path.join('.') || 'the document'} is missing or wrong`, REPAIR)
}

const REPAIR = 'Correct the file, or move it elsewhere and run `skerry config set-context`.'
const LOCK_TRIES = 40
const LOCK_WAIT_MS = 50
/** A lock this old was left by a program that was killed. */
const LOCK_STALE_MS = 10_000

/** Reads, changes and writes the file under a lock; the file is replaced whole, and only its user can read it. */
export function changeContexts(path: string, change: (file: ContextsFile) => ContextsFile): ContextsFile {
  const target = targetOf(path)
  try {
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
    const unlock = lock(`${target}.lock`)
    try {
      const changed = change(readContexts(target))
      replaceFile(target, toYaml(changed))
      return changed
    } finally {
      unlock()
    }
  } catch (error) {
    if (error instanceof AppError || !isSystemError(error)) throw error
    throw unusable(path, `cannot be written: ${messageOf(error)}`, 'Correct the permissions of the file and its folder.')
  }
}

/** A link stays a link: the file that it names is replaced. */
function targetOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function replaceFile(path: string, text: string): void {
  const next = `${path}.${process.pid}.new`
  rmSync(next, { force: true })
  const file = openSync(next, 'wx', 0o600)
  try {
    writeSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  // An odd umask may have taken the owner's own rights.
  chmodSync(next, 0o600)
  renameSync(next, path)
}

function lock(path: string): () => void {
  for (let tries = 1; ; tries++) {
    try {
      closeSync(openSync(path, 'wx', 0o600))
      return () => rmSync(path, { force: true })
    } catch (error) {
      if (!(isSystemError(error) && error.code === 'EEXIST')) throw error
      if (isStale(path)) rmSync(path, { force: true })
      else if (tries >= LOCK_TRIES)
        throw unusable(path, 'exists: another skerry is changing the contexts', `If no other skerry runs, delete ${path}.`)
      else Bun.sleepSync(LOCK_WAIT_MS)
    }
  }
}

function isStale(path: string): boolean {
  try {
    return systemClock.nowMs() - statSync(path).mtimeMs > LOCK_STALE_MS
  } catch {
    return false
  }
}

const isSystemError = (error: unknown): error is NodeJS.ErrnoException => error instanceof Error && 'code' in error
const isMissing = (error: unknown): boolean => isSystemError(error) && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
const unusable = (path: string, detail: string, remedy: string): AppError =>
  new AppError('bad_options', { detail: `the contexts file ${path} ${detail}`, remedy })
