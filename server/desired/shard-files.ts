// Shards over a folder of cr-sqlite files. A cluster's shard follows from its id and never changes; files stay open.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asidePath, type NativeGuard } from '../../shared/adapters/native-guard.ts'
import { isDiskFull } from '../../shared/adapters/sqlite.ts'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { type Position, samePosition } from '../../shared/crdt/position.ts'
import { PART_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { pageBinding } from '../../shared/protocol/sealed-keys.ts'
import { assert } from '../../shared/runtime/assert.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { BehindClusters } from './behind.ts'
import { LargeReads } from './large-reads.ts'
import { encodePage, type WirePage } from './page.ts'
import type { PageSeal } from './page-seal.ts'
import { readBody, type SourceResult } from './page-source.ts'
import type { ProvenSets } from './proven-sets.ts'
import { RecentLinesCache } from './recent-lines.ts'
import { createRowFrames } from './row-frames.ts'
import { type ReadBounds, UNBOUNDED } from './row-lines.ts'
import { openShardFile, reopenShardFile, type ShardFile } from './shard-file.ts'
import { type Ask, openShardReader, type ShardReader } from './shard-reader.ts'
import type { Accept, PartResult, PullResult, ServiceRevision, Shards } from './shards.ts'
import { Transfers } from './transfers.ts'
import { Waits } from './waits.ts'

export const SHARD_COUNT = 16
/** Its presence at start says that the last stop was not clean. Beside the files and synced, because their own pages
 *  are not. */
const IN_USE = 'in-use'
/** The bounds of reads on the main thread: a few milliseconds' work. */
const SMALL: ReadBounds = { rows: 256, bytes: 512 * 1_024 }
/** Compressed rows of small pages that may be asked for again by the next cluster. */
const FRAMES_BYTES_MAX = 16 * 1_024 * 1_024
/** A page during whose making a revision was withdrawn is read again, this often. */
const ATTEMPTS = 3

export interface ShardsOptions {
  dir: string
  shardCount: number
  /** Signs checkpoints with the server's key. */
  sign(bytes: Uint8Array): string
  /** The epoch of a cluster's agent (CU2a). */
  epochOf(clusterId: ClusterId): number
  /** 128 random bits in hex: ids of files. */
  newId(): string
  /** Wraps the keys of sealed rows. Default: none, and a page with sealed rows is refused. */
  seal?: PageSeal
  /** Sealed rows that clusters may have (SL16). Default: whatever the file has. */
  proven?: ProvenSets
  clock: Clock
  log: Logger
  libraryDir?: string
  /** Default: none, and every file is opened in this process. */
  guard?: NativeGuard
  /**
   * Reads and writes everything on the calling thread: the time of a simulation does not advance while another thread
   * works.
   */
  withoutThreads?: boolean
  /** The folder of pages in parts. Default: a folder beside the files. */
  spoolDir?: string
}

export interface OpenedShards {
  shards: Shards
  /**
   * The id of each file. An id that differs from last time raises the epochs of its clusters, then they are replayed
   * (CU5).
   */
  dbIds: readonly string[]
  /** The last stop was not clean: a log may lack its end, of pages that went out. */
  suspect: boolean
  /** The file of a cluster. */
  indexOf(clusterId: ClusterId): number
  /** All clusters of which a file remembers anything. */
  held(): ClusterId[]
  /** Rebuilds a file, empty and under another dbId. Before anything is served. */
  remake(index: number): void
  pathOf(index: number): string
  /** Closes a file, lets `whileClosed` put another in its place (compaction), and serves that from then on. Its
   *  clusters are woken. Synchronous. */
  reopen(index: number, whileClosed: (path: string) => void): void
  /** Called with a file that could not be read or written, if the file may be the cause. */
  onTrouble(listener: (index: number) => void): void
  /** How often rows were compressed: equal ones once. */
  compressions(): number
}

export const shardOf = (clusterId: string, shardCount: number): number =>
  createHash('sha256').update(clusterId).digest().readUInt32BE(0) % shardCount

export function createShards(options: ShardsOptions): OpenedShards {
  const { dir, shardCount, newId, log, libraryDir, guard } = options
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const suspect = existsSync(join(dir, IN_USE))
  if (suspect) log.warn('the last stop was not clean: checking all shard files', { files: shardCount })
  else {
    writeFileSync(join(dir, IN_USE), '')
    syncPath(join(dir, IN_USE))
    syncPath(dir)
  }
  const pathOf = (index: number) => join(dir, `shard-${String(index).padStart(2, '0')}.db`)
  const recent = new RecentLinesCache()
  const fileOptions = (index: number) => ({
    path: pathOf(index),
    newDbId: newId,
    recent,
    ...(libraryDir === undefined ? {} : { libraryDir }),
    ...(guard === undefined ? {} : { opening: guard.opening }),
  })
  const paths = Array.from({ length: shardCount }, (_, index) => pathOf(index)).filter((path) => existsSync(path))
  const refusals = guard?.refusals(paths, suspect) ?? new Map<string, string>()
  const partOf = (index: number, file: ShardFile): Part => ({ path: pathOf(index), file, reader: openShardReader(pathOf(index)) })
  const open = (index: number): Part => {
    const path = pathOf(index)
    const deadly = refusals.get(path)
    const setAside = deadly === undefined ? {} : { setAside: deadly }
    const { file, rebuilt } = named(path, () => openShardFile({ ...fileOptions(index), suspect, ...setAside }))
    if (deadly !== undefined) log.error('shard file set aside and rebuilt', { shard: index, why: deadly, kept: asidePath(path) })
    else if (rebuilt !== null) log.warn('shard file was damaged and is rebuilt', { shard: index, why: rebuilt })
    return partOf(index, file)
  }
  const parts = Array.from({ length: shardCount }, (_, index) => open(index))
  const close = (index: number) => {
    parts[index]?.reader.close()
    parts[index]?.file.close()
  }
  const shards = new ShardFiles(parts, options)
  return {
    shards,
    suspect,
    get dbIds() {
      return parts.map(({ file }) => file.dbId)
    },
    indexOf: (clusterId) => shardOf(clusterId, shardCount),
    pathOf,
    held: () => parts.flatMap(({ file }) => file.clusters()),
    remake: (index) => {
      close(index)
      const { file } = openShardFile({ ...fileOptions(index), suspect, discard: 'it is ahead of the fleet store' })
      parts[index] = partOf(index, file)
    },
    reopen: (index, whileClosed) => {
      try {
        close(index)
      } catch (error) {
        log.warn('cannot close a shard file cleanly', { shard: index, error: describeError(error) }) // a damaged one that is replaced
      }
      try {
        whileClosed(pathOf(index))
      } finally {
        parts[index] = partOf(index, reopenShardFile(fileOptions(index)))
      }
      for (const clusterId of parts[index].file.clusters()) shards.wake(clusterId)
    },
    onTrouble: (listener) => {
      shards.onTrouble = listener
    },
    compressions: () => shards.compressions,
  }
}

/** Damage is rebuilt. Any other error is the host's, and a person has to know the file. */
function named<T>(path: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    if (error instanceof AppError) throw error
    const about = { doing: `open ${path}`, detail: describeError(error) }
    if (isDiskFull(error)) throw new AppError('disk_full', about, { cause: error })
    const remedy = `Check the disk and the access rights of ${path}. If you remove the file, the server rebuilds it from the fleet store.`
    throw new AppError('data_unusable', { ...about, remedy }, { cause: error })
  }
}

interface Part {
  path: string
  file: ShardFile
  reader: ShardReader
}

class ShardFiles implements Shards {
  readonly behind: BehindClusters
  onTrouble: (index: number) => void = () => {}
  readonly #parts: readonly Part[]
  readonly #options: ShardsOptions
  readonly #waits: Waits
  readonly #transfers: Transfers
  readonly #largeReads: LargeReads
  readonly #frames = createRowFrames(FRAMES_BYTES_MAX)
  /** How often a cluster's transfers were ended. */
  readonly #endings = new Map<ClusterId, number>()
  readonly #removed = new Set<ClusterId>()
  /** The dbId of the cursor that an agent named last; '' for none. */
  readonly #fetched = new Map<ClusterId, string>()
  readonly #indexes = new Map<ClusterId, number>()

  constructor(parts: readonly Part[], options: ShardsOptions) {
    const { dir, clock, log, newId, spoolDir = join(dir, 'spool'), withoutThreads = false } = options
    const random = () => Number.parseInt(newId().slice(0, 8), 16) / 2 ** 32
    this.#parts = parts
    this.#options = options
    this.behind = new BehindClusters(clock)
    this.#waits = new Waits(clock)
    this.#transfers = new Transfers({ dir: spoolDir, clock, random, newTransferId: () => transferId(newId()), withoutThreads })
    this.#largeReads = new LargeReads({ clock, random, log })
  }

  writeRevisions(revisions: readonly ServiceRevision[]) {
    const [first] = revisions
    if (first === undefined) return []
    const shard = this.shardOf(first.clusterId)
    assert(
      revisions.every(({ clusterId }) => this.shardOf(clusterId) === shard),
      'a transaction covers one file',
    )
    // A cluster can be deleted between a revision's commit to the fleet store and this; ids are never used again.
    const wanted = revisions.filter(({ clusterId }) => !this.#removed.has(clusterId))
    const heads = this.#watched(shard, () => this.#part(first.clusterId).file.write(wanted))
    const written = new Set(wanted.filter((_, index) => heads[index] !== null))
    for (const revision of wanted) this.#options.proven?.wrote(revision)
    return revisions.map((revision) => {
      const changed = written.has(revision)
      if (changed) {
        // RV3: a tombstone or a removal order has no objects.
        if (revision.objects.size === 0 || revision.withdraw === true) this.endTransfers(revision.clusterId)
        this.wake(revision.clusterId)
      }
      return { changed }
    })
  }

  shardOf(clusterId: ClusterId) {
    let index = this.#indexes.get(clusterId)
    if (index === undefined) {
      index = shardOf(clusterId, this.#options.shardCount)
      this.#indexes.set(clusterId, index)
    }
    return index
  }

  ordinal(clusterId: ClusterId) {
    return this.#part(clusterId).file.ordinal(clusterId)
  }

  removeCluster(clusterId: ClusterId) {
    this.#removed.add(clusterId)
    this.#fetched.delete(clusterId)
    this.behind.caughtUp(clusterId)
    this.endTransfers(clusterId)
    this.wake(clusterId)
    this.#watched(this.shardOf(clusterId), () => this.#part(clusterId).file.removeCluster(clusterId))
  }

  head(clusterId: ClusterId) {
    return this.#part(clusterId).file.head(clusterId)
  }

  hasFetched(clusterId: ClusterId) {
    return this.#fetched.get(clusterId) === this.#part(clusterId).reader.dbId
  }

  async pull(clusterId: ClusterId, cursor: Position | null, accept: Accept): Promise<PullResult> {
    this.#fetched.set(clusterId, cursor?.dbId ?? '')
    if (cursor !== null && samePosition(this.head(clusterId), cursor)) return { kind: 'nothing_new' } // nearly every poll, from memory
    return this.#page(clusterId, { kind: 'pull', cursor }, accept)
  }

  refetch(clusterId: ClusterId, sums: Uint8Array, accept: Accept): Promise<PullResult> {
    return this.#page(clusterId, { kind: 'refetch', sums }, accept)
  }

  refusal(clusterId: ClusterId, cursor: Position) {
    return this.#part(clusterId).reader.refusal(clusterId, cursor)
  }

  part(clusterId: ClusterId, transferId: string, part: number): PartResult {
    const bytes = this.#transfers.part(clusterId, transferId, part)
    return bytes === null ? { kind: 'gone' } : { kind: 'part', bytes }
  }

  endTransfers(clusterId: ClusterId) {
    this.#endings.set(clusterId, (this.#endings.get(clusterId) ?? 0) + 1)
    this.#transfers.end(clusterId)
  }

  waitForChange(clusterId: ClusterId, position: Position, waitMs: number, signal: AbortSignal): Promise<void> {
    return samePosition(this.head(clusterId), position) ? this.#waits.wait(clusterId, waitMs, signal) : Promise.resolve()
  }

  wake(clusterId: ClusterId) {
    this.#waits.wake(clusterId)
  }

  wakeAll() {
    this.#waits.wakeAll()
  }

  get compressions() {
    return this.#frames.compressions + this.#largeReads.compressions
  }

  close() {
    this.#waits.wakeAll()
    this.#largeReads.close()
    this.#transfers.close()
    for (const { reader, file, path } of this.#parts) {
      reader.close()
      file.close()
      syncPath(path)
    }
    rmSync(join(this.#options.dir, IN_USE), { force: true })
    syncPath(this.#options.dir)
  }

  async #page(
    clusterId: ClusterId,
    ask: Ask,
    { zstd, seal = false, bound = false, sops = false, projects = false, sliceBytes = PART_BYTES_MAX }: Accept,
  ): Promise<PullResult> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const endings = this.#endings.get(clusterId)
      const reading = this.#watched(this.shardOf(clusterId), () => this.#read(clusterId, ask, zstd))
      const read = reading instanceof Promise ? await reading : reading
      if (read.kind !== 'rows') return read
      if (this.#endings.get(clusterId) !== endings) continue
      const { kind: _, ...rest } = read
      const { sign, epochOf } = this.#options
      const from = ask.kind === 'pull' ? ask.cursor : null
      const { sealed, bounded } = read.body
      if (read.body.sops > 0 && !sops) throw cannotDecrypt(read.body.sops)
      if (bounded > 0 && !projects) throw ignoresBounds(bounded)
      if (sealed.length > 0 && (!seal || this.#options.seal === undefined)) throw cannotOpen(sealed.length)
      // Asked before anything else can be written, unless a Worker read the rows.
      if (sealed.length > 0 && !((await this.#options.proven?.has(clusterId, sealed)) ?? true)) {
        if (!samePosition(this.head(clusterId), read.to)) continue
        this.#options.log.error('sealed rows are refused: nothing proves that they are for the cluster', { cluster: clusterId })
        throw unproven(clusterId)
      }
      const epoch = epochOf(clusterId)
      const binding = bound ? pageBinding({ epoch, to: read.to }) : ''
      const keys = sealed.length === 0 ? undefined : await this.#options.seal?.wrap(clusterId, sealed, binding)
      if (this.#endings.get(clusterId) !== endings) continue // something was withdrawn while the keys were wrapped
      const page = encodePage({ ...rest, ...(keys === undefined ? {} : { keys }), clusterId, epoch, from, zstd, sign })
      if (wireBytes(page) <= sliceBytes) {
        return { kind: 'page', bytes: Buffer.concat([page.head, page.body.bytes, page.tail]), zstd: page.zstd, transfer: null, to: read.to }
      }
      const opened = await this.#transfers.open(clusterId, page, sliceBytes)
      if (this.#endings.get(clusterId) === endings) return { kind: 'page', ...opened, zstd: page.zstd, to: read.to }
    }
    throw new AppError('unavailable', { doing: 'read a page', detail: 'revisions are being withdrawn', retryAfterMs: 1_000 })
  }

  #read(clusterId: ClusterId, ask: Ask, zstd: boolean): SourceResult | Promise<SourceResult> {
    const { path, file, reader } = this.#part(clusterId)
    const request = { clusterId, ask, zstd }
    // Only here, where nothing is written between the writer's word and the end of the reading.
    const led = ask.kind === 'pull' && ask.cursor !== null ? file.led(clusterId, ask.cursor) : null
    const known = led === null ? request : { ...request, ask: { ...ask, led } }
    const read = readBody(reader, this.#frames, known, this.#options.withoutThreads === true ? UNBOUNDED : SMALL)
    return read.kind === 'large' ? this.#largeReads.read({ ...request, path, dbId: reader.dbId }) : read
  }

  #watched<T>(index: number, work: () => T): T {
    const tell = (error: unknown) => {
      if (!(error instanceof AppError) && !isDiskFull(error)) this.onTrouble(index)
    }
    try {
      const done = work()
      if (done instanceof Promise) done.catch(tell)
      return done
    } catch (error) {
      tell(error)
      throw error
    }
  }

  #part(clusterId: ClusterId): Part {
    const part = this.#parts[this.shardOf(clusterId)]
    assert(part, 'every cluster has a shard')
    return part
  }
}

/** SL5: never in clear to an agent that cannot open it. */
const cannotOpen = (rows: number): AppError =>
  new AppError('protocol_unsupported', {
    doing: 'pull',
    detail: `${rows} rows are sealed, and this agent is too old to open sealed rows`,
    remedy: 'Upgrade the agent. It enforces what it holds until then.',
  })

/** SL16: by itself that ends when the services were published again, which each reconciliation of them does. */
const unproven = (clusterId: ClusterId): AppError =>
  new AppError('unavailable', {
    doing: 'seal a page',
    detail: `nothing proves that the sealed rows of cluster ${clusterId} were made for it; the fleet store or a shard file was changed`,
    remedy: 'Find out who writes to the database of the server, then refresh the services of this cluster.',
    retryAfterMs: UNPROVEN_RETRY_MS,
  })
const UNPROVEN_RETRY_MS = 5_000

/** SP6: an agent that does not know SOPS documents would apply them as they are. */
const cannotDecrypt = (rows: number): AppError =>
  new AppError('protocol_unsupported', {
    doing: 'pull',
    detail: `${rows} rows are encrypted by SOPS, and this agent is too old to decrypt them`,
    remedy: 'Upgrade the agent. It enforces what it holds until then.',
  })

/** PJ14: an agent that ignores bounds gets no row that has some. */
const ignoresBounds = (services: number): AppError =>
  new AppError('protocol_unsupported', {
    doing: 'pull',
    detail: `${services === 1 ? 'a service belongs' : `${services} services belong`} to a project with bounds, and this agent is too old to keep to them`,
    remedy: 'Upgrade the agent. It enforces what it holds until then.',
  })

const wireBytes = ({ head, body, tail }: WirePage): number => head.length + body.bytes.length + tail.length
const transferId = (hex: string): string => Buffer.from(hex, 'hex').toString('base64url')
