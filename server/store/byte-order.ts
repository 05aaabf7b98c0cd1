// The order that both engines give to text: by its bytes in UTF-8, which is by code points. JavaScript's own is by code
// units, and differs past U+FFFF.

export function byteOrder(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const [x, y] = [a.charCodeAt(at), b.charCodeAt(at)]
    // One of a pair is beyond all that are single.
    if (x !== y) return isSurrogate(x) === isSurrogate(y) ? x - y : isSurrogate(x) ? 1 : -1
  }
  return a.length - b.length
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff

/** Sorts after every key that begins with the prefix before it. */
export const AFTER_EVERY_KEY = '\u{10ffff}'
