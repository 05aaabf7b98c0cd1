// One process with all that comes of it: fed, watched, and ended at the first limit that it meets.
import { closeSync, openSync } from 'node:fs'
import type { Subprocess } from 'bun'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { SandboxLimits, SandboxOutcome } from '../sandbox.ts'
import type { StartCommand } from './command.ts'
import { childrenOf, measureTree, offerToKernel, putFirst } from './tree-size.ts'

/** SB5, both. */
export const STDERR_BYTES_MAX = 64 * 1024
export const PROCESSES_MAX = 64
/** Between two looks at what the process takes. In that time a program that takes memory as fast as it can gets some 50
 *  MiB. */
const LOOK_EVERY_MS = 25

type Stop = Pick<Extract<SandboxOutcome, { kind: 'stopped' }>, 'why' | 'message'>
type Child = Subprocess<Uint8Array | 'ignore', 'pipe', 'pipe'>

export interface ProcessOptions {
  command: StartCommand
  stdin: Uint8Array | undefined
  limits: SandboxLimits
  /** For messages: `helm`. */
  name: string
  /** The process is the first of a namespace, and its end is that of all. Else each one is ended. */
  contained: boolean
  /** Told the processor time of the process and all that it started, however it ended. Between two looks it is an
   *  estimate. */
  spent?(processorMs: number): void
}

/** Resolves when nothing of it is left. Rejects with the signal's reason when that aborts. */
export async function runProcess(
  { command, stdin, limits, name, contained, spent }: ProcessOptions,
  clock: Clock,
  signal?: AbortSignal,
): Promise<SandboxOutcome> {
  signal?.throwIfAborted()
  const child = start(command, stdin, name)
  offerToKernel(child.pid)
  let stopped: Stop | null = null
  const end = (why: Stop | null) => {
    stopped ??= why
    kill(child, contained)
  }
  const onAbort = () => end(null)
  signal?.addEventListener('abort', onAbort, { once: true })
  const ended = new AbortController()
  let looked = { processorMs: 0, atMs: clock.monotonicMs() }
  const used = (processorMs: number) => {
    looked = { processorMs: Math.max(looked.processorMs, processorMs), atMs: clock.monotonicMs() }
  }
  const watching = Promise.all([
    watch(child.pid, name, limits, clock, ended.signal, { stop: end, used }),
    clock.sleep(limits.timeoutMs, ended.signal).then(() => {
      if (!ended.signal.aborted) end({ why: 'time', message: `${name} ran longer than ${limits.timeoutMs / 1_000} s and was stopped` })
    }),
  ])
  const tooMuch = () => end({ why: 'output', message: `${name} wrote more than ${mebibytes(limits.outputBytes)} and was stopped` })
  try {
    const [stdout, stderr] = await Promise.all([
      collect(child.stdout, limits.outputBytes, tooMuch),
      collect(child.stderr, STDERR_BYTES_MAX, () => {}),
      child.exited,
    ])
    signal?.throwIfAborted()
    const said = new TextDecoder().decode(stderr)
    const why = stopped ?? (child.exitCode === 0 ? null : limitMet(child, said, name, limits))
    return why === null ? { kind: 'done', exitCode: child.exitCode ?? 1, stdout, stderr: said } : { kind: 'stopped', ...why, stderr: said }
  } finally {
    ended.abort()
    signal?.removeEventListener('abort', onAbort)
    await watching
    spent?.(looked.processorMs + Math.min(LOOK_EVERY_MS, clock.monotonicMs() - looked.atMs))
  }
}

/** Throws `sandbox_unavailable`: the kernel takes no such arguments, or has no room for another process. */
function start({ argv, env, cwd, filter }: StartCommand, stdin: Uint8Array | undefined, name: string): Child {
  // Opened again: each reader starts at its beginning.
  const own = filter === null ? null : openSync(`/proc/self/fd/${filter}`, 'r')
  try {
    return Bun.spawn(argv, {
      env,
      ...(cwd === null ? {} : { cwd }),
      stdio: [stdin ?? 'ignore', 'pipe', 'pipe', ...(own === null ? [] : [own])],
      detached: true,
    })
  } catch (error) {
    const detail = `${name} cannot be started: ${describeError(error).slice(0, 300)}`
    throw new AppError(
      'sandbox_unavailable',
      { doing: 'render', detail, remedy: 'Check the process and memory limits of this server.' },
      { cause: error },
    )
  } finally {
    if (own !== null) closeSync(own)
  }
}

function kill(child: Child, contained: boolean): void {
  // Contained: the first process of the namespace, with which all others end. It must get its turn among those that it
  // is to end.
  for (const pid of contained ? childrenOf(child.pid) : descendants(child.pid)) {
    putFirst(pid)
    end(pid)
  }
  child.kill('SIGKILL')
}

function descendants(pid: number): number[] {
  const found = childrenOf(pid)
  for (const one of found) found.push(...childrenOf(one))
  return found
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {} // it has ended by itself
}

async function watch(
  pid: number,
  name: string,
  limits: SandboxLimits,
  clock: Clock,
  ended: AbortSignal,
  { stop, used }: { stop: (why: Stop) => void; used: (processorMs: number) => void },
): Promise<void> {
  for (;;) {
    await clock.sleep(LOOK_EVERY_MS, ended)
    if (ended.aborted) return
    const { processes, memoryBytes, processorMs } = measureTree(pid)
    used(processorMs)
    if (memoryBytes > limits.memoryBytes) stop(memoryStop(name, limits))
    else if (processes > PROCESSES_MAX)
      stop({ why: 'processes', message: `${name} started more than ${PROCESSES_MAX} processes and was stopped` })
  }
}

const memoryStop = (name: string, { memoryBytes }: SandboxLimits): Stop => ({
  why: 'memory',
  message: `${name} used more than ${mebibytes(memoryBytes)} of memory and was stopped`,
})

/** The kernel's own limits end a process by a signal, or by an answer that Go takes for its end. */
function limitMet(child: Child, stderr: string, name: string, limits: SandboxLimits): Stop | null {
  const { signalCode, exitCode } = child
  if (signalCode === 'SIGXCPU' || exitCode === 128 + 24)
    return { why: 'time', message: `${name} used too much processor time and was stopped` }
  if (
    /^(fatal error: |runtime: |panic: )?.*(out of memory|cannot allocate memory)/m.test(stderr) &&
    /^(fatal error|runtime):/m.test(stderr)
  )
    return memoryStop(name, limits)
  if (BY_OTHERS.includes(signalCode) || exitCode === KILLED)
    return { why: 'ended', message: `${name} was killed, probably because this server ran out of memory` }
  return null
}

/** Signals that a program does not send to itself: they come from the kernel that needs memory, or from a person. */
const BY_OTHERS: ReadonlyArray<Child['signalCode']> = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP']
/** As bubblewrap and shells tell it of the program that they started. Of other signals not: programs end with such
 *  codes by themselves, git with 129. */
const KILLED = 128 + 9

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`

/** At most `bytesMax`; what is beyond is read and dropped, so that the writer does not wait for ever. */
async function collect(stream: ReadableStream<Uint8Array>, bytesMax: number, onMore: () => void): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  let told = false
  for await (const chunk of stream) {
    if (size + chunk.byteLength <= bytesMax) chunks.push(chunk)
    else {
      if (size < bytesMax) chunks.push(chunk.subarray(0, bytesMax - size))
      if (!told) onMore()
      told = true
    }
    size += chunk.byteLength
  }
  return new Uint8Array(Buffer.concat(chunks))
}
