// Unpacked archives that were read lately, for all sources together: a thousand services of one chart unpack it once.
import type { ArchiveFiles } from '../archive/archive.ts'
import { SizedCache } from '../sized-cache.ts'
import { createStoredTree, type StoredTree } from './tree.ts'

export interface Unpacked {
  /** By what names the content. Asked for twice at once it is made once; what fails is not kept. */
  tree(contentId: string, files: () => Promise<ArchiveFiles>): Promise<StoredTree>
}

const UNPACKED_BYTES_MAX = 96 * 1024 * 1024
/** Of a file beside its content: path, ids, map entries. */
const FILE_BYTES = 500

export function createUnpacked(bytesMax: number = UNPACKED_BYTES_MAX): Unpacked {
  const held = new SizedCache<StoredTree>(bytesMax, ({ bytes, count }) => bytes + count * FILE_BYTES)
  const making = new Map<string, Promise<StoredTree>>()
  return {
    async tree(contentId, files) {
      const known = held.get(contentId)
      if (known !== undefined) {
        held.set(contentId, known)
        return known
      }
      const before = making.get(contentId)
      if (before !== undefined) return before
      const made = files().then(createStoredTree)
      making.set(contentId, made)
      try {
        const tree = await made
        held.set(contentId, tree)
        return tree
      } finally {
        making.delete(contentId)
      }
    },
  }
}
