// RH8: the file of the source that each object is made of, for people who look for the file to change.
import type { SourceTree } from '../sources/source.ts'
import { templateName } from './liquid/files.ts'
import type { Manifest } from './manifests.ts'
import type { RendererResult } from './renderer.ts'

export interface OriginSource {
  label: string
  /** Begins all places of this source. */
  prefix: string
  tree: Pick<SourceTree, 'file' | 'id'>
}

type Rendered = Extract<RendererResult, { kind: 'rendered' }>

/** `file:line:column` */
const PLACE = /^(.+):(\d+):\d+$/s

/** The same manifests, each with its origin. Throws what the tree throws. */
export async function withOrigins(
  found: readonly Manifest[],
  { label, prefix, tree }: OriginSource,
  { files, fileOf }: Pick<Rendered, 'files' | 'fileOf'>,
): Promise<Manifest[]> {
  /** The file in the source under the name of a rendered one; `isSame`: with these very lines. */
  const written = async (name: string): Promise<{ file: string | null; isSame: boolean }> => {
    const held = await tree.file(name)
    if (held !== null) return { file: name, isSame: Buffer.compare(held.bytes, files.get(name) ?? new Uint8Array()) === 0 }
    const template = templateName(name)
    return { file: (await tree.id(template)) === null ? null : template, isSame: false }
  }
  const known = new Map<string, Awaited<ReturnType<typeof written>>>()
  const placed: Manifest[] = []
  for (const manifest of found) {
    const [, name = '', line = ''] = PLACE.exec(manifest.place.slice(prefix.length)) ?? []
    if (fileOf !== undefined) {
      placed.push({ ...manifest, origin: { source: label, file: fileOf(name, manifest.object), line: null } })
      continue
    }
    const place = known.get(name) ?? (await written(name))
    known.set(name, place)
    placed.push({ ...manifest, origin: { source: label, file: place.file, line: place.isSame ? Number(line) : null } })
  }
  return placed
}
