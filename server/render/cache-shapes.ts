// At which places the renders of one service looked. Two clusters with equal values at all places of one shape render to the same; which places a render looks at
// depends on what it sees, so a service has several.
import { z } from 'zod'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { InputRead, Reads } from './inputs.ts'
import { leastReads } from './record-reads.ts'

export interface Shape {
  files: ReadonlyArray<{ source: number; path: string }>
  inputs: readonly InputRead[]
}

/** IC8: beyond it they become one, which looks at all that any of them looked at. */
export const SHAPES_MAX = 12
/** Of one object: who looks at more of it depends on all of it. */
const PLACES_OF_ONE_MAX = 64
/** Of one folder. */
const FILES_OF_ONE_MAX = 256

export const shapeText = ({ files, inputs }: Shape): string =>
  canonicalJson({ files: files.map(({ source, path }) => [source, path]), inputs })

export const shapeOf = ({ files, inputs }: Reads): Shape => ({ files: files.map(({ source, path }) => ({ source, path })), inputs })

/** `known` with what was looked at now, most lately used first, and the shape under which that render is known. What is looked at in addition is always safe: it only makes less equal. */
export function withShape(known: readonly Shape[], looked: Shape): { shapes: readonly Shape[]; shape: Shape } {
  const text = shapeText(looked)
  const others = known.filter((one) => shapeText(one) !== text)
  if (others.length < SHAPES_MAX) return { shapes: [looked, ...others], shape: looked }
  const shape = widest([looked, ...others])
  return { shapes: [shape], shape }
}

function widest(shapes: readonly Shape[]): Shape {
  const folders = new Map<string, { source: number; path: string; files: Set<string> }>()
  for (const { source, path } of shapes.flatMap(({ files }) => files)) {
    const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')))
    const key = `${source}\0${folder}`
    const entry = folders.get(key) ?? { source, path: folder, files: new Set<string>() }
    folders.set(key, entry)
    entry.files.add(path)
  }
  const files = [...folders.values()].flatMap(({ source, path, files }) =>
    files.size > FILES_OF_ONE_MAX ? [{ source, path }] : [...files].map((file) => ({ source, path: file })),
  )
  files.sort((a, b) => a.source - b.source || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  const inputs = leastReads(
    shapes.flatMap(({ inputs }) => inputs),
    PLACES_OF_ONE_MAX,
  )
  return { files, inputs }
}

const name = z.string().max(4_096)
const shapesSchema = z
  .array(z.strictObject({ files: z.array(z.tuple([z.number().int(), name])).max(100_000), inputs: z.array(z.array(name)).max(100_000) }))
  .max(SHAPES_MAX + 1)

export const shapesToBytes = (shapes: readonly Shape[]): Uint8Array => new TextEncoder().encode(`[${shapes.map(shapeText).join(',')}]`)

/** Null: these are none. */
export function shapesFromBytes(bytes: Uint8Array): Shape[] | null {
  try {
    const parsed = shapesSchema.parse(JSON.parse(new TextDecoder().decode(bytes)))
    return parsed.map(({ files, inputs }) => ({ files: files.map(([source, path]) => ({ source, path })), inputs }))
  } catch {
    return null
  }
}
