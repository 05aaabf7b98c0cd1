// Questions to clusters. A question is put into the answer of the agent's open poll and never waits for an agent that
// is away; its answer goes from the agent's requests to the reader and is stored nowhere. Sync is not held up: an agent
// answers on other connections than the one of its poll.

import {
  ANSWER_HOLD_MS,
  ANSWER_PART_BYTES_MAX,
  type AnswerLine,
  ASK_FRAME_BYTES_MAX,
  ASK_FRAMES_MAX,
  type AskRequest,
  answerLineSchema,
  askBytes,
  isLast,
} from '../../shared/protocol/ask.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { type AskLimits, answerBytesMax, createAskLimits, timeMax } from './ask-limits.ts'
import { OpenAsk } from './open-asks.ts'

/** Between two polls: an agent that applies a page is busy and not away. */
export const AWAY_AFTER_MS = 10_000
/** How long a question may wait for the next poll. */
export const PICKUP_MS = 10_000
/** Silence of an agent that took a question. */
export const SILENCE_MS = 20_000
/** A question that a poll took and of which nothing came is given to the next poll as well: the first answer may be
 *  lost. */
const AGAIN_AFTER_MS = 3_000
const GRACE_MS = 5_000
/** Questions that come while the cluster works on others go together: each costs a transaction and a poll by itself. */
export const GATHER_MS = 100

/** The person who asks, as the agent's audit log names them. */
export interface Asker {
  id: string
  kind: string
  name: string
}

export interface Asked extends AskRequest {
  cluster: { clusterId: ClusterId; name: string; lastSeenMs: number | null }
  by: Asker
}

export interface AnswerStream {
  /** The next bytes, whole lines of JSON; null at the end. Throws `ask_unanswered` or `cluster_offline`. */
  read(): Promise<Uint8Array<ArrayBuffer> | null>
  /** Lets the agent stop. */
  cancel(): void
}

export interface Asks {
  /** Throws `cluster_offline` or `ask_unsupported` if a question could not be asked now. */
  admit(cluster: Asked['cluster']): void
  /** Resolves when the next questions to this cluster go: at once if none waits for an answer. */
  gathered(clusterId: ClusterId): Promise<void>
  /** Throws `cluster_offline`, `ask_unsupported`, `too_many_requests` at once. */
  ask(asked: Asked): AnswerStream
  /** The same, line by line; ends when the loop is left. */
  lines(asked: Asked): AsyncGenerator<AnswerLine, void, void>
  /** A poll began. `nonce`: null means that the agent takes no questions. */
  poll(clusterId: ClusterId, nonce: string | null): AskPoll
  /** The agent of a cluster was heard. */
  seen(clusterId: ClusterId): void
  /**
   * A part of an answer, by number. False: there is no room; the agent sends it again. Throws `ask_gone` if no caller
   * waits.
   */
  answer(clusterId: ClusterId, id: string, part: number, bytes: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<boolean>
  /** Whether someone waits, before a body is read. */
  isOpen(clusterId: ClusterId, id: string): boolean
  open(): number
}

export interface AskPoll {
  /** Frames for the answer of this poll. Null means that there is nothing to ask. */
  take(): Uint8Array<ArrayBuffer> | null
  end(): void
}

export interface AsksDeps {
  sign(bytes: Uint8Array): string
  epochOf(clusterId: ClusterId): number
  /** Ends the waits of polls of this cluster. */
  wake(clusterId: ClusterId): void
  newId(): string
  clock: Clock
  limits?: AskLimits
}

interface Link {
  polls: number
  seenMs: number
  takesQuestions: boolean
  /** When questions went together last, and those that go next. */
  wentMs: number
  going: Promise<void> | null
}

export function createAsks({ sign, epochOf, wake, newId, clock, limits = createAskLimits() }: AsksDeps): Asks {
  const links = new Map<ClusterId, Link>()
  const open = new Map<string, OpenAsk>()
  const byCluster = new Map<ClusterId, Set<OpenAsk>>()
  const startedMs = clock.monotonicMs()

  function refuseAway({ clusterId, name, lastSeenMs }: Asked['cluster']): void {
    const link = links.get(clusterId)
    const since = link?.seenMs ?? startedMs
    if ((link?.polls ?? 0) === 0 && clock.monotonicMs() - since > AWAY_AFTER_MS) throw offline(name, lastSeenMs)
    // Before its first poll after a start of this server the abilities of the agent are unknown.
    if (link !== undefined && !link.takesQuestions) throw new AppError('ask_unsupported', { doing: `ask cluster ${name}` })
  }

  function framesFor(clusterId: ClusterId, nonce: string): Uint8Array<ArrayBuffer> | null {
    const nowMs = clock.monotonicMs()
    const due = [...(byCluster.get(clusterId) ?? [])].filter(
      ({ sentMs, parts, hasEnded }) => !hasEnded && parts === 0 && (sentMs === null || nowMs - sentMs > AGAIN_AFTER_MS),
    )
    let size = 0
    const lines: string[] = []
    for (const one of due.slice(0, ASK_FRAMES_MAX)) {
      const line = `${JSON.stringify({ ...one.frame, signature: sign(askBytes(clusterId, nonce, one.frame)) })}\n`
      size += line.length
      if (size > ASK_FRAME_BYTES_MAX && lines.length > 0) break
      one.sentMs = nowMs
      lines.push(line)
    }
    return lines.length === 0 ? null : new TextEncoder().encode(lines.join(''))
  }

  function begin(asked: Asked): AnswerStream {
    const { cluster, by, question, within } = asked
    refuseAway(cluster)
    const leave = limits.enter(by.id, cluster)
    const msMax = timeMax(question)
    const frame = {
      ...{ t: 'ask' as const, id: newId(), epoch: epochOf(cluster.clusterId), question, within: within ?? null },
      ...{ who: { kind: by.kind, id: by.id, name: by.name }, bytesMax: answerBytesMax(question), msMax },
    }
    const own = new OpenAsk(cluster.clusterId, frame)
    open.set(frame.id, own)
    const ofCluster = byCluster.get(cluster.clusterId) ?? new Set()
    byCluster.set(cluster.clusterId, ofCluster.add(own))
    const close = (error: AppError | null) => {
      if (open.delete(frame.id)) {
        ofCluster.delete(own)
        if (ofCluster.size === 0) byCluster.delete(cluster.clusterId)
        leave()
      }
      own.end(error)
    }
    closers.set(own, close)
    void watch(own, asked, close, msMax)
    wake(cluster.clusterId)
    return { read: () => own.read(), cancel: () => close(null) }
  }

  /** Ends a question that no poll takes, that the agent leaves unanswered, or that takes too long. */
  async function watch(own: OpenAsk, { cluster }: Asked, close: (error: AppError | null) => void, msMax: number): Promise<void> {
    const startMs = clock.monotonicMs()
    let heard = { parts: 0, atMs: startMs }
    while (!own.hasEnded) {
      const nowMs = clock.monotonicMs()
      // A reader without room holds up the agent; that is no silence of the agent.
      if (own.parts !== heard.parts || !own.hasRoom()) heard = { parts: own.parts, atMs: nowMs }
      const doing = `ask cluster ${cluster.name}`
      if (own.sentMs === null && nowMs - startMs >= PICKUP_MS) return close(offline(cluster.name, cluster.lastSeenMs))
      if (own.sentMs !== null && nowMs - Math.max(heard.atMs, own.sentMs) >= SILENCE_MS)
        return close(new AppError('ask_unanswered', { doing, detail: `no answer for ${SILENCE_MS / 1_000} s` }))
      if (nowMs - startMs >= msMax + GRACE_MS)
        return close(new AppError('ask_unanswered', { doing, detail: `the answer took longer than ${msMax / 1_000} s` }))
      const ended = new AbortController()
      await Promise.race([clock.sleep(1_000, ended.signal), own.changed()])
      ended.abort()
    }
  }

  const closers = new WeakMap<OpenAsk, (error: AppError | null) => void>()
  const find = (clusterId: ClusterId, id: string): OpenAsk => {
    const one = open.get(id)
    // An agent cannot tell a question to another cluster from an unknown one.
    if (one === undefined || one.clusterId !== clusterId) throw new AppError('ask_gone')
    return one
  }

  function gathered(clusterId: ClusterId): Promise<void> {
    const link = links.get(clusterId)
    if (link === undefined) return Promise.resolve()
    if (link.going !== null) return link.going
    const leftMs = link.wentMs + GATHER_MS - clock.monotonicMs()
    const isBusy = [...(byCluster.get(clusterId) ?? [])].some(({ parts }) => parts === 0)
    if (leftMs <= 0 || !isBusy) {
      link.wentMs = clock.monotonicMs()
      return Promise.resolve()
    }
    link.going = clock.sleep(leftMs).then(() => {
      link.going = null
      link.wentMs = clock.monotonicMs()
    })
    return link.going
  }

  return {
    admit: refuseAway,
    gathered,
    ask: begin,
    open: () => open.size,
    isOpen: (clusterId, id) => open.get(id)?.clusterId === clusterId,
    async *lines(asked) {
      const stream = begin(asked)
      const decoder = new TextDecoder()
      try {
        for (let bytes = await stream.read(); bytes !== null; bytes = await stream.read())
          for (const line of decoder.decode(bytes).split('\n')) if (line !== '') yield answerLineSchema.parse(JSON.parse(line))
      } finally {
        stream.cancel()
      }
    },
    seen(clusterId) {
      const link = links.get(clusterId)
      if (link !== undefined) link.seenMs = clock.monotonicMs()
    },
    poll(clusterId, nonce) {
      const link = links.get(clusterId) ?? { polls: 0, seenMs: 0, takesQuestions: false, wentMs: 0, going: null }
      links.set(clusterId, link)
      link.polls += 1
      link.takesQuestions = nonce !== null
      link.seenMs = clock.monotonicMs()
      let isOpen = true
      return {
        take: () => (nonce === null ? null : framesFor(clusterId, nonce)),
        end() {
          if (isOpen) link.polls -= 1
          isOpen = false
          link.seenMs = clock.monotonicMs()
        },
      }
    },
    async answer(clusterId, id, part, bytes, signal) {
      const own = find(clusterId, id)
      if (part < own.parts) return true // it came before, and its reply was lost
      if (part > own.parts) throw new AppError('bad_request', { doing: 'receive an answer', detail: `expected part ${own.parts}` })
      const checked = checkLines(bytes)
      if (!own.hasRoom()) await roomIn(own, signal)
      if (own.hasEnded) throw new AppError('ask_gone')
      if (!own.hasRoom() || own.parts !== part) return own.parts > part
      own.add(bytes)
      if (own.bytes > own.frame.bytesMax * 1.25 + ANSWER_PART_BYTES_MAX)
        closers.get(own)?.(new AppError('too_large', { detail: 'the answer is larger than its limit' }))
      else if (checked.isLast) closers.get(own)?.(null)
      return true
    },
  }

  async function roomIn(own: OpenAsk, signal: AbortSignal): Promise<void> {
    const over = new AbortController()
    const waited = clock.sleep(ANSWER_HOLD_MS, AbortSignal.any([signal, over.signal])).then(() => 'late' as const)
    while (!own.hasEnded && !own.hasRoom()) if ((await Promise.race([own.changed(), waited])) === 'late') break
    over.abort()
  }
}

/** An answer is passed on as it came, so it has to be what it claims to be. */
function checkLines(bytes: Uint8Array): { isLast: boolean } {
  if (bytes.length === 0) return { isLast: false }
  if (bytes.at(-1) !== 0x0a) throw new AppError('bad_request', { doing: 'receive an answer', detail: 'a part must consist of whole lines' })
  let last = false
  for (const line of new TextDecoder().decode(bytes).slice(0, -1).split('\n')) {
    const parsed = answerLineSchema.safeParse(jsonOf(line))
    if (!parsed.success || last) throw new AppError('bad_request', { doing: 'receive an answer', detail: 'invalid line of an answer' })
    last = isLast(parsed.data)
  }
  return { isLast: last }
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

export const offline = (name: string, lastSeenMs: number | null): AppError =>
  new AppError('cluster_offline', {
    detail:
      lastSeenMs === null
        ? `cluster ${name} was never online`
        : `cluster ${name} has been offline since ${new Date(lastSeenMs).toISOString()}`,
    extra: { cluster: name, lastSeenMs },
  })
