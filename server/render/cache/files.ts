// Renders on the disk: files by key, bounded, those longest unused go first. A cache and nothing more: what cannot be
// read as it was written counts as not there and is removed, and what cannot be written is rendered again some day.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../../shared/runtime/clock.ts'

/** Place of a kept render in the secret box: under the name of another render it does not open. */
const placeOf = (key: string): string => `render/${key}`

/** Seals what was made with secrets. */
export interface CacheSeal {
  seal(bytes: Uint8Array, place: string): Uint8Array
  /** Null if it cannot be opened any more. */
  open(sealed: Uint8Array, place: string): Uint8Array | null
}

export interface CacheFiles {
  /** Null if there is none. */
  get(key: string): Promise<Uint8Array | null>
  /** `secret`: it is sealed. */
  put(key: string, bytes: Uint8Array, secret: boolean): Promise<void>
}

export interface CacheFilesOptions {
  dir: string
  seal: CacheSeal
  clock: Clock
  /** The limit of all files together. */
  bytesMax: number
}

/** IC9: the renders that were not used for the longest time are removed first. */
export const CACHE_DISK_BYTES_MAX = 512 * 1024 * 1024
const MAGIC = Buffer.from('SKR1')
const PLAIN = 0
const SEALED = 1
const SUM_BYTES = 16
const HEAD_BYTES = MAGIC.length + 1 + SUM_BYTES
const KEY = /^[0-9a-f]{32}$/
/** Uses are written down this coarsely, so that what is used all the time costs no writes. */
const USE_COARSENESS_MS = 60 * 60 * 1000

interface Kept {
  bytes: number
  usedMs: number
}

export function createCacheFiles(options: CacheFilesOptions): CacheFiles {
  return new FolderCache(options)
}

class FolderCache implements CacheFiles {
  private readonly options: CacheFilesOptions
  private readonly kept = new Map<string, Kept>()
  private bytes = 0
  private opened: Promise<void> | null = null
  /** One write at a time. */
  private writing: Promise<void> = Promise.resolve()

  constructor(options: CacheFilesOptions) {
    this.options = options
  }

  async get(key: string): Promise<Uint8Array | null> {
    await this.open()
    if (!this.kept.has(key)) return null
    const file = await readFile(this.path(key)).catch(() => null)
    const bytes = file === null ? null : this.unwrap(key, file)
    if (bytes === null) {
      await this.remove(key)
      return null
    }
    await this.used(key)
    return bytes
  }

  put(key: string, bytes: Uint8Array, secret: boolean): Promise<void> {
    const written = this.writing.then(() => this.write(key, bytes, secret))
    this.writing = written.catch(() => {})
    return this.writing
  }

  private async write(key: string, bytes: Uint8Array, secret: boolean): Promise<void> {
    await this.open()
    const body = secret ? this.options.seal.seal(bytes, placeOf(key)) : bytes
    if (HEAD_BYTES + body.byteLength > this.options.bytesMax) return
    const file = Buffer.concat([MAGIC, Buffer.from([secret ? SEALED : PLAIN]), sumOf(body), body])
    const staged = join(this.options.dir, `${key}.new`)
    await writeFile(staged, file, { mode: 0o600 })
    await rename(staged, this.path(key))
    this.enter(key, { bytes: file.byteLength, usedMs: this.options.clock.nowMs() })
    if (this.bytes <= this.options.bytesMax) return
    for (const [oldest] of this.kept) {
      await this.remove(oldest)
      if (this.bytes <= this.options.bytesMax) return
    }
  }

  /** Reads what is there, once; what is no file of ours, or was not written to its end, goes. */
  private open(): Promise<void> {
    this.opened ??= this.list()
    return this.opened
  }

  private async list(): Promise<void> {
    const { dir } = this.options
    await mkdir(dir, { recursive: true, mode: 0o700 }).catch(() => {})
    const found: Array<[string, Kept]> = []
    for (const name of await readdir(dir).catch(() => [])) {
      const info = await stat(join(dir, name)).catch(() => null)
      if (KEY.test(name) && info?.isFile() === true) found.push([name, { bytes: info.size, usedMs: info.mtimeMs }])
      else await rm(join(dir, name), { recursive: true, force: true }).catch(() => {})
    }
    for (const [name, kept] of found.sort(([, a], [, b]) => a.usedMs - b.usedMs)) this.enter(name, kept)
  }

  private unwrap(key: string, file: Buffer): Uint8Array | null {
    const body = file.subarray(HEAD_BYTES)
    const isWhole = file.length >= HEAD_BYTES && file.subarray(0, MAGIC.length).equals(MAGIC)
    if (!isWhole || !file.subarray(HEAD_BYTES - SUM_BYTES, HEAD_BYTES).equals(sumOf(body))) return null
    const form = file[MAGIC.length]
    return form === SEALED ? this.options.seal.open(body, placeOf(key)) : form === PLAIN ? body : null
  }

  private async used(key: string): Promise<void> {
    const kept = this.kept.get(key)
    const nowMs = this.options.clock.nowMs()
    if (kept === undefined) return
    const isOld = nowMs - kept.usedMs >= USE_COARSENESS_MS
    this.enter(key, isOld ? { ...kept, usedMs: nowMs } : kept)
    if (isOld) await utimes(this.path(key), new Date(nowMs), new Date(nowMs)).catch(() => {})
  }

  /** Last: most lately used. */
  private enter(key: string, kept: Kept): void {
    this.bytes += kept.bytes - (this.kept.get(key)?.bytes ?? 0)
    this.kept.delete(key)
    this.kept.set(key, kept)
  }

  private async remove(key: string): Promise<void> {
    this.bytes -= this.kept.get(key)?.bytes ?? 0
    this.kept.delete(key)
    await rm(this.path(key), { force: true }).catch(() => {})
  }

  private path(key: string): string {
    return join(this.options.dir, key)
  }
}

/** Content of a kept render that is not sealed. Null means that it is sealed, or none. */
export function readPlainFile(path: string): Uint8Array | null {
  const file = readFileSync(path)
  const body = file.subarray(HEAD_BYTES)
  const isPlain = file.length >= HEAD_BYTES && file.subarray(0, MAGIC.length).equals(MAGIC) && file[MAGIC.length] === PLAIN
  return isPlain && file.subarray(HEAD_BYTES - SUM_BYTES, HEAD_BYTES).equals(sumOf(body)) ? body : null
}

const sumOf = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest().subarray(0, SUM_BYTES)
