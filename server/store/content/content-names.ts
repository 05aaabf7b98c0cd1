// How files of the content store are called: `ab/cdef…` by SHA-256, beside it what is set aside, and what is being
// written.
import { randomBytes } from 'node:crypto'

export const isSha256 = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

const ASIDE = '.aside'

export const contentPath = (sha256: string): string => `${sha256.slice(0, 2)}/${sha256.slice(2)}`
/** Where what nothing refers to waits for its end, still to be read. */
export const asidePath = (sha256: string): string => contentPath(sha256) + ASIDE
/** A different one for each call and process: a leftover of a crash disturbs nobody. */
export const temporaryPath = (sha256: string): string => `${contentPath(sha256)}.${randomBytes(8).toString('hex')}`
export const folderOf = (path: string): string => path.slice(0, 2)

export const isContentFolder = (name: string): boolean => /^[0-9a-f]{2}$/.test(name)

export type ContentName = { kind: 'content' | 'aside'; sha256: string } | { kind: 'temporary' } | { kind: 'foreign' }

/** Reads a file in the given folder. */
export function readContentName(folder: string, name: string): ContentName {
  const match = /^([0-9a-f]{62})(\..+)?$/.exec(name)
  if (match === null) return { kind: 'foreign' }
  const sha256 = folder + match[1]
  if (match[2] === undefined) return { kind: 'content', sha256 }
  return match[2] === ASIDE ? { kind: 'aside', sha256 } : { kind: 'temporary' }
}
