// POST desired/buckets: what an agent sends after `must_refetch`, or when it has nothing. The body is one JSON line
// (`refetchHeadSchema`), then the raw sums of its buckets, 16 bytes each: none, 1, 16 or 256 of them. The answer is a
// page without `from`; its `keep` says which buckets are equal and do not travel (PL9).
import { z } from 'zod'
import { addHash, hashText } from '../crdt/row-hash.ts'
import { headProofSchema } from './frames.ts'
import { keyLinksSchema } from './key-links.ts'

export const SUM_BYTES = 16
export const BUCKET_COUNTS = [0, 1, 16, 256] as const
export type BucketCount = (typeof BUCKET_COUNTS)[number]

export const refetchHeadSchema = z.object({
  /** The proof of the last applied page. Absent if nothing is left of it. */
  proof: headProofSchema.optional(),
  /** By which the agent came to its newest key: a server that was set back behind a rotation knows by them that the
   *  proof's key was its own (RP7). */
  keyLinks: keyLinksSchema.optional(),
})
export type RefetchHead = z.infer<typeof refetchHeadSchema>

/** About 16 rows a bucket or more: a bucket that differs travels whole. */
export const bucketCountFor = (rows: number): BucketCount => (rows === 0 ? 0 : rows < 64 ? 1 : rows < 4_096 ? 16 : 256)

/** By the first bits of the row hash, so that both sides agree without a word. */
export const bucketOf = (rowHash: bigint, count: BucketCount): number =>
  count === 256 ? Number(rowHash >> 120n) : count === 16 ? Number(rowHash >> 124n) : 0

/** Sums of the rows' hashes, each bucket's modulo 2^128, big-endian, in bucket order. */
export class BucketSums {
  readonly #count: BucketCount
  readonly #sums: bigint[]
  constructor(count: BucketCount) {
    this.#count = count
    this.#sums = Array.from({ length: count }, () => 0n)
  }
  /** Says which bucket the row is in. */
  add(rowHash: bigint): number {
    const bucket = bucketOf(rowHash, this.#count)
    if (this.#count > 0) this.#sums[bucket] = addHash(this.#sums[bucket] ?? 0n, rowHash)
    return bucket
  }
  bytes(): Uint8Array {
    return Buffer.from(this.#sums.map(hashText).join(''), 'hex')
  }
}

/** `keep` of a page: 1 for each bucket whose sums are equal; undefined for none at all. */
export const equalBuckets = (theirs: Uint8Array, ours: Uint8Array): string | undefined =>
  ours.length === 0
    ? undefined
    : Array.from({ length: ours.length / SUM_BYTES }, (_, n) => {
        const [from, to] = [n * SUM_BYTES, (n + 1) * SUM_BYTES]
        return Buffer.compare(theirs.subarray(from, to), ours.subarray(from, to)) === 0 ? '1' : '0'
      }).join('')
