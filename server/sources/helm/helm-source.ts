// A Helm repository over https as a Source. Its revision is what the index says about charts; the index and every
// archive that was fetched stay on the disk, so that what was read once is read again without the other side, also
// after a restart.
import { z } from 'zod'
import { nearestWord } from '../../../shared/runtime/edit-distance.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { authoritiesAt } from '../address/authorities.ts'
import type { WebFetcher } from '../address/guard.ts'
import { ARCHIVE_BYTES_MAX, readArchive } from '../archive/archive.ts'
import { quote } from '../archive/tar.ts'
import { authorizationOf } from '../credentials.ts'
import { createInFlight } from '../in-flight.ts'
import { greatestVersion, noVersion } from '../range.ts'
import { SizedCache } from '../sized-cache.ts'
import type { OpenedSource, Source, SourcePick } from '../source.ts'
import { createStoredFiles, isSha256, type StoredFiles, sha256Of } from '../stored/files.ts'
import { chartFiles } from '../stored/tree.ts'
import type { Unpacked } from '../stored/unpacked.ts'
import { askWeb, statusError, type WebCredential } from '../web-request.ts'
import { type ChartIndex, type ChartVersion, INDEX_BYTES_MAX, indexSchema, indexText, readIndex } from './chart-index.ts'

export interface HelmSourceOptions {
  url: string
  /** Belongs to this source alone. */
  dir: string
  fetcher: WebFetcher
  /** To addresses only that the operator named: for a credential over plain HTTP. */
  namedOnly: WebFetcher
  credential: WebCredential
  unpacked: Unpacked
  indexes: IndexCache
  /** For archives that an index has in a registry. Absent means that they are refused. */
  pullChart?(url: string): Promise<Uint8Array>
}

/** That are kept, those that were opened last first: of services that still wait for something, an older index is asked
 *  for. */
const INDEXES_KEPT_MAX = 5

const headSchema = z.object({
  revision: z.string(),
  sha256: z.string(),
  etag: z.string().nullable(),
  lastModified: z.string().nullable(),
})
type Head = z.infer<typeof headSchema>
const fetchedSchema = z.object({ sha256: z.string() })

const refused = (detail: string, remedy?: string): AppError =>
  new AppError('source_refused', { detail, ...(remedy === undefined ? {} : { remedy }) })

/** The indexes of all Helm repositories together, by revision. */
export type IndexCache = SizedCache<{ index: ChartIndex; length: number }>
const INDEX_LENGTH_KEPT_MAX = 16 * 1024 * 1024
export const createIndexCache = (): IndexCache => new SizedCache(INDEX_LENGTH_KEPT_MAX, ({ length }) => length)

/** A Helm repository as a source: a revision is its index, what is opened of it is a chart. */
export function createHelmSource(options: HelmSourceOptions): Source {
  return new HelmSource(options)
}

class HelmSource implements Source {
  private readonly options: HelmSourceOptions
  private readonly stored: StoredFiles
  private readonly base: URL
  /** The name of the repository, for messages. */
  private readonly name: string
  private readonly once = createInFlight<string>()
  /** Files of indexes, by when they were fetched or opened since the start: the last one at the end. */
  private readonly used = new Set<string>()

  constructor(options: HelmSourceOptions) {
    this.options = options
    this.stored = createStoredFiles(options.dir)
    this.base = new URL(options.url)
    if (!this.base.pathname.endsWith('/')) this.base.pathname += '/'
    this.name = `the Helm repository ${options.url}`
  }

  head(): Promise<string> {
    return this.fetch()
  }

  fetch(): Promise<string> {
    return this.once('head', () => this.refresh())
  }

  async has(revision: string): Promise<boolean> {
    return (await this.index(revision)) !== null
  }

  async open(revision: string, pick: SourcePick): Promise<OpenedSource> {
    if (!('chart' in pick))
      throw refused(
        `${this.name} has charts, not folders: set source.chart and optionally source.version`,
        'Set source.chart of the Service instead of source.path, and optionally source.version.',
      )
    const index = await this.index(revision)
    if (index === null)
      throw new AppError('source_unreachable', { detail: `${this.name}: this version of the index is no longer available` })
    this.use(revision)
    return this.openVersion(pick.chart, versionIn(index, pick, this.name))
  }

  /** Opens a chart that is known already, if it is here. */
  async chart(_: string, name: string, version: string): Promise<OpenedSource> {
    const head = await this.readHead()
    const known = head === null ? null : await this.index(head.revision)
    const versions = known !== null && Object.hasOwn(known, name) ? known[name] : undefined
    const found = versions?.find((candidate) => candidate.version === version)
    if (found !== undefined) return this.openVersion(name, found)
    return this.open(await this.fetch(), { chart: name, version })
  }

  private async refresh(): Promise<string> {
    const what = `the index of ${this.name}`
    const before = await this.readHead()
    const held = before !== null && (await this.has(before.revision)) ? before : null
    const validators: Record<string, string> = {
      ...(held?.etag ? { 'if-none-match': held.etag } : {}),
      ...(held?.lastModified ? { 'if-modified-since': held.lastModified } : {}),
    }
    const answer = await this.ask(new URL('index.yaml', this.base), what, INDEX_BYTES_MAX, validators)
    if (answer.status === 304 && held !== null) return held.revision
    if (answer.status !== 200) throw statusError(what, answer, this.options.credential)
    const { headers, bytes } = answer
    const sha256 = sha256Of(bytes)
    const same = held !== null && held.sha256 === sha256
    const revision = same ? held.revision : await this.keepIndex(bytes, what)
    const head: Head = { revision, sha256, etag: headers.get('etag'), lastModified: headers.get('last-modified') }
    if (JSON.stringify(head) !== JSON.stringify(before)) await this.stored.writeText('head.json', JSON.stringify(head))
    return revision
  }

  private async keepIndex(bytes: Uint8Array, what: string): Promise<string> {
    const index = await readIndex(decode(bytes, what), nextTurn)
    const text = indexText(index)
    const revision = sha256Of(text)
    await this.stored.writeText(indexName(revision), text)
    this.options.indexes.set(revision, { index, length: text.length })
    this.use(revision)
    const names = await this.stored.names('index-')
    const unused = names.filter((name) => !this.used.has(name))
    const all = [...[...this.used].reverse(), ...unused]
    for (const name of all.slice(INDEXES_KEPT_MAX)) {
      this.used.delete(name)
      await this.stored.remove(name)
    }
    return revision
  }

  private use(revision: string): void {
    this.used.delete(indexName(revision))
    this.used.add(indexName(revision))
  }

  private async readHead(): Promise<Head | null> {
    const parsed = headSchema.safeParse(parseJson(await this.stored.readText('head.json')))
    return parsed.success ? parsed.data : null
  }

  private async index(revision: string): Promise<ChartIndex | null> {
    const held = this.options.indexes.get(revision)
    // In memory it may be another repository's, or an older one that was removed here.
    if (held !== undefined && (await this.stored.hasText(indexName(revision)))) {
      this.options.indexes.set(revision, held)
      return held.index
    }
    const text = await this.stored.readText(indexName(revision))
    if (text === null || sha256Of(text) !== revision) return null
    const parsed = indexSchema.safeParse(parseJson(text))
    if (!parsed.success) return null
    this.options.indexes.set(revision, { index: parsed.data, length: text.length })
    return parsed.data
  }

  private async openVersion(chart: string, found: ChartVersion): Promise<OpenedSource> {
    const { digest, version } = found
    const what = `${chart} ${version} of ${this.name}`
    // It becomes the name of a file.
    if (digest !== null && !isSha256(digest)) throw refused(`${what}: the index has ${quote(digest)} as its digest, which is not a SHA-256`)
    const sha256 = digest ?? (await this.firstSeen(chart, found))
    const tree = await this.options.unpacked.tree(this.options.dir, `chart ${sha256}`, async () =>
      chartOf((await this.stored.readBlob(sha256)) ?? (await this.download(chart, found, sha256)).bytes, what),
    )
    return { tree, root: '', version: `${version} sha256:${sha256}`.slice(0, 200) }
  }

  /** An index entry without a digest must give the same archive as at its first fetch. */
  private firstSeen(chart: string, found: ChartVersion): Promise<string> {
    const note = `fetched-${sha256Of(JSON.stringify([chart, found.version, found.urls]))}.json`
    return this.once(note, async () => {
      const known = fetchedSchema.safeParse(parseJson(await this.stored.readText(note)))
      if (known.success) return known.data.sha256
      const { sha256 } = await this.download(chart, found, null)
      await this.stored.writeText(note, JSON.stringify({ sha256 }))
      return sha256
    })
  }

  private async download(
    chart: string,
    { urls, version }: ChartVersion,
    expected: string | null,
  ): Promise<{ sha256: string; bytes: Uint8Array }> {
    const what = `${chart} ${version} of ${this.name}`
    let failure: AppError | null = null
    for (const text of urls) {
      try {
        const bytes = await this.archiveAt(text, what)
        const sha256 = sha256Of(bytes)
        if (expected !== null && sha256 !== expected)
          throw refused(
            `${what}: its archive has the digest sha256:${sha256}, but the index has sha256:${expected}`,
            'Create the index again (`helm repo index`), or restore the archive. If neither changed, someone may have changed it in transit.',
          )
        await chartOf(bytes, what)
        await this.stored.writeBlob(sha256, bytes)
        return { sha256, bytes }
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        failure ??= error
      }
    }
    throw failure ?? refused(`${what}: the index has no URL for it`)
  }

  private async archiveAt(text: string, what: string): Promise<Uint8Array> {
    if (text.startsWith('oci://') && this.options.pullChart !== undefined) return this.options.pullChart(text)
    if (!URL.canParse(text, this.base.href)) throw refused(`${what}: the index has an invalid URL for it`)
    const answer = await this.ask(new URL(text, this.base.href), what, ARCHIVE_BYTES_MAX, {})
    if (answer.status !== 200) throw statusError(what, answer, this.options.credential)
    return answer.bytes
  }

  /** The credential goes to the repository's own scheme, host and port, and nowhere else. */
  private async ask(url: URL, what: string, bytesMax: number, headers: Readonly<Record<string, string>>) {
    const { credential, namedOnly } = this.options
    const secrets: Readonly<Record<string, string>> = credential.secretRef === null ? {} : await credential.read()
    const isOwn = url.origin === this.base.origin
    const authorization = isOwn ? authorizationOf(secrets, url.host) : null
    const sent = authorization === null ? headers : { ...headers, authorization }
    const fetcher = authorization !== null && url.protocol === 'http:' ? namedOnly : this.options.fetcher
    return askWeb({ fetcher, url: url.href, what, headers: sent, ca: authoritiesAt(secrets['caCert'], isOwn), bytesMax })
  }
}

const indexName = (revision: string): string => `index-${revision}.json`
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function parseJson(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text)
  } catch {
    return null // written by a crash of the disk: it is fetched anew
  }
}

function decode(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw refused(`${what} is not UTF-8`)
  }
}

async function chartOf(bytes: Uint8Array, what: string) {
  try {
    const files = chartFiles(await readArchive(bytes))
    if (files === null) throw refused('its archive is not a chart: expected one folder with a Chart.yaml')
    return files
  } catch (error) {
    throw error instanceof AppError ? refused(`${what}: ${error.data.detail}`) : error
  }
}

function versionIn(
  index: ChartIndex,
  { chart, version: range }: { chart: string; version?: string | undefined },
  name: string,
): ChartVersion {
  const versions = Object.hasOwn(index, chart) ? (index[chart] ?? []) : []
  if (versions.length === 0)
    throw refused(
      `${name} has no chart ${chart}${nearest(Object.keys(index), chart)}`,
      'Correct source.chart of the Service, or publish the chart.',
    )
  const texts = versions.map(({ version }) => version)
  const greatest = greatestVersion(texts, range)
  const found = versions.find(({ version }) => version === greatest)
  if (found !== undefined) return found
  throw refused(noVersion(`chart ${chart} of ${name}`, texts, range), 'Correct source.version of the Service, or publish the version.')
}

function nearest(names: readonly string[], name: string): string {
  if (names.length === 0) return '; it has no versions'
  const near = nearestWord(name, names, 4)
  return near === null ? '' : `; did you mean ${near}?`
}
