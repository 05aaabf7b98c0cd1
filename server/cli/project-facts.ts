// Lines of `describe project`: its rules, and stored resources that they do not allow.
import { listText } from '../../shared/model/bounds.ts'
import { selectorText } from '../../shared/model/labels.ts'
import type { ProjectView, ViolationView } from '../../shared/model/views.ts'
import { ageText, labelsText } from './columns.ts'
import type { Fact } from './service-facts.ts'

function accountsText(rule: ProjectView['spec']['serviceAccounts']): string {
  if (rule === undefined || rule === 'agent') return 'of the service; default: the agent itself'
  if (rule === 'required') return 'required: each service names one in a namespace of the project'
  const byDefault = rule.default === undefined ? 'no default' : `default ${rule.default}`
  return `${byDefault}; allowed: ${listText(rule.allowed ?? [])}`
}

function kindsText({ kinds }: ProjectView['spec']): string {
  const allowed = kinds?.allow === undefined ? 'any' : listText(kinds.allow)
  return kinds?.deny === undefined ? allowed : `${allowed}; denied: ${listText(kinds.deny)}`
}

export const projectFacts = ({ metadata, spec, status }: ProjectView, nowMs: number): Fact[] => [
  ['Project', metadata.name],
  ['Labels', labelsText(metadata.labels)],
  ['Sources', listText(spec.sources)],
  ...(spec.destinations.length === 0 ? [['Destination', 'none'] as Fact] : []),
  ...spec.destinations.map(
    ({ clusters, namespaces }): Fact => ['Destination', `${selectorText(clusters) || 'every cluster'}: ${listText(namespaces)}`],
  ),
  ['Kinds', kindsText(spec)],
  ['Kinds outside namespaces', listText(spec.clusterScopedKinds)],
  ['ServiceAccounts', accountsText(spec.serviceAccounts)],
  ['Renderers', spec.renderers === undefined ? 'any' : listText(spec.renderers)],
  ...Object.entries(spec.quotas ?? {}).map(([name, most]): Fact => [`Quota ${name}`, most]),
  ['Services', status.services],
  ...(status.violations ?? []).map((violation): Fact => ['Not allowed', violationText(violation)]),
  ...(status.warnings ?? []).map((warning): Fact => ['Warning', warning]),
  ['Age', ageText(metadata.createdMs, nowMs)],
]

/** `service/web: spec.namespace: refused by …`. */
export const violationText = ({ resource, path, message }: ViolationView): string => `${resource}: ${path}: ${message}`
