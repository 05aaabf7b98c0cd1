// One service in one cluster: how far its revision came, its objects with health and drift, its events and its history.

import { useRoute } from 'preact-iso'
import { moment } from '../format.ts'
import { EventFeed } from '../parts/feed.tsx'
import { Head } from '../parts/head.tsx'
import { HistoryList } from '../parts/history-list.tsx'
import { ObjectPanel } from '../parts/object-panel.tsx'
import { Objects, parseRefKey, refKey, runs, sortedObjects } from '../parts/objects.tsx'
import { Progress } from '../parts/progress.tsx'
import { ScopeActions } from '../parts/service-actions.tsx'
import { StateNote } from '../parts/state-note.tsx'
import { Empty, Shown } from '../parts/states.tsx'
import { Why } from '../parts/why.tsx'
import { useFilters } from '../state/address.ts'
import { markOfWords } from '../state/mark-of.ts'
import { nowMs } from '../state/now.ts'
import { pages, queryText } from '../state/place.ts'
import { type PlacementView, useEventsOf, useObjects, usePlacement, useService } from '../state/reads.ts'
import { text } from '../words.ts'
import { more } from '../words-more.ts'

export function PlacementPage() {
  const { params } = useRoute()
  const { cluster = '', project = '', service = '' } = params
  const placement = usePlacement(cluster, project, service)
  const objects = useObjects(cluster, project, service)
  const { filters, set } = useFilters()
  const all = objects.value?.items ?? []
  // The most urgent object is open at first: a page about trouble begins with it.
  const [first] = sortedObjects(all)
  const chosen = filters['object'] ?? (first === undefined ? null : refKey(first))
  const of = chosen === null ? null : parseRefKey(chosen)
  const at = { cluster, project, service }
  const away = awayText(placement.value?.items[0])
  /** A cause of trouble in a workload is in its logs. */
  const linkOf = (named: string): string | null => {
    const one = all.find(({ kind, namespace, name }) => named === `${kind} ${[namespace, name].filter(Boolean).join('/')}`)
    return one === undefined
      ? null
      : pages.placement(cluster, project, service) + queryText({ object: refKey(one), tab: runs(one) ? 'logs' : 'state' })
  }
  const crumb = (
    <>
      <a href={pages.cluster(cluster)} class="mono">
        {cluster}
      </a>
      {' / '}
      <a href={pages.service(project, service)} class="mono">
        {project}
      </a>
    </>
  )
  return (
    <>
      <Head title={service} named crumb={crumb} />
      <div class="stack wide">
        <Shown of={placement}>
          {({ items: [view] }) => (view === undefined ? <NotThere cluster={cluster} /> : <Placement view={view} linkOf={linkOf} />)}
        </Shown>
        <div class="detail halves">
          <section>
            <div class="section-head">
              <h2>{text.placement.objects}</h2>
            </div>
            <div class="panel">
              <Shown of={objects} rows={8}>
                {({ items }) =>
                  items.length === 0 ? (
                    <Empty title={text.placement.noObjects} />
                  ) : (
                    <Objects
                      at={at}
                      items={items}
                      chosen={chosen}
                      canAsk={away === null}
                      onChoose={(key) => set({ object: key, tab: undefined })}
                    />
                  )
                }
              </Shown>
            </div>
          </section>
          {of !== null && (
            <section aria-label={`${of.kind} ${of.name}`}>
              <div class="section-head">
                <h2>{of.kind}</h2>
              </div>
              <ObjectPanel
                key={chosen}
                at={at}
                of={of}
                object={all.find((one) => refKey(one) === chosen) ?? null}
                tab={filters['tab'] ?? ''}
                onTab={(tab) => set({ object: chosen ?? undefined, tab })}
                away={away}
              />
            </section>
          )}
        </div>
        <div class="detail halves">
          <History cluster={cluster} project={project} service={service} />
          <Events cluster={cluster} project={project} service={service} />
        </div>
      </div>
    </>
  )
}

/** Null if the agent can be asked. */
function awayText(view: PlacementView | undefined): string | null {
  if (view === undefined || view.liveness.word === 'Online') return null
  const { lastSeenMs } = view.liveness
  return lastSeenMs === null ? more.ask.neverSeen(view.cluster) : more.ask.away(view.cluster, moment(lastSeenMs, nowMs.value))
}

function Placement({ view, linkOf }: { view: PlacementView; linkOf(object: string): string | null }) {
  const { project, service: name, cluster, liveness, suspensions, confirmationId } = view
  const service = useService(project, name)
  const mark = markOfWords(view, view.reason)
  const isOffline = liveness.word === 'Offline' && liveness.lastSeenMs !== null
  return (
    <div class="panel">
      <StateNote
        mark={isOffline ? 'offline' : mark}
        {...(isOffline && liveness.lastSeenMs !== null
          ? { word: text.clusters.offlineSince(moment(liveness.lastSeenMs, nowMs.value)) }
          : {})}
        state={mark === 'ok' ? view : { ...view, next: '' }}
      >
        <ScopeActions
          service={{ project, name }}
          cluster={cluster}
          isSuspended={suspensions.some((one) => one.cluster === cluster && one.service === name)}
          isManual={service.value?.spec.sync?.mode === 'manual'}
        />
        {confirmationId !== null && (
          <a class="button primary" href={pages.confirmation(confirmationId)}>
            {text.needs.review}
          </a>
        )}
      </StateNote>
      <Progress view={view} />
      {mark !== 'ok' && <Why project={project} service={name} cluster={cluster} otherwise={view.next} linkOf={linkOf} />}
    </div>
  )
}

function NotThere({ cluster }: { cluster: string }) {
  return (
    <div class="panel">
      <Empty title={text.placement.notThere} next={text.states.notFoundNext}>
        <a class="button" href={pages.cluster(cluster)}>
          {cluster}
        </a>
      </Empty>
    </div>
  )
}

interface At {
  cluster: string
  project: string
  service: string
}

function Events(at: At) {
  const events = useEventsOf(at, 30)
  return (
    <section>
      <div class="section-head">
        <h2>{text.placement.events}</h2>
      </div>
      <Shown of={events}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="muted small">{text.placement.noEvents}</p>
          ) : (
            <EventFeed items={items.slice(-12).toReversed()} in={at.cluster} of={at.service} />
          )
        }
      </Shown>
    </section>
  )
}

function History({ cluster, project, service }: At) {
  return (
    <section>
      <div class="section-head">
        <h2>{text.placement.history}</h2>
        <a href={pages.history(cluster, project, service)}>{more.history.all}</a>
      </div>
      <HistoryList of={{ cluster, service: { project, name: service } }} most={8} />
    </section>
  )
}
