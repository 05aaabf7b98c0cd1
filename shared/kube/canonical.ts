import { createHash, hash } from 'node:crypto'

/** Names of fields are few and short, and quoting one again costs as much as all its other work. */
const [KEYS_MAX, KEY_CHARS_MAX] = [10_000, 64]
const keyTexts = new Map<string, string>()

function keyText(key: string): string {
  const known = keyTexts.get(key)
  if (known !== undefined) return known
  const text = `${JSON.stringify(key)}:`
  if (keyTexts.size < KEYS_MAX && key.length <= KEY_CHARS_MAX) keyTexts.set(key, text)
  return text
}

/** JSON with sorted keys and no white space: equal objects have equal bytes. `undefined` members are left out, as
 *  JSON.stringify does. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null'
  let text = ''
  if (Array.isArray(value)) {
    for (const item of value) text += `${text === '' ? '[' : ','}${canonicalJson(item ?? null)}`
    return text === '' ? '[]' : `${text}]`
  }
  const record = value as Record<string, unknown>
  for (const key of Object.keys(record).sort()) {
    const member = record[key]
    if (member !== undefined) text += `${text === '' ? '{' : ','}${keyText(key)}${canonicalJson(member)}`
  }
  return text === '' ? '{}' : `${text}}`
}

export const sha256Hex = (data: string | Uint8Array): string => hash('sha256', data, 'hex')

/** RV1: names the whole set of a service's object rows. 128 bits in hex of SHA-256 over `id NUL sha256(doc) LF` in id
 *  order. */
export function setDigest(rows: Iterable<readonly [id: string, doc: string]>): string {
  const sum = createSetDigest()
  for (const [id, doc] of [...rows].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) sum.add(id, doc)
  return sum.digest()
}

/** The same, of rows that come one after the other in id order. */
export function createSetDigest(): { add(id: string, doc: string): void; digest(): string } {
  const digest = createHash('sha256')
  return {
    add: (id, doc) => void digest.update(`${id}\0${sha256Hex(doc)}\n`),
    digest: () => digest.digest('hex').slice(0, 32),
  }
}
