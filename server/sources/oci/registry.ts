// One repository of an OCI registry over its HTTP API: credentials and tokens, tags, manifests, blobs. Everything that
// comes is held against its digest.
import { z } from 'zod'
import { AppError } from '../../../shared/runtime/error.ts'
import { authoritiesAt } from '../address/authorities.ts'
import type { WebFetcher } from '../address/guard.ts'
import { quote } from '../archive/tar.ts'
import { authorizationOf } from '../credentials.ts'
import { sha256Of } from '../stored/files.ts'
import { askWeb, statusError, type WebAnswer, type WebCredential } from '../web-request.ts'
import { INDEX_TYPES, isDigest, isTag, MANIFEST_TYPES, nextPage, type OciPlace, readChallenge } from './reference.ts'

export interface RegistryOptions {
  place: OciPlace
  /** For messages. */
  url: string
  /** Plain HTTP; the fetcher then goes to addresses only that the operator named. */
  plain: boolean
  fetcher: WebFetcher
  credential: WebCredential
}

export interface Registry {
  /** The digest that the tag has now. */
  digestOf(tag: string): Promise<string>
  tags(): Promise<string[]>
  manifest(digest: string): Promise<Uint8Array>
  /** `part`: what there is of it already. `keep` is given what came before it broke off, and null when that was
   *  something else. */
  blob(blob: Blob, part: Uint8Array | null, keep: (part: Uint8Array | null) => Promise<void>): Promise<Uint8Array>
}

interface Blob {
  digest: string
  size: number
}

export const MANIFEST_BYTES_MAX = 4 * 1024 * 1024
const TAGS_BYTES_MAX = 4 * 1024 * 1024
const TAG_PAGES_MAX = 100
const TAGS_MAX = 100_000
const TOKEN_BYTES_MAX = 256 * 1024
/** The limit of resumed downloads of one blob; each must bring some bytes. */
const RESUMES_MAX = 5

const tagsSchema = z.object({ tags: z.array(z.string()).nullish() })
const tokenSchema = z.object({ token: z.string().optional(), access_token: z.string().optional() })

const refused = (detail: string): AppError => new AppError('source_refused', { detail })

interface Ask {
  what: string
  bytesMax: number
  method?: 'GET' | 'HEAD'
  headers?: Readonly<Record<string, string>>
  onPart?: (bytes: Uint8Array) => Promise<void>
}

/** One repository of a registry. Answers are held against digests where there are some; throws `credential_missing`,
 *  `credential_refused`, `source_not_found`, `source_unreachable` and `source_refused`. */
export function createRegistry(options: RegistryOptions): Registry {
  return new HttpRegistry(options)
}

class HttpRegistry implements Registry {
  private readonly options: RegistryOptions
  private readonly base: URL
  /** The authorization that the registry accepted last time; requested again when the registry refuses it. */
  private authorization: { header: string; secrets: string } | null = null

  constructor(options: RegistryOptions) {
    this.options = options
    const base = `${options.plain ? 'http' : 'https'}://${options.place.host}/v2/${options.place.repository}/`
    const parsedBase = URL.canParse(base) ? new URL(base) : null
    // A name that a URL reads as `..`, a query or a fragment would lead to another repository, asked with this one's
    // credential.
    if (parsedBase === null || parsedBase.pathname !== `/v2/${options.place.repository}/`)
      throw refused(`${options.url} is not the address of a registry`)
    this.base = parsedBase
  }

  async digestOf(tag: string): Promise<string> {
    if (!isTag(tag)) throw refused(`${quote(tag)} is not a valid tag of ${this.options.url}`)
    const ask = { what: `the tag ${tag} of ${this.options.url}`, bytesMax: MANIFEST_BYTES_MAX, headers: ACCEPT }
    const head = await this.ask(`manifests/${tag}`, { ...ask, method: 'HEAD' })
    const told = head.status === 200 ? (head.headers.get('docker-content-digest') ?? '') : ''
    if (isDigest(told)) return told
    // Some registries do not say it, or know no HEAD.
    const answer = head.status === 200 || head.status === 405 ? await this.ask(`manifests/${tag}`, ask) : head
    if (answer.status !== 200) throw this.errorOf(ask.what, answer)
    return `sha256:${sha256Of(answer.bytes)}`
  }

  async tags(): Promise<string[]> {
    const what = `the tags of ${this.options.url}`
    const found = new Set<string>()
    let path: string | null = 'tags/list?n=1000'
    for (let pages = 0; path !== null; pages++) {
      if (pages === TAG_PAGES_MAX) throw refused(`${what} are more than ${TAG_PAGES_MAX} pages`)
      const answer = await this.ask(path, { what, bytesMax: TAGS_BYTES_MAX })
      if (answer.status !== 200) throw this.errorOf(what, answer)
      const { tags } = parsed(tagsSchema, answer.bytes, what)
      for (const tag of tags ?? []) if (isTag(tag)) found.add(tag)
      if (found.size > TAGS_MAX) throw refused(`${what} are more than ${TAGS_MAX}`)
      const next = nextPage(answer.headers.get('link'))
      path = next !== null && (tags ?? []).length > 0 ? next : null
    }
    return [...found].sort()
  }

  async manifest(digest: string): Promise<Uint8Array> {
    const what = `the manifest ${digest} of ${this.options.url}`
    const answer = await this.ask(`manifests/${digest}`, { what, bytesMax: MANIFEST_BYTES_MAX, headers: ACCEPT })
    if (answer.status !== 200) throw this.errorOf(what, answer)
    return this.checked(answer.bytes, digest, what)
  }

  async blob({ digest, size }: Blob, part: Uint8Array | null, keep: (part: Uint8Array | null) => Promise<void>): Promise<Uint8Array> {
    const what = `the layer ${digest} of ${this.options.url}`
    let held = part !== null && part.byteLength < size ? part : new Uint8Array()
    for (let resumes = 0; ; resumes++) {
      const before = held
      try {
        const bytes = await this.askBlob(what, digest, size, before, async (more) => {
          held = new Uint8Array(Buffer.concat([before, more]))
          await keep(held)
        })
        if (before.byteLength === 0 || `sha256:${sha256Of(bytes)}` === digest) return this.checked(bytes, digest, what)
        // The held bytes may have been something else: the page of a proxy that broke off.
        held = new Uint8Array()
        await keep(null)
        if (resumes === RESUMES_MAX) this.checked(bytes, digest, what)
      } catch (error) {
        const brokeOff = error instanceof AppError && error.code === 'source_unreachable' && held.byteLength > before.byteLength
        if (!brokeOff || resumes === RESUMES_MAX) throw error
      }
    }
  }

  private async askBlob(
    what: string,
    digest: string,
    size: number,
    held: Uint8Array,
    onMore: (more: Uint8Array) => Promise<void>,
  ): Promise<Uint8Array> {
    const range: Record<string, string> = held.byteLength > 0 ? { range: `bytes=${held.byteLength}-` } : {}
    let resumed = false
    let isPart = false
    const onPart = async (more: Uint8Array) => {
      if (isPart) await onMore(more)
    }
    const onHead = (answer: { status: number; headers: Headers }) => {
      resumed = answer.status === 206 && (answer.headers.get('content-range') ?? '').startsWith(`bytes ${held.byteLength}-`)
      isPart = resumed || (answer.status === 200 && held.byteLength === 0)
    }
    const answer = await this.ask(`blobs/${digest}`, { what, bytesMax: size, headers: range, onPart }, onHead)
    if (resumed) return new Uint8Array(Buffer.concat([held, answer.bytes]))
    if (answer.status === 200) return answer.bytes
    if (held.byteLength > 0 && (answer.status === 416 || answer.status === 206))
      return this.askBlob(what, digest, size, new Uint8Array(), onMore)
    throw this.errorOf(what, answer)
  }

  private checked(bytes: Uint8Array, digest: string, what: string): Uint8Array {
    const actual = `sha256:${sha256Of(bytes)}`
    if (actual !== digest) throw refused(`${what}: the content has the digest ${actual}`)
    return bytes
  }

  private errorOf(what: string, answer: WebAnswer): AppError {
    return statusError(what, answer, this.options.credential)
  }

  /** `path` is below the repository, or where a page said that the next one is. */
  private async ask(path: string, request: Ask, onHead?: (answer: { status: number; headers: Headers }) => void): Promise<WebAnswer> {
    const url = new URL(path, this.base)
    if (url.origin !== this.base.origin) throw refused(`${request.what}: ${this.base.host} redirects to ${url.host}`)
    const secrets = this.options.credential.secretRef === null ? {} : await this.options.credential.read()
    const key = JSON.stringify(secrets)
    if (this.authorization?.secrets !== key) this.authorization = null
    const first = await this.send(url, request, secrets, onHead)
    // A host that the registry redirects to must not ask for the registry's credential.
    if (first.status !== 401 || new URL(first.url).origin !== this.base.origin) return first
    const header = await this.authorize(first, request.what, secrets)
    if (header === null) return first
    this.authorization = { header, secrets: key }
    return this.send(url, request, secrets, onHead)
  }

  private async send(
    url: URL,
    { headers = {}, ...request }: Ask,
    secrets: Readonly<Record<string, string>>,
    onHead: ((answer: { status: number; headers: Headers }) => void) | undefined,
  ): Promise<WebAnswer> {
    const authorization = this.authorization?.header
    const sent = authorization === undefined ? headers : { ...headers, authorization }
    const { fetcher } = this.options
    const watched: WebFetcher = async (to, init) => {
      const answer = await fetcher(to, init)
      onHead?.(answer)
      return answer
    }
    return askWeb({ ...request, fetcher: watched, url: url.href, headers: sent, ca: secrets['caCert'] })
  }

  /** Null if nothing more can be tried with the present credentials. */
  private async authorize(answer: WebAnswer, what: string, secrets: Readonly<Record<string, string>>): Promise<string | null> {
    const challenge = readChallenge(answer.headers.get('www-authenticate'))
    const own = authorizationOf(secrets, this.base.host)
    if (challenge === null || challenge.scheme === 'basic' || own?.startsWith('Bearer ')) return own
    return this.fetchToken(challenge, what, own, secrets['caCert'])
  }

  private async fetchToken(
    { realm, service }: { realm: string; service: string | null },
    what: string,
    own: string | null,
    caCert: string | undefined,
  ): Promise<string> {
    const tokenWhat = `a token for ${what}`
    if (!URL.canParse(realm)) throw refused(`${tokenWhat}: ${this.base.host} names no token server`)
    const url = new URL(realm)
    if (url.protocol !== 'https:' && !this.options.plain)
      throw refused(`${tokenWhat}: the token server ${url.host} must not use plain HTTP`)
    if (own !== null && url.host !== this.base.host) await this.options.credential.read(url.host)
    if (service !== null) url.searchParams.set('service', service)
    // Not what the challenge says: less than that is never needed, and more shall not be asked for.
    url.searchParams.set('scope', `repository:${this.options.place.repository}:pull`)
    const headers: Record<string, string> = own === null ? {} : { authorization: own }
    const ca = authoritiesAt(caCert, url.origin === this.base.origin)
    const answer = await askWeb({ fetcher: this.options.fetcher, url: url.href, what: tokenWhat, headers, ca, bytesMax: TOKEN_BYTES_MAX })
    if (answer.status !== 200) throw this.errorOf(tokenWhat, answer)
    const { token, access_token } = parsed(tokenSchema, answer.bytes, tokenWhat)
    const found = token ?? access_token
    if (found === undefined || !/^[\x21-\x7e]+$/.test(found)) throw refused(`${tokenWhat}: the answer of ${url.host} has no token`)
    return `Bearer ${found}`
  }
}

const ACCEPT = { accept: [...MANIFEST_TYPES, ...INDEX_TYPES].join(', ') }

function parsed<T>(schema: z.ZodType<T>, bytes: Uint8Array, what: string): T {
  try {
    return schema.parse(JSON.parse(new TextDecoder().decode(bytes)))
  } catch {
    throw refused(`${what}: the answer is not from a registry`)
  }
}
