// The importer of semver: which of the versions there are is the newest in a range. For charts, tags of Git and tags of
// registries alike, and as helm means it.
import semver, { type SemVer } from 'semver'

/** Shorter ones are distinguished from tags that are plain numbers: `1.2` is a version, `20240101` is 20240101.0.0. */
const VERSION = /^v?(\d{1,15})(?:\.(\d{1,15}))?(?:\.(\d{1,15}))?(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/

interface Version {
  text: string
  parsed: SemVer
}

const parseVersion = (text: string): Version | null => {
  const match = text.length > 256 ? null : VERSION.exec(text)
  if (match === null) return null
  const [, major = '0', minor = '0', patch = '0', pre = '', build = ''] = match
  const parsed = semver.parse(`${major}.${minor}.${patch}${pre}${build}`)
  return parsed === null ? null : { text, parsed }
}

/**
 * Orders versions, newest first. Of versions that are equal but for a leading v or build metadata, the lesser text
 * comes first, which is the one without a v: the order of arrival changes nothing.
 */
const newestFirst = (a: Version, b: Version): number =>
  semver.rcompare(a.parsed, b.parsed) || semver.compareBuild(b.parsed, a.parsed) || (a.text < b.text ? -1 : a.text > b.text ? 1 : 0)

const versionsOf = (texts: Iterable<string>): Version[] =>
  [...texts].flatMap((text) => {
    const version = parseVersion(text)
    return version === null ? [] : [version]
  })

/**
 * Null if it is not a range. Commas mean a space, as in helm. A pre-release is in a range only if one of the
 * comparators beside it names a pre-release.
 */
function parseRange(text: string): ((version: SemVer) => boolean) | null {
  const alternatives = text.split('||').map((part) => {
    const spaced = part.replaceAll(',', ' ').replaceAll('=>', '>=').replaceAll('=<', '<=').trim()
    const excluded = [...spaced.matchAll(/!=\s*(\S+)/g)].map(([, version = '']) => version)
    const rest = spaced.replace(/!=\s*\S+/g, ' ').trim()
    const includePrerelease = /\d-(?=[0-9A-Za-z])/.test(spaced.replace(/\s-\s/g, ' '))
    try {
      const range = new semver.Range(rest === '' ? '*' : rest, { includePrerelease })
      const without = excluded.map((version) => new semver.Range(version, { includePrerelease: true }))
      return (version: SemVer) => range.test(version) && !without.some((one) => one.test(version))
    } catch {
      return null // TypeError is all that it throws, for text that it does not understand
    }
  })
  const tests = alternatives.flatMap((test) => (test === null ? [] : [test]))
  return tests.length < alternatives.length ? null : (version) => tests.some((test) => test(version))
}

/** SO42: whether a text is a range of versions. */
export const isRange = (text: string): boolean => parseRange(text) !== null

/** The newest version in the range. Absent means that the newest that is no pre-release. A range that is one of the
 *  versions letter for letter is that one. Null means that there is none. */
export function greatestVersion(texts: Iterable<string>, range: string | undefined): string | null {
  const all = [...texts]
  if (range !== undefined && all.includes(range)) return range
  const test = range === undefined ? (version: SemVer) => version.prerelease.length === 0 : parseRange(range)
  if (test === null) return null
  return (
    versionsOf(all)
      .filter(({ parsed }) => test(parsed))
      .sort(newestFirst)[0]?.text ?? null
  )
}

const NEWEST_SHOWN = 5

/** For messages. */
export const newestVersions = (texts: Iterable<string>, count: number): string[] =>
  versionsOf(texts)
    .sort(newestFirst)
    .slice(0, count)
    .map(({ text }) => text)

/** For a message: what is asked for, and the newest that there are instead. */
export function noVersion(what: string, versions: readonly string[], range: string | undefined): string {
  const newest = newestVersions(versions, NEWEST_SHOWN)
  const there = newest.length === 0 ? 'it has no versions' : `the newest there are: ${newest.join(', ')}`
  if (range === undefined) return `${what} has only pre-releases; ${there}`
  return `${what}: ${isRange(range) ? `no version in the range ${range}` : `${range} is neither a version range nor an existing version`}; ${there}`
}
