// Buttons of the actions on a service, everywhere or in one cluster. The dialogs are those of every page.
import { askAction, type Scope } from '../state/actions.ts'
import type { Right } from '../state/rights.ts'
import { text } from '../words/first.ts'
import { ActionButton } from './action.tsx'

export const suspendRight = ({ service, cluster }: Scope): Right =>
  service === undefined
    ? { verb: 'suspend', kind: 'Cluster', ...(cluster === undefined ? {} : { name: cluster }) }
    : { verb: 'suspend', kind: 'Service', project: service.project, name: service.name, ...(cluster === undefined ? {} : { cluster }) }
export const syncRight = ({ service, cluster }: Scope): Right => ({
  ...suspendRight({ ...(service === undefined ? {} : { service }), ...(cluster === undefined ? {} : { cluster }) }),
  verb: 'sync',
  kind: 'Service',
})

/** `about`: where the label alone is one of many. */
export function RefreshButton({ project, name, about }: { project: string; name: string; about?: string }) {
  return (
    <ActionButton
      right={{ verb: 'sync', kind: 'Repository', project, name }}
      label={text.actions.refresh}
      {...(about === undefined ? {} : { about: `${text.actions.refresh}: ${about}` })}
      onClick={() => askAction({ kind: 'refresh', project, name })}
    />
  )
}

export function ScopeActions({ isSuspended, isManual = false, ...scope }: Scope & { isSuspended: boolean; isManual?: boolean }) {
  const { service, cluster } = scope
  return (
    <>
      {service !== undefined && isManual && (
        <ActionButton
          right={syncRight(scope)}
          label={text.actions.sync}
          look="primary"
          onClick={() => askAction({ kind: 'sync', service, ...(cluster === undefined ? {} : { cluster }) })}
        />
      )}
      <ActionButton
        right={suspendRight(scope)}
        label={isSuspended ? text.actions.resume : text.actions.suspend}
        onClick={() => askAction({ kind: isSuspended ? 'resume' : 'suspend', ...scope })}
      />
    </>
  )
}
