// `semverCompare` as charts use it: whether a version is in a range.
import { greatestVersion, isRange } from '../../sources/range.ts'
import { TemplateRefusal } from './limits.ts'

const RANGE_LENGTH_MAX = 200

/**
 * `>=1.29`, `>= 1.21-0, < 2`: suffixes of distributions behind a version of Kubernetes (`v1.29.3-eks-a5565ad`) are
 * ignored.
 */
export function semverCompare(version: unknown, range: unknown): boolean {
  if (typeof range !== 'string' || typeof version !== 'string')
    throw new TemplateRefusal('semverCompare expects a version and a range: cluster.facts.kubernetesVersion | semverCompare: ">=1.29"')
  // Charts write `-0` so that the versions of distributions are in; here they are.
  const wanted = range.replace(/(\d)-0(?![\w.])/g, '$1')
  if (range.length > RANGE_LENGTH_MAX || !isRange(wanted)) throw new TemplateRefusal('semverCompare expects a range such as ">=1.29, <2"')
  const plain = /^v?(\d{1,15}(?:\.\d{1,15}){0,2})(?:[-+].*)?$/.exec(version.trim())?.[1]
  if (plain === undefined) throw new TemplateRefusal('semverCompare expects a version such as 1.29.3; the value may be missing')
  return greatestVersion([plain.includes('.') ? plain : `${plain}.0`], wanted) !== null
}
