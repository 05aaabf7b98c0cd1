// A SourceTree over files that are in memory: of a chart, of an artifact. Its ids are SHA-256 sums of what they name,
// so that equal ids are equal bytes wherever they came from.
import { createHash } from 'node:crypto'
import type { ArchiveFiles } from '../archive/archive.ts'
import { pathSegments, type SourceEntry, type SourceFile, type SourceTree } from '../source.ts'

export interface StoredTree extends SourceTree {
  readonly bytes: number
  /** Files. */
  readonly count: number
}

interface Folder {
  entries: SourceEntry[]
  id: string
}

const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex')

export function createStoredTree(contents: ArchiveFiles): StoredTree {
  const files = new Map<string, SourceFile>([...contents].map(([path, bytes]) => [path, { oid: sha256(bytes), bytes }]))
  const folders = foldersOf(files)
  const clean = (path: string) => pathSegments(path).join('/')
  return {
    bytes: [...files.values()].reduce((all, { bytes }) => all + bytes.byteLength, 0),
    count: files.size,
    id: async (path) => folders.get(clean(path))?.id ?? files.get(clean(path))?.oid ?? null,
    list: async (path) => folders.get(clean(path))?.entries ?? null,
    file: async (path) => files.get(clean(path)) ?? null,
    async files(path, wanted) {
      const found = new Map<string, SourceFile>()
      const collect = (folder: string): void => {
        for (const { name, kind } of folders.get(folder)?.entries ?? []) {
          const at = below(folder, name)
          const file = files.get(at)
          if (kind === 'folder' && wanted(`${at}/`)) collect(at)
          else if (file !== undefined && wanted(at)) found.set(at, file)
        }
      }
      collect(clean(path))
      return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)))
    },
  }
}

const below = (folder: string, name: string): string => (folder === '' ? name : `${folder}/${name}`)
const byName = (a: SourceEntry, b: SourceEntry): number => (a.name < b.name ? -1 : 1)

/** From the deepest up, so that each folder's id is made of those in it. */
function foldersOf(files: ReadonlyMap<string, SourceFile>): ReadonlyMap<string, Folder> {
  const entries = new Map<string, SourceEntry[]>([['', []]])
  const folderAt = (path: string): SourceEntry[] => {
    const held = entries.get(path)
    if (held !== undefined) return held
    const made: SourceEntry[] = []
    entries.set(path, made)
    folderAt(parentOf(path))
    return made
  }
  for (const [path, { oid }] of files) folderAt(parentOf(path)).push({ name: nameOf(path), kind: 'file', id: oid })
  const deepestFirst = [...entries.keys()].filter((path) => path !== '').sort((a, b) => depthOf(b) - depthOf(a))
  const folders = new Map<string, Folder>()
  for (const path of [...deepestFirst, '']) {
    const sorted = folderAt(path).sort(byName)
    const id = sha256(sorted.map((entry) => `${entry.kind} ${entry.id} ${entry.name}\n`).join(''))
    folders.set(path, { entries: sorted, id })
    if (path !== '') folderAt(parentOf(path)).push({ name: nameOf(path), kind: 'folder', id })
  }
  return folders
}

const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
const depthOf = (path: string): number => path.split('/').length

/** Files below one folder, by their paths from there. */
export function filesBelow(files: ArchiveFiles, folder: string): ArchiveFiles {
  return new Map(
    [...files].flatMap(([path, bytes]) => (path.startsWith(`${folder}/`) ? [[path.slice(folder.length + 1), bytes] as const] : [])),
  )
}

/** `helm package` puts a chart into one folder of its name. Null means that it is not that. */
export function chartFiles(files: ArchiveFiles): ArchiveFiles | null {
  const tops = new Set([...files.keys()].map((path) => path.split('/')[0] ?? ''))
  const [top = ''] = tops
  return tops.size === 1 && files.has(`${top}/Chart.yaml`) ? filesBelow(files, top) : null
}
