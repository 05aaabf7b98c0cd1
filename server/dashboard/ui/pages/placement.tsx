// One service in one cluster: how far its revision came, its objects by wave with health and drift, its events and its
// history.

import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { moment } from '../format.ts'
import { awayWord } from '../parts/cluster-state.ts'
import { EventFeed } from '../parts/feed.tsx'
import { Head } from '../parts/head.tsx'
import { HistoryList } from '../parts/history-list.tsx'
import { ObjectPanel } from '../parts/object-panel.tsx'
import { Objects } from '../parts/objects.tsx'
import { Progress } from '../parts/progress.tsx'
import { RevisionStrip } from '../parts/revision-strip.tsx'
import { ScopeActions } from '../parts/service-actions.tsx'
import { StateNote } from '../parts/state-note.tsx'
import { Empty, ListFoot, PagedShown, Shown, Waiting } from '../parts/states.tsx'
import { Why } from '../parts/why.tsx'
import { useFilters } from '../state/address.ts'
import { seenOf } from '../state/mark-of.ts'
import { nowMs } from '../state/now.ts'
import { groupsOfObjects, parseRefKey, refKey, runs, sortedObjects } from '../state/object-tree.ts'
import { pages, queryText } from '../state/place.ts'
import { type PlacementView, useEventsOf, useObjectOrder, useObjects, usePlacement, useService } from '../state/reads.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'

/** Objects that are read at first, and the number from which a filter is worth its place. */
const OBJECTS_SHOWN = 500
const FILTER_FROM = 30

export function PlacementPage() {
  const { params } = useRoute()
  const { cluster = '', project = '', service = '' } = params
  const at = { cluster, project, service }
  const placement = usePlacement(cluster, project, service)
  const { filters, set } = useFilters()
  const [search, setSearch] = useState('')
  const [shown, setShown] = useState(OBJECTS_SHOWN)
  const objects = useObjects(at, search, shown)
  const order = useObjectOrder(at)
  const all = objects.items
  // The most urgent object is open at first: a page about trouble begins with it.
  const [first] = sortedObjects(all)
  const chosen = filters['object'] ?? (first === undefined ? null : refKey(first))
  const of = chosen === null ? null : parseRefKey(chosen)
  const view = placement.value?.items[0]
  const away = awayText(view)
  const isNowhere = placement.value !== null && view === undefined
  /** A cause of trouble in a workload is in its logs. */
  const linkOf = (named: string): string | null => {
    const one = all.find(({ kind, namespace, name }) => named === `${kind} ${[namespace, name].filter(Boolean).join('/')}`)
    return one === undefined
      ? null
      : pages.placement(cluster, project, service) + queryText({ object: refKey(one), tab: runs(one) ? 'logs' : 'state' })
  }
  // Among a part of many objects, waves would say too little.
  const groups = groupsOfObjects(all, objects.hasMore || search !== '' ? [] : (order.value?.items ?? []))
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
          {({ items: [one] }) => (one === undefined ? <NotThere cluster={cluster} /> : <Placement view={one} linkOf={linkOf} />)}
        </Shown>
        {!isNowhere && (
          <>
            <div class="detail halves">
              <section>
                <div class="section-head">
                  <h2>{text.placement.objects}</h2>
                  {view !== undefined && view.liveness.word !== 'Online' && (
                    <span>
                      {view.liveness.lastSeenMs === null
                        ? more.objects.noContact
                        : more.objects.asReported(moment(view.liveness.lastSeenMs, nowMs.value))}
                    </span>
                  )}
                  {(search !== '' || all.length >= FILTER_FROM) && (
                    <input
                      type="search"
                      class="brief"
                      aria-label={more.objects.filter}
                      placeholder={more.objects.filter}
                      value={search}
                      onInput={(event) => setSearch(event.currentTarget.value)}
                    />
                  )}
                </div>
                <div class={away === null ? 'panel' : 'panel is-away'}>
                  <PagedShown of={objects} rows={8} empty={<Empty title={search === '' ? text.placement.noObjects : more.objects.none} />}>
                    {() =>
                      // Groups are drawn at once or never: rows that are there do not move.
                      order.value === null && order.refusal === null ? (
                        <Waiting rows={8} />
                      ) : (
                        <>
                          <Objects
                            at={at}
                            groups={groups}
                            chosen={chosen}
                            canAsk={away === null}
                            onChoose={(key) => set({ object: key, tab: undefined })}
                          />
                          {objects.hasMore && (
                            <ListFoot of={objects} shown={all.length} more={() => setShown(all.length + OBJECTS_SHOWN)} />
                          )}
                        </>
                      )
                    }
                  </PagedShown>
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
            {view !== undefined && <RevisionStrip at={at} view={view} />}
            <div class="detail halves">
              <History cluster={cluster} project={project} service={service} />
              <Events cluster={cluster} project={project} service={service} />
            </div>
          </>
        )}
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
  const { project, service: name, cluster, suspensions, confirmationId } = view
  const service = useService(project, name)
  const seen = seenOf(view)
  const away = awayWord(view, seen)
  const isFine = (seen.was ?? seen.mark) === 'ok'
  return (
    <div class="panel">
      <StateNote
        {...seen}
        {...(away === null ? {} : { word: away })}
        state={seen.mark === 'ok' ? view : { ...view, next: isFine ? view.next : '' }}
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
      {!isFine && <Why project={project} service={name} cluster={cluster} otherwise={view.next} linkOf={linkOf} />}
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
