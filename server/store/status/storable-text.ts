// Texts that both engines keep as they are: PostgreSQL cannot hold NUL, and half of a surrogate pair is no UTF-8. What
// comes from outside gets U+FFFD in their place.

const BAD = /\0/g

export const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0')
export const storable = (text: string): string => (isStorable(text) ? text : text.toWellFormed().replace(BAD, '\ufffd'))

/** The same document with texts that can be stored; names of members are the schema's. */
export function storableDoc(doc: unknown): unknown {
  if (typeof doc === 'string') return storable(doc)
  if (Array.isArray(doc)) return doc.map(storableDoc)
  if (doc === null || typeof doc !== 'object') return doc
  return Object.fromEntries(Object.entries(doc).map(([name, value]) => [name, storableDoc(value)]))
}

/** Escapes that JSON has for them, or what looks like one. */
const BAD_IN_JSON = /\\u(?:0000|d[89a-f])/
/** Cheap, of the JSON that was made anyway: false for nearly all. */
export const mayBeUnstorable = (json: string): boolean => BAD_IN_JSON.test(json)
