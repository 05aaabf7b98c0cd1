// The distance of a word from the one that was probably meant.

/** Letters to change, add or take out. */
export function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(swap, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    previous = row
  }
  return previous[b.length] ?? 0
}

/** Longer words are held against no other: the work grows with both lengths. */
const WORD_LENGTH_MAX = 200

/** The first of the names with the least distance below `limit`. Null means none is that near. `distanceTo` is asked
 *  about names of at most 200 letters, each once. */
export function nearestOf(names: Iterable<string>, limit: number, distanceTo: (name: string) => number): string | null {
  let [nearest, least]: [string | null, number] = [null, limit]
  for (const name of names) {
    const distance = name.length > WORD_LENGTH_MAX ? limit : distanceTo(name)
    if (distance < least) [nearest, least] = [name, distance]
  }
  return nearest
}

/** The same by letters to change, where words of very different lengths need no look. A word of more than 200 letters
 *  is near to none. */
export function nearestWord(word: string, names: Iterable<string>, limit: number): string | null {
  if (word.length > WORD_LENGTH_MAX) return null
  return nearestOf(names, limit, (name) => (Math.abs(name.length - word.length) >= limit ? limit : editDistance(word, name)))
}

/** The name that was probably meant: at most two typing errors, or other capitals. */
export function nearest(name: string, known: readonly string[]): string | null {
  const lower = name.toLowerCase()
  const limit = Math.min(2, Math.floor(name.length / 2)) + 1
  return nearestOf(known, limit, (candidate) => (lower.length > 200 ? limit : editDistance(lower, candidate.toLowerCase())))
}
