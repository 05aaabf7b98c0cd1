// Shards over a folder of cr-sqlite files. A cluster's shard follows from its id and never changes; files stay open.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { type Position, samePosition } from '../../shared/crdt/position.ts'
import type { ClusterId } from '../../shared/model/ids.ts'
import { assert } from '../../shared/runtime/assert.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { zstd } from '../../shared/runtime/zstd.ts'
import { encodePage } from './page.ts'
import { openShardFile, type ShardFile } from './shard-file.ts'
import { openShardReader, type ShardReader } from './shard-reader.ts'
import type { Accept, PartResult, PullResult, Shards } from './shards.ts'

export const SHARD_COUNT = 16
/** Its presence at start says that the last stop was not clean. Beside the files and synced, because their own pages are not. */
const IN_USE = 'in-use'

export interface ShardsOptions {
  dir: string
  shardCount: number
  /** Signs checkpoints with the server's key. */
  sign(bytes: Uint8Array): string
  /** The epoch of a cluster's agent (CU2a). */
  epochOf(clusterId: ClusterId): number
  /** 128 random bits in hex: ids of files. */
  newId(): string
  clock: Clock
  log: Logger
  libraryDir?: string
}

export interface OpenedShards {
  shards: Shards
  /** Of each file; another one than the last time: raise the epochs of its clusters, then replay (CU5). */
  dbIds: readonly string[]
  /** The file of a cluster. */
  indexOf(clusterId: ClusterId): number
  /** All clusters of which a file remembers anything. */
  held(): ClusterId[]
  /** Makes a file anew, empty and under another dbId. Before anything is served. */
  remake(index: number): void
}

export const shardOf = (clusterId: string, shardCount: number): number =>
  createHash('sha256').update(clusterId).digest().readUInt32BE(0) % shardCount

export function createShards(options: ShardsOptions): OpenedShards {
  const { dir, shardCount, newId, log, libraryDir } = options
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const suspect = existsSync(join(dir, IN_USE))
  if (!suspect) {
    writeFileSync(join(dir, IN_USE), '')
    syncPath(join(dir, IN_USE))
    syncPath(dir)
  }
  const open = (index: number, discard?: string): Part => {
    const path = join(dir, `shard-${String(index).padStart(2, '0')}.db`)
    const opened = openShardFile({
      path,
      newDbId: newId,
      suspect,
      ...(libraryDir === undefined ? {} : { libraryDir }),
      ...(discard === undefined ? {} : { discard }),
    })
    if (opened.rebuilt !== null && discard === undefined)
      log.warn('shard file rebuilt after an unclean stop', { shard: index, why: opened.rebuilt })
    return { path, file: opened.file, reader: openShardReader(path) }
  }
  const parts = Array.from({ length: shardCount }, (_, index) => open(index))
  return {
    shards: new ShardFiles(parts, options),
    get dbIds() {
      return parts.map(({ file }) => file.dbId)
    },
    indexOf: (clusterId) => shardOf(clusterId, shardCount),
    held: () => parts.flatMap(({ file }) => file.clusters()),
    remake: (index) => {
      parts[index]?.reader.close()
      parts[index]?.file.close()
      parts[index] = open(index, 'it is ahead of the fleet store')
    },
  }
}

interface Part {
  path: string
  file: ShardFile
  reader: ShardReader
}

class ShardFiles implements Shards {
  readonly #parts: readonly Part[]
  readonly #options: ShardsOptions
  readonly #waiters = new Map<ClusterId, Set<() => void>>()

  constructor(parts: readonly Part[], options: ShardsOptions) {
    this.#parts = parts
    this.#options = options
  }

  writeRevision(revision: Parameters<Shards['writeRevision']>[0]) {
    const head = this.#part(revision.clusterId).file.write(revision)
    if (head !== null) this.wake(revision.clusterId)
    return { changed: head !== null }
  }

  ordinal(clusterId: ClusterId) {
    return this.#part(clusterId).file.ordinal(clusterId)
  }

  removeCluster(clusterId: ClusterId) {
    this.#part(clusterId).file.removeCluster(clusterId)
    this.wake(clusterId)
  }

  head(clusterId: ClusterId) {
    return this.#part(clusterId).file.head(clusterId)
  }

  async pull(clusterId: ClusterId, cursor: Position | null, accept: Accept): Promise<PullResult> {
    const { file, reader } = this.#part(clusterId)
    const read = reader.read(clusterId, cursor)
    if (read.kind !== 'rows') return read
    const { to, count, ordinal, rows } = read
    const { sign, epochOf } = this.#options
    const epoch = epochOf(clusterId)
    const frames = encodePage({ clusterId, epoch, from: cursor, to, count, ordinal, rows, siteId: file.siteId, sign })
    const packed = accept.zstd ? zstd(frames) : null
    return packed === null || packed.length >= frames.length
      ? { kind: 'page', bytes: frames, zstd: false, transfer: null, to }
      : { kind: 'page', bytes: packed, zstd: true, transfer: null, to }
  }

  refetch(clusterId: ClusterId, _sums: Uint8Array, accept: Accept): Promise<PullResult> {
    return this.pull(clusterId, null, accept)
  }

  part(): PartResult {
    return { kind: 'gone' }
  }

  endTransfers(): void {}

  waitForChange(clusterId: ClusterId, position: Position, waitMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || !samePosition(this.head(clusterId), position)) return Promise.resolve()
    const waiters = this.#waiters.get(clusterId) ?? new Set()
    this.#waiters.set(clusterId, waiters)
    return new Promise((resolve) => {
      const timer = new AbortController()
      const done = () => {
        if (!waiters.delete(done)) return
        if (waiters.size === 0 && this.#waiters.get(clusterId) === waiters) this.#waiters.delete(clusterId)
        signal.removeEventListener('abort', done)
        timer.abort()
        resolve()
      }
      waiters.add(done)
      signal.addEventListener('abort', done, { once: true })
      void this.#options.clock.sleep(waitMs, timer.signal).then(done)
    })
  }

  close() {
    for (const waiters of [...this.#waiters.values()]) for (const done of [...waiters]) done()
    for (const { reader, file, path } of this.#parts) {
      reader.close()
      file.close()
      syncPath(path)
    }
    rmSync(join(this.#options.dir, IN_USE), { force: true })
    syncPath(this.#options.dir)
  }

  wake(clusterId: ClusterId) {
    for (const done of [...(this.#waiters.get(clusterId) ?? [])]) done()
  }

  #part(clusterId: ClusterId): Part {
    const part = this.#parts[shardOf(clusterId, this.#options.shardCount)]
    assert(part, 'every cluster has a shard')
    return part
  }
}
