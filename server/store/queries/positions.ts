// Places in the order of a list, and which comes first. Pure.
import { byText } from './fleet-dictionary.ts'
import type { PlacementQuery, Position } from './fleet-queries.ts'

/** Part by part; null, and what is not there, is behind everything. */
export function compareKeys(a: Position, b: Position): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const [x, y] = [a[i] ?? null, b[i] ?? null]
    if (x === null || y === null) {
      if (x !== y) return x === null ? 1 : -1
      continue
    }
    const order = typeof x === 'number' && typeof y === 'number' ? x - y : byText(String(x), String(y))
    if (order !== 0) return order
  }
  return 0
}

/** A list by health that continues with a word that has not begun starts before all items with it. */
export const placeOf = <P extends Position | null | undefined>(at: P, sort: PlacementQuery['sort']): P | Position =>
  at != null && sort === 'health' && at.length === 1 ? [...at, '', ''] : at
