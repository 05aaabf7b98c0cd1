// `semverCompare` as charts use it: whether a version is in a range.
import { TemplateRefusal } from './liquid-limits.ts'

/** `>=1.29`, `>= 1.21-0, < 2`: what distributions write behind a version of Kubernetes (`v1.29.3-eks-a5565ad`) is not looked at. */
export function semverCompare(version: unknown, range: unknown): boolean {
  if (typeof range !== 'string' || typeof version !== 'string')
    throw new TemplateRefusal('semverCompare takes a version and a range: cluster.facts.kubernetesVersion | semverCompare: ">=1.29"')
  const plain = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:[-+].*)?$/.exec(version.trim())
  if (plain === null) throw new TemplateRefusal('semverCompare takes a version such as 1.29.3; is it known already?')
  const wanted = range.replaceAll(',', ' ').replace(/(\d)-0\b/g, '$1')
  return Bun.semver.satisfies(`${plain[1]}.${plain[2] ?? 0}.${plain[3] ?? 0}`, wanted)
}
