// The documents that a text may quote: their names, which may be shown, and all other values, which are removed from
// the text. This is the second line of defence. The first one, the grammar of the messages, removes unknown values.
// Pure.
import { HOLE, SEPARATOR } from './marks.ts'
import { type FieldPath, isKey, isSecretKind, isSensitiveName, isShown } from './shown-fields.ts'
import { foundIn, SearchedValues } from './value-search.ts'
import { isPlainWord } from './words.ts'

const DEPTH_MAX = 100
/** Below these fields the words of a value count as secrets, too: `--password=x`. */
const STRONG: ReadonlySet<string> = new Set(['env', 'args', 'command', 'stringData', 'httpHeaders'])

interface Secret {
  value: string
  isStrong: boolean
}

export class KnownValues {
  /** Keys, and values at places that may be shown. */
  readonly names = new Set<string>()
  /** Names of the documents themselves. */
  readonly owners = new Set<string>()
  /** One of the documents is a Secret. */
  readonly isSecret: boolean
  readonly #documents: readonly unknown[]
  readonly #values = new SearchedValues()
  readonly #plain = new Set<string>()
  #isRead = false

  /** `isSecret`: the text is about a Secret, also if no document is at hand. */
  constructor(documents: readonly unknown[], { isSecret = false }: { isSecret?: boolean } = {}) {
    this.#documents = documents
    this.isSecret = isSecret || documents.some((document) => isSecretKind(kindOf(document)))
  }

  /** The texts with a hole for each value. `extra`: values that the texts themselves give away as secret. */
  hide(texts: readonly string[], extra: readonly string[] = []): readonly string[] {
    this.read()
    const values = extra.length === 0 ? this.#values : this.#values.copy()
    for (const value of extra) values.add(value, false, this.names)
    return values.isEmpty() ? texts : this.#withoutValues(texts.join(SEPARATOR), values).split(SEPARATOR)
  }

  /** True for a word such as `secret` or `default` that is a value of the documents: in quotes it stands for that
   *  value. */
  isPlainValue(word: string): boolean {
    return this.#plain.has(word.toLowerCase())
  }

  /** Reads the documents, once: most objects never have a text to judge. */
  read(): void {
    if (this.#isRead) return
    this.#isRead = true
    const secrets: Secret[] = []
    for (const document of this.#documents) {
      const name = memberOf(memberOf(document, 'metadata'), 'name')
      if (typeof name === 'string' && name !== '') this.owners.add(name)
      this.#walk(kindOf(document), document, [], secrets)
    }
    // Runs after all names are known: a value that is also a name is not a secret.
    for (const { value, isStrong } of secrets) {
      if (this.names.has(value)) continue
      if (isPlainWord(value)) this.#plain.add(value.toLowerCase())
      this.#values.add(value, isStrong, this.names)
    }
  }

  #walk(kind: string, value: unknown, path: FieldPath, secrets: Secret[]): void {
    if (Array.isArray(value)) {
      for (const item of value) this.#walk(kind, item, path, secrets)
    } else if (value !== null && typeof value === 'object') {
      if (path.length > DEPTH_MAX) return
      for (const [key, member] of Object.entries(value)) {
        if (key === 'managedFields' && path.length === 1) continue
        if (isKey(key)) this.names.add(key)
        this.#walk(kind, member, [...path, key], secrets)
      }
    } else if (typeof value === 'string' || typeof value === 'number') this.#leaf(kind, value, path, secrets)
  }

  #leaf(kind: string, leaf: string | number, path: FieldPath, secrets: Secret[]): void {
    const value = String(leaf)
    if (isShown(kind, path, leaf)) this.names.add(value)
    // A status is the source of the text.
    else if (value !== '' && path[0] !== 'status') {
      const isSecret = isSecretKind(kind)
      const isStrong = isSecret || path.some((name) => STRONG.has(name) || isSensitiveName(name))
      secrets.push({ value, isStrong })
      const decoded = isSecret && path[0] === 'data' ? decodedBase64(value) : null
      if (decoded !== null) secrets.push({ value: decoded, isStrong })
    }
  }

  #withoutValues(text: string, values: SearchedValues): string {
    let out = ''
    let from = 0
    for (const [start, end] of foundIn(text, values)) {
      const token = text.slice(start, end)
      out += text.slice(from, start) + (this.names.has(token) ? token : HOLE)
      from = end
    }
    return out + text.slice(from)
  }
}

const memberOf = (value: unknown, key: string): unknown =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>)[key] : undefined

function kindOf(document: unknown): string {
  const kind = memberOf(document, 'kind')
  return typeof kind === 'string' ? kind : ''
}

const decodedBase64 = (text: string): string | null =>
  text.length >= 4 && /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text) ? Buffer.from(text, 'base64').toString('utf8') : null
