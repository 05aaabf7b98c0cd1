// A folder of this machine as a source, for rendering by hand: refuses what a commit would be refused for, so that what
// renders here renders on the server. Links are followed inside the folder only; `.git` is no part of it.
import { createHash } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { lstat, open, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../../shared/runtime/error.ts'
import {
  isFile,
  pathSegments,
  SOURCE_FILE_BYTES_MAX,
  SOURCE_FILES_MAX,
  SOURCE_PATH_LENGTH_MAX,
  SOURCE_TREE_BYTES_MAX,
  type SourceEntry,
  type SourceFile,
  type SourceTree,
} from './source.ts'

const LINK_HOPS_MAX = 40
const FOLDERS_MAX = 50_000
const LFS_POINTER = 'version https://git-lfs.github.com/spec/v1'

interface Place {
  kind: 'file' | 'folder'
  /** Where it is, without links. */
  real: string
  bytes: number
}

const refused = (detail: string) => new AppError('source_refused', { detail })
const joined = (folder: string, name: string): string => (folder === '' ? name : `${folder}/${name}`)
const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex')

/** `root` has to be a folder. */
export function createFolderTree(root: string): SourceTree {
  const look = async (path: string): Promise<Stats | null> =>
    lstat(join(root, path)).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return null
      throw error
    })

  async function find(path: string): Promise<Place | null> {
    const open = pathSegments(path)
    if (open.includes('..')) throw refused(`${path} leads outside the folder`)
    let real = ''
    let hops = 0
    for (let name = open.shift(); name !== undefined; name = open.shift()) {
      if (name === '..') {
        if (real === '') throw refused(leadsOut(path))
        real = real.slice(0, Math.max(0, real.lastIndexOf('/')))
        continue
      }
      if (real === '' && name === '.git') return null
      const at = joined(real, name)
      const found = await look(at)
      if (found === null) return null
      if (found.isSymbolicLink()) {
        if (++hops > LINK_HOPS_MAX) throw refused(`${path} is a circular link, or leads over more than ${LINK_HOPS_MAX} others`)
        const target = await readlink(join(root, at))
        if (target.startsWith('/')) throw refused(leadsOut(path))
        open.unshift(...pathSegments(target))
      } else if (found.isDirectory()) real = at
      else if (!found.isFile()) throw refused(`${path} is neither a file nor a folder`)
      else if (open.length > 0) return null
      else return { kind: 'file', real: at, bytes: found.size }
    }
    return { kind: 'folder', real, bytes: 0 }
  }

  async function read(path: string, { real }: Place): Promise<SourceFile> {
    // A file that became a link since the check is not followed.
    const file = await open(join(root, real), constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      const { size } = await file.stat()
      if (size > SOURCE_FILE_BYTES_MAX) throw refused(`${path} is larger than ${SOURCE_FILE_BYTES_MAX / 1024 / 1024} MiB`)
      const bytes = new Uint8Array(await file.readFile())
      if (Buffer.from(bytes.subarray(0, LFS_POINTER.length)).toString() === LFS_POINTER)
        throw refused(`${path} is a Git LFS pointer without its file; run \`git lfs pull\``)
      return { oid: sha256(bytes), bytes }
    } finally {
      await file.close()
    }
  }

  async function entries(real: string): Promise<SourceEntry[]> {
    const names = (await readdir(join(root, real))).filter((name) => real !== '' || name !== '.git').sort()
    const found: SourceEntry[] = []
    for (const name of names) {
      const path = joined(real, name)
      const stats = await look(path)
      if (stats === null) continue
      const kind = stats.isSymbolicLink() ? 'link' : stats.isDirectory() ? 'folder' : 'file'
      found.push({ name, kind, id: `${kind} ${stats.size} ${stats.mtimeMs} ${stats.ino}` })
    }
    return found
  }

  async function walk(path: string, wanted: (path: string) => boolean): Promise<Map<string, Place>> {
    const found = new Map<string, Place>()
    let folders = 0
    const visit = async (folder: string, place: Place, above: readonly string[]): Promise<void> => {
      if (above.includes(place.real)) throw refused(`${folder} is a circular link, to ${place.real || 'the root'}`)
      if (++folders > FOLDERS_MAX) throw refused(`more than ${FOLDERS_MAX} folders under ${path}`)
      for (const { name, kind } of await entries(place.real)) {
        const at = joined(folder, name)
        if (at.length > SOURCE_PATH_LENGTH_MAX) throw refused(`a path under ${folder} is longer than ${SOURCE_PATH_LENGTH_MAX} characters`)
        if (kind !== 'link' && !wanted(kind === 'folder' ? `${at}/` : at)) continue
        if (kind === 'link' && !wanted(at) && !wanted(`${at}/`)) continue
        const below = await find(joined(place.real, name))
        if (below === null) throw refused(`${at} is a broken link`)
        if (below.kind === 'folder') await visit(at, below, [...above, place.real])
        else if (wanted(at) && found.set(at, below).size > SOURCE_FILES_MAX)
          throw refused(`more than ${SOURCE_FILES_MAX} manifest files under ${path}`)
      }
    }
    const clean = pathSegments(path).join('/')
    const place = await find(clean)
    if (place?.kind === 'file') throw isFile(path)
    if (place !== null) await visit(clean, place, [])
    return found
  }

  async function files(path: string, wanted: (path: string) => boolean): Promise<Map<string, SourceFile>> {
    const places = await walk(path, wanted)
    const bytes = [...places.values()].reduce((all, place) => all + place.bytes, 0)
    if (bytes > SOURCE_TREE_BYTES_MAX) throw refused(`the files under ${path} are larger than ${SOURCE_TREE_BYTES_MAX / 1024 / 1024} MiB`)
    const found: [string, SourceFile][] = []
    for (const [at, place] of places) found.push([at, await read(at, place)])
    return new Map(found.sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  return {
    async id(path) {
      const place = await find(path)
      if (place === null) return null
      if (place.kind === 'file') return (await read(path, place)).oid
      return sha256([...(await files(path, () => true))].map(([at, { oid }]) => `${oid} ${at}\n`).join(''))
    },
    async list(path) {
      const place = await find(path)
      return place?.kind === 'folder' ? entries(place.real) : null
    },
    async file(path) {
      const place = await find(path)
      return place?.kind === 'file' ? read(path, place) : null
    },
    files,
  }
}

const leadsOut = (path: string): string =>
  `${path} is a link that leads outside the folder: only files of the folder are read; replace the link by a copy`
