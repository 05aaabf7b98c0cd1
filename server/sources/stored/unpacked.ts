// Unpacked archives that were read lately, bounded for all sources together: a thousand services of one chart unpack it
// once.
import type { ArchiveFiles } from '../archive/archive.ts'
import { createInFlight } from '../in-flight.ts'
import { SizedCache } from '../sized-cache.ts'
import { createStoredTree, type StoredTree } from './tree.ts'

export interface Unpacked {
  /** `dir`: of the source that has it. What one source may read, another of the same content's name may not: an index
   *  says any digest it likes. Asked for twice at once it is made once; what fails is not kept. */
  tree(dir: string, contentId: string, files: () => Promise<ArchiveFiles>): Promise<StoredTree>
}

const UNPACKED_BYTES_MAX = 96 * 1024 * 1024
/** The weight of a file besides its content: path, ids, map entries. */
const FILE_BYTES = 500

export function createUnpacked(bytesMax: number = UNPACKED_BYTES_MAX): Unpacked {
  const held = new SizedCache<StoredTree>(bytesMax, ({ bytes, count }) => bytes + count * FILE_BYTES)
  const once = createInFlight<StoredTree>()
  return {
    async tree(dir, contentId, files) {
      const key = `${dir}\n${contentId}`
      const tree = held.get(key) ?? (await once(key, async () => createStoredTree(await files())))
      held.set(key, tree)
      return tree
    },
  }
}
