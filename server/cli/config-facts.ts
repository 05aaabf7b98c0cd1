// The variables in describe: those of a Config, with the marks of its secrets and its users, and those of a cluster
// with its overrides.
import type { ClusterOverride, ConfigData } from '../../shared/model/render.ts'
import type { ClusterView, ConfigView } from '../../shared/model/views.ts'
import { countText, labelsText } from './columns.ts'
import type { Fact } from './service-facts.ts'

const VALUE_LENGTH_MAX = 200
const NAMES_SHOWN = 50
const LISTED = 5

function valueText(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length <= VALUE_LENGTH_MAX ? text : `${text.slice(0, VALUE_LENGTH_MAX)}… (${text.length} characters; -o yaml shows all)`
}

const dataFacts = (data: ConfigData): Fact[] => {
  const entries = Object.entries(data)
  const more = entries.length - NAMES_SHOWN
  const shown = entries.slice(0, NAMES_SHOWN).map(([name, value]): Fact => [`  ${name}`, valueText(value)])
  return more > 0 ? [...shown, ['  …', `${more} more; -o yaml shows all`]] : shown
}

/** With titles of their own: variables of a cluster may be named as its other facts are. */
export function clusterConfigFacts({ config = {}, overrides = [] }: ClusterView['spec']): Fact[] {
  const names = Object.keys(config).length
  return [
    ['Config', names === 0 ? null : `${countText(names, 'variable')} of its own, which override those of all services`],
    ...dataFacts(config),
    ...overrides.slice(0, NAMES_SHOWN).map((override): Fact => ['Override', overrideText(override)]),
    ['Overrides', overrides.length > NAMES_SHOWN ? `${overrides.length} in total; -o yaml shows them` : null],
  ]
}

function overrideText({ service, project, config = {}, helm, patches = [] }: ClusterOverride): string {
  const variables = Object.entries(config).map(([name, value]) => `${name}=${valueText(value)}`)
  const values = Object.keys(helm?.values ?? {})
  const parts = [
    variables.length === 0 ? '' : `config ${listText(variables)}`,
    values.length === 0 ? '' : `helm values ${listText(values)}`,
    patches.length === 0 ? '' : patches.length === 1 ? '1 patch' : `${patches.length} patches`,
  ].filter((part) => part !== '')
  return `service ${project === undefined ? '' : `${project}/`}${service}: ${parts.join('; ') || 'nothing'}`
}

const listText = (texts: readonly string[]): string =>
  texts.length <= LISTED ? texts.join(', ') : `${texts.slice(0, LISTED).join(', ')} and ${texts.length - LISTED} more`

export const configFacts = ({ metadata, spec, status }: ConfigView): Fact[] => [
  ['Config', metadata.name],
  ['Project', metadata.project],
  ['Labels', labelsText(metadata.labels)],
  ...Object.entries(spec.data).map(([name, value]): Fact => [`  ${name}`, valueText(value)]),
  ...Object.entries(spec.secrets).map(([name, mark]): Fact => [`  ${name} (secret)`, mark]),
  ...(status.sources ?? []).map(sourceFact),
  ['Refresh', spec.valueFrom === undefined ? null : (spec.refresh ?? '5m')],
  ['Hosts', spec.hosts === undefined ? null : spec.hosts.length === 0 ? 'none' : spec.hosts.join(', ')],
  ['Used by', status.usedBy === null || status.usedBy.length === 0 ? 'nobody' : status.usedBy.join(', ')],
]

/** `  dbPassword (from vault …)  ready, version 3, hmac:…`. */
function sourceFact({ name, from, state, message, sinceMs, value }: NonNullable<ConfigView['status']['sources']>[number]): Fact {
  const since = sinceMs === null ? '' : ` since ${new Date(sinceMs).toISOString()}`
  const why = message === null ? '' : `: ${message}`
  const version = value === null || value.version === '' ? '' : ` version ${value.version}`
  const inUse = value === null ? '; no value yet' : `; value ${value.mark}${version} of ${new Date(value.atMs).toISOString()}`
  return [`  ${name} (${from})`, `${state}${since}${why}${inUse}`]
}

/** `infra/site-values: color=red, registry=…`, with what is wrong. */
export function siteFacts(site: ClusterView['status']['site']): Fact[] {
  const maps = Object.entries(site?.maps ?? {})
  if (maps.length === 0) return []
  const lines = maps.slice(0, NAMES_SHOWN).map(([id, { values, absent, refused, problem }]): Fact => {
    const given = Object.entries(values).map(([key, value]) => `${key}=${plainValue(value)}`)
    const without = absent.length === 0 ? [] : [`not there: ${absent.join(', ')}`]
    const wrong = Object.entries(refused).map(([key, why]) => `${key}: ${why}`)
    return [`  ${id}`, [...given, ...without, ...wrong, ...(problem === null ? [] : [problem])].join(', ')]
  })
  return [['Site values', `${countText(maps.length, 'ConfigMap')}, as the agent reports them`], ...lines]
}

const plainValue = (value: string): string => (/^[\w./:@%+-]{1,200}$/.test(value) ? value : valueText(value))
