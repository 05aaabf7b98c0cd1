// Decides whose error it is: an error in the Service resource is corrected there, without a commit. Pure.
import type { Problem } from '../../shared/runtime/error.ts'

/** As the pipeline writes places in a spec: `render.patches[0]`, `source.path`, `sources[1].render.helm`,
 *  `overrides[0].patches[2]`, `cluster overrides[0].helm`. */
const IN_SPEC = /^(cluster overrides|(?:render|source\.path$|sources\[\d+\]|overrides\[\d+\])(?:\.[A-Za-z.]+)?)(?=[[ ]|$)/
/** A name that stands in the spec, where the file's would be. */
const NAMED_IN_SPEC = /^no source has the name /
/** One of valuesFrom, and its key. */
const IN_CONFIG = /^Config [^,]+, /
const NO_VALUES_FILE = /^values file not found/
const NO_CHART = /^not a chart: Chart\.yaml is missing$/

/** The field to correct. Null means that it is about a file. */
function specFieldOf({ path, message }: Problem): string | null {
  const [, field] = IN_SPEC.exec(path) ?? []
  if (field !== undefined) return field.startsWith('cluster ') ? 'spec.overrides of the cluster' : `spec.${field}`
  if (IN_CONFIG.test(path)) return 'the Config, or the valuesFrom that names it,'
  if (NO_VALUES_FILE.test(message)) return 'the valuesFiles in spec (or push the file)'
  if (NAMED_IN_SPEC.test(message)) return 'the valuesFiles in spec'
  // A person who meant no chart corrects the spec; one who forgot the file learns which it is.
  return NO_CHART.test(message) && !path.includes('charts/') ? 'the type or the path in spec' : null
}

/** `2 errors in the manifests`, `1 error in the spec of the service`, or both. */
export function errorsText(problems: readonly Problem[]): string {
  const ofSpec = problems.filter((problem) => specFieldOf(problem) !== null).length
  const isAll = ofSpec === problems.length
  const where = ofSpec === 0 ? 'in the manifests' : isAll ? 'in the spec of the service' : 'in the spec of the service and in the manifests'
  return `${problems.length} ${problems.length === 1 ? 'error' : 'errors'} ${where}`
}

const FIELDS_NAMED_MAX = 3
/** The remedy for a failed render. Null if all problems are in files, for which the table's words are right. */
export function specRemedy(problems: readonly Problem[]): string | null {
  const found = problems.map(specFieldOf)
  const fields = [...new Set(found.filter((field) => field !== null))]
  if (fields.length === 0) return null
  const more = fields.length > FIELDS_NAMED_MAX ? [`${fields.length - FIELDS_NAMED_MAX} more`] : []
  const correct = `Correct ${[...fields.slice(0, FIELDS_NAMED_MAX), ...more].join(', ')} and \`skerry apply\` it`
  return found.includes(null) ? `${correct}; correct the manifests at the other places and push again.` : `${correct}.`
}
