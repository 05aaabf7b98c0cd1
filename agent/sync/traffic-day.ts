// Today's traffic of the link to the server, against a budget: bytes of requests and answers, headers included, without
// TLS and TCP. Stored on the disk, so that a restart does not begin a new day.
import { closeSync, constants, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../../shared/runtime/clock.ts'

/** A metered link without a budget of its own: about ten times what an idle agent needs in a day. */
export const DAILY_BYTES_METERED = 1_000_000
/** Bytes that are not in the file yet. A kill loses them. */
const WRITE_AFTER_BYTES = 4_096
/** Later in a day with much traffic, the file is written after this part of the day's bytes: otherwise it would be
 *  written for each request. */
const WRITE_AFTER_PART = 1 / 256
/** Longer than the content, so that each write replaces all of the one before in place. A file that is replaced by a
 *  rename costs a wait for the disk on ext4, and a followed log writes many times a second. */
const FILE_BYTES = 64

const daySchema = z.object({ day: z.string(), bytes: z.number().int().nonnegative() })
export type Day = z.infer<typeof daySchema>

export interface TrafficDay {
  add(bytes: number): void
  today(): Day
  /** The budget is exceeded; never with a budget of 0, which means none. */
  exceeded(): boolean
  budgetBytes: number
  /** At the end of a run. */
  flush(): void
}

const DAY_MS = 86_400_000

/** Days are UTC: one clock for a fleet. */
export const dayOf = (nowMs: number): string => new Date(nowMs).toISOString().slice(0, 10)

/** `path` null: nothing is stored. */
export function createTrafficDay({ path, budgetBytes, clock }: { path: string | null; budgetBytes: number; clock: Clock }): TrafficDay {
  let held = path === null ? null : readDay(path)
  let unwritten = 0
  let hasFolder = false
  /** Asked for with each request: a date as text is made once a day. */
  let dayNumber = 0
  const today = (): Day => {
    const number = Math.floor(clock.nowMs() / DAY_MS)
    if (held === null || number !== dayNumber) {
      const day = dayOf(number * DAY_MS)
      if (held?.day !== day) held = { day, bytes: 0 }
      dayNumber = number
    }
    return held
  }
  const flush = () => {
    if (path === null || unwritten === 0) return
    unwritten = 0
    try {
      if (!hasFolder) mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      overwrite(path, JSON.stringify(today()).padEnd(FILE_BYTES))
      hasFolder = true
    } catch {
      hasFolder = false
      // A full disk must not stop the sync that may free it. The count continues in memory.
    }
  }
  return {
    budgetBytes,
    today: () => ({ ...today() }),
    exceeded: () => budgetBytes > 0 && today().bytes >= budgetBytes,
    add(bytes) {
      const { day, bytes: before } = today()
      held = { day, bytes: before + bytes }
      unwritten += bytes
      if (unwritten >= Math.max(WRITE_AFTER_BYTES, held.bytes * WRITE_AFTER_PART)) flush()
    },
    flush,
  }
}

function overwrite(path: string, text: string): void {
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o600)
  try {
    writeSync(file, text, 0)
  } finally {
    closeSync(file)
  }
}

/** Reads the traffic of an agent that does not run. */
export function readToday(path: string, nowMs: number): number {
  const held = readDay(path)
  return held?.day === dayOf(nowMs) ? held.bytes : 0
}

function readDay(path: string): Day | null {
  try {
    return daySchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return null
  }
}
