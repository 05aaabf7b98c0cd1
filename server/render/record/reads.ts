// The reads of a render: collected while it runs, and put into one form, so that two renders that read the same places
// name them by the same text.
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import { type Dependency, type FileRead, type InputRead, KIND_ONLY, type Reads } from '../inputs.ts'

export interface Recorder {
  file(read: FileRead): void
  input(path: InputRead): void
  /** A secret was among the reads. */
  secret(): void
  hasSecret(): boolean
  /** A program ran out of time: on a machine that is less busy it may not. */
  late(): void
  wasLate(): boolean
  /** So far. */
  reads(): Reads
}

/** Characters of one path, with one more for each name. A longer one does not fit into a message of a worker. */
export const INPUT_PATH_LENGTH_MAX = 2_000

/** The same place, or one that contains it: a template can make a name of any length. */
export function boundedRead(path: InputRead): InputRead {
  let length = 0
  for (const [index, name] of path.entries()) {
    length += name.length + 1
    if (length > INPUT_PATH_LENGTH_MAX) return path.slice(0, index)
  }
  return path
}

/** Collects the looks of one render, each place once. */
export function createRecorder(): Recorder {
  const files = new Map<string, FileRead>()
  const inputs = newPlace()
  const dependencies: Dependency[] = []
  let secret = false
  let outOfTime = false
  return {
    file(read) {
      const key = fileKey(read)
      if (!files.has(key)) dependencies.push({ source: read.source, path: read.path })
      files.set(key, read)
    },
    input(path) {
      if (enter(inputs, path)) dependencies.push(path)
    },
    secret() {
      secret = true
    },
    hasSecret: () => secret,
    late() {
      outOfTime = true
    },
    wasLate: () => outOfTime,
    reads: () => ({ dependencies: [...dependencies], files: [...files.values()].sort(byFile), inputs: leastOf(inputs), secret }),
  }
}

const fileKey = ({ source, path }: FileRead): string => `${source}\0${path}`
const byFile = (a: FileRead, b: FileRead): number => a.source - b.source || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)

interface Place {
  /** All of it was read. */
  whole: boolean
  kind: boolean
  below: Map<string, Place>
}
const newPlace = (): Place => ({ whole: false, kind: false, below: new Map() })

/**
 * Sorted, without implied ones: reading all of a place includes its members, and reading within a place includes its
 * kind.
 */
export function leastReads(paths: readonly InputRead[]): InputRead[] {
  const root = newPlace()
  for (const path of paths) enter(root, path)
  return leastOf(root)
}

function leastOf(root: Place): InputRead[] {
  const found: InputRead[] = []
  leave(root, [], found)
  return found
}

/** False: what was entered before tells it already. */
function enter(root: Place, path: InputRead): boolean {
  let place = root
  for (const [index, name] of path.entries()) {
    if (place.whole) return false
    if (name === KIND_ONLY && index === path.length - 1) {
      const isNews = !place.kind && place.below.size === 0
      place.kind = true
      return isNews
    }
    const next = place.below.get(name) ?? newPlace()
    place.below.set(name, next)
    place = next
  }
  const isNews = !place.whole
  place.whole = true
  return isNews
}

function leave({ whole, kind, below }: Place, path: InputRead, found: InputRead[]): void {
  if (whole) found.push(path)
  else if (below.size > 0) for (const name of [...below.keys()].sort()) leave(below.get(name) ?? newPlace(), [...path, name], found)
  else if (kind) found.push([...path, KIND_ONLY])
}

/**
 * The value at a place, as text: equal texts, equal answers. Where the path ends early, the text gives the place and
 * the type of value there.
 */
export function valueAt(root: unknown, path: InputRead): string {
  let value = root
  for (const [depth, name] of path.entries()) {
    if (name === KIND_ONLY && depth === path.length - 1) return `:${kindOf(value)}`
    if (!isMap(value)) return `${depth}:${value === undefined ? 'absent' : textOf(value)}`
    if (!Object.hasOwn(value, name) || value[name] === undefined) return `${depth}:absent`
    value = value[name]
  }
  return value === undefined ? `${path.length}:absent` : `=${textOf(value)}`
}

const kindOf = (value: unknown): string =>
  value === undefined ? 'absent' : value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value === 'object' ? 'object' : 'scalar'

const isMap = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The text is made once for objects that many clusters share (the API that they serve). */
const texts = new WeakMap<object, string>()
function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return canonicalJson(value)
  const known = texts.get(value)
  if (known !== undefined) return known
  const text = canonicalJson(value)
  texts.set(value, text)
  return text
}
