// One simulated agent that comes back after an outage, in the order of a real one: a new session, a poll that does not
// wait, the probe of what the server knows, the outbox, a poll that waits. A request that the server refuses with a
// delay is repeated by the agent's own rule. No replica, no HTTP library: ten thousand of them share two cores with the
// server.

import { retryAfterMsOf } from '../../agent/link/retry-after.ts'
import { CALL_TIMEOUT_MS } from '../../agent/link/session-keeper.ts'
import { outboxBatch } from '../../agent/sync/outbox-batch.ts'
import { ROUTES, WAIT_SECONDS_DEFAULT } from '../../shared/protocol/routes.ts'
import { sessionProofBytes } from '../../shared/protocol/session.ts'
import type { StatusAnswer } from '../../shared/protocol/status.ts'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import { signBytes } from '../../shared/runtime/keys.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { zstd } from '../../shared/runtime/zstd.ts'
import { machineMs } from './polling-agent.ts'
import { type RawAnswer, RawConnection, RawTimeout } from './raw-http.ts'
import { changedRows } from './store-rows.ts'

/** A joined site, as the process that simulates its agent gets it. */
export interface StormMember {
  number: number
  agentId: string
  privateKey: string
  cursor: string
}

export interface StormCounts {
  timeouts: number
  /** HTTP status → how often the server refused an agent temporarily. */
  refused: Record<string, number>
  /** Connections that could not be made or were cut. */
  cuts: number
  /** From the sending of a request to its answer, the making of a connection included; the waiting polls are not among
   *  them. */
  latenciesMs: number[]
  /** Requests that should have had another answer. */
  failures: string[]
}

/** `sync-loop.ts`. */
const BACKOFF = { baseMs: 500, capMs: 60_000 }
const INCARNATION = 1
const FIRST_TRIES_MAX = 100
type Ask = [method: string, path: string, headers: Record<string, string>, body: Uint8Array | null]

export class StormAgent {
  readonly #member: StormMember
  readonly #connection: RawConnection
  readonly #counts: StormCounts
  readonly #compare = Buffer.from(JSON.stringify({ incarnation: INCARNATION, rows: [] }))
  readonly #firstRound: Outbox
  /** Null until the server has acknowledged the outbox; time of the machine's clock, ms. */
  doneAtMs: number | null = null
  /** A poll that waits for news is under way. */
  polling = false
  /** Pushes of `keepTelling`. */
  told = 0
  telling = false

  constructor(port: number, member: StormMember, counts: StormCounts) {
    this.#member = member
    this.#connection = new RawConnection(port)
    this.#counts = counts
    this.#firstRound = outboxOf(member.number, 1) // ready before the storm: agents have processors of their own
  }

  async comeBack(): Promise<void> {
    const headers = await this.#open()
    const poll = (wait: number): Ask => ['GET', `${ROUTES.desired}?cursor=${this.#member.cursor}&wait=${wait}`, headers, null]
    await this.#answered('poll', () => poll(0), [204])
    await this.#answered('probe', () => ['POST', ROUTES.status, headers, this.#compare], [200])
    await this.#tell(headers, this.#firstRound)
    this.doneAtMs = machineMs()
    this.#wait(poll(WAIT_SECONDS_DEFAULT))
  }

  /** Continues to report, once in this many ms, until it is stopped. */
  async keepTelling(everyMs: number): Promise<void> {
    const headers = await this.#open()
    this.telling = true
    await Bun.sleep(Math.random() * everyMs)
    for (let round = 1; this.telling; round++) {
      const startMs = performance.now()
      await this.#tell(headers, outboxOf(this.#member.number, round))
      this.told += 1
      await Bun.sleep(Math.max(0, everyMs - (performance.now() - startMs)))
    }
  }

  async #open(): Promise<Record<string, string>> {
    const { nonce } = (await this.#answered('session', () => this.#session({}), [401])) as { nonce: string }
    const proof = () => {
      const signature = signBytes(this.#member.privateKey, sessionProofBytes(this.#member.agentId, INCARNATION, nonce))
      return this.#session({ nonce, signature })
    }
    const { token } = (await this.#answered('session', proof, [200])) as { token: string }
    return { authorization: `Bearer ${token}`, 'accept-encoding': 'zstd' }
  }

  async #tell(headers: Record<string, string>, { body, lastRev }: Outbox): Promise<void> {
    const push = { ...headers, 'content-encoding': 'zstd' }
    const { ack } = (await this.#answered('push', () => ['POST', ROUTES.status, push, body], [200])) as StatusAnswer
    if (ack < lastRev) throw new Error(`acknowledged ${ack}`)
  }

  stop(): void {
    this.polling = false
    this.telling = false
    this.#connection.close()
  }

  #wait(ask: Ask): void {
    this.polling = true
    this.#connection.ask(...ask, (WAIT_SECONDS_DEFAULT + 30) * 1_000).then(
      ({ status }) => {
        if (status === 204 && this.polling) this.#wait(ask)
        else this.#fail(`the waiting poll: HTTP ${status}`)
      },
      (error: Error) => this.#fail(`the waiting poll: ${error.message}`),
    )
  }

  #fail(why: string): void {
    if (this.polling) this.#counts.failures.push(why)
    this.polling = false
  }

  #session(proof: object): Ask {
    const { agentId } = this.#member
    return ['POST', ROUTES.session, {}, Buffer.from(JSON.stringify({ agentId, incarnation: INCARNATION, ...proof }))]
  }

  /** As `runLoop` does it: full jitter, and what the server asked for before that. */
  async #answered(what: string, ask: () => Ask, expected: readonly number[]): Promise<unknown> {
    for (let attempt = 0; attempt < FIRST_TRIES_MAX; attempt++) {
      const answer = await this.#timed(ask())
      if (answer !== null && expected.includes(answer.status)) return answer.body.length === 0 ? null : JSON.parse(answer.body.toString())
      if (answer !== null && ![429, 503].includes(answer.status))
        throw new Error(`${what}: HTTP ${answer.status} ${answer.body.toString().slice(0, 200)}`)
      await Bun.sleep(backoffMs(attempt, BACKOFF, systemRandom, answer === null ? undefined : waitOf(answer)))
    }
    throw new Error(`${what}: sent away ${FIRST_TRIES_MAX} times`)
  }

  /** Null if there was no answer. */
  async #timed(ask: Ask): Promise<RawAnswer | null> {
    const startMs = performance.now()
    try {
      const answer = await this.#connection.ask(...ask, CALL_TIMEOUT_MS)
      this.#counts.latenciesMs.push(performance.now() - startMs)
      const { status } = answer
      if (status === 429 || status === 503) this.#counts.refused[status] = (this.#counts.refused[status] ?? 0) + 1
      return answer
    } catch (error) {
      if (error instanceof RawTimeout) this.#counts.timeouts += 1
      else this.#counts.cuts += 1
      this.#connection.close()
      return null
    }
  }
}

interface Outbox {
  body: Uint8Array
  lastRev: number
}

function outboxOf(site: number, round: number): Outbox {
  const rows = outboxBatch(changedRows(site, round))
  return { body: zstd(Buffer.from(JSON.stringify({ incarnation: INCARNATION, rows }))), lastRev: rows.at(-1)?.rev ?? 0 }
}

function waitOf(answer: RawAnswer): number | undefined {
  const body = JSON.parse(answer.body.toString() || '{}') as { retryAfterMs?: number }
  return retryAfterMsOf(body.retryAfterMs, answer.header('retry-after'), Date.now())
}
