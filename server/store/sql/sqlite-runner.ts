// Runs fleet queries in processes of their own, which are ended when they take too long or too much memory. One query a
// process at a time; a few more wait.
import { existsSync, readFileSync } from 'node:fs'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { FairLine } from '../fair-line.ts'
import { failedQuery, memoryIsUp, type SqlRunner, type SqlStatement, timeIsUp } from './fleet-sql.ts'
import type { ProcessAnswer, ProcessQuestion } from './query-process.ts'

export interface SqliteRunnerOptions {
  path: string
  clock: Clock
  /** Memory limit of one process; default MEMORY_MIB. */
  memoryMib?: number
}

/** At the same time. */
const PROCESSES_MAX = 2
const WAITING_MAX = 16
const MEMORY_MIB = 512
const LOOK_EVERY_MS = 50
const PAGE_BYTES = 4_096
/** An unused process is ended. */
const IDLE_MS = 300_000

type Child = Bun.Subprocess<'pipe', 'pipe', 'ignore'>
interface Running {
  child: Child
  reader: ReadableStreamDefaultReader<Uint8Array>
  idle: AbortController
}

export function createSqliteRunner({ path, clock, memoryMib = MEMORY_MIB }: SqliteRunnerOptions): SqlRunner {
  const idle: Running[] = []
  const all = new Set<Running>()
  const turns = createTurns(PROCESSES_MAX, clock)
  let closed = false

  const end = (running: Running): void => {
    all.delete(running)
    running.idle.abort()
    running.child.kill('SIGKILL')
  }
  const start = (): Running => {
    const child = Bun.spawn(ownCommand(), { stdin: 'pipe', stdout: 'pipe', stderr: 'ignore', env: {}, detached: true })
    const running = { child, reader: child.stdout.getReader(), idle: new AbortController() }
    all.add(running)
    return running
  }
  const rest = (running: Running): void => {
    running.idle = new AbortController()
    const { signal } = running.idle
    idle.push(running)
    void clock.sleep(IDLE_MS, signal).then(() => {
      const at = idle.indexOf(running)
      if (signal.aborted || at < 0) return
      idle.splice(at, 1)
      end(running)
    })
  }

  async function ask(running: Running, { sql, rowsMax, msMax }: SqlStatement, signal?: AbortSignal): Promise<ProcessAnswer> {
    const over = Promise.withResolvers<never>()
    const done = new AbortController()
    const onAbort = () => over.reject(nobodyWaits())
    signal?.addEventListener('abort', onAbort, { once: true })
    void clock.sleep(msMax, done.signal).then(() => done.signal.aborted || over.reject(timeIsUp(msMax)))
    void watchMemory(running, done.signal).then((isOver) => isOver && over.reject(memoryIsUp(memoryMib)))
    try {
      running.child.stdin.write(`${JSON.stringify({ path, sql, rowsMax } satisfies ProcessQuestion)}\n`)
      await running.child.stdin.flush()
      const line = await Promise.race([readLine(running.reader), over.promise])
      return JSON.parse(line) as ProcessAnswer
    } finally {
      done.abort()
      signal?.removeEventListener('abort', onAbort)
    }
  }

  async function watchMemory({ child }: Running, done: AbortSignal): Promise<boolean> {
    while (!done.aborted) {
      await clock.sleep(LOOK_EVERY_MS, done)
      if (residentBytes(child.pid) > memoryMib * 1_048_576) return !done.aborted
    }
    return false
  }

  return {
    run: (statement, signal) =>
      turns.run(async () => {
        if (closed) throw stopping()
        const running = idle.pop() ?? start()
        running.idle.abort()
        let answer: ProcessAnswer
        try {
          answer = await ask(running, statement, signal)
        } catch (error) {
          end(running)
          throw error
        }
        rest(running)
        if ('failed' in answer) throw failedQuery()
        return answer
      }, signal),
    close: async () => {
      closed = true
      turns.end(stopping)
      const ended = [...all].map(({ child }) => child.exited)
      for (const running of [...all]) end(running)
      await Promise.all(ended)
    },
  }
}

/** Callers share the places of queries. */
export const createTurns = (places: number, clock: Clock): FairLine =>
  new FairLine({ places, waitingMax: WAITING_MAX, clock, full: tooMany, gone: nobodyWaits })

const tooMany = (): AppError =>
  new AppError('too_many_requests', { detail: 'many fleet queries run at the same time', retryAfterMs: 2_000 })
const nobodyWaits = (): AppError => new AppError('unavailable', { doing: 'run the query', detail: 'the caller no longer waits' })
export const stopping = (): AppError => new AppError('unavailable', { doing: 'run the query', detail: 'the server is stopping' })

async function readLine(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) throw new AppError('unavailable', { doing: 'run the query', detail: 'its process ended' })
    parts.push(value)
    if (value.at(-1) === 10) return Buffer.concat(parts).toString('utf8')
  }
}

function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES
  } catch {
    return 0
  }
}

/** This program again, also after its file was replaced. */
function ownCommand(): string[] {
  if (!import.meta.url.includes('$bunfs')) return [process.execPath, new URL('../../main.ts', import.meta.url).pathname, QUERY_WORKER]
  return [existsSync('/proc/self/exe') ? '/proc/self/exe' : process.execPath, QUERY_WORKER]
}
const QUERY_WORKER = 'query-worker'
