// CU2: a cluster's rows as one number that both sides keep up to date row by row. It finds accidents, not forgeries
// (CU2a): the checkpoint's signature is what is trusted.
import { hash } from 'node:crypto'

const MODULUS = 1n << 128n

/** First 16 bytes of SHA-256(id NUL doc), big-endian. In one call: a full check hashes every row that there is. */
export function rowHash(id: string, doc: string): bigint {
  const digest = hash('sha256', `${id}\0${doc}`, 'buffer')
  return (digest.readBigUInt64BE(0) << 64n) | digest.readBigUInt64BE(8)
}

export const EMPTY_HASH = '0'.repeat(32)
export const addHash = (sum: bigint, row: bigint): bigint => (sum + row) % MODULUS
export const removeHash = (sum: bigint, row: bigint): bigint => (sum - row + MODULUS) % MODULUS
export const hashText = (sum: bigint): string => sum.toString(16).padStart(32, '0')
export const parseHash = (text: string): bigint => BigInt(`0x${text}`)

export function hashOfRows(rows: Iterable<readonly [id: string, doc: string]>): string {
  let sum = 0n
  for (const [id, doc] of rows) sum = addHash(sum, rowHash(id, doc))
  return hashText(sum)
}
