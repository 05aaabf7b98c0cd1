// Converts a render to bytes and back. Its digest is computed again when it is read: the content of a disk is trusted
// only after a check.
import { z } from 'zod'
import { setDigest } from '../../../shared/kube/canonical.ts'
import { plainProblem, problemSchema } from '../../../shared/runtime/error.ts'
import type { RenderedObjects, RenderResult } from '../object-rows.ts'

/** A render with its inputs; of a failed one they are never read. */
export interface KeptRender {
  result: RenderResult
  /** Names the values at all places where it looked, by whatever build. Null means no program took part. */
  renderedFrom: string | null
}

const resultSchema = z.strictObject({
  renderedFrom: z.string().nullable(),
  objects: z.array(z.tuple([z.string(), z.string()])),
  digest: z.string(),
  hooks: z.number().int(),
  warnings: z.array(problemSchema),
})
const LEVEL = 1

export function renderToBytes({ objects, digest, hooks, warnings }: RenderedObjects, { renderedFrom }: KeptRender): Uint8Array {
  return Bun.zstdCompressSync(JSON.stringify({ objects: [...objects], digest, hooks, warnings, renderedFrom }), { level: LEVEL })
}

/** Null if these are none. `known`: rows that are in memory already, so that equal rows are held once. */
export function renderFromBytes(bytes: Uint8Array, known: ReadonlyMap<string, string> = new Map()): KeptRender | null {
  try {
    const parsed = resultSchema.parse(JSON.parse(new TextDecoder().decode(Bun.zstdDecompressSync(bytes))))
    const { digest, hooks, warnings, renderedFrom } = parsed
    const objects = new Map(parsed.objects.map(([id, doc]) => [id, sameText(known.get(id), doc)]))
    if (setDigest(objects) !== digest) return null
    const result: RenderedObjects = {
      kind: 'rendered',
      objects,
      digest,
      count: objects.size,
      hooks,
      warnings: warnings.map(plainProblem),
    }
    return { result, renderedFrom }
  } catch {
    return null
  }
}

const sameText = (held: string | undefined, text: string): string => (held === text ? held : text)
