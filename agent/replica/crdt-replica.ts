// The replica in force, and how another takes its place (PL8): a bootstrap is built beside it and renamed over it, so that until that moment the
// agent enforces what it held. A replica that fails a check serves nothing until then (RP1).
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { isDiskFull } from '../../shared/adapters/sqlite.ts'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { type Position, samePosition } from '../../shared/crdt/position.ts'
import { setDigest } from '../../shared/kube/canonical.ts'
import { objectRowPrefix, parseRowId, type ServiceRow, serviceRowId, serviceRowSchema } from '../../shared/model/desired.ts'
import { type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import type { HeadProof } from '../../shared/protocol/frames.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { type Page, readPage } from './page-reader.ts'
import type { ApplyPageResult, Replica, ServiceRead } from './replica.ts'
import { openReplicaFile, type ReplicaFile } from './replica-file.ts'

export interface CrdtReplicaOptions {
  path: string
  clusterId: string
  /** The pinned keys; asked at every page, because they are rotated. */
  serverKeys(): readonly string[]
  log: Logger
  libraryDir?: string
}

/** The whole check of CU2, for a timer: bits can flip under an idle file. */
export interface CheckedReplica extends Replica {
  recheck(): boolean
}

export function createCrdtReplica(options: CrdtReplicaOptions): CheckedReplica {
  mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 })
  removeFile(stagedPath(options.path)) // a crash while one was built means starting again
  return new CrdtReplica(options)
}

const stagedPath = (path: string) => `${path}.new`
const epochPath = (path: string) => `${path}.epoch`
/** Above every id, which are text that begins with a letter. */
const ID_CEILING = '\u{10ffff}'

class CrdtReplica implements CheckedReplica {
  readonly #options: CrdtReplicaOptions
  #file: ReplicaFile | null = null
  #verified = false
  #epoch: number

  constructor(options: CrdtReplicaOptions) {
    this.#options = options
    this.#epoch = readEpoch(options.path)
    if (!existsSync(options.path)) return
    try {
      this.#file = this.#open(options.path)
      this.#epoch = Math.max(this.#epoch, this.#file.held()?.epoch ?? 0)
    } catch (error) {
      options.log.warn('replica cannot be opened, it will be fetched again', {
        why: error instanceof Error ? error.message : String(error),
      })
    }
    if (this.#file !== null) this.recheck()
  }

  position(): Position | null {
    return this.#verified ? (this.#file?.held()?.position ?? null) : null
  }

  epoch(): number {
    return this.#epoch
  }

  verified(): boolean {
    if (this.#verified && this.#file?.touchedByOthers()) this.recheck()
    return this.#verified
  }

  recheck(): boolean {
    const damage = this.#file === null ? 'there is none' : this.#file.damage()
    this.#verified = damage === null
    if (damage !== null) this.#options.log.warn('replica failed its check, it will be fetched again', { why: damage })
    return this.#verified
  }

  bucketSums(): Uint8Array {
    return new Uint8Array()
  }

  proof(): HeadProof | null {
    return null
  }

  applyPage(frames: Uint8Array): ApplyPageResult {
    const read = readPage(frames, this.#options.clusterId, this.#options.serverKeys())
    if (read.kind === 'refused') return read
    const { hello } = read.page
    if (hello.epoch < this.#epoch) return { kind: 'refused', why: `epoch ${hello.epoch} is older than ${this.#epoch}` }
    if (hello.from === null) return this.#replaceBy(read.page)
    const position = this.verified() ? this.position() : null
    if (position === null || !samePosition(position, hello.from)) return { kind: 'discarded' }
    return this.#unlessDamaged(() => this.#mergePage(read.page), { kind: 'refused', why: 'the replica is damaged' })
  }

  /** A file can break under an open connection. Then the check says so and a bootstrap follows; any other error is the caller's. */
  #unlessDamaged<T>(work: () => T, otherwise: T): T {
    try {
      return work()
    } catch (error) {
      if (isDiskFull(error) || this.recheck()) throw error
      return otherwise
    }
  }

  #mergePage({ hello, rows, checkpoint }: Page): ApplyPageResult {
    const file = this.#file
    if (file === null) return { kind: 'discarded' }
    this.#raiseEpoch(hello.epoch)
    const merged = file.merge(rows, hello.siteId, { position: hello.to, count: checkpoint.count, epoch: hello.epoch })
    if ('differs' in merged) return { kind: 'refused', why: merged.differs }
    return { kind: 'applied', position: hello.to, changedServices: servicesOf(merged.changedIds) }
  }

  #replaceBy({ hello, rows, checkpoint }: Page): ApplyPageResult {
    const { path } = this.#options
    const staged = stagedPath(path)
    removeFile(staged)
    const held = { position: hello.to, count: checkpoint.count, epoch: hello.epoch }
    const why = this.#build(staged, (file) => {
      const merged = file.merge(rows, hello.siteId, held)
      return 'differs' in merged ? merged.differs : file.damage()
    })
    if (why !== null) {
      removeFile(staged)
      return { kind: 'refused', why }
    }
    const before = new Map(this.#verified ? this.#unlessDamaged(() => this.dump(), []) : [])
    this.#raiseEpoch(hello.epoch)
    // A log left beside the name would be played into the new file at its next opening: it goes first. The old file is whole without it, or is
    // found damaged.
    this.#letGo()
    for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
    renameSync(staged, path)
    syncPath(dirname(path))
    this.#file = this.#open(path)
    this.#verified = true
    return { kind: 'applied', position: hello.to, changedServices: servicesOf(changedIds(before, new Map(this.dump()))) }
  }

  /** Makes a whole, closed, synced file, or says why not. */
  #build(path: string, fill: (file: ReplicaFile) => string | null): string | null {
    const file = this.#open(path)
    try {
      const why = fill(file)
      if (why !== null) return why
      file.db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    } finally {
      file.close()
    }
    if (existsSync(`${path}-wal`)) return 'its log could not be folded in'
    syncPath(path)
    return null
  }

  services(): ServiceId[] {
    const file = this.#file
    if (file === null || !this.verified()) return []
    return this.#unlessDamaged(() => servicesOf(file.rows('service/', 'service0').map(([id]) => id)), [])
  }

  read(service: ServiceId): ServiceRead {
    const file = this.#file
    const unreadable: ServiceRead = { kind: 'incomplete', why: 'the replica waits to be fetched again' }
    return file === null || !this.verified() ? unreadable : this.#unlessDamaged(() => readService(file, service), unreadable)
  }

  rowCount(): number {
    return this.#file?.held()?.count ?? 0
  }

  dump(): Array<readonly [id: string, doc: string]> {
    return this.#file?.rows('', ID_CEILING) ?? []
  }

  close(): void {
    this.#letGo()
  }

  #letGo(): void {
    const file = this.#file
    this.#file = null
    this.#verified = false
    try {
      file?.close()
    } catch (error) {
      this.#options.log.warn('replica file closed with an error', { why: error instanceof Error ? error.message : String(error) })
    }
  }

  #open(path: string): ReplicaFile {
    const { clusterId, libraryDir } = this.#options
    return openReplicaFile(path, libraryDir === undefined ? { clusterId } : { clusterId, libraryDir })
  }

  /** Also beside the file: with a lost replica, old pages of this server would be welcome again. */
  #raiseEpoch(epoch: number): void {
    if (epoch <= this.#epoch) return
    const path = epochPath(this.#options.path)
    writeFileSync(`${path}.new`, String(epoch), { mode: 0o600 })
    syncPath(`${path}.new`)
    renameSync(`${path}.new`, path)
    this.#epoch = epoch
  }
}

function readService(file: ReplicaFile, service: ServiceId): ServiceRead {
  const doc = file.doc(serviceRowId(service))
  if (doc === null) return { kind: 'absent' }
  const row = parseServiceRow(doc)
  if (row === null) return { kind: 'incomplete', why: 'this version cannot read the service row: upgrade the agent' }
  const prefix = objectRowPrefix(service)
  const objects = file.rows(prefix, `${prefix.slice(0, -1)}0`)
  const why = incompleteness(row, objects)
  return why === null ? { kind: 'complete', revision: { ...service, row, objects: new Map(objects) } } : { kind: 'incomplete', why }
}

/** RV1: null when the objects are exactly those that the row names. */
export function incompleteness(row: ServiceRow, objects: ReadonlyArray<readonly [id: string, doc: string]>): string | null {
  if (row.removal !== undefined) return objects.length === 0 ? null : `a removal order with ${objects.length} objects`
  if (objects.length !== row.count) return `${objects.length} of ${row.count} objects`
  return setDigest(objects) === row.digest ? null : 'its objects differ from its digest'
}

function parseServiceRow(doc: string): ServiceRow | null {
  try {
    const parsed = serviceRowSchema.safeParse(JSON.parse(doc))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}

function servicesOf(ids: readonly string[]): ServiceId[] {
  const services = new Map<string, ServiceId>()
  for (const id of ids) {
    const row = parseRowId(id)
    if (row.kind !== 'other') services.set(serviceKey(row.id), row.id)
  }
  return [...services].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, id]) => id)
}

function changedIds(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const gone = [...before.keys()].filter((id) => !after.has(id))
  return [...gone, ...[...after].filter(([id, doc]) => before.get(id) !== doc).map(([id]) => id)]
}

function readEpoch(path: string): number {
  try {
    const epoch = Number(readFileSync(epochPath(path), 'utf8'))
    return Number.isSafeInteger(epoch) && epoch > 0 ? epoch : 0
  } catch {
    return 0
  }
}

function removeFile(path: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
}
