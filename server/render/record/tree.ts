// A tree that records its reads. A folder that is listed or read counts whole: its id names all its content, except the
// targets of its links.
import { AppError } from '../../../shared/runtime/error.ts'
import { pathSegments, SOURCE_PATH_LENGTH_MAX, type SourceTree } from '../../sources/source.ts'
import type { FileRead } from '../inputs.ts'

/** The same tree; `note` gets the reads of every call, before it answers. Throws what the tree throws. */
export function recordedTree(tree: SourceTree, source: number, note: (read: FileRead) => void): SourceTree {
  const look = async (path: string): Promise<string | null> => {
    if (path.length > SOURCE_PATH_LENGTH_MAX) throw tooLong(path)
    const id = await tree.id(path)
    note({ source, path: pathSegments(path).join('/'), id })
    return id
  }
  /** A link is listed by its own id; what it leads to may change without it. */
  const findLinks = async (path: string, wanted: (path: string) => boolean, depth = 0): Promise<void> => {
    if (depth > LINK_DEPTH_MAX) return
    for (const { name, kind } of (await tree.list(path)) ?? []) {
      const child = [...pathSegments(path), name].join('/')
      if (kind === 'link') {
        if (!wanted(child) && !wanted(`${child}/`)) continue
        await look(child)
        if (wanted(`${child}/`)) await findLinks(child, wanted, depth + 1)
      } else if (kind === 'folder' && wanted(`${child}/`)) await findLinks(child, wanted, depth + 1)
    }
  }
  return {
    id: look,
    async list(path) {
      await look(path)
      return tree.list(path)
    },
    async file(path) {
      await look(path)
      return tree.file(path)
    },
    async files(path, wanted) {
      await look(path)
      const files = await tree.files(path, wanted)
      await findLinks(path, wanted)
      return files
    },
  }
}

const tooLong = (path: string): AppError =>
  new AppError('source_refused', { detail: `a path is longer than ${SOURCE_PATH_LENGTH_MAX} characters: ${path.slice(0, 80)}…` })

/** No tree that could be read is deeper. */
const LINK_DEPTH_MAX = 512
