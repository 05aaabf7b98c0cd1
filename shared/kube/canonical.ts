import { createHash, hash } from 'node:crypto'

/** JSON with sorted keys and no white space: equal objects have equal bytes. `undefined` members are left out, as JSON.stringify does. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`
  if (value !== null && typeof value === 'object') {
    const members: string[] = []
    const record = value as Record<string, unknown>
    for (const key of Object.keys(record).sort()) {
      const member = record[key]
      if (member !== undefined) members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`)
    }
    return `{${members.join(',')}}`
  }
  return JSON.stringify(value) ?? 'null'
}

export const sha256Hex = (data: string | Uint8Array): string => hash('sha256', data, 'hex')

/** RV1: names the whole set of a service's object rows. 128 bits in hex of SHA-256 over `id NUL sha256(doc) LF` in id order. */
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
