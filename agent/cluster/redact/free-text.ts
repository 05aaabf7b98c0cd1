// Text that policies, webhooks and controllers write. Words stay. Quoted and structured values stay only where they are
// names. Pure.
import { endOfBrackets, endOfQuoted } from './go-value.ts'
import type { KnownValues } from './known-values.ts'
import { HOLE } from './marks.ts'
import {
  assignsSecret,
  isBeforeSaid,
  isProseAfterKey,
  isQuotedSecret,
  isSecretKey,
  isSentenceAfterKey,
  isVerbOfKey,
  secretKeyOf,
  settingsOf,
} from './secret-keys.ts'
import { addressIn } from './urls.ts'
import { isPlainWord, isSafeToken, punctuated } from './words.ts'

interface Reader {
  known: KnownValues
  /** True for a text that may be shown wherever it stands. */
  isName(text: string): boolean
}

/** The text with a hole for each value. `text` has passed `known.hide`. */
export function withoutValues(text: string, known: KnownValues): string {
  return new Walk(text, { known, isName: namesOf(known) }).run()
}

const SUFFIX = /^(?:-[a-z0-9]{1,12}){1,3}$/

/** Names in the documents, and names that Kubernetes makes of them: a Pod of the Deployment `web` is
 *  `web-7d9f8-x2x1z`. */
export function namesOf(known: KnownValues): (text: string) => boolean {
  known.read()
  return (text) => {
    if (known.names.has(text)) return true
    for (const owner of known.owners) if (text.startsWith(`${owner}-`) && SUFFIX.test(text.slice(owner.length))) return true
    return false
  }
}

const QUOTES: Readonly<Record<string, string>> = { '"': '"', '`': '`', "'": "'", '“': '”', '‘': '’', '«': '»' }
/** Ends a word, besides a space. */
const BREAKS = /[\s"`“”‘«»{}[\]<>()]/u
const LETTER = /[\p{L}\p{N}]/u
const STRUCTURE_CHARS_MAX = 200
/** Enough of the text before a value to tell what it is. */
const BEFORE_CHARS = 60
/** A pattern of a schema follows. It is a rule, not a value. */
const BEFORE_PATTERN = /(?:should match|match(?:es)?(?: the)?(?: regex| regular expression| pattern)?|regex used for validation is) $/
const BEFORE_TAINT = /\buntolerated taint(?:\(s\))? $/

/** Reads a text from left to right and writes what may be shown. */
class Walk {
  readonly #text: string
  readonly #reader: Reader
  #at = 0
  #out = ''
  /** The end of `#out`, which itself is too long to search for each word. */
  #before = ''
  /** `key`: the last word may announce a secret value, if `=` follows. `value`: it does, as `password:`; `said`: as
   *  `password is`; `given`: a value of any kind, as `got`. */
  #expects: 'nothing' | 'key' | 'value' | 'said' | 'given' = 'nothing'
  /** Quotes that have no other end from here on. */
  readonly #unclosed = new Set<string>()

  constructor(text: string, reader: Reader) {
    this.#text = text
    this.#reader = reader
  }

  run(): string {
    while (this.#at < this.#text.length) this.#step()
    return this.#out
  }

  #step(): void {
    const char = this.#text[this.#at] ?? ''
    if (/\s/.test(char)) this.#take(this.#at + 1)
    else if (QUOTES[char] !== undefined && this.#opensQuote(char)) this.#quoted(char)
    else if (char === '<') this.#angled()
    else if (char === '{' || char === '[') this.#structure(this.#at)
    else if (char === '^' && BEFORE_PATTERN.test(this.#before)) this.#pattern()
    else this.#word()
  }

  #write(text: string): void {
    this.#out += text
    this.#before = text.length < BEFORE_CHARS ? (this.#before + text).slice(-BEFORE_CHARS) : text.slice(-BEFORE_CHARS)
  }

  #isValueNext = (): boolean => this.#expects === 'value' || this.#expects === 'said'

  #take(end: number): void {
    this.#write(this.#text.slice(this.#at, end))
    this.#at = end
  }

  #drop(end: number): void {
    this.#write(HOLE)
    this.#at = end
    if (this.#isValueNext()) this.#expects = 'nothing'
  }

  /** An apostrophe inside a word opens no quote, and neither does a quote that never ends. */
  #opensQuote(char: string): boolean {
    if (char === '"') return true
    const end = this.#endOfQuote(char)
    if (end < 0 || char !== "'") return end >= 0
    return !LETTER.test(this.#text[this.#at - 1] ?? '') && !LETTER.test(this.#text[end] ?? '')
  }

  #endOfQuote(char: string): number {
    if (char === '"') return endOfQuoted(this.#text, this.#at)
    if (this.#unclosed.has(char)) return -1
    const close = this.#text.indexOf(QUOTES[char] ?? char, this.#at + 1)
    if (close >= 0) return close + 1
    this.#unclosed.add(char)
    return -1
  }

  #quoted(char: string): void {
    const end = this.#endOfQuote(char)
    const content = this.#text.slice(this.#at + 1, end - 1)
    // A quote without an end may be a value that was cut off.
    if (end < 0) this.#drop(this.#text.length)
    // `"password": "x"`.
    else if (isSecretKey(content) && /[:=]/.test(this.#text[end] ?? '') && !this.#isValueNext()) {
      this.#take(end)
      this.#expects = 'value'
    } else if (this.#isValueNext() || !isShownQuoted(content, this.#reader, this.#before)) this.#drop(end)
    else {
      this.#write(`${char}${urlText(content, this.#reader) ?? content}${QUOTES[char]}`)
      this.#at = end
    }
  }

  /** `<nginx:latest>`: some policies quote like this. */
  #angled(): void {
    const content = /^<([^<>\s]{0,200})>/.exec(this.#text.slice(this.#at, this.#at + 202))?.[1]
    if (content === undefined) this.#take(this.#at + 1)
    else if (this.#isValueNext() || !isShownQuoted(content, this.#reader, this.#before)) this.#drop(this.#at + content.length + 2)
    else this.#take(this.#at + content.length + 2)
  }

  /** `start`: where the Go type in front of the bracket begins. */
  #structure(start: number): void {
    const end = endOfBrackets(this.#text, this.#at)
    const isTyped = start < this.#at
    if (!isTyped && !this.#isValueNext() && this.#isListOrSet(end)) this.#take(end)
    else this.#drop(end)
  }

  #isListOrSet(end: number): boolean {
    const inner = this.#text.slice(this.#at + 1, end - 1)
    if (inner.length > STRUCTURE_CHARS_MAX) return false
    if (this.#text[this.#at] === '[') return this.#text[end - 1] === ']' && isListOfNames(inner, this.#reader)
    if (BEFORE_TAINT.test(this.#before)) return /^[-\w./]+: ?[-\w.]*$/.test(inner)
    // A set of Rego quotes its members and has no keys. A struct that Go prints has no quotes.
    return /^"[^"]*"(?:, ?"[^"]*")*$/.test(inner) && isListOfNames(inner, this.#reader)
  }

  #word(): void {
    const start = this.#at
    let end = start
    while (end < this.#text.length && !this.#breaksWord(end)) end += 1
    if (this.#text.slice(start, end).includes('://'))
      end = start + Math.max(end - start, ADDRESS.exec(this.#text.slice(start))?.[0].length ?? 0)
    if (end === start) return void this.#take(start + 1)
    const word = this.#text.slice(start, end)
    const login = word.includes(':') ? LOGIN.exec(this.#text.slice(start, start + LOGIN_CHARS_MAX))?.[0] : undefined
    if (login !== undefined) return void this.#drop(start + login.length - 1)
    const next = this.#text[end]
    this.#at = end
    if (next === '{' || (next === '[' && /(?:^|[^\w.])map$/.test(word))) return void this.#structure(start)
    this.#write(this.#judged(word))
    if (next === '[' && !word.includes(HOLE)) this.#index()
  }

  #breaksWord(at: number): boolean {
    const char = this.#text[at] ?? ''
    return BREAKS.test(char) || (char === "'" && !LETTER.test(this.#text[at - 1] ?? ''))
  }

  /** `containers[0]`, `data[tls.crt]`, `drop=["ALL"]`. */
  #index(): void {
    const end = endOfBrackets(this.#text, this.#at)
    const inner = this.#text.slice(this.#at + 1, end - 1)
    // `password=[x]`.
    if (!this.#isValueNext() && inner.length <= STRUCTURE_CHARS_MAX && isListOfNames(inner, this.#reader)) this.#take(end)
    else this.#drop(end)
  }

  /** A regular expression without quotes. */
  #pattern(): void {
    const pattern = /^\^\S*\$/.exec(this.#text.slice(this.#at))?.[0] ?? ''
    if (pattern === '' || pattern.includes(HOLE)) this.#drop(this.#at + Math.max(1, pattern.length))
    else this.#take(this.#at + pattern.length)
  }

  /** Text behind the key of a secret that is not its value. */
  #isNoValue(core: string, after: string): boolean {
    if (isSentenceAfterKey(core)) return true
    // `no-plain-secrets:` may head a block.
    if (after.startsWith(':') && /\n\s*$/.test(this.#before)) return true
    return SCHEMES.has(core.toLowerCase()) && after === '' && BEFORE_SCHEME.test(this.#before)
  }

  #judged(word: string): string {
    const { before, core, after } = punctuated(word)
    const expects = this.#expects
    if (core === '') {
      if (expects === 'key') this.#expects = /^(?::|=[=>]?|:=)$/.test(word) ? 'value' : 'nothing'
      return word
    }
    if (after === '' && expects === 'given' && isVerbOfKey(core)) return word
    if (after === '' && (expects === 'said' ? isBeforeSaid(core) : expects !== 'nothing' && isVerbOfKey(core))) {
      this.#expects = 'said'
      return word
    }
    const isValue =
      (expects === 'value' && !this.#isNoValue(core, after)) ||
      (expects === 'said' && !isProseAfterKey(core)) ||
      (expects === 'given' && !isKnownWord(core, this.#reader))
    this.#expects = announcesValue(core, after)
      ? 'value'
      : isSecretKey(core) && after === ''
        ? 'key'
        : (GIVES.has(core.toLowerCase()) && after === '') || (expects === 'given' && isValue && after === ',')
          ? 'given'
          : 'nothing'
    return `${before}${isValue ? HOLE : tokenText(core, this.#reader)}${after}`
  }
}

/** A password in an address may hold what else ends a word, and IPv6 has brackets. */
const ADDRESS = /^[^\s":]*:(?:[^\s":/]*:)*\/\/(?:[^\s"]{0,1000}@)?(?:\[[0-9a-f:.]+\])?[^\s"`“”‘«»{}[\]<>()]*/iu
/**
 * User and password in front of a host: `app:pass@tcp(db:3306)/shop`, `app:pass@db`. A digest, `nginx:1.2@sha256:…`,
 * does not match.
 */
const LOGIN = /^[^\s"'`:@/()]{1,100}:(?!\/\/)[^\s"'`]{0,200}@(?!sha\d{3}:)(?=[\w[(.-])/
const LOGIN_CHARS_MAX = 320
const BEFORE_SCHEME = /auth(?:orization)?["'`]?\s*[:=]\s*$/i
const SCHEMES: ReadonlySet<string> = new Set(['bearer', 'basic', 'digest', 'negotiate'])

/** Words behind which a policy says the value that it refuses: `value swordfish is not allowed`. */
const GIVES: ReadonlySet<string> = new Set(['value', 'values', 'got'])
/** Words that every message may contain, names, numbers and amounts. */
const isKnownWord = (core: string, { isName }: Reader): boolean =>
  isPlainWord(core) || isProseAfterKey(core) || isName(core) || !/^\p{L}+$/u.test(core)

/** `password: x`, `password=`, `Bearer x`. */
function announcesValue(core: string, after: string): boolean {
  return SCHEMES.has(core.toLowerCase()) ? after === '' : /^["'`]?[:=]/.test(after) && isSecretKey(core)
}

/** A token without punctuation around it. */
function tokenText(core: string, reader: Reader): string {
  const url = urlText(core, reader)
  if (url !== null) return url
  if (reader.isName(core)) return core
  if (assignsSecret(core))
    return settingsOf(core)
      .map((part, i) => (i % 2 === 1 ? part : settingText(part, reader)))
      .join('')
  return !core.includes(HOLE) && isSafeToken(core, reader.isName) ? core : HOLE
}

function settingText(part: string, { isName }: Reader): string {
  const key = secretKeyOf(part)
  if (key !== null) return (key.includes(HOLE) || !isSafeToken(key, isName) ? '' : key) + HOLE
  return part === '' || (!part.includes(HOLE) && isSafeToken(part, isName)) ? part : HOLE
}

const NO_LETTERS = /^[^\p{L}\p{N}]*$/u

/** `before`: the text in front of it. */
function isShownQuoted(content: string, { known, isName }: Reader, before: string): boolean {
  if (content === '' || isName(content)) return true
  if (known.isPlainValue(content)) return false
  if (content.includes(HOLE)) return urlText(content, { known, isName }) !== null
  if (NO_LETTERS.test(content)) return content.length <= 3
  if (BEFORE_PATTERN.test(before)) return !/\s/.test(content) && content.length <= STRUCTURE_CHARS_MAX
  if (known.isSecret) return isPlainWord(content)
  const word = /([-\w.]+) $/.exec(before)?.[1] ?? ''
  if (assignsSecret(content) || (!/^keys?$/i.test(word) && isQuotedSecret(word, content))) return false
  return !/\s/.test(content) && (urlText(content, { known, isName }) !== null || isSafeToken(content, isName))
}

function isListOfNames(inner: string, reader: Reader): boolean {
  if (inner.includes(HOLE)) return false
  const items = inner.split(/[,\s]+/).filter((item) => item !== '')
  if (items.some((item) => /[:=]$/.test(item) && isSecretKey(item.replace(/["'`]?[:=]+$/, '')))) return false
  return items.every((item) => {
    const content = /^(["'`])(.*)\1$/.exec(item)?.[2]
    if (content !== undefined) return isShownQuoted(content, reader, '')
    return /^[^"'`{}]+$/.test(item) && isShownQuoted(item, reader, '')
  })
}

/** A URL without user, query and fragment. Null when the text holds no URL. */
function urlText(text: string, { isName }: Reader): string | null {
  const address = addressIn(text, isName)
  if (address === null) return null
  const { before, scheme, host, path } = address
  if (assignsSecret(`${before}x`) || before.includes(HOLE) || !isSafeToken(before, isName)) return HOLE
  if (host === null) return `${before}${scheme}${HOLE}`
  return `${before}${scheme}${host}${path === '' || (!path.includes(HOLE) && isSafeToken(path, isName)) ? path : `/${HOLE}`}`
}
