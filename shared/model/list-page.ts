// One page of a list of the API. Apart from the views, so that a client loads this form without theirs.
import { z } from 'zod'

const pageOf = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), continue: z.string().nullable() })

/** By the schema of the items: what is made from a schema, such as its part of the OpenAPI document, is made once. */
const pages = new WeakMap<z.ZodType, unknown>()

/** `continue`: pass it on for the next page; null at the end. */
export function listOf<T extends z.ZodType>(item: T): ReturnType<typeof pageOf<T>> {
  const known = pages.get(item)
  if (known !== undefined) return known as ReturnType<typeof pageOf<T>>
  const page = pageOf(item)
  pages.set(item, page)
  return page
}
