// Role bindings (subjects, roles and places) and the roles themselves.
import type { LabelSelector } from '../../../../shared/model/labels.ts'
import type { RoleBindingView, RoleView } from '../../../../shared/model/views.ts'
import { useRoleBindings, useRoles } from '../state/reads.ts'
import { useMay } from '../state/rights.ts'
import { text } from '../words/first.ts'
import { Denied, Empty, Section, Shown, Table } from './states.tsx'

export function Bindings() {
  const may = useMay('read', 'RoleBinding', 'some')
  return (
    <Section title={text.access.bindings}>
      {may?.allowed === false ? <Denied detail={may.detail} /> : may !== null && <BindingTable />}
    </Section>
  )
}

function BindingTable() {
  const bindings = useRoleBindings()
  const { columns } = text.access
  return (
    <div class="panel table-wrap">
      <Shown of={bindings}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={text.access.noBindings} next={text.access.noBindingsNext} />
          ) : (
            <Table label={text.access.bindings} heads={[columns.who, columns.role, columns.where, columns.binding]}>
              {items.map((binding) => (
                <BindingRow key={`${binding.metadata.project}/${binding.metadata.name}`} binding={binding} />
              ))}
            </Table>
          )
        }
      </Shown>
    </div>
  )
}

function BindingRow({ binding: { metadata, spec, status } }: { binding: RoleBindingView }) {
  const project = 'project' in metadata && typeof metadata.project === 'string' ? metadata.project : ''
  const { columns } = text.access
  return (
    <tr>
      <td class="wraps">
        <span class="tags">
          {spec.subjects.map(({ user, group, token }) => {
            const name = user ?? group ?? token ?? ''
            const kind = user !== undefined ? text.access.user : group !== undefined ? text.access.group : text.access.token
            return (
              <span key={`${kind} ${name}`} class="tag" title={`${kind} ${name}`}>
                <span class="faint">{kind}</span> {name}
              </span>
            )
          })}
        </span>
      </td>
      <td data-head={columns.role}>
        {spec.role}
        {!status.roleExists && <div class="badly small">{text.access.roleMissing}</div>}
      </td>
      <td class="wraps" data-head={columns.where}>
        {whereText({ projects: spec.projects ?? [project], services: spec.services, clusters: spec.clusters })}
      </td>
      <td class="mono wraps" data-head={columns.binding}>
        {project === '' ? metadata.name : `${project}/${metadata.name}`}
      </td>
    </tr>
  )
}

interface Where {
  projects?: readonly string[] | null | undefined
  services?: readonly string[] | null | undefined
  clusters?: LabelSelector | null | undefined
}

export function whereText({ projects, services, clusters }: Where): string {
  const { whole, inProjects, onlyServices, onlyClusters } = text.access
  const isWhole = projects === undefined || projects === null || projects.includes('*')
  return [
    isWhole ? whole : inProjects(projects),
    ...(services ? [onlyServices(services)] : []),
    ...(clusters ? [onlyClusters(selectorText(clusters))] : []),
  ].join('; ')
}

function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const equal = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`)
  const more = matchExpressions.map((one) => `${one.key} ${one.operator} ${('values' in one ? (one.values ?? []) : []).join(', ')}`.trim())
  return [...equal, ...more].join(', ')
}

export function Roles() {
  const may = useMay('read', 'Role')
  return (
    <Section title={text.access.roles}>{may?.allowed === false ? <Denied detail={may.detail} /> : may !== null && <RoleTable />}</Section>
  )
}

function RoleTable() {
  const roles = useRoles()
  const { columns } = text.access
  return (
    <div class="panel table-wrap">
      <Shown of={roles}>
        {({ items }) => (
          <Table label={text.access.roles} heads={[columns.role, columns.rights]}>
            {items.map((role) => (
              <RoleRow key={role.metadata.name} role={role} />
            ))}
          </Table>
        )}
      </Shown>
    </div>
  )
}

function RoleRow({ role: { metadata, spec, status } }: { role: RoleView }) {
  return (
    <tr>
      <td>
        {metadata.name}
        <div class="muted small">{status.builtIn ? text.access.builtIn : text.access.custom}</div>
      </td>
      <td class="wraps">
        <details open={spec.description === undefined}>
          <summary>{spec.description ?? text.access.rights(spec.rules.length)}</summary>
          <ul class="muted small">
            {spec.rules.map(({ verbs, kinds }) => {
              const words = text.access.rule(verbs, kinds)
              return <li key={words}>{words}</li>
            })}
          </ul>
        </details>
      </td>
    </tr>
  )
}
