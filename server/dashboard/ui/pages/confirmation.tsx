// One question in full: exactly which names it is for, what is deleted, what stays, which data would be lost. Only then the button, with a reason.

import { useState } from 'preact/hooks'
import { useLocation, useRoute } from 'preact-iso'
import type { RemovalView } from '../../../../shared/model/removal-views.ts'
import { names, number } from '../format.ts'
import { ActionDialog } from '../parts/action.tsx'
import { Head } from '../parts/head.tsx'
import { Empty, RefusalNote, Shown } from '../parts/states.tsx'
import { Age } from '../parts/time.tsx'
import { call } from '../state/api.ts'
import { sentence } from '../state/needs.ts'
import { pages, part } from '../state/place.ts'
import type { ConfirmationView } from '../state/reads.ts'
import { refreshAll, useResource } from '../state/resource.ts'
import { text } from '../words.ts'

interface Question {
  asked: ConfirmationView
  removals: readonly RemovalView[]
}

export function ConfirmationPage() {
  const { params } = useRoute()
  const { id = '' } = params
  const [isDone, setDone] = useState(false)
  const question = useResource<Question>(
    `confirmation ${id}`,
    async (signal) => {
      const [asked, removal] = await Promise.all([
        call<ConfirmationView>('GET', `/confirmations/${part(id)}`, { signal }),
        call<{ items: RemovalView[] }>('GET', `/confirmations/${part(id)}/removal`, { signal }).catch(() => ({ items: [] })),
      ])
      return { asked, removals: removal.items }
    },
    ({ topic }) => topic === 'confirmation',
  )
  const { value, refusal } = question
  const isGone = refusal?.status === 404
  return (
    <>
      <Head
        title={value === null ? text.needs.title : (text.needs.kinds[value.asked.kind] ?? text.needs.otherKind)}
        crumb={<a href={pages.needs()}>{text.nav.needs}</a>}
      />
      <div class="narrow stack wide">
        {isDone && (
          <div class="note calm" role="status">
            <p>{text.needs.confirmed}</p>
          </div>
        )}
        {isGone ? (
          !isDone && (
            <div class="panel">
              <Empty title={text.needs.gone}>
                <a class="button" href={pages.needs()}>
                  {text.nav.needs}
                </a>
              </Empty>
            </div>
          )
        ) : (
          <Shown of={question}>{(known) => <Asked {...known} onDone={() => setDone(true)} />}</Shown>
        )}
        {refusal !== null && !isGone && value === null && <RefusalNote refusal={refusal} />}
      </div>
    </>
  )
}

function Asked({ asked, removals, onDone }: Question & { onDone(): void }) {
  const { project, service, cluster, clusters, names: exact, why, createdMs, confirmedMs, confirmedBy } = asked
  const [isOpen, setOpen] = useState(false)
  const [data, setData] = useState<ReadonlySet<string>>(new Set())
  const { route } = useLocation()
  const holding = [...new Map(removals.flatMap((one) => one.holding).map((one) => [one.name, one])).values()]
  const toggle = (name: string) =>
    setData((before) => (before.has(name) ? new Set([...before].filter((one) => one !== name)) : new Set([...before, name])))
  return (
    <div class="panel padded stack wide">
      <div class="stack">
        <p>
          <a class="linked mono" href={pages.service(project, service)}>
            {project}/{service}
          </a>{' '}
          {clusters !== undefined
            ? text.needs.inClusters(clusters.count, names(clusters.first, clusters.count))
            : cluster !== null && (
                <>
                  in{' '}
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
      </div>
      <div class="stack">
        <h2 class="sub">{text.needs.exactly(exact.length)}</h2>
        <ul class="name-list">
          {exact.map((name) => (
            <li key={name}>{name}</li>
          ))}
        </ul>
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
            <button type="button" class="primary" onClick={() => setOpen(true)}>
              {text.needs.confirm(exact.length + data.size)}
            </button>
            <button type="button" onClick={() => route(pages.needs())}>
              {text.needs.keep}
            </button>
          </div>
          <p class="small muted">{text.needs.keepHow}</p>
        </div>
      ) : (
        <p class="muted">{text.needs.confirmedBy(confirmedBy ?? '')}</p>
      )}
      {isOpen && (
        <ActionDialog<undefined>
          title={text.needs.confirm(exact.length + data.size)}
          label={text.needs.confirm(exact.length + data.size)}
          describe={() => (
            <>
              <p>{text.needs.exactly(exact.length + data.size)}:</p>
              <ul class="name-list">
                {[...exact, ...data].map((name) => (
                  <li key={name}>{name}</li>
                ))}
              </ul>
              {clusters !== undefined && <p>{text.needs.inClusters(clusters.count, names(clusters.first, clusters.count))}</p>}
            </>
          )}
          needsReason
          act={(_, reason) =>
            call('POST', `/confirmations/${part(asked.id)}/confirm`, {
              reason,
              query: { upTo: clusters?.upTo },
              ...(data.size === 0 ? {} : { body: { confirmData: [...data] } }),
            })
          }
          onDone={() => {
            onDone()
            refreshAll()
          }}
          onClose={() => setOpen(false)}
        />
      )}
    </div>
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
