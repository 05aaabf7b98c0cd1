// What all parts of one history share: its folder, its time, its dice, what people ordered, and the trace. Nothing in
// here is random but by the seed.
import { createHash, createPrivateKey, createPublicKey } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { RESERVE_BYTES } from '../../agent/state/disk-reserve.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { createTracedClock, type Trace } from '../support/trace.ts'
import type { SharedClock } from '../support/virtual-clock.ts'
import { type FaultCounts, type FaultKind, noFaults } from './fault-kinds.ts'
import { Orders } from './orders.ts'
import { drawSiteIdsFrom } from './site-ids.ts'

export class World {
  readonly seed: number
  readonly random: Random
  readonly clock: SharedClock
  readonly trace: Trace
  readonly orders = new Orders()
  readonly faults: FaultCounts = noFaults()
  /** What must never be seen; found while it happens, told at the end. */
  readonly broken: Broken[] = []
  /** The content stores of all servers: their files have tests of their own, and content by its hash cannot be an older
   *  one. */
  readonly content = new Map<string, Uint8Array>()
  #generation = 0

  constructor(seed: number) {
    const { clock, trace, random } = createTracedClock(seed)
    this.seed = seed
    this.random = random
    this.clock = clock
    this.trace = trace
    drawSiteIdsFrom(seed)
  }

  count(fault: FaultKind): void {
    this.trace.detail(`fault ${fault}`)
    this.faults[fault]++
  }

  /** One line of the history. */
  note(line: string): void {
    this.trace.note(line)
  }

  break(kind: Broken['kind'], what: string): void {
    this.note(`BROKEN ${kind}: ${what}`)
    this.broken.push({ kind, what })
  }

  /** A folder that was never used, by a path that is the same on every machine: a history runs in its own working
   *  directory. */
  nextFolder(name: string): string {
    this.#generation += 1
    return `./${name}-${this.#generation}`
  }

  chance(part: number): boolean {
    return this.random() < part
  }
  below(limit: number): number {
    return Math.floor(this.random() * limit)
  }
  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }
  randomHex(bytes: number): string {
    return Array.from({ length: bytes }, () => this.below(256).toString(16).padStart(2, '0')).join('')
  }
}

export interface Broken {
  kind: 'diverged' | 'unintended_delete' | 'lost_status' | 'foreign_row' | 'in_flight' | 'bounds' | 'stuck'
  what: string
}

/** As it lies on the disk. Shared memory of a database is none of it, and the agent's reserve (RP4) is as good with a
 *  hole for its content. */
export function copyFolder(from: string, to: string): void {
  mkdirSync(to, { recursive: true })
  for (const file of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [`${from}/${file.name}`, `${to}/${file.name}`]
    if (file.isDirectory()) copyFolder(source, target)
    else if (file.name === RESERVE) makeReserve(to)
    else if (!file.name.endsWith('-shm')) copyFileSync(source, target)
  }
}

const RESERVE = 'reserve'
export function makeReserve(folder: string): void {
  writeFileSync(`${folder}/${RESERVE}`, '')
  truncateSync(`${folder}/${RESERVE}`, RESERVE_BYTES)
}

const PKCS8 = { ed25519: '302e020100300506032b657004220420', x25519: '302e020100300506032b656e04220420' }

/** The same name is the same key in every history, so that keys cost their parsing once. */
export function keyOf(type: keyof typeof PKCS8, name: string): { publicKey: string; privateKey: string } {
  const seed = createHash('sha256').update(`${type} ${name}`).digest()
  const der = Buffer.concat([Buffer.from(PKCS8[type], 'hex'), seed])
  const key = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }))
  return { publicKey: key.export({ format: 'jwk' }).x ?? '', privateKey: der.toString('base64url') }
}
