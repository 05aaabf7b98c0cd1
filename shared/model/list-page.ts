// One page of a list of the API. Apart from the views, so that a client loads this form without theirs.
import { z } from 'zod'

/** `continue`: pass it on for the next page; null at the end. */
export const listOf = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), continue: z.string().nullable() })
