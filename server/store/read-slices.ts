// Reads of many rows in slices: one statement is one block of the server's only thread, and other work runs between
// two. The slices are no snapshot: rows that change meanwhile are read in either state, and their change requests
// another reconciliation.
import { setImmediate } from 'node:timers/promises'

export const SLICE_ROWS = 500

/** `read` answers at most SLICE_ROWS rows in the order of their key, from the first or from strictly after the row
 *  given. */
export async function readSlices<R, T>(read: (after: R | null) => Promise<R[]>, toItem: (row: R) => T): Promise<T[]> {
  const items: T[] = []
  let after: R | null = null
  for (;;) {
    const rows: R[] = await read(after)
    for (const row of rows) items.push(toItem(row))
    after = rows.at(-1) ?? null
    if (rows.length < SLICE_ROWS) return items
    await setImmediate()
  }
}
