// The dialog of the action that somebody asked for, by a button, a row or a command: sync, suspend, resume, read Git,
// restart.
import type { SuspendAnswer } from '../../../../shared/model/suspension.ts'
import type { SyncPlanView } from '../../../../shared/model/sync.ts'
import type { ServiceList } from '../../../../shared/model/views.ts'
import { shortCommit } from '../format.ts'
import { type ActionAsked, actionAsked, type Scope } from '../state/actions.ts'
import { call } from '../state/api.ts'
import { type AnswerLineOf, askOnce, linesOf } from '../state/ask.ts'
import { BLAST_MAX, type Blast, readBlast } from '../state/blast.ts'
import { refreshAll } from '../state/resource.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { ActionDialog, NameList } from './action.tsx'
import { suspendRight, syncRight } from './service-actions.tsx'

const close = () => {
  actionAsked.value = null
}
const common = { onDone: refreshAll, onClose: close }

export function ActionHost() {
  const asked = actionAsked.value
  return asked === null ? null : <Asked key={JSON.stringify(asked)} asked={asked} />
}

function Asked({ asked }: { asked: ActionAsked }) {
  switch (asked.kind) {
    case 'suspend':
    case 'resume':
      return <Suspend scope={asked} verb={asked.kind} />
    case 'sync':
      return <Sync scope={asked} />
    case 'refresh':
      return <Refresh project={asked.project} name={asked.name} />
    case 'restart':
      return <Restart of={asked} />
  }
}

export const scopeWords = ({ service, cluster = '' }: Scope): string =>
  text.actions.scope(service === undefined ? text.actions.allServices : `${service.project}/${service.name}`, cluster)

function blastWords({ service, cluster }: Scope, { services, clusters, placements }: Blast): string {
  if (placements === 0) return text.actions.blastNone
  if (service !== undefined && cluster !== undefined) return text.actions.blastOfBoth
  if (service !== undefined) return text.actions.blastOfService(clusters)
  return cluster !== undefined ? text.actions.blastOfCluster(services) : text.actions.blastOfAll(services, clusters)
}

function Suspend({ scope: { service, cluster }, verb }: { scope: Scope; verb: 'suspend' | 'resume' }) {
  const scope: Scope = { ...(service === undefined ? {} : { service }), ...(cluster === undefined ? {} : { cluster }) }
  const action = text.actions[verb]
  const body = {
    ...(service === undefined ? {} : { project: service.project, services: [service.name] }),
    ...(cluster === undefined ? {} : { clusters: [cluster] }),
  }
  const order = (reason: string, dryRun: boolean) =>
    call(`POST /${verb}`, { body: { ...body, reason: reason || text.actions.planned, dryRun } })
  return (
    <ActionDialog<{ answer: SuspendAnswer; blast: Blast }>
      right={suspendRight(scope)}
      title={text.actions.title(action, scopeWords(scope))}
      label={action}
      plan={async () => {
        const [answer, blast] = await Promise.all([order('', true), readBlast(scope)])
        return { answer, blast }
      }}
      isNeeded={({ answer }) => answer.results.some((one) => one.action !== 'unchanged')}
      describe={({ answer: { results, remaining }, blast }) => (
        <>
          <p>
            {verb === 'resume' ? text.actions.resumeEffect(blastWords(scope, blast)) : text.actions.suspendEffect(blastWords(scope, blast))}
          </p>
          <NameList names={blast.names} />
          {blast.isCut && <p>{text.actions.blastCut(BLAST_MAX)}</p>}
          {blast.offline > 0 && <p class="muted small">{text.actions.offline(blast.offline)}</p>}
          {results.every((one) => one.action === 'unchanged') && <p>{text.actions.nothing}</p>}
          {remaining.length > 0 && <p class="muted">{text.actions.remaining(remaining.length)}</p>}
        </>
      )}
      act={(_, reason) => order(reason, false)}
      {...common}
    />
  )
}

function Sync({ scope: { service, cluster } }: { scope: Extract<ActionAsked, { kind: 'sync' }> }) {
  const scope: Scope = { service, ...(cluster === undefined ? {} : { cluster }) }
  const params = { project: service.project, name: service.name }
  const waiting = (plan: SyncPlanView) =>
    plan.changes
      .map((change, index) => ({ change, clusters: plan.clusters.filter((one) => one.waits && one.change === index) }))
      .filter(({ clusters }) => clusters.length > 0)
  return (
    <ActionDialog<SyncPlanView>
      right={syncRight(scope)}
      title={text.actions.title(text.actions.sync, scopeWords(scope))}
      label={text.actions.sync}
      plan={() => call('GET /projects/:project/services/:name/sync', { params, query: { cluster } })}
      isNeeded={(plan) => waiting(plan).length > 0}
      describe={(plan) =>
        waiting(plan).length === 0 ? (
          <p>{text.actions.nothingToSync}</p>
        ) : (
          waiting(plan).map(({ change, clusters }) => (
            <div class="stack" key={change.digest}>
              <p>
                <code>{shortCommit(change.commit)}</code>{' '}
                {text.actions.syncEffect(change.create.count, change.change.count, change.prune.count, text.n.clusters(clusters.length))}
              </p>
              <NameList names={clusters.map((one) => one.cluster)} />
              <Changes change={change} />
            </div>
          ))
        )
      }
      act={async (plan, reason) => {
        for (const { change, clusters } of waiting(plan))
          await call('POST /projects/:project/services/:name/sync', {
            params,
            body: { digest: change.digest, clusters: clusters.map((one) => one.cluster) },
            reason,
          })
      }}
      {...common}
    />
  )
}

function Changes({ change: { prune, create, change } }: { change: SyncPlanView['changes'][number] }) {
  const signed = [
    { sign: '−', of: prune, tone: 'badly' },
    { sign: '+', of: create, tone: undefined },
    { sign: '~', of: change, tone: undefined },
  ]
  return (
    <ul class="name-list" tabIndex={0}>
      {signed.flatMap(({ sign, of, tone }) => [
        ...of.names.map((name) => (
          <li key={`${sign}${name}`} class={tone}>
            {sign} {name}
          </li>
        )),
        of.count > of.names.length && (
          <li key={sign} class="faint">
            {sign} {text.actions.more(of.count - of.names.length)}
          </li>
        ),
      ])}
    </ul>
  )
}

function Refresh({ project, name }: { project: string; name: string }) {
  const readAll = async (): Promise<string[]> => {
    const lines: string[] = []
    for (let next: string | null = null, page = 0; page < 20; page++) {
      const read: ServiceList = await call('GET /services', {
        query: { project, repository: name, limit: 500, continue: next },
      })
      lines.push(...read.items.map(({ metadata, status }) => more.refresh.line(metadata.name, status.clusters.total)))
      next = read.continue
      if (next === null) break
    }
    return lines
  }
  return (
    <ActionDialog<string[]>
      right={{ verb: 'sync', kind: 'Repository', project, name }}
      title={more.refresh.title(`${project}/${name}`)}
      label={text.actions.refresh}
      plan={readAll}
      describe={(lines) => (
        <>
          <p>{more.refresh.effect(lines.length)}</p>
          <NameList names={lines} />
        </>
      )}
      act={(_, reason) => call('POST /projects/:project/repositories/:name/refresh', { params: { project, name }, reason })}
      {...common}
    />
  )
}

/** The agent replaces the Pods as the strategy of the workload says. */
function Restart({ of: { cluster, project, service, ref } }: { of: Extract<ActionAsked, { kind: 'restart' }> }) {
  const within = { project, service }
  const readPods = async (): Promise<Array<AnswerLineOf<'child'>>> => {
    const lines = await askOnce(cluster, { question: { kind: 'tree', ref }, within })
    return linesOf({ lines }, 'child').filter((one) => one.ref.kind === 'Pod')
  }
  return (
    <ActionDialog
      right={{ verb: 'restart', kind: 'Service', project, name: service, cluster }}
      title={text.actions.title(more.ask.restart, ref.name)}
      label={more.ask.restart}
      plan={readPods}
      describe={(pods) => (
        <>
          <p>{more.ask.restartEffect(`${ref.kind} ${ref.namespace}/${ref.name}`, cluster, pods.length)}</p>
          <NameList names={pods.map((one) => one.ref.name)} />
        </>
      )}
      act={(_, reason) => askOnce(cluster, { question: { kind: 'restart', ref }, within }, reason)}
      {...common}
    />
  )
}
