// A page: one `hello` line (JSON), a line for each row, last the `checkpoint` line (JSON). It goes from the agent's
// cursor to the head and nowhere between (PL2). A row is `id TAB column version TAB causal length [TAB document]`: the
// document is canonical JSON on one line and travels unescaped, so that it is compressed, hashed and stored without
// conversion. A change of meaning gets a new protocol version; unknown members of hello and checkpoint are ignored.
import { z } from 'zod'
import { INTEGER_BOUND, type Position, positionSchema } from '../crdt/position.ts'
import { signatureSchema } from '../runtime/signatures.ts'
import { ROW_DOC_BYTES_MAX, ROW_ID_BYTES_MAX } from './routes.ts'
import { sealHeadSchema } from './sealed-keys.ts'

const counter = z.number().int().positive().max(INTEGER_BOUND)
const siteId = z.string().regex(/^[0-9a-f]{32}$/)

/** The rows that a re-base keeps (PL9): one digit for each bucket, 1 for a bucket that is equal on both sides. */
const keepSchema = z.string().regex(/^([01]|[01]{16}|[01]{256})$/)

export const helloSchema = z.object({
  t: z.literal('hello'),
  /** Grows with every rebuild, restore or re-join; an agent refuses a lower one (CU2a). */
  epoch: counter,
  /** Layout of the rows; 1 is `desired(cluster, id, doc)`. */
  schema: z.number().int().positive(),
  /** The cluster's transaction count in the fleet store (CU7): tells a server that was set back (RP2). */
  ordinal: z.number().int().nonnegative().max(INTEGER_BOUND),
  /** The cursor this page starts from; null for a page that becomes a new file (PL8, PL9). */
  from: positionSchema.nullable(),
  to: positionSchema,
  /** cr-sqlite site id of the shard file. */
  siteId,
  keep: keepSchema.optional(),
  /** SL3: the page has sealed rows; the line after hello has their wrapped keys. */
  seal: sealHeadSchema.optional(),
})
export type Hello = z.infer<typeof helloSchema>

/** A row as it travels: its latest state, never its history. */
export interface Row {
  id: string
  /** Null if it was deleted. */
  doc: string | null
  colVersion: number
  /** Causal length: odd is alive, even is deleted. */
  cl: number
}

export const rowLine = ({ id, doc, colVersion, cl }: Row): string =>
  doc === null ? `${id}\t${colVersion}\t${cl}\n` : `${id}\t${colVersion}\t${cl}\t${doc}\n`

const COUNTER = /^[1-9][0-9]{0,15}$/
const bytesAtMost = (text: string, max: number) => text.length <= max && (text.length * 3 <= max || Buffer.byteLength(text) <= max)
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/

/** The problem with an id. Null for a good one. Server and agent apply the same rule. */
export function badRowId(id: string): string | null {
  if (id === '') return 'an empty id'
  if (!bytesAtMost(id, ROW_ID_BYTES_MAX)) return `an id longer than ${ROW_ID_BYTES_MAX} bytes`
  return CONTROL.test(id) ? 'an id with control characters' : null
}
export function badRowDoc(doc: string): string | null {
  if (!bytesAtMost(doc, ROW_DOC_BYTES_MAX)) return `a document longer than ${ROW_DOC_BYTES_MAX} bytes`
  return doc.includes('\n') ? 'a document of several lines' : null
}

/** A line without its line feed; a string says what is wrong with it. Every bound that cr-sqlite does not check is
 *  checked here (PL5). */
export function parseRowLine(line: string): Row | string {
  const idEnd = line.indexOf('\t')
  const colEnd = line.indexOf('\t', idEnd + 1)
  if (idEnd < 0 || colEnd < 0) return 'a row of fewer than three fields'
  const clEnd = line.indexOf('\t', colEnd + 1)
  const id = line.slice(0, idEnd)
  const colText = line.slice(idEnd + 1, colEnd)
  const clText = clEnd < 0 ? line.slice(colEnd + 1) : line.slice(colEnd + 1, clEnd)
  const doc = clEnd < 0 ? null : line.slice(clEnd + 1)
  const bad = badRowId(id) ?? (doc === null ? null : badRowDoc(doc))
  if (bad !== null) return bad
  const colVersion = COUNTER.test(colText) ? Number(colText) : 0
  const cl = COUNTER.test(clText) ? Number(clText) : 0
  if (colVersion < 1 || colVersion > INTEGER_BOUND || cl < 1 || cl > INTEGER_BOUND) return 'a version that is not a counter'
  if ((doc === null) !== (cl % 2 === 0)) return 'a causal length that does not match: odd is alive, even is deleted'
  return { id, doc, colVersion, cl }
}

/** Last line. The signature is checked before BEGIN, hash and count before COMMIT of rows and cursor (PL5, CU4). */
export const checkpointSchema = z.object({
  t: z.literal('checkpoint'),
  /** All live rows of the cluster after this page, not only the page's. */
  count: z.number().int().nonnegative().max(INTEGER_BOUND),
  /** SHA-256 in hex of the row lines. */
  rows: z.string().regex(/^[0-9a-f]{64}$/),
  signature: signatureSchema,
})
export type Checkpoint = z.infer<typeof checkpointSchema>

/** CU2a: what the checkpoint's signature covers: everything of the page, for one cluster. `to.hash` is the row hash. */
export function checkpointBytes(clusterId: string, hello: Omit<Hello, 't'>, checkpoint: Pick<Checkpoint, 'count' | 'rows'>): Uint8Array {
  const { epoch, schema, ordinal, from, to, siteId, keep, seal } = hello
  const position = (p: Position | null) => (p === null ? '-' : `${p.dbId}.${p.term}.${p.dv}.${p.hash}`)
  const fields = [clusterId, epoch, schema, ordinal, position(from), position(to), siteId, keep ?? '-', checkpoint.count, checkpoint.rows]
  if (seal !== undefined) fields.push(seal.enc, seal.to, seal.keys, ...(seal.bound === true ? ['bound'] : []))
  return new TextEncoder().encode(['skerry-checkpoint-v1', ...fields].join('\n'))
}

/** A page without its rows: the server's own word on where a cluster was. The agent keeps the last one and shows it
 *  when it must refetch, so that a server that was set back learns it from itself (RP2). */
export const headProofSchema = z.object({ hello: helloSchema, checkpoint: checkpointSchema })
export type HeadProof = z.infer<typeof headProofSchema>

/** Why a cursor cannot be answered by a delta (PL1); member `reason` of the 409 problem. */
export const REFETCH_REASONS = ['restored', 'forked', 'compacted', 'diverged', 'unknown'] as const
export type RefetchReason = (typeof REFETCH_REASONS)[number]

/** Feature bit: a query parameter of GET desired and POST desired/buckets by which an agent says that it keeps to the
 *  bounds of Projects. */
export const PROJECTS_PARAM = 'projects'

/** A text that canonical JSON has for the member of that name only: quotes in values are escaped. */
const BOUNDS_MEMBER = '"bounds":{'
/** PJ14: a service whose project has bounds. An agent from before Projects would ignore them. */
export const isBounded = ({ id, doc }: Pick<Row, 'id' | 'doc'>): boolean =>
  doc !== null && id.startsWith('service/') && doc.includes(BOUNDS_MEMBER)
