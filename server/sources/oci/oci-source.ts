// An artifact or chart in an OCI registry as a Source: its revision is the digest of a manifest. Manifests and layers
// stay on the disk by their digests; what is pinned by digest and was fetched once is never asked for again.
import { AppError } from '../../../shared/runtime/error.ts'
import { quote } from '../archive/tar.ts'
import { createInFlight } from '../in-flight.ts'
import { greatestVersion, noVersion } from '../range.ts'
import { CORRECT_SPEC, type OpenedSource, pathSegments, type Source, type SourcePick } from '../source.ts'
import { createStoredFiles, type StoredFiles, sha256Of } from '../stored/files.ts'
import type { Unpacked } from '../stored/unpacked.ts'
import { filesOfLayers, type Layer, readManifest } from './layers.ts'
import { isChartName, isDigest, tagOfVersion, versionOfTag } from './reference.ts'
import type { Registry } from './registry.ts'

export type OciWanted = { tag: string } | { semver: string } | { digest: string }

export interface OciSourceOptions {
  url: string
  wanted: OciWanted
  /** Belongs to this source alone. */
  dir: string
  registry: Registry
  /** The same registry at another path, for charts that others depend on. */
  registryAt(url: string): Registry
  unpacked: Unpacked
}

/** The number of notes on tags. Services that still wait for something show an older revision. */
const TAG_NOTES_MAX = 20

const refused = (detail: string, remedy?: string): AppError =>
  new AppError('source_refused', { detail, ...(remedy === undefined ? {} : { remedy }) })

/** An OCI repository as a source: a revision is the digest of a manifest. */
export function createOciSource(options: OciSourceOptions): Source {
  return new OciSource(options)
}

class OciSource implements Source {
  private readonly options: OciSourceOptions
  private readonly stored: StoredFiles
  private readonly fetching = createInFlight<string>()
  private readonly blobs = createInFlight<Uint8Array>()

  constructor(options: OciSourceOptions) {
    this.options = options
    this.stored = createStoredFiles(options.dir)
  }

  async head(): Promise<string> {
    const { wanted } = this.options
    if ('digest' in wanted) return wanted.digest
    const tag = 'tag' in wanted ? wanted.tag : await this.greatestTag(wanted.semver)
    const digest = await this.options.registry.digestOf(tag)
    await this.noteTag(digest, tag)
    return digest
  }

  fetch(): Promise<string> {
    return this.fetching('head', () => this.fetchHead())
  }

  async has(revision: string): Promise<boolean> {
    const layers = await this.heldLayers(revision)
    if (layers === null) return false
    const held = await Promise.all(layers.map(({ digest }) => this.stored.hasBlob(hexOf(digest))))
    return held.every((one) => one)
  }

  async open(revision: string, pick: SourcePick): Promise<OpenedSource> {
    const { url, unpacked, dir } = this.options
    if (!('path' in pick))
      throw refused(`${url} is one artifact; set source.path, "." for all of it, instead of source.chart`, CORRECT_SPEC)
    const tree = await unpacked.tree(dir, `oci ${revision}`, async () => {
      const layers = await this.pull(revision)
      const parts = await Promise.all(layers.map(async (layer) => ({ layer, bytes: await this.blob(layer) })))
      return filesOfLayers(parts, this.name(revision))
    })
    const tag = await this.stored.readText(tagNote(revision))
    return { tree, root: pathSegments(pick.path).join('/'), version: tag === null ? revision : `${tag} ${revision}` }
  }

  /** SO20: a version that was fetched once is what it was then. */
  async chart(repository: string, name: string, version: string): Promise<OpenedSource> {
    // It comes from the author of the chart, and becomes part of a URL.
    if (!isChartName(name)) throw refused(`a chart of ${repository}: ${quote(name)} is not a valid chart name`)
    const url = `${repository.replace(/\/+$/, '')}/${name}`
    const note = `chart-${sha256Of(`${url}@${version}`)}`
    const registry = this.options.registryAt(url)
    const digest = (await this.stored.readText(note)) ?? (await registry.digestOf(tagOfVersion(version)))
    const opened = await createOciSource({ ...this.options, url, registry, wanted: { digest } }).open(digest, { path: '.' })
    if ((await opened.tree.file('Chart.yaml')) === null) throw refused(`${url} ${version} is not a chart`)
    await this.stored.writeText(note, digest)
    return { ...opened, version: `${version} ${digest}` }
  }

  private async fetchHead(): Promise<string> {
    const revision = await this.head()
    for (const layer of await this.pull(revision)) await this.blob(layer)
    return revision
  }

  private async greatestTag(range: string): Promise<string> {
    const tags = await this.options.registry.tags()
    const versions = tags.map(versionOfTag)
    const version = greatestVersion(versions, range)
    const tag = version === null ? undefined : tags.find((candidate) => candidate === version || candidate === tagOfVersion(version))
    if (tag === undefined)
      throw refused(
        noVersion(`the tags of ${this.options.url}`, versions, range),
        'Correct spec.oci.semver of the Repository, or push the tag.',
      )
    return tag
  }

  /** For people, beside the digest; it may lead to another one tomorrow. */
  private async noteTag(digest: string, tag: string): Promise<void> {
    if ((await this.stored.readText(tagNote(digest))) === tag) return
    await this.stored.writeText(tagNote(digest), tag)
    for (const name of (await this.stored.names('tag-')).slice(TAG_NOTES_MAX)) await this.stored.remove(name)
  }

  private name(revision: string): string {
    return `${this.options.url}@${revision}`
  }

  /** Its manifest is on the disk then, and that of the one artifact in it if it is an index. */
  private async pull(revision: string): Promise<readonly Layer[]> {
    const read = readManifest(await this.manifest(revision), this.name(revision))
    if (read.kind === 'layers') return read.layers
    const inner = readManifest(await this.manifest(read.digest), this.name(read.digest))
    if (inner.kind !== 'layers') throw refused(`${this.name(revision)} is an index of an index`)
    return inner.layers
  }

  private async heldLayers(revision: string): Promise<readonly Layer[] | null> {
    const outer = isDigest(revision) ? await this.stored.readBlob(hexOf(revision)) : null
    if (outer === null) return null
    const read = readManifest(outer, this.name(revision))
    if (read.kind === 'layers') return read.layers
    const inner = await this.stored.readBlob(hexOf(read.digest))
    const found = inner === null ? null : readManifest(inner, this.name(read.digest))
    return found?.kind === 'layers' ? found.layers : null
  }

  private async manifest(digest: string): Promise<Uint8Array> {
    const held = await this.stored.readBlob(hexOf(digest))
    if (held !== null) return held
    const bytes = await this.options.registry.manifest(digest)
    readManifest(bytes, this.name(digest)) // what is refused is not kept
    await this.stored.writeBlob(hexOf(digest), bytes)
    return bytes
  }

  private blob(layer: Layer): Promise<Uint8Array> {
    return this.blobs(layer.digest, () => this.getBlob(layer))
  }

  private async getBlob(layer: Layer): Promise<Uint8Array> {
    const hex = hexOf(layer.digest)
    const held = await this.stored.readBlob(hex)
    if (held !== null) return held
    const part = await this.stored.readPart(hex)
    const bytes = await this.options.registry.blob(layer, part, (more) =>
      more === null ? this.stored.removePart(hex) : this.stored.writePart(hex, more),
    )
    await this.stored.writeBlob(hex, bytes)
    return bytes
  }
}

const hexOf = (digest: string): string => digest.replace('sha256:', '')
const tagNote = (digest: string): string => `tag-${hexOf(digest)}`
