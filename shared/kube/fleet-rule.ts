// Health by a HealthRule of the fleet: up to four tests in CEL, each with what it says. What an expression means is the
// adapter's; here is what its answers mean.
import { degraded, HEALTHY, type Health, progressing, suspended } from './health-object.ts'
import { type CelTest, membersOf, saidBy } from './health-rule.ts'
import { groupOf, type K8sObject, versionOf } from './object.ts'

/** In the order in which they are asked. A suspended object often looks unready, too, so that `suspended` comes before
 *  `progressing`. */
export const VERDICTS = ['degraded', 'suspended', 'progressing', 'healthy'] as const
export type Verdict = (typeof VERDICTS)[number]

/** The text that an expression makes; null when it makes none. */
export type CelText = (members: Record<string, unknown>) => string | null

export interface CompiledVerdict {
  when: CelTest
  /** Null if the rule has no message of its own. */
  message: CelText | null
}

export interface FleetRule {
  /** `project/name`; a rule for the whole fleet is its name alone. */
  id: string
  group: string
  kind: string
  /** Null is every version. */
  versions: readonly string[] | null
  verdicts: Partial<Readonly<Record<Verdict, CompiledVerdict>>>
}

const MESSAGE_CHARS_MAX = 500

export const concerns = ({ group, kind, versions }: FleetRule, object: K8sObject): boolean =>
  kind === object.kind && group === groupOf(object.apiVersion) && (versions === null || versions.includes(versionOf(object.apiVersion)))

/** HR1: the first verdict whose test is true, in the order of VERDICTS. Null means that the next rule decides. */
export function healthByFleetRule({ id, verdicts }: FleetRule, object: K8sObject): Health | null {
  const members = membersOf(object)
  for (const verdict of VERDICTS) {
    const compiled = verdicts[verdict]
    if (compiled === undefined) continue
    const answer = compiled.when(members)
    if (answer.kind === 'error') {
      const why = `HealthRule ${id} cannot be evaluated (${verdict}.when: ${answer.why}); correct the rule if this persists`
      return progressing('HealthRuleError', why)
    }
    if (!answer.value) continue
    const said = compiled.message?.(members)?.replaceAll('\n', ' ').trim().slice(0, MESSAGE_CHARS_MAX) ?? ''
    return healthOfVerdict(verdict, said, `${verdict}.when of HealthRule ${id} is true${saidBy(object)}`)
  }
  if (verdicts.healthy === undefined) return null
  return progressing('HealthRuleNotMet', `healthy.when of HealthRule ${id} is not true yet${saidBy(object)}`)
}

function healthOfVerdict(verdict: Verdict, said: string, otherwise: string): Health {
  switch (verdict) {
    case 'degraded':
      return degraded('HealthRuleDegraded', said || otherwise)
    case 'suspended':
      return suspended(said || otherwise)
    case 'progressing':
      return progressing('HealthRuleProgressing', said || otherwise)
    case 'healthy':
      return said === '' ? HEALTHY : { ...HEALTHY, message: said }
  }
}
