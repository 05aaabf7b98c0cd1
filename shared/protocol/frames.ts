// GET desired?cursor=&wait=: a page of NDJSON frames: one `hello`, then for each db_version a `tx` and its n rows, last the `checkpoint`.
// A page goes from the agent's cursor to the head and nowhere between (PL2). 204: nothing new within `wait`. Unknown frame types between
// hello and checkpoint are an error of the page: what changes meaning gets a new protocol version.
import { z } from 'zod'
import { INTEGER_BOUND, positionSchema } from '../crdt/position.ts'
import { signatureSchema } from './join.ts'
import { ROW_DOC_BYTES_MAX, ROW_ID_BYTES_MAX } from './routes.ts'

const counter = z.number().int().positive().max(INTEGER_BOUND)

/** First frame. */
export const helloSchema = z.object({
  t: z.literal('hello'),
  /** Grows with every rebuild, restore or re-join; an agent refuses a lower one (CU2a). */
  epoch: counter,
  /** Layout of the rows; 1 is `desired(cluster, id, doc)`. */
  schema: z.number().int().positive(),
  /** The cursor this page starts from; null for a bootstrap into a new file (PL8). */
  from: positionSchema.nullable(),
  to: positionSchema,
  /** cr-sqlite site id of the shard file, 32 hex digits. */
  siteId: z.string().regex(/^[0-9a-f]{32}$/),
  /** Names the page while it can be asked for again (PL3). */
  transfer: z.string().max(64),
  parts: z.number().int().positive(),
})
export type Hello = z.infer<typeof helloSchema>

/** Opens one db_version: one revision of one service (CU6). */
export const txSchema = z.object({ t: z.literal('tx'), dv: counter, n: z.number().int().positive() })
export type Tx = z.infer<typeof txSchema>

const bytesAtMost = (max: number) => (text: string) => text.length <= max && (text.length * 3 <= max || Buffer.byteLength(text) <= max)

/** `[id, doc or null when deleted, column version, causal length, seq]`. An odd causal length is a live row, an even one a deleted row. */
export const rowSchema = z
  .tuple([
    z.string().min(1).refine(bytesAtMost(ROW_ID_BYTES_MAX), `id longer than ${ROW_ID_BYTES_MAX} bytes`),
    z.string().refine(bytesAtMost(ROW_DOC_BYTES_MAX), `doc longer than ${ROW_DOC_BYTES_MAX} bytes`).nullable(),
    counter,
    counter,
    z.number().int().min(0).max(INTEGER_BOUND),
  ])
  .refine(([, doc, , cl]) => (doc === null) === (cl % 2 === 0), 'causal length does not fit: odd is alive, even is deleted')
export type Row = z.infer<typeof rowSchema>

/** Last frame. The signature is checked before BEGIN, hash and count before COMMIT of rows and cursor (PL5, CU4). */
export const checkpointSchema = z.object({
  t: z.literal('checkpoint'),
  from: positionSchema.nullable(),
  to: positionSchema,
  /** All live rows of the cluster after this page, not only the page's. */
  count: z.number().int().nonnegative().max(INTEGER_BOUND),
  /** SHA-256 in hex of all bytes of the page before this frame's line. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  signature: signatureSchema,
})
export type Checkpoint = z.infer<typeof checkpointSchema>

/** CU2a: what the checkpoint's signature covers. `to.hash` is the row hash. */
export function checkpointBytes(clusterId: string, epoch: number, checkpoint: Omit<Checkpoint, 'signature' | 't'>): Uint8Array {
  const { from, to, count, sha256 } = checkpoint
  const position = (p: typeof to | null) => (p === null ? '-' : `${p.dbId}.${p.term}.${p.dv}.${p.hash}`)
  return new TextEncoder().encode(['skerry-checkpoint-v1', clusterId, epoch, position(from), position(to), count, sha256].join('\n'))
}

/** Why a cursor cannot be answered by a delta (PL1); member `reason` of the 409 problem. */
export const REFETCH_REASONS = ['restored', 'forked', 'compacted', 'diverged', 'unknown'] as const
export type RefetchReason = (typeof REFETCH_REASONS)[number]
