// At which places the renders of one service looked. Two clusters with equal values at all places of one shape render to the same; which places a render looks at
// depends on what it sees, so a service has several.
import { z } from 'zod'
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import type { InputRead, Reads } from '../inputs.ts'
import { leastReads } from '../record/reads.ts'

export interface Shape {
  files: ReadonlyArray<{ source: number; path: string }>
  inputs: readonly InputRead[]
  /** Made of many, and used for all that looked at no more than it does. */
  wide?: true
}

/** IC3: beyond it they become one, which looks at all that any of them looked at. */
export const SHAPES_MAX = 12
/** Of one object: who looks at more of it depends on all of it. */
const PLACES_OF_ONE_MAX = 64

export const shapeText = ({ files, inputs, wide }: Shape): string =>
  canonicalJson({ files: files.map(({ source, path }) => [source, path]), inputs, wide })

export const shapeOf = ({ files, inputs }: Reads): Shape => ({ files: files.map(({ source, path }) => ({ source, path })), inputs })

/** `known` with what was looked at now, most lately used first, and the shape under which that render is known. What is looked at in addition is always safe: it only makes less equal. */
export function withShape(known: readonly Shape[], looked: Shape): { shapes: readonly Shape[]; shape: Shape } {
  const text = shapeText(looked)
  const wide = known.find((one) => one.wide === true && covers(one, looked))
  if (wide !== undefined) return { shapes: known, shape: wide }
  const others = known.filter((one) => shapeText(one) !== text)
  if (others.length < SHAPES_MAX) return { shapes: [looked, ...others], shape: looked }
  const shape = widest([looked, ...others])
  return { shapes: [shape], shape }
}

function widest(shapes: readonly Shape[]): Shape {
  const each = new Map(shapes.flatMap(({ files }) => files).map((file) => [fileText(file), file]))
  const files = [...each.values()].sort((a, b) => a.source - b.source || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  const inputs = leastReads(
    shapes.flatMap(({ inputs }) => inputs),
    PLACES_OF_ONE_MAX,
  )
  return { files, inputs, wide: true }
}

const fileText = ({ source, path }: Shape['files'][number]): string => `${source}\0${path}`

function covers(wide: Shape, { files, inputs }: Shape): boolean {
  const seen = new Set(wide.files.map(fileText))
  if (!files.every((file) => seen.has(fileText(file)))) return false
  return canonicalJson(leastReads([...wide.inputs, ...inputs])) === canonicalJson(wide.inputs)
}

const name = z.string().max(4_096)
const shapesSchema = z
  .array(
    z.strictObject({
      files: z.array(z.tuple([z.number().int(), name])).max(100_000),
      inputs: z.array(z.array(name)).max(100_000),
      wide: z.literal(true).optional(),
    }),
  )
  .max(SHAPES_MAX + 1)

export const shapesToBytes = (shapes: readonly Shape[]): Uint8Array => new TextEncoder().encode(`[${shapes.map(shapeText).join(',')}]`)

/** Null: these are none. */
export function shapesFromBytes(bytes: Uint8Array): Shape[] | null {
  try {
    const parsed = shapesSchema.parse(JSON.parse(new TextDecoder().decode(bytes)))
    return parsed.map(({ files, inputs, wide }) => {
      const places = { files: files.map(([source, path]) => ({ source, path })), inputs }
      return wide === undefined ? places : { ...places, wide }
    })
  } catch {
    return null
  }
}
