// The facts about a service's options for `describe`: options that differ from the default, rules, and the services
// that it waits for.

import type { DependenciesView, DependencyView } from '../../shared/model/dependency-views.ts'
import { type IgnoreRule, type ServiceSpec, syncOptionsSchema } from '../../shared/model/resources.ts'
import { countText, labelsText } from './columns.ts'

/** Empty values are left out. */
export type Fact = [name: string, value: string | number | null | undefined]

/** Defaults of options that are absent by default. */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  mode: 'auto',
  waitForHealth: true,
  driftAdditions: 'ignore',
  deleteNamespace: false,
  enforceNamespace: false,
  waitForAddress: false,
}

/** `maxPrunePercent=20 mode=manual`, in the order of their names. Null means that all are as by default. */
export function syncOptionsText(sync: ServiceSpec['sync']): string | null {
  const defaults: Record<string, unknown> = syncOptionsSchema.parse({})
  const changed = Object.entries(sync).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(defaults[name] ?? DEFAULTS[name]))
  if (changed.length === 0) return null
  return changed
    .map(([name, value]) => `${name}=${optionText(value)}`)
    .sort()
    .join(' ')
}

/** Labels and annotations as `a=b,c=d`. */
function optionText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  const members = Object.entries(value)
  return members.every(([, member]) => typeof member === 'string') ? labelsText(Object.fromEntries(members)) : JSON.stringify(value)
}

const ruleText = ({ group, kind, namespace, name, jsonPointers = [], managers = [] }: IgnoreRule): string => {
  const what = [namespace, name].filter((part) => part !== undefined).join('/')
  return `${kind}${group ? `.${group}` : ''}${what === '' ? '' : ` ${what}`}: ${[...jsonPointers, ...managers.map((manager) => `all of ${manager}`)].join(', ')}`
}

function dependencyText({ project, service, exists, ready, unready, absent }: DependencyView): string {
  const name = `${project}/${service}`
  if (!exists) return `${name}: does not exist yet; this service waits for it`
  const total = ready + unready.count + absent.count
  const some = ({ count, names }: DependencyView['absent']) => `${names.slice(0, 5).join(', ')}${count > 5 ? ` and ${count - 5} more` : ''}`
  return [
    `${name}: ready in ${ready} of ${countText(total, 'cluster')}`,
    ...(unready.count === 0 ? [] : [`not yet in ${some(unready)}`]),
    ...(absent.count === 0 ? [] : [`not placed in ${some(absent)}`]),
  ].join('; ')
}

export const namesOf = (services: DependenciesView['neededBy']): string =>
  services.map(({ project, service }) => `${project}/${service}`).join(', ')

export const optionFacts = (spec: ServiceSpec, { dependsOn, neededBy }: DependenciesView): Fact[] => [
  ['Sync', syncOptionsText(spec.sync)],
  ...(spec.ignore ?? []).map((rule): Fact => ['Ignores', ruleText(rule)]),
  [
    'Health rules',
    spec.health === undefined
      ? null
      : `${spec.health.length}: ${spec.health.map(({ apiVersion, kind }) => `${kind} of ${apiVersion}`).join(', ')}`,
  ],
  ...dependsOn.map((dependency): Fact => ['Depends on', dependencyText(dependency)]),
  ['Needed by', namesOf(neededBy)],
]
