// One run of the git program: arguments as a list, an environment of nothing but what is named, bounds on time, output
// and disk, and an end for all that it started.

import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'

export interface GitRun {
  program: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  stdin?: string
  timeoutMs: number
  /** Takes standard output as it comes; throws to stop. Without it, it is collected. */
  onOutput?: (chunk: Uint8Array) => void
  /** Asked while it runs; a text says why it must stop. */
  watch?: () => Promise<string | null>
}

export interface GitRunDeps {
  clock: Clock
  /** The server stops. */
  stopping: AbortSignal | null
  /** Aborts when its result is no longer needed. */
  cancelled?: AbortSignal | undefined
}

export interface GitDone {
  exitCode: number
  stdout: string
  stderr: string
  /** Why it was stopped. Null means that it ended by itself. */
  stopped: { why: 'time' | 'stopping' | 'limit'; message: string } | null
}

const STDERR_KEPT_MAX = 64 * 1024
const STDOUT_MAX = 64 * 1024 * 1024
const WATCH_MS = 500

/** Runs the git program until it ends or a limit (time, disk, the server stops) ends it with all that it started; the
 *  outcome says which. A code other than 0 is an outcome, too. */
export async function runGit(run: GitRun, { clock, stopping, cancelled }: GitRunDeps): Promise<GitDone> {
  const child = start(run)
  const ended = new AbortController()
  let stopped: GitDone['stopped'] = null
  const stop = (why: 'time' | 'stopping' | 'limit', message: string) => {
    stopped ??= { why, message }
    endGroup(child.pid)
  }
  const onStopping = () => stop('stopping', 'the server stops')
  if (stopping?.aborted) onStopping()
  stopping?.addEventListener('abort', onStopping, { once: true })
  const onCancelled = () => stop('stopping', 'it was cancelled')
  if (cancelled?.aborted) onCancelled()
  cancelled?.addEventListener('abort', onCancelled, { once: true })
  void clock.sleep(run.timeoutMs, ended.signal).then(() => {
    if (!ended.signal.aborted) stop('time', `did not end within ${run.timeoutMs / 1000} s`)
  })
  if (run.watch !== undefined) void watchOver(run.watch, clock, ended.signal, (message) => stop('limit', message))
  try {
    const errors = readStart(child.stderr, STDERR_KEPT_MAX)
    const output = readAll(child.stdout, run.onOutput)
    const [stdout, stderr, exitCode] = await Promise.all([output, errors, child.exited])
    return { exitCode, stdout, stderr, stopped }
  } finally {
    ended.abort()
    stopping?.removeEventListener('abort', onStopping)
    cancelled?.removeEventListener('abort', onCancelled)
    endGroup(child.pid) // whatever it left behind
  }
}

function start({ program, args, env, stdin }: GitRun) {
  try {
    const input = stdin === undefined ? 'ignore' : new Blob([stdin])
    return Bun.spawn([program, ...args], { env: { ...env }, cwd: '/', stdin: input, stdout: 'pipe', stderr: 'pipe', detached: true })
  } catch (error) {
    throw new AppError('git_program_missing', { detail: `${program} cannot be started` }, { cause: error })
  }
}

/** It leads a process group of its own: ssh, index-pack and what else it started go with it. */
function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // no process of the group is left
  }
}

async function watchOver(
  watch: () => Promise<string | null>,
  clock: Clock,
  ended: AbortSignal,
  stop: (message: string) => void,
): Promise<void> {
  while (!ended.aborted) {
    await clock.sleep(WATCH_MS, ended)
    const message = ended.aborted ? null : await watch().catch(() => null)
    if (message !== null) return stop(message)
  }
}

async function readAll(stream: ReadableStream<Uint8Array>, onOutput: GitRun['onOutput']): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    if (onOutput !== undefined) {
      onOutput(chunk)
      continue
    }
    size += chunk.byteLength
    if (size > STDOUT_MAX) throw new AppError('git_failed', { detail: `git answers with more than ${STDOUT_MAX / 1024 / 1024} MiB` })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

async function readStart(stream: ReadableStream<Uint8Array>, bytesMax: number): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of stream) if (text.length < bytesMax) text += decoder.decode(chunk, { stream: true })
  return text.slice(0, bytesMax)
}
