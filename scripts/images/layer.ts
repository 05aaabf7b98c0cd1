// A layer of an image: a tar archive whose bytes follow from its files alone, with sorted names, one time and two owners.
import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { ImageFile } from './dockerfile.ts'

const OWNER = 65532
const BLOCK = 512

interface Entry {
  name: string
  mode: number
  owner: number
  type: '0' | '2' | '5'
  link: string
  bytes: Uint8Array
}

/** Parents come before their files, owned by root. */
function entriesOf(files: readonly ImageFile[]): Entry[] {
  const entries = new Map<string, Entry>()
  const add = (path: string, rest: Omit<Entry, 'name'>) => {
    const name = path.slice(1) + (rest.type === '5' ? '/' : '')
    const parent = dirname(path)
    if (parent !== '/' && !entries.has(`${parent.slice(1)}/`))
      add(parent, { mode: 0o755, owner: 0, type: '5', link: '', bytes: new Uint8Array() })
    entries.set(name, { name, ...rest })
  }
  for (const { path, content, owned } of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const owner = owned ? OWNER : 0
    const none = new Uint8Array()
    if (content.kind === 'dir') add(path, { mode: 0o700, owner, type: '5', link: '', bytes: none })
    else if (content.kind === 'link') add(path, { mode: 0o777, owner, type: '2', link: content.target, bytes: none })
    else if (content.kind === 'text') add(path, { mode: 0o644, owner, type: '0', link: '', bytes: new TextEncoder().encode(content.text) })
    else {
      const isProgram = (statSync(content.path).mode & 0o111) !== 0
      add(path, { mode: isProgram ? 0o755 : 0o644, owner, type: '0', link: '', bytes: readFileSync(content.path) })
    }
  }
  return [...entries.values()]
}

function header({ name, mode, owner, type, link, bytes }: Entry, seconds: number): Uint8Array {
  if (name.length > 100 || link.length > 100) throw new Error(`${name}: longer than a ustar header takes`)
  const block = new Uint8Array(BLOCK)
  const encoder = new TextEncoder()
  const put = (text: string, at: number) => block.set(encoder.encode(text), at)
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`
  put(name, 0)
  put(octal(mode, 7), 100)
  put(octal(owner, 7), 108)
  put(octal(owner, 7), 116)
  put(octal(bytes.byteLength, 11), 124)
  put(octal(seconds, 11), 136)
  put('        ', 148)
  put(type, 156)
  put(link, 157)
  put('ustar\x0000', 257)
  put(
    octal(
      block.reduce((sum, byte) => sum + byte, 0),
      6,
    ),
    148,
  )
  put(' ', 155)
  return block
}

export const sha256 = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

export interface Layer {
  gzip: Uint8Array
  digest: string
  /** Digest of the archive before compression. */
  diffId: string
}

export function layerOf(files: readonly ImageFile[], seconds: number): Layer {
  const parts = entriesOf(files).flatMap((entry) => [
    header(entry, seconds),
    entry.bytes,
    new Uint8Array((BLOCK - (entry.bytes.byteLength % BLOCK)) % BLOCK),
  ])
  const tar = Buffer.concat([...parts, new Uint8Array(2 * BLOCK)])
  const gzip = gzipSync(tar, { level: 6 })
  return { gzip, digest: `sha256:${sha256(gzip)}`, diffId: `sha256:${sha256(tar)}` }
}
