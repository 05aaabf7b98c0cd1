// CU1: where a replica is. Two positions with different dbIds cannot be compared (CU3); no wall clock is part of one.
import { z } from 'zod'

export const INTEGER_BOUND = 2 ** 53 - 1
const dbId = z.string().regex(/^[0-9a-f]{32}$/)
const hash = z.string().regex(/^[0-9a-f]{32}$/)
const counter = z.number().int().min(0).max(INTEGER_BOUND)

export const positionSchema = z.object({
  /** 128 random bits given to a shard file when it is created, rebuilt, restored or compacted. */
  dbId,
  /** From the writer's lease; 1 while there is one server. */
  term: counter,
  /** Greatest tx_log.dv of this cluster; 0 for a cluster without rows (CU7). */
  dv: counter,
  /** Sum of row hashes, 32 hex digits. */
  hash,
})
export type Position = z.infer<typeof positionSchema>

/** As it rides in a query: `dbId.term.dv.hash`. */
export const cursorText = (position: Position): string => `${position.dbId}.${position.term}.${position.dv}.${position.hash}`

const CURSOR = /^([0-9a-f]{32})\.(\d{1,16})\.(\d{1,16})\.([0-9a-f]{32})$/

/** Null when the text is no cursor. By hand, because every poll has one: the schema takes several times as long. */
export function parseCursor(text: string): Position | null {
  const [, id = '', term = '', dv = '', sum = ''] = CURSOR.exec(text) ?? []
  const position = { dbId: id, term: Number(term), dv: Number(dv), hash: sum }
  return id !== '' && position.term <= INTEGER_BOUND && position.dv <= INTEGER_BOUND ? position : null
}

export const samePosition = (a: Position, b: Position): boolean =>
  a.dbId === b.dbId && a.term === b.term && a.dv === b.dv && a.hash === b.hash
