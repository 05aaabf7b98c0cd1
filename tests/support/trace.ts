// The trace of a simulated history: a line for everything that happens, with its virtual time. People read the story of
// a failed history; two runs of one seed are the same history when all their lines are equal. No line holds real time,
// a path of this machine, or anything random that the seed did not draw.
import { createHash } from 'node:crypto'
import type { Cluster, WatchEvent } from '../../agent/cluster/cluster.ts'
import type { AgentState } from '../../agent/state/agent-state.ts'
import { type ObjectRef, refKey } from '../../shared/kube/object.ts'
import type { LogFields, Logger } from '../../shared/runtime/logger.ts'
import { type Random, seededRandom } from '../../shared/runtime/random.ts'
import { createVirtualClock, type SharedClock, VIRTUAL_START_MS } from './virtual-clock.ts'

/** Begins a line that only a comparison needs. */
const DETAIL = '. '
/** Of one virtual moment. The busiest moments of ordinary histories have a few hundred. */
const LINES_OF_A_MOMENT_MAX = 10_000
/** Lines that show what a history does that never comes to rest. */
const LINES_SHOWN = 30

export class Trace {
  readonly #seed: number
  readonly #nowMs: () => number
  readonly #lines: string[] = []
  #momentMs = 0
  #momentBegan = 0
  #endless: Error | null = null

  /** `nowMs`: virtual milliseconds since the history began. */
  constructor(seed: number, nowMs: () => number) {
    this.#seed = seed
    this.#nowMs = nowMs
  }

  /** A line of the story. */
  note(line: string): void {
    this.#lines.push(`${this.#nowMs()} ${line}`)
  }

  /** A line for comparisons: a request, an answer, a wake-up. Throws in a history that never comes to rest, so that
   *  whatever asked ends there. */
  detail(line: string): void {
    const nowMs = this.#nowMs()
    if (nowMs !== this.#momentMs) {
      this.#momentMs = nowMs
      this.#momentBegan = this.#lines.length
    }
    if (this.#lines.length - this.#momentBegan >= LINES_OF_A_MOMENT_MAX && this.#endless === null) {
      const last = this.#lines.slice(-LINES_SHOWN).join('\n    ')
      this.#endless = new Error(
        `seed ${this.#seed} never comes to rest: ${LINES_OF_A_MOMENT_MAX} lines while no time passed, at last\n    ${last}`,
      )
    }
    this.endIfEndless()
    this.#lines.push(`${nowMs} ${DETAIL}${line}`)
  }

  /** Throws in a history that never comes to rest. */
  endIfEndless(): void {
    if (this.#endless !== null) throw this.#endless
  }

  /** Everything. */
  lines(): readonly string[] {
    return this.#lines
  }

  story(): string[] {
    return this.#lines.filter((line) => !line.startsWith(DETAIL, line.indexOf(' ') + 1))
  }

  /** 64 hex digits of all lines. */
  hash(): string {
    const sum = createHash('sha256')
    for (const line of this.#lines) sum.update(line).update('\n')
    return sum.digest('hex')
  }
}

const STORY_LINES_MAX = 200

/** What a test says of a history that went wrong: its seed, what was found, and the end of its story. */
export function failureText(seed: number, problems: readonly string[], trace: Trace): string {
  const story = trace.story()
  const left = story.length > STORY_LINES_MAX ? [`… ${story.length - STORY_LINES_MAX} lines before`] : []
  return [`seed ${seed}: ${problems.slice(0, 4).join('; ')}`, ...left, ...story.slice(-STORY_LINES_MAX)].join('\n    ')
}

/** Names content that is too long for a line. */
export const digestOf = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex').slice(0, 12)
const digestOfJson = (value: unknown): string => digestOf(JSON.stringify(value) ?? '')

/** Time and dice of a history. The trace has every wake-up, and how often the dice were thrown before it. */
export function createTracedClock(seed: number): { clock: SharedClock; trace: Trace; random: Random } {
  const random = seededRandom(seed)
  let draws = 0
  const trace: Trace = new Trace(seed, () => clock.nowMs() - VIRTUAL_START_MS)
  const clock = createVirtualClock(VIRTUAL_START_MS, (sleeper) => trace.detail(`wakes ${sleeper} after ${draws} draws`))
  const counted = () => {
    draws += 1
    return random()
  }
  const advance = (ms: number) => clock.advance(ms).finally(() => trace.endIfEndless())
  return { clock: { ...clock, advance }, trace, random: counted }
}

type Method = (...args: unknown[]) => unknown

/** The same port, with every request, answer and watch event in the trace. It adds no turn of the event loop, so that a
 *  traced history is the untraced one. */
export function tracedCluster(cluster: Cluster, trace: Trace, who = 'agent'): Cluster {
  return new Proxy(cluster, {
    get(target, name: keyof Cluster) {
      const method: unknown = target[name]
      if (typeof method !== 'function') return method
      if (name === 'watch') {
        return (...args: Parameters<Cluster['watch']>) => {
          const { kind } = args[0]
          trace.detail(`${who} watches ${kind}`)
          return tracedWatch(target.watch(...args), (text) => trace.detail(`${who} watch ${kind}: ${text}`))
        }
      }
      return (...args: unknown[]) => {
        const request = `${who} ${name} ${subjectOf(args)}`
        trace.detail(`${request} ${digestOfJson(args.slice(1))}`)
        const answer = (method as Method).apply(target, args) as Promise<unknown>
        answer.then(
          (value) => trace.detail(`${request} answered ${digestOfJson(value)}`),
          (error: unknown) => trace.detail(`${request} threw ${String(error)}`),
        )
        return answer
      }
    },
  })
}

function subjectOf(args: readonly unknown[]): string {
  const [resource, subject] = args as [
    { kind?: string } | undefined,
    Partial<ObjectRef> & { metadata?: { name?: string; namespace?: string } },
  ]
  if (subject?.metadata !== undefined) return `${resource?.kind} ${subject.metadata.namespace ?? ''}/${subject.metadata.name}`
  return subject?.name === undefined ? '' : refKey(subject as ObjectRef)
}

function tracedWatch(events: AsyncIterable<WatchEvent>, tell: (text: string) => void): AsyncIterable<WatchEvent> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = events[Symbol.asyncIterator]()
      return {
        next() {
          const next = iterator.next()
          next.then(
            ({ done, value }) => tell(done === true ? 'ends' : eventText(value)),
            (error: unknown) => tell(`threw ${String(error)}`),
          )
          return next
        },
        return: (value) => iterator.return?.(value) ?? Promise.resolve({ done: true, value }),
      }
    },
  }
}

function eventText(event: WatchEvent): string {
  if (!('object' in event)) return event.kind
  const { name, resourceVersion } = event.object.metadata
  return `${event.kind} ${name} ${resourceVersion}`
}

const STATE_WRITES: ReadonlySet<string> = new Set<keyof AgentState>([
  'setWrittenClaim',
  'noteDefinition',
  'widenInventory',
  'recordApplied',
  'narrowInventory',
  'setServiceState',
  'setFacts',
  'forgetService',
  'report',
])

/** The same state, with every write in the trace: what is reported and what is remembered. */
export function tracedState(state: AgentState, trace: Trace): AgentState {
  return new Proxy(state, {
    get(target, name: string) {
      const method: unknown = target[name as keyof AgentState]
      if (typeof method !== 'function') return method
      return (...args: unknown[]) => {
        if (STATE_WRITES.has(name)) trace.detail(`state ${name} ${digestOfJson(args.map(plain))}`)
        return (method as Method).apply(target, args)
      }
    },
  })
}

const plain = (value: unknown): unknown => (value instanceof Map ? [...value] : value)

/** The agent's own log lines, in the story. */
export function tracedLog(trace: Trace, who = 'agent'): Logger {
  const at = (level: string) => (message: string, fields?: LogFields) =>
    trace.note(`${who} ${level}: ${message}${fields === undefined ? '' : ` ${JSON.stringify(fields)}`}`)
  const log: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), with: () => log }
  return log
}
