// The facts about a HealthRule for `describe`, and whether the server has accepted it.

import { VERDICTS } from '../../shared/kube/fleet-rule.ts'
import type { HealthRuleSpec } from '../../shared/model/health-rules.ts'
import type { HealthRuleView } from '../../shared/model/views.ts'
import { path } from './client.ts'
import { ageText, labelsText } from './columns.ts'
import type { Fact } from './service-facts.ts'

/** Without a project it is the rule of the whole fleet that has this name. */
export const healthRulePath = (name: string, project: string | undefined): string =>
  project === undefined ? path`/health-rules/${name}` : path`/projects/${project}/health-rules/${name}`

/** `Thing of example.com (v1, v1beta1)`. */
export function judgedText({ group, kind, versions }: HealthRuleSpec): string {
  const of = group === '' ? kind : `${kind} of ${group}`
  return versions === undefined ? of : `${of} (${versions.join(', ')})`
}

const WORDS = { degraded: 'Degraded', suspended: 'Suspended', progressing: 'Progressing', healthy: 'Healthy' } as const

export const healthRuleFacts = ({ metadata, spec, status }: HealthRuleView, nowMs: number): Fact[] => [
  ['Health rule', metadata.name],
  ['Project', metadata.project ?? 'none: for all services of the fleet'],
  ['Labels', labelsText(metadata.labels)],
  ['Judges', judgedText(spec)],
  ...VERDICTS.flatMap((verdict): Fact[] => {
    const written = spec[verdict]
    if (written === undefined) return []
    return [
      [`${WORDS[verdict]} when`, written.when],
      ['  message', written.message ?? written.messageExpression ?? null],
    ]
  }),
  ['Otherwise', spec.healthy === undefined ? 'the next rule decides' : 'Progressing'],
  ['Clusters', status.clusters],
  ['Age', ageText(metadata.createdMs, nowMs)],
]
