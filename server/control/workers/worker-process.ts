// One process of a worker: starts it, greets it, watches it while it has jobs, and ends it with all that it started.
// The pool decides which job goes to which worker.
import { existsSync, readFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { childrenOf, offerToKernel, processorMsOf } from '../../render/sandbox/tree-size.ts'
import { type CallOptions, Channel, type Reply } from '../../worker/channel/channel.ts'
import { ASKED_AT_ONCE_MAX, FROM_WORKER, type Greeting, greetedSchema } from '../../worker/channel/messages.ts'

export interface WorkerLimits {
  /** Resident memory of the worker itself. Programs that it starts have limits of their own. */
  memoryBytes: number
  /** Longest time without a sign of life while it has jobs. */
  silentMs: number
  /** Time to answer the greeting. */
  startMs: number
}

export const WORKER_LIMITS: Omit<WorkerLimits, 'memoryBytes'> = { silentMs: 15_000, startMs: 30_000 }

/** Why a worker ended. */
export type WorkerEnd =
  | { why: 'memory'; detail: string }
  | { why: 'silent'; detail: string }
  | { why: 'deadline'; detail: string }
  | { why: 'ended'; detail: string }
  /** Control ended it on purpose. */
  | { why: 'closed'; detail: string }

export interface WorkerHandle {
  call(method: string, value: unknown, options: CallOptions): Promise<Reply>
  /** Resident memory of the worker itself; 0 when the kernel does not tell. */
  memoryBytes(): number
  /** Processor time of the worker itself; null when the kernel does not tell. */
  processorMs(): number | null
  kill(end: WorkerEnd): void
  /** Gives the worker CLOSE_MS to end what it started. */
  close(): Promise<void>
  readonly ended: Promise<WorkerEnd>
}

export interface WorkerLaunch {
  command: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
}

export interface WorkerProcessDeps {
  clock: Clock
  log: Logger
  limits: WorkerLimits
}

/** Agents and people have precedence over renders when the processors are busy. */
const NICE = 5
/** Interval of the memory check. */
const LOOK_EVERY_MS = 100
const PAGE_BYTES = 4_096
/** Time for a worker to end its programs and remove folders with keys. */
const CLOSE_MS = 3_000

/** Resolves when the worker has answered the greeting. Rejects with the reason why it cannot be used. */
export async function startWorkerProcess(launch: WorkerLaunch, greeting: Greeting, deps: WorkerProcessDeps): Promise<WorkerHandle> {
  const worker = new WorkerProcess(launch, deps)
  const patience = AbortSignal.timeout(deps.limits.startMs)
  try {
    greetedSchema.parse((await worker.call('greet', greeting, { signal: patience })).value)
    return worker
  } catch (error) {
    worker.kill({ why: 'closed', detail: 'it received no greeting' })
    await worker.ended
    throw patience.aborted ? new Error(`it did not answer within ${deps.limits.startMs / 1_000} s`) : error
  }
}

class WorkerProcess implements WorkerHandle {
  readonly ended: Promise<WorkerEnd>
  private readonly child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>
  private readonly channel: Channel
  private readonly deps: WorkerProcessDeps
  private calls = 0
  private watching = false
  private silentMs = 0
  private end: WorkerEnd | null = null

  constructor({ command, env, cwd }: WorkerLaunch, deps: WorkerProcessDeps) {
    this.deps = deps
    // In a process group of its own, so that a Ctrl-C for the server does not end workers before their jobs.
    this.child = Bun.spawn([...command], { env: { ...env }, cwd, stdin: 'pipe', stdout: 'pipe', stderr: 'inherit', detached: true })
    offerToKernel(this.child.pid)
    giveWay(this.child.pid)
    const { stdin, stdout } = this.child
    this.channel = new Channel({
      stream: {
        incoming: stdout,
        async write(bytes) {
          stdin.write(bytes)
          await stdin.flush()
        },
        end: () => void stdin.end(),
      },
      handlers: {},
      limits: FROM_WORKER,
      callsMax: ASKED_AT_ONCE_MAX,
      onHeard: () => {
        this.silentMs = 0
      },
    })
    this.ended = this.run()
  }

  call(method: string, value: unknown, options: CallOptions): Promise<Reply> {
    this.calls += 1
    this.silentMs = 0
    if (!this.watching) void this.watch()
    const ended = () => {
      this.calls -= 1
      options.ended?.()
    }
    return this.channel.call(method, value, { ...options, ended })
  }

  memoryBytes(): number {
    try {
      return Number(readFileSync(`/proc/${this.child.pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES
    } catch {
      return 0
    }
  }

  processorMs(): number | null {
    return processorMsOf(this.child.pid)
  }

  kill(end: WorkerEnd): void {
    if (this.end !== null) return
    this.end = end
    this.endAll()
    this.channel.end(end.detail)
  }

  private endAll(): void {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    this.child.kill('SIGSTOP') // or it would start more meanwhile
    const started = descendantsOf(this.child.pid)
    this.child.kill('SIGKILL')
    for (const pid of started) endProcess(pid)
  }

  async close(): Promise<void> {
    this.end ??= { why: 'closed', detail: 'the server stops' }
    this.channel.end(this.end.detail) // which closes its pipe
    const done = new AbortController()
    await Promise.race([this.ended.finally(() => done.abort()), this.deps.clock.sleep(CLOSE_MS, done.signal)])
    this.endAll()
    await this.ended
  }

  private async run(): Promise<WorkerEnd> {
    await this.channel.run()
    // The worker sent a malformed message or is ending. It gets no more jobs either way.
    this.kill({ why: 'ended', detail: 'it sent an invalid message' })
    await this.child.exited
    const { exitCode, signalCode } = this.child
    if (this.end?.why !== 'ended') return this.end ?? { why: 'ended', detail: '' }
    return { why: 'ended', detail: signalCode === null ? `it exited with code ${exitCode}` : `it was stopped by ${signalCode}` }
  }

  /** Runs while there are jobs. A machine that was suspended counts as one interval. */
  private async watch(): Promise<void> {
    const { clock, limits } = this.deps
    this.watching = true
    let lastMs = clock.monotonicMs()
    while (this.calls > 0 && this.end === null) {
      await clock.sleep(LOOK_EVERY_MS)
      const nowMs = clock.monotonicMs()
      this.silentMs += Math.min(Math.max(0, nowMs - lastMs), 2 * LOOK_EVERY_MS)
      lastMs = nowMs
      const bytes = this.memoryBytes()
      if (bytes > limits.memoryBytes)
        this.kill({ why: 'memory', detail: `used more than ${Math.round(limits.memoryBytes / 1024 / 1024)} MiB of memory` })
      else if (this.silentMs > limits.silentMs)
        this.kill({ why: 'silent', detail: `gave no sign of life for ${limits.silentMs / 1_000} s` })
    }
    this.watching = false
  }
}

/** Programs of a worker may lead process groups of their own. */
function descendantsOf(pid: number): number[] {
  const found = childrenOf(pid)
  for (const one of found) found.push(...childrenOf(one))
  return found
}

function giveWay(pid: number): void {
  try {
    setPriority(pid, NICE)
  } catch {} // not every machine lets a process do that
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {} // it has ended
}

/** Starts this program again as a worker, also after its file was replaced. */
export function ownLaunch(env: Readonly<Record<string, string | undefined>>, cwd: string): WorkerLaunch {
  const isBinary = import.meta.url.includes('$bunfs')
  const self = existsSync('/proc/self/exe') ? '/proc/self/exe' : process.execPath
  const command = isBinary ? [self, 'worker'] : [process.execPath, new URL('../../worker/main.ts', import.meta.url).pathname]
  return { command, env: workerEnv(env), cwd }
}

/** Variables that programs and connections need. Others may be secrets of the server, such as PGPASSWORD. */
const PASSED = ['PATH', 'TZ', 'LANG', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'TMPDIR', 'LD_LIBRARY_PATH']
const workerEnv = (env: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
