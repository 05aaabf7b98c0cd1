// Asks the server to confirm that this replica is at its head (PR7): until the first confirmation, then about once an
// hour. So the agent notices within that time if another program answers in place of the server.
import type { Position } from '../../shared/crdt/position.ts'
import { headBytes } from '../../shared/protocol/head.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { verifyBytes } from '../../shared/runtime/keys.ts'

export const HEAD_INTERVAL_MS = 3_600_000

export interface HeadCheckDeps {
  clock: Clock
  randomBytes(count: number): Uint8Array
  clusterId(): string
  serverKeys(): readonly string[]
  /** RP7: asks for the server's keys again. True: there were new ones. */
  renewKeys(signal: AbortSignal): Promise<boolean>
}

export class HeadCheck {
  readonly #deps: HeadCheckDeps
  #signed: { readonly atMs: number; readonly monotonicMs: number } | null = null
  #isAnswered = false

  constructor(deps: HeadCheckDeps) {
    this.#deps = deps
  }

  /** When the server last signed its head. Null means not since this process started. */
  get signed(): { readonly atMs: number } | null {
    return this.#signed
  }
  /** A request with a nonce was answered "nothing new", signed or not. Until then polls do not wait. */
  get isAnswered(): boolean {
    return this.#isAnswered
  }

  /** For the next poll. Null means none is due. */
  nonce(): string | null {
    if (this.#signed !== null && this.#deps.clock.monotonicMs() - this.#signed.monotonicMs < HEAD_INTERVAL_MS) return null
    return Buffer.from(this.#deps.randomBytes(16)).toString('base64url')
  }

  /** Takes the signature of an answer "nothing new" to the poll with that nonce. Without one it confirms nothing.
   *  Throws `server_key_mismatch` for a wrong one. */
  async take(nonce: string, cursor: Position, signature: string | null, signal: AbortSignal): Promise<void> {
    this.#isAnswered = true
    if (signature === null) return
    const signed = headBytes(this.#deps.clusterId(), nonce, cursor)
    const isSigned = () => this.#deps.serverKeys().some((key) => verifyBytes(key, signed, signature))
    if (!isSigned() && !((await this.#deps.renewKeys(signal)) && isSigned()))
      throw new AppError('server_key_mismatch', {
        doing: 'check the head',
        detail: 'it is not signed by a key of the server that it joined',
      })
    const { clock } = this.#deps
    this.#signed = { atMs: clock.nowMs(), monotonicMs: clock.monotonicMs() }
  }
}
