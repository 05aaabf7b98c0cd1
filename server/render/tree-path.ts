// Paths as files of a source write them: relative to the file's folder, `..` is a step up.
import { pathSegments } from '../sources/source.ts'

/** From the tree's root. Null means that it leads out of the tree, or is absolute. */
export function treePath(folder: string, path: string): string | null {
  if (path.startsWith('/')) return null
  const segments = pathSegments(folder)
  for (const segment of pathSegments(path)) {
    if (segment !== '..') segments.push(segment)
    else if (segments.pop() === undefined) return null
  }
  return segments.join('/')
}
