// Which ref of the other side is meant: names are tried in Git's order for clones, a semver range picks the greatest
// tag. Text in, answers out.

import { greatestVersion } from '../range.ts'
import type { RemoteRef } from './objects.ts'

export const COMMIT_ID = /^[0-9a-f]{40}$/
const TAGS = 'refs/tags/'

/** A branch wins over a tag of the same name, as it does in `git clone --branch`. */
export const refNames = (ref: string): string[] =>
  ref.startsWith('refs/') || ref === 'HEAD' ? [ref] : [`refs/heads/${ref}`, `${TAGS}${ref}`]

/**
 * Refuses names that are not allowed for a ref (git check-ref-format), and a dash at the beginning, which a program
 * takes for an option.
 */
export const isRefName = (ref: string): boolean =>
  !/^[-/.]|[\p{Cc} ~^:?*[\\]|\.\.|\/\/|\/\.|@\{|[/.]$|\.lock(\/|$)/u.test(ref) && ref !== '@'

export const firstNamed = (refs: readonly RemoteRef[], names: readonly string[]): RemoteRef | null => {
  for (const name of names) {
    const found = refs.find((candidate) => candidate.name === name)
    if (found !== undefined) return found
  }
  return null
}

/** `v1.2.3` and `1.2.3` are versions; of two tags of one version the one without the v. */
export function greatestTag(refs: readonly RemoteRef[], range: string): RemoteRef | null {
  const tags = new Map(refs.filter(({ name }) => name.startsWith(TAGS)).map((ref) => [ref.name.slice(TAGS.length), ref]))
  const greatest = greatestVersion([...tags.keys()], range)
  return greatest === null ? null : (tags.get(greatest) ?? null)
}
