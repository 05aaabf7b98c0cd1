// Manifests of artifacts, and the files that their layers make together: later layers over earlier ones. Decides what
// is fetched before anything is.
import { z } from 'zod'
import { AppError } from '../../../shared/runtime/error.ts'
import { ARCHIVE_BYTES_MAX, type ArchiveFiles, readArchive } from '../archive/archive.ts'
import { quote } from '../archive/tar.ts'
import { SOURCE_FILE_BYTES_MAX, SOURCE_FILES_MAX, SOURCE_PATH_LENGTH_MAX, SOURCE_TREE_BYTES_MAX } from '../source.ts'
import { chartFiles } from '../stored/tree.ts'
import { INDEX_TYPES, isDigest, type LayerUse, layerUse, MANIFEST_TYPES } from './reference.ts'

const LAYERS_MAX = 100
/** The limit of all layers together, as they come. */
const LAYERS_BYTES_MAX = 2 * ARCHIVE_BYTES_MAX

export interface Layer {
  digest: string
  size: number
  use: Exclude<LayerUse, { kind: 'nothing' | 'unknown' }>
}
/** `index` names the manifest that is taken of it. */
export type Manifest = { kind: 'index'; digest: string } | { kind: 'layers'; layers: readonly Layer[] }

const descriptorSchema = z.object({
  mediaType: z.string().max(255),
  digest: z.string().max(200),
  size: z.number().int().nonnegative(),
  annotations: z.record(z.string(), z.string()).nullish(),
  platform: z.object({ os: z.string(), architecture: z.string() }).nullish(),
})
const manifestSchema = z.object({
  mediaType: z.string().nullish(),
  layers: z.array(descriptorSchema).optional(),
  manifests: z.array(descriptorSchema).optional(),
})

const refused = (detail: string): AppError => new AppError('source_refused', { detail })

/** `what` is for messages. Throws `source_refused`. */
export function readManifest(bytes: Uint8Array, what: string): Manifest {
  const { mediaType, layers, manifests } = parse(bytes, what)
  const isIndex = mediaType == null ? layers === undefined : INDEX_TYPES.includes(mediaType)
  if (isIndex && manifests !== undefined) return { kind: 'index', digest: onlyOne(manifests, what) }
  if (layers === undefined || (mediaType != null && !MANIFEST_TYPES.includes(mediaType)))
    throw refused(`${what} has the type ${quote(mediaType ?? '')}, which is not an artifact with files`)
  if (layers.length > LAYERS_MAX) throw refused(`${what} has more than ${LAYERS_MAX} layers`)
  const found = layers.flatMap((layer) => usedLayer(layer, what))
  const total = found.reduce((all, { size }) => all + size, 0)
  if (total > LAYERS_BYTES_MAX) throw refused(`the layers of ${what} are larger than ${LAYERS_BYTES_MAX / 1024 / 1024} MiB in total`)
  if (found.length === 0) throw refused(`${what} has no files`)
  return { kind: 'layers', layers: found }
}

function parse(bytes: Uint8Array, what: string): z.infer<typeof manifestSchema> {
  try {
    return manifestSchema.parse(JSON.parse(new TextDecoder().decode(bytes)))
  } catch {
    throw refused(`${what} is not a manifest of an OCI registry`)
  }
}

/** Manifests are for no platform; what tools attest beside them is passed over. */
function onlyOne(manifests: ReadonlyArray<z.infer<typeof descriptorSchema>>, what: string): string {
  const real = manifests.filter(({ annotations }) => annotations?.['vnd.docker.reference.type'] === undefined)
  const [first] = real
  if (first === undefined) throw refused(`${what} is an empty index`)
  if (real.length > 1) {
    const names = real.map(({ platform, digest }) => (platform == null ? digest : `${platform.os}/${platform.architecture}`)).slice(0, 10)
    throw refused(
      `${what} is an index of ${real.length} artifacts (${names.join(', ')}), of which none is the one for manifests: push one, or name its digest`,
    )
  }
  return checkedDigest(first.digest, what)
}

function usedLayer(layer: z.infer<typeof descriptorSchema>, what: string): Layer[] {
  const { mediaType, digest, size, annotations } = layer
  const use = layerUse({ mediaType, annotations: annotations ?? {} })
  if (use.kind === 'nothing') return []
  if (use.kind === 'unknown')
    throw refused(
      `${what} has a layer of the type ${quote(mediaType)}; expected a chart, a tar archive with or without gzip, or a file with a title`,
    )
  const sizeMax = use.kind === 'file' ? SOURCE_FILE_BYTES_MAX : ARCHIVE_BYTES_MAX
  if (size > sizeMax) throw refused(`${what} has a layer of ${size} bytes; the limit is ${sizeMax / 1024 / 1024} MiB`)
  return [{ digest: checkedDigest(digest, what), size, use }]
}

function checkedDigest(digest: string, what: string): string {
  if (!isDigest(digest)) throw refused(`${what} refers to content by ${quote(digest)}; expected sha256`)
  return digest
}

/** `blobs` in the order of the layers. A chart is its folder: the one that helm packs it in is taken away. */
export async function filesOfLayers(layers: ReadonlyArray<{ layer: Layer; bytes: Uint8Array }>, what: string): Promise<ArchiveFiles> {
  const files = new Map<string, Uint8Array>()
  for (const { layer, bytes } of layers)
    for (const [path, content] of await filesOf(layer, bytes, what)) {
      if (path.split('/').some((segment) => segment.startsWith('.wh.')))
        throw refused(`${what}: ${quote(path)} deletes a file of an earlier layer: push an artifact without such files`)
      files.set(path, content)
    }
  const total = [...files.values()].reduce((all, { byteLength }) => all + byteLength, 0)
  if (files.size > SOURCE_FILES_MAX) throw refused(`${what} has more than ${SOURCE_FILES_MAX} files`)
  if (total > SOURCE_TREE_BYTES_MAX)
    throw refused(`the files of ${what} are larger than ${SOURCE_TREE_BYTES_MAX / 1024 / 1024} MiB in total`)
  for (const path of files.keys())
    for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1))
      if (files.has(path.slice(0, slash)))
        throw refused(`${what}: ${quote(path.slice(0, slash))} is a file in one layer and a folder in another`)
  return files
}

async function filesOf({ use }: Layer, bytes: Uint8Array, what: string): Promise<ArchiveFiles> {
  if (use.kind === 'file') return new Map([[checkedTitle(use.name, what), bytes]])
  try {
    const files = await readArchive(bytes)
    const chart = use.kind === 'chart' ? chartFiles(files) : files
    if (chart === null) throw refused('it is not a chart: expected one folder with a Chart.yaml')
    return chart
  } catch (error) {
    throw error instanceof AppError ? refused(`${what}: ${error.data.detail}`) : error
  }
}

function checkedTitle(name: string, what: string): string {
  const segments = name.split('/').filter((segment) => segment !== '.')
  const isBad =
    segments.some((segment) => segment === '' || segment === '..') || segments.length === 0 || name.length > SOURCE_PATH_LENGTH_MAX
  if (isBad || /[\\\p{Cc}]/u.test(name)) throw refused(`${what}: the title ${quote(name)} of a layer is not a relative path`)
  return segments.join('/')
}
