// The replica in force, and its replacement (PL8): a new file is built beside it and renamed over it, so that until
// that moment the agent enforces the old rows. A replica that fails a check serves nothing until then (RP1).
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { asidePath, type NativeGuard, setAside } from '../../shared/adapters/native-guard.ts'
import { isDamage, isDiskFull } from '../../shared/adapters/sqlite.ts'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { type Position, samePosition } from '../../shared/crdt/position.ts'
import { HEALTH_RULE_PREFIX, objectRowPrefix } from '../../shared/model/desired.ts'
import { SITE_CONFIG_PREFIX } from '../../shared/model/site-config.ts'
import { SUSPENSION_PREFIX } from '../../shared/model/suspension.ts'
import type { HeadProof } from '../../shared/protocol/frames.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { servicePart } from '../messages/service-messages.ts'
import { type LastHead, laterProof, NO_HEAD, readLastHead, writeLastHead } from './last-head.ts'
import { buildNewFile, removeFile } from './new-file.ts'
import { isSigned, type Page, readPage, SEALED_FOR_OTHER } from './page-reader.ts'
import type { ApplyPageResult, Replica, ServiceRead } from './replica.ts'
import { ID_CEILING, openReplicaFile, type ReplicaFile, type ReplicaFileOptions } from './replica-file.ts'
import { isLeaving, readService, servicesOf } from './revision-read.ts'
import { NO_RECIPIENTS, type Recipients, RowOpener } from './row-opener.ts'

export interface CrdtReplicaOptions {
  path: string
  clusterId: string
  /** The pinned keys; asked at every page, because they are rotated. */
  serverKeys(): readonly string[]
  /** Default: none, and no sealed row opens. */
  recipients?: Recipients
  log: Logger
  libraryDir?: string
  /** Default: none, and the file is opened in this process. */
  guard?: NativeGuard
  /** A page found no space, or the replica could not be opened (RP4). */
  onDiskFull?(doing: 'write' | 'open'): void
  /** A verified replica is damaged now: nothing is enforced until it is fetched again. */
  onDamage?(): void
}

/** The whole check of CU2, for a timer: bits can flip under an idle file. */
export interface CheckedReplica extends Replica {
  recheck(): boolean
  /** The file lost the last head of the server by a power failure: the head beside it is of a later page (RP2). */
  isBehind(): boolean
  /** SL10: it holds keys that are wrapped for another recipient key than the one in use. */
  hasFormerKeys(): boolean
}

export function createCrdtReplica(options: CrdtReplicaOptions): CheckedReplica {
  mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 })
  removeFile(stagedPath(options.path)) // a crash while one was built means starting again
  return new CrdtReplica(options)
}

const stagedPath = (path: string) => `${path}.new`
const lastHeadPath = (path: string) => `${path}.epoch`

class CrdtReplica implements CheckedReplica {
  readonly #options: CrdtReplicaOptions
  readonly #fileOptions: ReplicaFileOptions
  readonly #opener: RowOpener
  #file: ReplicaFile | null = null
  #inode: bigint | null = null
  #verified = false
  #last: LastHead
  /** The proof that is beside the file. */
  #beside: HeadProof | null

  constructor(options: CrdtReplicaOptions) {
    const { path, clusterId, libraryDir, guard, recipients = NO_RECIPIENTS } = options
    this.#opener = new RowOpener(clusterId, recipients)
    const knows = (to: string) => options.recipients === undefined || recipients.privateKey(to) !== null
    this.#options = options
    const opening = guard === undefined ? {} : { opening: guard.opening }
    this.#fileOptions = {
      clusterId,
      knows,
      isCurrent: recipients.isCurrent,
      ...opening,
      ...(libraryDir === undefined ? {} : { libraryDir }),
    }
    this.#last = this.#ownServers(readLastHead(lastHeadPath(path), clusterId))
    this.#beside = this.#last.proof
    this.#refuseDeadly()
    this.#load()
  }

  /** Native code that ends this process would end it at every start, and nothing would be enforced at all. */
  #refuseDeadly(): void {
    const { path, guard, log } = this.#options
    const why = existsSync(path) ? guard?.refusals([path]).get(path) : undefined
    if (why === undefined) return
    setAside(path)
    log.error('replica moved aside; fetching it again', { why, kept: asidePath(path) })
  }

  /**
   * A person who joined this agent again vouched for the keys that it pins since. Statements under other keys no longer
   * count: otherwise a server whose key was reset could neither be recognized by them nor exceed them.
   */
  #ownServers(last: LastHead): LastHead {
    const { clusterId, serverKeys } = this.#options
    return last.proof === null || isSigned(last.proof, clusterId, serverKeys()) ? last : NO_HEAD
  }

  #load(): void {
    if (!existsSync(this.#options.path)) return
    try {
      this.#openWithSpace()
      this.#takeLastHead(this.recheck())
    } catch (error) {
      this.#options.log.warn('replica cannot be opened; fetching it again', { why: describeError(error) })
    }
  }

  /** A damaged epoch could be one that no server ever reaches: without an intact file only signed values count. */
  #takeLastHead(isWhole: boolean): void {
    const proof = this.#file?.proof() ?? null
    const epoch = (isWhole ? this.#file?.held()?.epoch : proof?.hello.epoch) ?? 0
    const held = this.#ownServers({ epoch, proof })
    this.#last = { epoch: Math.max(this.#last.epoch, held.epoch), proof: laterProof(this.#last.proof, held.proof) }
    if (isWhole) this.#refreshBeside()
  }

  position(): Position | null {
    return this.#verified ? (this.#file?.held()?.position ?? null) : null
  }

  epoch(): number {
    return this.#last.epoch
  }

  proof(): HeadProof | null {
    return this.#last.proof
  }

  isBehind(): boolean {
    const said = this.#last.proof?.hello
    const held = this.#file?.proof()?.hello
    return (
      said !== undefined && held !== undefined && (held.epoch < said.epoch || (held.epoch === said.epoch && held.ordinal < said.ordinal))
    )
  }

  hasFormerKeys(): boolean {
    const [file, { isCurrent }] = [this.#file, this.#options.recipients ?? NO_RECIPIENTS]
    if (file === null || !this.verified()) return false
    return this.#unlessDamaged(() => file.encapsulations('', ID_CEILING).some(({ to }) => !isCurrent(to)), false)
  }

  verified(): boolean {
    if (this.#verified && this.#file?.touchedByOthers()) this.recheck()
    return this.#verified
  }

  recheck(): boolean {
    const damage = this.#file === null ? 'the file does not exist' : (this.#supplanted() ?? this.#file.damage('whole'))
    if (damage === null) this.#verified = true
    else this.#distrust(damage)
    if (this.#verified) this.#refreshBeside()
    return this.#verified
  }

  #distrust(why: string): void {
    const wasVerified = this.#verified
    this.#verified = false
    this.#options.log.warn('replica failed its check; fetching it again', { why })
    if (wasVerified) this.#options.onDamage?.()
  }

  /** The open file has no name any more: none of it would survive a restart. */
  #supplanted(): string | null {
    return this.#inode === inodeOf(this.#options.path) ? null : 'the file was removed or another one took its name'
  }

  bucketSums(): Uint8Array {
    const file = this.#file
    const none = new Uint8Array()
    return file === null || !this.verified() ? none : this.#unlessDamaged(() => file.bucketSums(), none)
  }

  applyPage(frames: Uint8Array): ApplyPageResult {
    try {
      return this.#apply(frames)
    } catch (error) {
      if (isDiskFull(error)) this.#options.onDiskFull?.('write')
      throw error
    }
  }

  #apply(frames: Uint8Array): ApplyPageResult {
    if (this.#file === null) this.#load() // a full disk may have kept it from being opened
    const read = readPage(frames, this.#options.clusterId, this.#options.serverKeys())
    if (read.kind === 'refused') return read
    const { hello } = read.page
    if (hello.seal !== undefined && this.#fileOptions.knows?.(hello.seal.to) === false) return { kind: 'refused', why: SEALED_FOR_OTHER }
    if (hello.epoch < this.epoch()) return { kind: 'refused', why: `epoch ${hello.epoch} is older than ${this.epoch()}` }
    const setBack = this.#saidMore(hello)
      ? ({
          kind: 'refused',
          why: `the server sent a higher ordinal than ${hello.ordinal} before: its store was restored or reset`,
        } as const)
      : null
    if (hello.from === null) return setBack ?? this.#replaceBy(read.page)
    const position = this.verified() ? this.position() : null
    if (position === null || !samePosition(position, hello.from)) return { kind: 'discarded' }
    if (setBack !== null) return setBack
    try {
      return this.#mergePage(read.page)
    } catch (error) {
      // Rows can be intact while the merge data is broken: they stay in force, and a new file repairs it.
      if (isDiskFull(error) || (this.recheck() && !isDamage(error))) throw error
      return { kind: 'refused', why: `the replica is damaged: ${describeError(error)}` }
    }
  }

  /**
   * RP2: in one epoch ordinals only grow. Without this check a server and a replica that are both older would agree on
   * orders that no longer hold, and a network attacker could replay an old page. The following refetch shows the server
   * its own signature.
   */
  #saidMore({ epoch, ordinal }: Page['hello']): boolean {
    const said = this.#last.proof?.hello
    return said !== undefined && said.epoch === epoch && said.ordinal > ordinal
  }

  /** A file can break under an open connection. Then the check reports it and a refetch follows; any other error is
   *  the caller's. */
  #unlessDamaged<T>(work: () => T, otherwise: T): T {
    try {
      return work()
    } catch (error) {
      if (isDiskFull(error) || (this.recheck() && !isDamage(error))) throw error
      if (this.#verified) this.#distrust(describeError(error))
      return otherwise
    }
  }

  #mergePage({ hello, rows, checkpoint, wraps }: Page): ApplyPageResult {
    const file = this.#file
    if (file === null) return { kind: 'discarded' }
    const head = { hello, checkpoint }
    if (hello.epoch > this.#last.epoch) this.#keepBeside({ epoch: hello.epoch, proof: this.#last.proof })
    const merged = file.merge(rows, head, wraps)
    if ('differs' in merged) return { kind: 'refused', why: merged.differs }
    this.#last = { epoch: hello.epoch, proof: head }
    this.#refreshBeside() // a power cut may take the end of the file's log back
    return { kind: 'applied', position: hello.to, changedServices: servicesOf(merged.changedIds) }
  }

  #replaceBy(page: Page): ApplyPageResult {
    const { path } = this.#options
    const { hello, checkpoint } = page
    const { epoch } = hello
    const staged = stagedPath(path)
    removeFile(staged)
    const file = this.#file
    const old = file !== null && this.verified() ? { file, path } : null
    try {
      const building = () => buildNewFile({ path: staged, options: this.#fileOptions, page, old })
      const built =
        old === null ? building() : this.#unlessDamaged(building, { kind: 'refused', why: 'the replica was damaged while it was read' })
      if (built.kind === 'refused') return built
      const changed = old === null ? [...built.changedIds, ...this.#doubtfulIds()] : built.changedIds
      this.#keepBeside({ epoch, proof: { hello, checkpoint } })
      this.#putInForce(staged)
      const wraps = this.#file?.encapsulations('', ID_CEILING) ?? []
      this.#options.recipients?.forget((fingerprint) => wraps.some(({ to }) => to === fingerprint))
      return { kind: 'applied', position: hello.to, changedServices: servicesOf(changed) }
    } finally {
      removeFile(staged)
    }
  }

  /** The ids that a damaged file still has: services that no longer exist must be reported too. */
  #doubtfulIds(): string[] {
    try {
      return this.#file?.rows('service/', 'service0').map(([id]) => id) ?? []
    } catch {
      return []
    }
  }

  #putInForce(staged: string): void {
    const { path } = this.#options
    // A log left beside the name would be applied to the new file at its next opening: it is removed first. The old
    // file is complete without it, or is found damaged.
    this.#letGo()
    for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
    renameSync(staged, path)
    syncPath(dirname(path))
    this.#openWithSpace()
    this.#verified = true
  }

  /** Opening writes, too, and the rows must be enforced on a full disk as well (RP4). */
  #openWithSpace(): void {
    try {
      this.#open()
    } catch (error) {
      if (!isDiskFull(error)) throw error
      this.#options.onDiskFull?.('open')
      this.#open()
    }
  }

  #open(): void {
    const { path } = this.#options
    this.#file = openReplicaFile(path, this.#fileOptions)
    this.#inode = inodeOf(path)
  }

  services(): ServiceId[] {
    const file = this.#file
    if (file === null || !this.verified()) return []
    return this.#unlessDamaged(() => servicesOf(file.rows('service/', 'service0').map(([id]) => id)), [])
  }

  read(service: ServiceId): ServiceRead {
    const file = this.#file
    const unreadable: ServiceRead = { kind: 'incomplete', why: servicePart('awaits_refetch') }
    return file === null || !this.verified() ? unreadable : this.#unlessDamaged(() => readService(file, service), unreadable)
  }

  unlock(service: ServiceId): Promise<void> | null {
    const file = this.#file
    const prefix = objectRowPrefix(service)
    if (file === null || !this.verified()) return null
    const wraps = this.#unlessDamaged(() => file.encapsulations(prefix, `${prefix.slice(0, -1)}0`), [])
    return wraps.length === 0 ? null : this.#opener.unlock(wraps)
  }

  open(rowId: string, doc: string): string | null {
    const file = this.#file
    if (file === null || !this.verified()) return null
    return this.#unlessDamaged(() => this.#opener.open(rowId, doc, file.wrapOf(rowId)), null)
  }

  isLeaving(service: ServiceId): boolean {
    const file = this.#file
    return file !== null && this.verified() && this.#unlessDamaged(() => isLeaving(file, service), false)
  }

  healthRules(): Array<readonly [id: string, doc: string]> | null {
    return this.#rowsOf(HEALTH_RULE_PREFIX)
  }

  suspensions(): Array<readonly [id: string, doc: string]> | null {
    return this.#rowsOf(SUSPENSION_PREFIX)
  }

  siteConfigs(): Array<readonly [id: string, doc: string]> | null {
    return this.#rowsOf(SITE_CONFIG_PREFIX)
  }

  /** `prefix` ends with a slash. */
  #rowsOf(prefix: string): Array<readonly [id: string, doc: string]> | null {
    const file = this.#file
    return file === null || !this.verified() ? null : this.#unlessDamaged(() => file.rows(prefix, `${prefix.slice(0, -1)}0`), null)
  }

  rowCount(): number {
    return this.#file?.held()?.count ?? 0
  }

  dump(): Array<readonly [id: string, doc: string]> {
    return this.#file?.rows('', ID_CEILING) ?? []
  }

  close(): void {
    this.#refreshBeside()
    this.#letGo()
  }

  /** It counts when the replica is lost or older; a full disk has no other effect on it. */
  #refreshBeside(): void {
    if (this.#beside === this.#last.proof) return
    try {
      this.#keepBeside(this.#last)
    } catch (error) {
      this.#options.log.warn('cannot save the last head', { why: describeError(error) })
    }
  }

  #letGo(): void {
    const file = this.#file
    this.#file = null
    this.#verified = false
    try {
      file?.close()
    } catch (error) {
      this.#options.log.warn('replica file closed with an error', { why: describeError(error) })
    }
  }

  /** Before the rows take force: with a lost replica, old pages of this server would be welcome again. */
  #keepBeside(last: LastHead): void {
    writeLastHead(lastHeadPath(this.#options.path), this.#options.clusterId, last)
    this.#last = last
    this.#beside = last.proof
  }
}

const inodeOf = (path: string): bigint | null => statSync(path, { bigint: true, throwIfNoEntry: false })?.ino ?? null
