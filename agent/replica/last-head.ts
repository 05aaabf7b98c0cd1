// The state that outlives the replica file: the greatest epoch seen (CU2a) and the last head that the server signed
// (RP2), in a small file beside it. Written before a new file takes force and after a delta did.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { INTEGER_BOUND } from '../../shared/crdt/position.ts'
import { type HeadProof, headProofSchema } from '../../shared/protocol/frames.ts'

export interface LastHead {
  epoch: number
  proof: HeadProof | null
}

const storedSchema = z.object({
  cluster: z.string(),
  epoch: z.number().int().positive().max(INTEGER_BOUND),
  proof: headProofSchema.nullable().catch(null),
})

/** Before the first page, and after a join to a server that never stated what is kept. */
export const NO_HEAD: LastHead = { epoch: 0, proof: null }

/** The stored state of this cluster; nothing after a join to another one, whose epochs differ. */
export function readLastHead(path: string, cluster: string): LastHead {
  try {
    const stored = storedSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
    return stored.cluster === cluster ? { epoch: stored.epoch, proof: stored.proof } : NO_HEAD
  } catch {
    return NO_HEAD
  }
}

export function writeLastHead(path: string, cluster: string, { epoch, proof }: LastHead): void {
  const staged = `${path}.new`
  writeFileSync(staged, JSON.stringify({ cluster, epoch, proof }), { mode: 0o600 })
  syncPath(staged)
  renameSync(staged, path)
  syncPath(dirname(path))
}

export function laterProof(a: HeadProof | null, b: HeadProof | null): HeadProof | null {
  if (a === null || b === null) return a ?? b
  const [x, y] = [a.hello, b.hello]
  return x.epoch > y.epoch || (x.epoch === y.epoch && x.ordinal >= y.ordinal) ? a : b
}
