// One file behind a URL as a Source. Its revision is the SHA-256 of its content, under which it stays on the disk: what
// was read once is read again without the other side.
import { z } from 'zod'
import { AppError } from '../../../shared/runtime/error.ts'
import { authoritiesAt } from '../address/authorities.ts'
import type { WebFetcher } from '../address/guard.ts'
import { authorizationOf } from '../credentials.ts'
import { createInFlight } from '../in-flight.ts'
import { type OpenedSource, SINGLE_FILE, SOURCE_FILE_BYTES_MAX, type Source } from '../source.ts'
import { askWeb, statusError, type WebCredential } from '../web-request.ts'
import { createStoredFiles, isSha256, sha256Of } from './files.ts'
import { createStoredTree } from './tree.ts'

export interface FileSourceOptions {
  url: string
  /** Belongs to this source alone. */
  dir: string
  fetcher: WebFetcher
  /** To addresses only that the operator named: for a credential over plain HTTP. */
  namedOnly: WebFetcher
  credential: WebCredential
}

const headSchema = z.object({ sha256: z.string(), etag: z.string().nullable(), lastModified: z.string().nullable() })
type Head = z.infer<typeof headSchema>

/** Its tree holds the file as SINGLE_FILE. `head` and `fetch` are one conditional request. */
export function createFileSource({ url, dir, fetcher, namedOnly, credential }: FileSourceOptions): Source {
  const stored = createStoredFiles(dir)
  const once = createInFlight<string>()
  const what = `the file ${url.replace(/\?.*$/, '')}`

  async function refresh(): Promise<string> {
    const before = await readHead()
    const held = before !== null && (await stored.hasBlob(before.sha256)) ? before : null
    const headers: Record<string, string> = {
      ...(held?.etag ? { 'if-none-match': held.etag } : {}),
      ...(held?.lastModified ? { 'if-modified-since': held.lastModified } : {}),
    }
    const secrets: Readonly<Record<string, string>> = credential.secretRef === null ? {} : await credential.read()
    const authorization = authorizationOf(secrets, new URL(url).host)
    const isOpen = authorization !== null && url.startsWith('http:')
    const answer = await askWeb({
      ...{ fetcher: isOpen ? namedOnly : fetcher, url, what, bytesMax: SOURCE_FILE_BYTES_MAX },
      headers: authorization === null ? headers : { ...headers, authorization },
      ca: authoritiesAt(secrets['caCert'], true),
    })
    if (answer.status === 304 && held !== null) return held.sha256
    if (answer.status !== 200) throw statusError(what, answer, credential)
    const sha256 = sha256Of(answer.bytes)
    if (!(await stored.hasBlob(sha256))) await stored.writeBlob(sha256, answer.bytes)
    const head: Head = { sha256, etag: answer.headers.get('etag'), lastModified: answer.headers.get('last-modified') }
    if (JSON.stringify(head) !== JSON.stringify(before)) await stored.writeText('head.json', JSON.stringify(head))
    return sha256
  }

  async function readHead(): Promise<Head | null> {
    try {
      const parsed = headSchema.safeParse(JSON.parse((await stored.readText('head.json')) ?? 'null'))
      return parsed.success && isSha256(parsed.data.sha256) ? parsed.data : null
    } catch {
      return null // damaged: it is fetched anew
    }
  }

  const fetch = () => once('head', refresh)
  return {
    head: fetch,
    fetch,
    has: async (revision) => isSha256(revision) && (await stored.hasBlob(revision)),
    async open(revision): Promise<OpenedSource> {
      const bytes = isSha256(revision) ? await stored.readBlob(revision) : null
      if (bytes === null)
        throw new AppError('source_unreachable', { detail: `${what}: this version of the content is no longer available` })
      return { tree: createStoredTree(new Map([[SINGLE_FILE, bytes]])), root: '', version: `sha256:${revision}` }
    },
  }
}
