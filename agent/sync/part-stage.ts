// A page in parts, kept on the disk outside the replica until it is complete (PL3): it survives interruptions and
// restarts of the agent within the time that the server keeps it. Its content is not trusted: the page is checked when
// it is complete, lengths while it grows.
import { closeSync, ftruncateSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { PART_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { TRANSFER_MS, type TransferHead } from '../../shared/protocol/transfer.ts'
import type { PageTask } from './sync-state.ts'

const taskSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('refetch'), scope: z.enum(['buckets', 'whole']), held: z.boolean(), restarted: z.boolean() }),
  z.object({ kind: z.literal('follow'), proven: z.boolean(), restarted: z.boolean() }),
])

const stagedSchema = z.object({
  transfer: z.object({ id: z.string(), parts: z.number().int(), bytes: z.number().int() }),
  /** The size of every part but the last. */
  partBytes: z.number().int().positive(),
  /** The task that needs the page. */
  of: taskSchema,
  /** That it continues; null for a page that makes a new file. */
  cursor: z.string().nullable(),
  clusterId: z.string(),
  /** Time of the last part, from which the server keeps the transfer. */
  movedMs: z.number(),
})
type Staged = z.infer<typeof stagedSchema>

export interface StagedPage extends Staged {
  /** Parts that are here. */
  have: number
}

export interface PartStage {
  /** Null if there is nothing, or nothing that the server could still have. */
  current(nowMs: number): StagedPage | null
  /** Replaces the present page. */
  begin(page: { transfer: TransferHead; of: PageTask; cursor: string | null; clusterId: string; movedMs: number }, first: Uint8Array): void
  /** The next part in order. */
  add(bytes: Uint8Array, nowMs: number): void
  assembled(): Uint8Array
  drop(): void
}

/** PL3: the server's description of a transfer must fit its parts: slices of equal length, the last one shorter.
 *  Null means that it may fit. */
export function transferLie({ parts, bytes }: TransferHead, partBytes: number): string | null {
  if (partBytes < 1 || partBytes > PART_BYTES_MAX) return `a part of ${partBytes} bytes, more than ${PART_BYTES_MAX}`
  return Math.ceil(bytes / partBytes) === parts ? null : `${parts} parts of ${partBytes} bytes do not add up to ${bytes}`
}

export const partLength = ({ transfer, partBytes }: Pick<Staged, 'transfer' | 'partBytes'>, part: number): number =>
  Math.min(partBytes, transfer.bytes - part * partBytes)

/** For agents without free disk space: the content is lost with the process. */
export function memoryStage(): PartStage {
  let held: StagedPage | null = null
  let parts: Uint8Array[] = []
  const drop = () => {
    held = null
    parts = []
  }
  return {
    current(nowMs) {
      if (held !== null && tooOld(held, nowMs)) drop()
      return held
    },
    begin(page, first) {
      parts = [first]
      held = { ...page, partBytes: first.length, have: 1 }
    },
    add(bytes, nowMs) {
      if (held === null) return
      parts.push(bytes)
      held = { ...held, have: parts.length, movedMs: nowMs }
    },
    assembled: () => Buffer.concat(parts),
    drop,
  }
}

/** Also if the clock went back by more than a correction, because the age is unknown then. */
const tooOld = ({ movedMs }: Staged, nowMs: number): boolean => Math.abs(nowMs - movedMs) > TRANSFER_MS

export function createPartStage(dataDir: string): PartStage {
  const dir = join(dataDir, 'parts')
  const headPath = join(dir, 'head.json')
  const bodyPath = join(dir, 'body')
  let held: StagedPage | null = null
  let looked = false

  const drop = () => {
    held = null
    looked = true
    rmSync(dir, { recursive: true, force: true })
  }
  const write = (bytes: Uint8Array, at: number) => {
    const file = openSync(bodyPath, at === 0 ? 'w' : 'r+', 0o600)
    try {
      ftruncateSync(file, at) // what a failed write left behind
      for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done, bytes.length - done, at + done)
    } finally {
      closeSync(file)
    }
  }
  const writeHead = (staged: Staged) => writeFileSync(headPath, JSON.stringify(stagedSchema.parse(staged)), { mode: 0o600 })
  /** After a restart: whole parts count, the piece of one does not. */
  const look = (): StagedPage | null => {
    try {
      const staged = stagedSchema.parse(JSON.parse(readFileSync(headPath, 'utf8')))
      const { size } = statSync(bodyPath)
      const have = size >= staged.transfer.bytes ? staged.transfer.parts : Math.floor(size / staged.partBytes)
      return have > 0 && transferLie(staged.transfer, staged.partBytes) === null ? { ...staged, have } : null
    } catch {
      return null
    }
  }

  return {
    current(nowMs) {
      if (!looked) held = look()
      if (held === null ? !looked : tooOld(held, nowMs)) drop()
      looked = true
      return held
    },
    begin(page, first) {
      drop()
      mkdirSync(dir, { recursive: true, mode: 0o700 })
      const staged: Staged = { ...page, partBytes: first.length }
      write(first, 0)
      writeHead(staged)
      held = { ...staged, have: 1 }
    },
    add(bytes, nowMs) {
      if (held === null) return
      write(bytes, held.have * held.partBytes)
      held = { ...held, have: held.have + 1, movedMs: nowMs }
      writeHead(held)
    },
    assembled: () => readFileSync(bodyPath),
    drop,
  }
}
