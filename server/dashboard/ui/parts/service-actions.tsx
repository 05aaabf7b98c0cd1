// Actions on a service, everywhere or in one cluster: sync, suspend, resume, read Git.
import { useState } from 'preact/hooks'
import type { SuspendAnswer } from '../../../../shared/model/suspension.ts'
import type { SyncPlanView } from '../../../../shared/model/sync.ts'
import { count, names, shortCommit } from '../format.ts'
import { call } from '../state/api.ts'
import { part } from '../state/place.ts'
import { refreshAll } from '../state/resource.ts'
import { text } from '../words.ts'
import { ActionDialog } from './action.tsx'

interface Scope {
  /** Absent: all services of the cluster. */
  service?: { project: string; name: string }
  /** Absent: all its clusters. */
  cluster?: string
  isSuspended: boolean
  isManual?: boolean
}

export const scopeWords = ({ service, cluster }: Scope): string =>
  [service === undefined ? text.actions.allServices : `${service.project}/${service.name}`, cluster === undefined ? '' : `in ${cluster}`]
    .filter(Boolean)
    .join(' ')

export function ScopeActions(scope: Scope) {
  const [open, setOpen] = useState<'sync' | 'suspend' | null>(null)
  const close = () => setOpen(null)
  return (
    <>
      {scope.service !== undefined && scope.isManual === true && (
        <button type="button" class="primary" onClick={() => setOpen('sync')}>
          {text.actions.sync}
        </button>
      )}
      <button type="button" onClick={() => setOpen('suspend')}>
        {scope.isSuspended ? text.actions.resume : text.actions.suspend}
      </button>
      {open === 'sync' && <Sync scope={scope} onClose={close} />}
      {open === 'suspend' && <Suspend scope={scope} onClose={close} />}
    </>
  )
}

function Suspend({ scope, onClose }: { scope: Scope; onClose(): void }) {
  const { isSuspended, service, cluster } = scope
  const verb = isSuspended ? 'resume' : 'suspend'
  const what = scopeWords(scope)
  const body = {
    ...(service === undefined ? {} : { project: service.project, services: [service.name] }),
    ...(cluster === undefined ? {} : { clusters: [cluster] }),
  }
  const order = (reason: string, dryRun: boolean) =>
    call<SuspendAnswer>('POST', `/${verb}`, { body: { ...body, reason: reason || text.actions.planned, dryRun } })
  return (
    <ActionDialog<SuspendAnswer>
      title={`${isSuspended ? text.actions.resume : text.actions.suspend} ${what}`}
      label={isSuspended ? text.actions.resume : text.actions.suspend}
      plan={() => order('', true)}
      isNeeded={({ results }) => results.some(({ action }) => action !== 'unchanged')}
      describe={({ results, remaining }) => (
        <>
          <p>{isSuspended ? text.actions.resumeEffect(what) : text.actions.suspendEffect(what)}</p>
          {results.every(({ action }) => action === 'unchanged') && <p>{text.actions.nothing}</p>}
          {remaining.length > 0 && <p class="muted">{text.actions.remaining(remaining.length)}</p>}
        </>
      )}
      needsReason
      act={(_, reason) => order(reason, false)}
      onDone={refreshAll}
      onClose={onClose}
    />
  )
}

function Sync({ scope, onClose }: { scope: Scope; onClose(): void }) {
  const { service = { project: '', name: '' }, cluster } = scope
  const path = `/projects/${part(service.project)}/services/${part(service.name)}/sync`
  const waiting = (plan: SyncPlanView) =>
    plan.changes.map((change, index) => ({ change, clusters: plan.clusters.filter((one) => one.waits && one.change === index) }))
  return (
    <ActionDialog<SyncPlanView>
      title={`${text.actions.sync}: ${scopeWords(scope)}`}
      label={text.actions.sync}
      plan={() => call<SyncPlanView>('GET', path, { query: { cluster } })}
      isNeeded={(plan) => plan.clusters.some(({ waits }) => waits)}
      describe={(plan) =>
        plan.clusters.some(({ waits }) => waits) ? (
          waiting(plan)
            .filter(({ clusters }) => clusters.length > 0)
            .map(({ change, clusters }) => (
              <div class="stack" key={change.digest}>
                <p>
                  <code>{shortCommit(change.commit)}</code>{' '}
                  {text.actions.syncEffect(change.create.count, change.change.count, change.prune.count)} in{' '}
                  {count(clusters.length, 'cluster')}: {names(clusters.map(({ cluster: name }) => name))}
                </p>
                <ul class="name-list">
                  {change.prune.names.map((name) => (
                    <li key={`p${name}`} class="badly">
                      − {name}
                    </li>
                  ))}
                  {change.create.names.map((name) => (
                    <li key={`c${name}`}>+ {name}</li>
                  ))}
                  {change.change.names.map((name) => (
                    <li key={`x${name}`}>~ {name}</li>
                  ))}
                </ul>
              </div>
            ))
        ) : (
          <p>{text.actions.nothingToSync}</p>
        )
      }
      needsReason
      act={async (plan, reason) => {
        for (const { change, clusters } of waiting(plan))
          if (clusters.length > 0)
            await call('POST', path, { body: { digest: change.digest, clusters: clusters.map(({ cluster: name }) => name) }, reason })
      }}
      onDone={refreshAll}
      onClose={onClose}
    />
  )
}
