// What a values.schema.json may refer to where a program is not cut off from files and from the network: helm would fetch or read whatever a reference names.

const REFERENCES = new Set(['$ref', '$dynamicRef', '$recursiveRef', '$schema'])
/** Programs have these with them and ask nobody. */
const KNOWN_DIALECT = /^https?:\/\/json-schema\.org\/(draft-0[467]|draft\/20(19-09|20-12))\/schema#?$/

export const isValuesSchema = (path: string): boolean => /(^|\/)values\.schema\.json$/.test(path)

/** The first reference to a file or a host; null: there is none. Throws SyntaxError for what is no JSON. */
export function foreignReference(text: string): string | null {
  const left: unknown[] = [JSON.parse(text)]
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (typeof value !== 'object' || value === null) continue
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === 'object') left.push(member)
      else if (typeof member === 'string' && REFERENCES.has(name) && !member.startsWith('#') && !KNOWN_DIALECT.test(member)) return member
    }
  }
  return null
}
