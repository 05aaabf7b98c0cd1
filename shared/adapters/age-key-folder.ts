// Age keys of a folder: `*.agekey` files in it serve every project, those in its folder NAME only project NAME. A file
// that is replaced (a mounted Secret) or added is found at the next reading; nothing is written.
import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describeError } from '../runtime/loop.ts'
import { type AgeKey, readAgeKeys } from './age.ts'

/** `project` null: for all projects. `from`: for messages. */
export interface PlacedAgeKey extends AgeKey {
  project: string | null
  from: string
}

export interface AgeKeyFolder {
  keys: PlacedAgeKey[]
  /** Files that cannot be used, each with the reason. */
  problems: string[]
  /** Equal for equal content. */
  digest: string
}

export const AGE_KEY_SUFFIX = '.agekey'
/** A key file of age-keygen has 200 bytes. */
export const AGE_KEY_FILE_BYTES_MAX = 64 * 1024
/** Files, and folders of projects, that are read. */
export const AGE_KEY_FILES_MAX = 256
const PROJECT = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

export async function readAgeKeyFolder(folder: string): Promise<AgeKeyFolder> {
  const digest = createHash('sha256')
  const found: AgeKeyFolder = { keys: [], problems: [], digest: '' }
  let files = 0
  const read = async (place: string, project: string | null): Promise<string[]> => {
    const entries = await readdir(place, { withFileTypes: true })
    for (const { name } of entries.filter((one) => one.name.endsWith(AGE_KEY_SUFFIX)).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(place, name)
      if (++files > AGE_KEY_FILES_MAX) {
        found.problems.push(`${path}: more than ${AGE_KEY_FILES_MAX} key files`)
        break
      }
      const text = await textOf(path).catch((error: unknown) => new Unusable(describeError(error)))
      digest.update(`${path}\n${text instanceof Unusable ? text.why : text}\n`)
      const keys = text instanceof Unusable ? text : ((await readAgeKeys(text)) ?? new Unusable(NO_KEYS))
      if (keys instanceof Unusable) found.problems.push(`${path}: ${keys.why}`)
      else found.keys.push(...keys.map((key) => ({ ...key, project, from: path })))
    }
    // A mounted Secret has links to folders whose names begin with dots.
    return entries.filter((one) => PROJECT.test(one.name) && (one.isDirectory() || one.isSymbolicLink())).map((one) => one.name)
  }
  try {
    for (const project of (await read(folder, null)).sort().slice(0, AGE_KEY_FILES_MAX)) {
      const place = join(folder, project)
      if ((await stat(place)).isDirectory()) await read(place, project)
    }
  } catch (error) {
    found.problems.push(describeError(error))
  }
  digest.update(found.problems.join('\n'))
  return { ...found, digest: digest.digest('hex') }
}

class Unusable {
  readonly why: string
  constructor(why: string) {
    this.why = why
  }
}

const NO_KEYS = 'expected a file of age-keygen, with lines that begin with AGE-SECRET-KEY-'

async function textOf(path: string): Promise<string | Unusable> {
  const { size } = await stat(path)
  return size > AGE_KEY_FILE_BYTES_MAX ? new Unusable(`is larger than ${AGE_KEY_FILE_BYTES_MAX} bytes`) : readFile(path, 'utf8')
}
