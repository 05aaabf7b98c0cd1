// Tests the images of a workload by a part of their reference (`web:1.4`), or by name and version: `web<1.4`, `<=`,
// `>`, `>=`. No reference has these signs. Pure.

export type ImageTest = (images: string) => boolean

const COMPARED = /^(?<name>[^<>=]*)(?<sign><=|>=|<|>)(?<version>[^<>=]*)$/
const SIGNS: Readonly<Record<string, (order: number) => boolean>> = {
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
}
/** In the text of a JSON list, which may be cut. */
const REFERENCES = /"([^"\\]+)"/g

/** `images`: a list as JSON, or its first characters. Null if the filter compares with a text that is no version. */
export function imageTest(filter: string): ImageTest | null {
  if (!/[<>]/.test(filter)) return (images) => images.includes(filter)
  const { name = '', sign = '', version = '' } = COMPARED.exec(filter)?.groups ?? {}
  const [fits, wanted] = [SIGNS[sign], versionOf(version.trim())]
  if (fits === undefined || wanted === null) return null
  const asked = name.trim()
  return (images) => [...images.matchAll(REFERENCES)].some(([, reference = '']) => isNamed(reference, asked, wanted, fits))
}

function isNamed(reference: string, name: string, wanted: Version, fits: (order: number) => boolean): boolean {
  const [tagged = ''] = reference.split('@', 1)
  const colon = tagged.lastIndexOf(':')
  // A colon before a slash belongs to the port of the registry.
  if (colon < tagged.lastIndexOf('/') || colon < 0) return false
  const repository = tagged.slice(0, colon)
  if (name !== '' && repository !== name && !repository.endsWith(`/${name}`)) return false
  const version = versionOf(tagged.slice(colon + 1))
  return version !== null && fits(orderOf(version, wanted))
}

interface Version {
  numbers: readonly number[]
  /** `rc.1`; '': a release. */
  before: string
}

/** The suffix of a variant, as in `1.4-alpine`, is no part of the version. */
const VERSION = /^v?(\d{1,15}(?:\.\d{1,15}){0,3})(?:[-+_.](.*))?$/i
const BEFORE_RELEASE = /^(?:alpha|beta|rc|pre|preview|dev|snapshot|nightly)(?![a-z])/i

function versionOf(text: string): Version | null {
  const [, numbers, suffix = ''] = VERSION.exec(text) ?? []
  if (numbers === undefined) return null
  return { numbers: numbers.split('.').map(Number), before: BEFORE_RELEASE.test(suffix) ? suffix.toLowerCase() : '' }
}

function orderOf(a: Version, b: Version): number {
  for (let index = 0; index < Math.max(a.numbers.length, b.numbers.length); index++) {
    const order = (a.numbers[index] ?? 0) - (b.numbers[index] ?? 0)
    if (order !== 0) return order
  }
  if (a.before === b.before) return 0
  if (a.before === '') return 1
  if (b.before === '') return -1
  return a.before.localeCompare(b.before, 'en', { numeric: true })
}
