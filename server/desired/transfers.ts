// PL3: pages that are too large for one answer, kept until their parts were fetched. Their rows are shared by all
// clusters that get the same; what is large lies in the spool folder, which belongs to this process alone.
import { closeSync, mkdirSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDiskFull } from '../../shared/adapters/sqlite.ts'
import { TRANSFER_MS, type TransferHead } from '../../shared/protocol/transfer.ts'
import { assert } from '../../shared/runtime/assert.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { Deadline, Deadlines } from './deadlines.ts'
import type { WirePage } from './page.ts'

/** Rows of a page that are larger than this lie in a file… */
const MEMORY_BYTES_MAX = 1_024 * 1_024
/** …and all of them, while this much is in memory. */
const MEMORY_BYTES_TOTAL = 32 * 1_024 * 1_024
/** The limit of all open transfers together. */
const SPOOL_BYTES_MAX = 1_024 * 1_024 * 1_024
const RETRY_AFTER_MS = 10_000

export interface TransfersOptions {
  /** Emptied here and at close. */
  dir: string
  clock: Clock
  random: Random
  /** 22 characters, base64url of 128 random bits. */
  newTransferId(): string
  spoolBytesMax?: number
  /**
   * Writes a large page on the calling thread: the time of a simulation does not advance while another thread writes.
   */
  withoutThreads?: boolean
}

/** Rows of one or more transfers. */
interface Spooled {
  key: string
  bytes: number
  users: number
  ready: Promise<unknown>
  /** Bytes, or the file that has them. */
  at: Uint8Array | string
}

class Transfer extends Deadline {
  readonly head: TransferHead
  readonly page: Pick<WirePage, 'head' | 'tail'>
  readonly spooled: Spooled
  readonly sliceBytes: number
  /** Its last part was asked for: the first to go when room is needed. */
  fetched = false
  /** The farthest part that was asked for. */
  reached = 0
  readonly #gone: () => void
  constructor(head: TransferHead, page: WirePage, spooled: Spooled, sliceBytes: number, gone: () => void) {
    super()
    this.sliceBytes = sliceBytes
    this.head = head
    this.page = { head: page.head, tail: page.tail } // without the rows: they are in `spooled`
    this.spooled = spooled
    this.#gone = gone
  }
  override due(): void {
    this.#gone()
  }
}

export class Transfers {
  readonly #options: TransfersOptions
  readonly #deadlines: Deadlines
  /** One for each cluster: an agent has one request in flight, and asks for a new page only when it gave up the old. */
  readonly #transfers = new Map<ClusterId, Transfer>()
  readonly #spooled = new Map<string, Spooled>()
  #bytes = 0
  #memoryBytes = 0
  #files = 0

  constructor(options: TransfersOptions) {
    this.#options = options
    this.#deadlines = new Deadlines(options.clock)
    rmSync(options.dir, { recursive: true, force: true })
    mkdirSync(options.dir, { recursive: true, mode: 0o700 })
  }

  /** Ends the cluster's older one. Throws `unavailable` while too much is kept for others. */
  async open(clusterId: ClusterId, page: WirePage, sliceBytes: number): Promise<{ transfer: TransferHead; bytes: Uint8Array }> {
    const transfer = this.#start(clusterId, page, sliceBytes)
    const { head, spooled } = transfer
    try {
      await spooled.ready
    } catch (error) {
      if (this.#transfers.get(clusterId) === transfer) this.end(clusterId)
      throw error
    }
    return { transfer: head, bytes: this.part(clusterId, head.id, 0) ?? slice(transfer, 0) }
  }

  /** Not in `open`: what an async function holds, the closures that are made in it hold too, and that would be the
   *  rows. */
  #start(clusterId: ClusterId, page: WirePage, sliceBytes: number): Transfer {
    this.end(clusterId)
    const bytes = page.head.length + page.body.bytes.length + page.tail.length
    const head = { id: this.#options.newTransferId(), parts: Math.ceil(bytes / sliceBytes), bytes }
    const transfer = new Transfer(head, page, this.#spool(page), sliceBytes, () => this.end(clusterId))
    this.#transfers.set(clusterId, transfer)
    this.#deadlines.add(transfer, TRANSFER_MS)
    return transfer
  }

  /** Null if it is gone, never existed, or belongs to another cluster. */
  part(clusterId: ClusterId, id: string, part: number): Uint8Array | null {
    const transfer = this.#transfers.get(clusterId)
    if (transfer?.head.id !== id || part < 0 || part >= transfer.head.parts) return null
    if (part === transfer.head.parts - 1) transfer.fetched = true
    if (part > transfer.reached) {
      // It moves, however slow the link: only one that stands still is forgotten.
      transfer.reached = part
      this.#deadlines.cancel(transfer)
      this.#deadlines.add(transfer, TRANSFER_MS)
    }
    return slice(transfer, part)
  }

  end(clusterId: ClusterId): void {
    const transfer = this.#transfers.get(clusterId)
    if (transfer === undefined) return
    this.#transfers.delete(clusterId)
    this.#deadlines.cancel(transfer)
    const { spooled } = transfer
    spooled.users -= 1
    if (spooled.users > 0) return
    this.#spooled.delete(spooled.key)
    this.#bytes -= spooled.bytes
    const { at } = spooled
    // A file that cannot be removed now is removed at the next start.
    if (typeof at === 'string') spooled.ready.finally(() => rmSync(at, { force: true })).catch(() => {})
    else this.#memoryBytes -= spooled.bytes
  }

  close(): void {
    for (const clusterId of [...this.#transfers.keys()]) this.end(clusterId)
    this.#deadlines.close()
    rmSync(this.#options.dir, { recursive: true, force: true })
  }

  #spool({ body, zstd }: WirePage): Spooled {
    const key = `${body.sha256}.${zstd}`
    const held = this.#spooled.get(key)
    if (held !== undefined) {
      held.users += 1
      return held
    }
    const { dir } = this.#options
    const bytes = body.bytes.length
    this.#makeRoom(bytes)
    const inMemory = bytes <= MEMORY_BYTES_MAX && this.#memoryBytes + bytes <= MEMORY_BYTES_TOTAL
    const path = join(dir, String(this.#files++))
    const ready = inMemory ? Promise.resolve() : this.#write(path, body.bytes).catch(cannotKeep)
    ready.catch(() => {}) // whoever opens is told
    const spooled: Spooled = { key, bytes, users: 1, ready, at: inMemory ? body.bytes : path }
    this.#spooled.set(key, spooled)
    this.#bytes += bytes
    if (inMemory) this.#memoryBytes += bytes
    return spooled
  }

  async #write(path: string, bytes: Uint8Array): Promise<void> {
    if (this.#options.withoutThreads === true) writeFileSync(path, bytes, { mode: 0o600 })
    else await writeFile(path, bytes, { mode: 0o600 })
  }

  #makeRoom(bytes: number): void {
    const { random, spoolBytesMax = SPOOL_BYTES_MAX } = this.#options
    for (const [clusterId, { fetched }] of this.#transfers) {
      if (this.#bytes + bytes <= spoolBytesMax) return
      if (fetched) this.end(clusterId)
    }
    if (this.#bytes + bytes <= spoolBytesMax) return
    throw new AppError('unavailable', {
      doing: 'store a page in parts',
      detail: 'too many large pages are being fetched',
      retryAfterMs: Math.round(RETRY_AFTER_MS * (1 + random())),
    })
  }
}

/** Not `disk_full`: to an agent that is its own disk. */
function cannotKeep(error: unknown): never {
  if (!isDiskFull(error)) throw error
  const detail = 'no space left in the data folder of the server'
  throw new AppError('unavailable', { doing: 'store a page in parts', detail, retryAfterMs: RETRY_AFTER_MS }, { cause: error })
}

function slice({ page, spooled, sliceBytes }: Transfer, part: number): Uint8Array {
  const pieces: Uint8Array[] = []
  let [from, left] = [part * sliceBytes, sliceBytes]
  for (const { length, read } of [inMemory(page.head), { length: spooled.bytes, read: rowsOf(spooled) }, inMemory(page.tail)]) {
    const taken = Math.min(left, length - from)
    if (taken > 0) {
      pieces.push(read(from, taken))
      left -= taken
    }
    from = Math.max(0, from - length)
  }
  return Buffer.concat(pieces)
}

const inMemory = (bytes: Uint8Array) => ({
  length: bytes.length,
  read: (from: number, length: number) => bytes.subarray(from, from + length),
})

const rowsOf =
  ({ at }: Spooled) =>
  (from: number, length: number): Uint8Array => {
    if (typeof at !== 'string') return at.subarray(from, from + length)
    const bytes = Buffer.alloc(length)
    const fd = openSync(at, 'r')
    try {
      for (let done = 0; done < length; ) {
        const read = readSync(fd, bytes, done, length - done, from + done)
        assert(read > 0, 'a spool file must contain the written bytes')
        done += read
      }
    } finally {
      closeSync(fd)
    }
    return bytes
  }
