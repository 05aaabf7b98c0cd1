// A layer of an image: a tar archive with sorted names, compressed.
import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ImageFile } from './dockerfile.ts'
import { compressed, folderEntry, type TarEntry, tarOf } from './tar.ts'

const OWNER = 65532

/** Parents come before their files, owned by root. */
function entriesOf(files: readonly ImageFile[]): TarEntry[] {
  const entries = new Map<string, TarEntry>()
  const add = (path: string, entry: TarEntry) => {
    const parent = dirname(path)
    if (parent !== '/' && !entries.has(`${parent.slice(1)}/`)) add(parent, folderEntry(parent.slice(1)))
    entries.set(entry.name, entry)
  }
  for (const { path, content, owned } of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const owner = owned ? OWNER : 0
    const name = path.slice(1)
    const file = (bytes: Uint8Array, mode = 0o644) => add(path, { name, mode, owner, type: '0', link: '', bytes })
    if (content.kind === 'dir') add(path, folderEntry(name, owner, 0o700))
    else if (content.kind === 'link') add(path, { name, mode: 0o777, owner, type: '2', link: content.target, bytes: new Uint8Array() })
    else if (content.kind === 'text') file(new TextEncoder().encode(content.text))
    else file(readFileSync(content.path), (statSync(content.path).mode & 0o111) !== 0 ? 0o755 : 0o644)
  }
  return [...entries.values()]
}

export const sha256 = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

export interface Layer {
  gzip: Uint8Array
  digest: string
  /** Digest of the archive before compression. */
  diffId: string
}

export function layerOf(files: readonly ImageFile[], seconds: number): Layer {
  const tar = tarOf(entriesOf(files), seconds)
  const gzip = compressed(tar)
  return { gzip, digest: `sha256:${sha256(gzip)}`, diffId: `sha256:${sha256(tar)}` }
}
