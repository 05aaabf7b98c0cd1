// A render as bytes and back. Its digest is counted anew when it is read: what came from a disk is believed for what it is, not for what it says.
import { z } from 'zod'
import { setDigest } from '../../../shared/kube/canonical.ts'
import { problemSchema } from '../../../shared/protocol/error.ts'
import type { RenderedObjects } from '../object-rows.ts'

const resultSchema = z.strictObject({
  objects: z.array(z.tuple([z.string(), z.string()])),
  digest: z.string(),
  hooks: z.number().int(),
  warnings: z.array(problemSchema),
})
const LEVEL = 1

export function resultToBytes({ objects, digest, hooks, warnings }: RenderedObjects): Uint8Array {
  return Bun.zstdCompressSync(JSON.stringify({ objects: [...objects], digest, hooks, warnings }), { level: LEVEL })
}

/** Null: these are none. `known`: rows that are in memory already; what is equal is not held twice. */
export function resultFromBytes(bytes: Uint8Array, known: ReadonlyMap<string, string> = new Map()): RenderedObjects | null {
  try {
    const parsed = resultSchema.parse(JSON.parse(new TextDecoder().decode(Bun.zstdDecompressSync(bytes))))
    const { digest, hooks, warnings } = parsed
    const objects = new Map(parsed.objects.map(([id, doc]) => [id, sameText(known.get(id), doc)]))
    if (setDigest(objects) !== digest) return null
    return {
      kind: 'rendered',
      objects,
      digest,
      count: objects.size,
      hooks,
      warnings: warnings.map(({ path, message, excerpt }) => (excerpt === undefined ? { path, message } : { path, message, excerpt })),
    }
  } catch {
    return null
  }
}

const sameText = (held: string | undefined, text: string): string => (held === text ? held : text)
