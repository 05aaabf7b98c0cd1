// What describe says of a Config: its variables, the marks of its secrets, and who reads it.
import type { ConfigView } from '../../shared/model/views.ts'
import { labelsText } from './columns.ts'
import type { Fact } from './service-facts.ts'

const VALUE_LENGTH_MAX = 200

function valueText(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length <= VALUE_LENGTH_MAX ? text : `${text.slice(0, VALUE_LENGTH_MAX)}… (${text.length} characters; -o yaml shows all)`
}

export const configFacts = ({ metadata, spec, status }: ConfigView): Fact[] => [
  ['Config', metadata.name],
  ['Project', metadata.project],
  ['Labels', labelsText(metadata.labels)],
  ...Object.entries(spec.data).map(([name, value]): Fact => [`  ${name}`, valueText(value)]),
  ...Object.entries(spec.secrets).map(([name, mark]): Fact => [`  ${name} (secret)`, mark]),
  ['Used by', status.usedBy === null || status.usedBy.length === 0 ? 'nobody' : status.usedBy.join(', ')],
]
