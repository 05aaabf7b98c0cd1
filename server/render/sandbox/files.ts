// Which files a sandbox gets, and which of them are worth writing once for many runs: a chart of 200 files is rendered
// for many clusters, and only its values differ.
import { createHash } from 'node:crypto'
import { AppError } from '../../../shared/runtime/error.ts'

/** Several sources of one service together. */
export const SANDBOX_FILES_MAX = 20_000
export const SANDBOX_FILE_BYTES_MAX = 256 * 1024 * 1024
const PATH_BYTES_MAX = 1_024
const NAME_BYTES_MAX = 255
/** A folder with fewer is written each time: that is faster than to look whether it is there. */
const SHARED_FILES_MIN = 8

type Files = ReadonlyMap<string, Uint8Array>

/** A folder of the tree's root with all that is in it; `id` names every path and byte. */
export interface SharedFolder {
  name: string
  id: string
  /** By path from that folder. */
  files: Files
  bytes: number
}

export interface FilePlan {
  /** The files of this run alone. */
  own: Files
  shared: readonly SharedFolder[]
}

/** Throws `source_refused` for a path that leads out, is said twice, or is more than is taken. */
export function planFiles(files: Files): FilePlan {
  checkPaths(files)
  const folders = new Map<string, Map<string, Uint8Array>>()
  for (const [path, bytes] of files) {
    const slash = path.indexOf('/')
    if (slash < 0) continue
    const name = path.slice(0, slash)
    const folder = folders.get(name) ?? new Map<string, Uint8Array>()
    folders.set(name, folder.set(path.slice(slash + 1), bytes))
  }
  const shared: SharedFolder[] = []
  for (const [name, inside] of folders) {
    if (inside.size < SHARED_FILES_MIN) continue
    const sizes = [...inside.values()].map(({ byteLength }) => byteLength)
    shared.push({ name, id: folderId(inside), files: inside, bytes: sizes.reduce((sum, size) => sum + size, 0) })
  }
  const isShared = new Set(shared.map(({ name }) => name))
  const own = new Map([...files].filter(([path]) => !isShared.has(path.slice(0, Math.max(0, path.indexOf('/'))))))
  return { own, shared }
}

function checkPaths(files: Files): void {
  if (files.size > SANDBOX_FILES_MAX) throw refused(`${files.size} files, more than the limit of ${SANDBOX_FILES_MAX} for a render`)
  let total = 0
  const folders = new Set<string>()
  for (const [path, { byteLength }] of files) {
    const wrong = wrongPath(path)
    if (wrong !== null) throw refused(`${JSON.stringify(path.slice(0, 200))}: ${wrong}`)
    total += byteLength
    for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1)) folders.add(path.slice(0, slash))
  }
  if (total > SANDBOX_FILE_BYTES_MAX)
    throw refused(`the files have ${total} bytes, more than the limit of ${SANDBOX_FILE_BYTES_MAX} for a render`)
  for (const folder of folders) if (files.has(folder)) throw refused(`${JSON.stringify(folder)} is a file and a folder`)
}

/** Null unless it is a plain path inside the tree. Each file has one spelling, so that no file is there twice. */
export function wrongPath(path: string): string | null {
  if (path === '') return 'an empty path'
  if (path.includes('\0')) return 'a path with a NUL byte'
  if (path.startsWith('/')) return 'an absolute path; paths are relative to the tree'
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) return `a path of more than ${PATH_BYTES_MAX} bytes`
  for (const name of path.split('/')) {
    if (name === '..') return 'a path that leads outside'
    if (name === '' || name === '.') return 'a path with an empty or a `.` part'
    if (Buffer.byteLength(name) > NAME_BYTES_MAX) return `a name of more than ${NAME_BYTES_MAX} bytes`
  }
  return null
}

const refused = (detail: string): AppError => new AppError('source_refused', { doing: 'prepare the files of a render', detail })

/** The same bytes come again and again as the same object: the source's cache hands them out. */
const digests = new WeakMap<Uint8Array, string>()
function digestOf(bytes: Uint8Array): string {
  const known = digests.get(bytes)
  if (known !== undefined) return known
  const digest = createHash('sha256').update(bytes).digest('hex')
  digests.set(bytes, digest)
  return digest
}

function folderId(files: Files): string {
  const hash = createHash('sha256')
  for (const path of [...files.keys()].sort()) hash.update(`${path}\0${digestOf(files.get(path) ?? new Uint8Array())}\n`)
  return hash.digest('hex')
}
