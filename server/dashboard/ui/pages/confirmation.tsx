// One question in full: exactly which names it is for, what is deleted, what stays, which data would be lost. Only then
// the two answers: confirm, or keep the objects, each with a reason.

import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import type { RemovalView } from '../../../../shared/model/removal-views.ts'
import { names, number } from '../format.ts'
import { ActionButton, ActionDialog, NameList } from '../parts/action.tsx'
import { Head } from '../parts/head.tsx'
import { Empty, Shown } from '../parts/states.tsx'
import { Age } from '../parts/time.tsx'
import { call } from '../state/api.ts'
import { sentence } from '../state/needs.ts'
import { pages } from '../state/place.ts'
import type { ConfirmationView } from '../state/reads.ts'
import { refreshAll, useResource } from '../state/resource.ts'
import type { Right } from '../state/rights.ts'
import { text } from '../words/first.ts'

export function ConfirmationPage() {
  const { params } = useRoute()
  const { id = '' } = params
  const [said, setSaid] = useState('')
  // A question that was answered is no error: the list of those with this id is empty then.
  const question = useResource(
    `confirmation ${id}`,
    async (signal) => (await call('GET /confirmations', { query: { id }, signal })).items[0] ?? 'gone',
    ({ topic }) => topic === 'confirmation',
  )
  const { value } = question
  const kind = value === null || value === 'gone' ? null : value.kind
  return (
    <>
      <Head
        title={kind === null ? text.needs.title : (text.needs.kinds[kind] ?? text.needs.otherKind)}
        crumb={<a href={pages.needs()}>{text.nav.needs}</a>}
      />
      <div class="narrow stack wide">
        {said !== '' && (
          <div class="note calm" role="status">
            <p>{said}</p>
          </div>
        )}
        <Shown of={question}>{(known) => (known === 'gone' ? said === '' && <Gone /> : <Asked asked={known} onSaid={setSaid} />)}</Shown>
      </div>
    </>
  )
}

function Gone() {
  return (
    <div class="panel">
      <Empty title={text.needs.gone}>
        <a class="button" href={pages.needs()}>
          {text.nav.needs}
        </a>
      </Empty>
    </div>
  )
}

function Asked({ asked, onSaid }: { asked: ConfirmationView; onSaid(words: string): void }) {
  const { project, service, cluster, clusters, names: exact, why, createdMs, confirmedMs, confirmedBy, refused, removals = [] } = asked
  const [open, setOpen] = useState<'confirm' | 'keep' | null>(null)
  const [data, setData] = useState<ReadonlySet<string>>(new Set())
  const holding = [...new Map(removals.flatMap((one) => one.holding).map((one) => [one.name, one])).values()]
  const toggle = (name: string) =>
    setData((before) => (before.has(name) ? new Set([...before].filter((one) => one !== name)) : new Set([...before, name])))
  const right: Right = { verb: 'confirm', kind: 'Service', project, name: service, ...(cluster === null ? {} : { cluster }) }
  const close = () => setOpen(null)
  return (
    <div class="panel padded stack wide">
      <div class="stack">
        <p>
          <a class="linked mono" href={pages.service(project, service)}>
            {project}/{service}
          </a>{' '}
          {clusters !== undefined
            ? text.needs.inClusters(clusters.count, names(clusters.first, clusters.count, clusters.first.length))
            : cluster !== null && (
                <>
                  {text.in}{' '}
                  <a class="linked mono" href={pages.placement(cluster, project, service)}>
                    {cluster}
                  </a>
                </>
              )}
          <span class="faint small">
            {' '}
            · <Age ms={createdMs} />
          </span>
        </p>
        <p>
          <b>{text.needs.why}: </b>
          {sentence(why)}
        </p>
        {refused !== undefined && (
          <p>
            {text.needs.keptBy(refused.by, refused.why)}{' '}
            <span class="faint small">
              <Age ms={refused.atMs} />
            </span>
          </p>
        )}
      </div>
      <div class="stack">
        <h2 class="sub">{text.needs.exactly(exact.length)}</h2>
        <NameList names={exact} />
      </div>
      {removals.map((removal) => (
        <Effect key={`${removal.project}/${removal.service}${removal.clusters.first.join()}`} removal={removal} />
      ))}
      {holding.length > 0 && (
        <fieldset class="stack plain">
          <legend>
            <h2 class="sub">{text.needs.data}</h2>
          </legend>
          <p class="muted small">{text.needs.dataHint}</p>
          {holding.map(({ name, what }) => (
            <label key={name} class="check">
              <input type="checkbox" checked={data.has(name)} onChange={() => toggle(name)} />
              <span>
                <code>{name}</code> <span class="muted">{what}</span>
              </span>
            </label>
          ))}
        </fieldset>
      )}
      {confirmedMs === null ? (
        <div class="stack">
          <div class="row">
            {refused === undefined && <ActionButton right={right} label={text.needs.keep} onClick={() => setOpen('keep')} />}
            <ActionButton
              right={right}
              label={text.needs.confirm(exact.length + data.size)}
              look="primary"
              onClick={() => setOpen('confirm')}
            />
          </div>
          <p class="small muted">{text.needs.keepHow}</p>
        </div>
      ) : (
        <p class="muted">{text.needs.confirmedBy(confirmedBy ?? '')}</p>
      )}
      {open === 'confirm' && <Confirm asked={asked} right={right} data={[...data]} onSaid={onSaid} onClose={close} />}
      {open === 'keep' && <Keep asked={asked} right={right} onSaid={onSaid} onClose={close} />}
    </div>
  )
}

interface AnswerProps {
  asked: ConfirmationView
  right: Right
  onSaid(words: string): void
  onClose(): void
}

function Confirm({ asked, right, data, onSaid, onClose }: AnswerProps & { data: readonly string[] }) {
  const { id, names: exact, clusters } = asked
  const label = text.needs.confirm(exact.length + data.length)
  return (
    <ActionDialog<undefined>
      right={right}
      title={label}
      label={label}
      describe={() => (
        <>
          <p>{text.needs.exactly(exact.length + data.length)}:</p>
          <NameList names={[...exact, ...data]} />
          {clusters !== undefined && (
            <>
              <p>{text.needs.inManyClusters(clusters.count)}:</p>
              <NameList names={clusters.first} />
              {clusters.count > clusters.first.length && (
                <p class="small muted">{text.needs.more(clusters.first.length, clusters.count)}</p>
              )}
            </>
          )}
        </>
      )}
      act={(_, reason) =>
        call('POST /confirmations/:id/confirm', {
          params: { id },
          reason,
          query: { upTo: clusters?.upTo },
          ...(data.length === 0 ? {} : { body: { confirmData: data } }),
        })
      }
      onDone={() => {
        onSaid(text.needs.confirmed)
        refreshAll()
      }}
      onClose={onClose}
    />
  )
}

function Keep({ asked, right, onSaid, onClose }: AnswerProps) {
  const { id, kind, project, service, names: exact, clusters } = asked
  return (
    <ActionDialog<undefined>
      right={right}
      title={text.needs.keep}
      label={text.needs.keep}
      describe={() =>
        kind === 'remove_service' ? (
          <p>{text.needs.keepService(`${project}/${service}`)}</p>
        ) : (
          <>
            <p>{text.needs.keepEffect(exact.length)}</p>
            <NameList names={exact} />
            {clusters !== undefined && (
              <p>{text.needs.inClusters(clusters.count, names(clusters.first, clusters.count, clusters.first.length))}</p>
            )}
          </>
        )
      }
      act={(_, reason) => call('POST /confirmations/:id/refuse', { params: { id }, query: { upTo: clusters?.upTo }, body: { reason } })}
      onDone={() => {
        onSaid(text.needs.kept)
        refreshAll()
      }}
      onClose={onClose}
    />
  )
}

function Effect({ removal }: { removal: RemovalView }) {
  const { clusters, deletes, stays, takenOver = { count: 0, first: [] } } = removal
  return (
    <div class="stack">
      <h2 class="sub">
        {text.needs.deletes(deletes.count)}{' '}
        <span class="muted">{text.needs.inClusters(clusters.count, names(clusters.first, clusters.count))}</span>
      </h2>
      {deletes.count > 0 && (
        <ul class="name-list">
          {deletes.first.map((name) => (
            <li key={name}>{name}</li>
          ))}
          {deletes.count > deletes.first.length && <li class="faint">+ {number(deletes.count - deletes.first.length)}</li>}
        </ul>
      )}
      {takenOver.count > 0 && (
        <p>
          {text.needs.takenOver(takenOver.count)}:{' '}
          {names(
            takenOver.first.map(({ name, by }) => `${name} (${by})`),
            takenOver.count,
          )}
        </p>
      )}
      {stays.count > 0 && (
        <p class="muted">
          {text.needs.keeps(stays.count)}:{' '}
          {names(
            stays.first.map(({ name, why }) => `${name} (${why})`),
            stays.count,
          )}
        </p>
      )}
    </div>
  )
}
