// Roles and role bindings in lists and in describe.
import type { Subject } from '../../../shared/model/access.ts'
import { selectorText } from '../../../shared/model/labels.ts'
import type { RoleBindingView, RoleView } from '../../../shared/model/views.ts'
import { path } from '../client.ts'
import { ageText, type Column, labelsText } from '../columns.ts'
import type { Fact } from '../service-facts.ts'

/** Without a project it is a binding of the fleet. */
export const bindingPath = (name: string, project: string | undefined): string =>
  project === undefined ? path`/role-bindings/${name}` : path`/projects/${project}/role-bindings/${name}`

const subjectText = ({ user, group, token }: Subject): string =>
  user !== undefined ? `user:${user}` : group !== undefined ? `group:${group}` : `token:${token}`
const placeText = ({ metadata, spec }: RoleBindingView): string =>
  (metadata.project === undefined ? (spec.projects ?? []) : [metadata.project]).join(',')
const age = (view: RoleView | RoleBindingView, nowMs: number): string | null =>
  view.metadata.createdMs === 0 ? null : ageText(view.metadata.createdMs, nowMs)

export const roleColumns = (nowMs: number): Column<RoleView>[] => [
  { title: 'NAME', value: ({ metadata }) => metadata.name },
  { title: 'BUILT-IN', value: ({ status }) => (status.builtIn ? 'yes' : 'no') },
  { title: 'RULES', value: ({ spec }) => spec.rules.length },
  { title: 'AGE', value: (view) => age(view, nowMs) },
  { title: 'DESCRIPTION', value: ({ spec }) => spec.description ?? null, wide: true },
]

export const bindingColumns = (nowMs: number): Column<RoleBindingView>[] => [
  { title: 'NAME', value: ({ metadata }) => metadata.name },
  { title: 'ROLE', value: ({ spec }) => spec.role },
  { title: 'PROJECTS', value: placeText },
  { title: 'SUBJECTS', value: ({ spec }) => spec.subjects.map(subjectText).join(',') },
  { title: 'AGE', value: (view) => age(view, nowMs) },
  { title: 'SERVICES', value: ({ spec }) => spec.services?.join(',') ?? '*', wide: true },
  { title: 'CLUSTERS', value: ({ spec }) => (spec.clusters === undefined ? '*' : selectorText(spec.clusters)), wide: true },
]

export const roleFacts = ({ metadata, spec, status }: RoleView): Fact[] => [
  ['Role', metadata.name],
  ['Built in', status.builtIn ? 'yes' : 'no'],
  ['Labels', labelsText(metadata.labels)],
  ['Description', spec.description ?? null],
  ...spec.rules.map(({ verbs, kinds }): Fact => ['May', `${verbs.join(', ')}: ${kinds.join(', ')}`]),
]

export const bindingFacts = (view: RoleBindingView, nowMs: number): Fact[] => [
  ['Role binding', view.metadata.name],
  ['Role', `${view.spec.role}${view.status.roleExists ? '' : ' (the role does not exist; the binding grants nothing)'}`],
  ['Projects', placeText(view)],
  ['Services', view.spec.services?.join(', ') ?? 'all'],
  ['Clusters', view.spec.clusters === undefined ? 'all' : selectorText(view.spec.clusters)],
  ...view.spec.subjects.map((subject): Fact => ['Subject', subjectText(subject)]),
  ['Labels', labelsText(view.metadata.labels)],
  ['Age', age(view, nowMs)],
]
