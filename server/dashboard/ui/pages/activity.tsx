// Events, newest first: events of the fleet, and for those who may read it the audit log. New entries appear by
// themselves.

import { useLocation } from 'preact-iso'
import { number } from '../format.ts'
import { AuditLog } from '../parts/audit-list.tsx'
import { EventWords, grouped } from '../parts/feed.tsx'
import { Head } from '../parts/head.tsx'
import { MarkShape } from '../parts/mark.tsx'
import { Denied, Empty, Shown } from '../parts/states.tsx'
import { Moment, TimeOfDay } from '../parts/time.tsx'
import { useFilters } from '../state/address.ts'
import { nowMs } from '../state/now.ts'
import { queryText } from '../state/place.ts'
import { type EventView, useEvents, useEventsOf } from '../state/reads.ts'
import { useMay } from '../state/rights.ts'
import { text } from '../words.ts'

const EVENTS_READ = 500

/** The audit log is offered only to those who may read it: a refusal would itself be an entry of it. */
export function ActivityPage() {
  const { filters, route } = useViews()
  const may = useMay('audit:read', 'Audit', 'some')
  const isAudit = filters['view'] === 'audit'
  const words = text.activity
  return (
    <>
      <Head title={words.title} />
      {may?.allowed === true && (
        <div class="chips views">
          <button type="button" aria-pressed={!isAudit} onClick={() => route('events')}>
            {words.events}
          </button>
          <button type="button" aria-pressed={isAudit} onClick={() => route('audit')}>
            {words.audit.title}
          </button>
        </div>
      )}
      {isAudit ? may !== null && (may.allowed ? <AuditLog /> : <Denied detail={may.detail} />) : <Events />}
    </>
  )
}

/** The filters of one view mean nothing in the other, but the cluster is one in both. */
function useViews() {
  const { path, query, route } = useLocation()
  return {
    filters: query,
    route: (view: string) => route(path + queryText({ cluster: query['cluster'], view: view === 'events' ? undefined : view })),
  }
}

function Events() {
  const { filters, set } = useFilters()
  const { q = '', type = '', cluster = '' } = filters
  const all = useEvents(EVENTS_READ)
  const some = useEventsOf(cluster === '' ? {} : { cluster }, EVENTS_READ)
  const words = q.toLowerCase()
  const fits = (event: EventView) =>
    (type === '' || event.type === type) &&
    [event.reason, event.message, event.cluster, event.service].some((one) => one?.toLowerCase().includes(words) ?? false)
  const events = cluster === '' ? all : some
  const items = (events.value?.items ?? []).filter(fits).toReversed()
  return (
    <>
      <div class="filters">
        <input
          type="search"
          aria-label={text.activity.filter}
          placeholder={text.activity.filter}
          value={q}
          onInput={(event) => set({ q: event.currentTarget.value })}
        />
        <select aria-label={text.activity.title} value={type} onChange={(event) => set({ type: event.currentTarget.value })}>
          <option value="">{text.activity.all}</option>
          <option value="Warning">{text.activity.warnings}</option>
        </select>
        {cluster !== '' && (
          <button type="button" onClick={() => set({ cluster: undefined })}>
            {cluster} ×
          </button>
        )}
        <span class="told">
          {number(items.length)} · {text.activity.hint}
        </span>
      </div>
      <div class="panel">
        <Shown of={events} rows={12}>
          {() =>
            items.length === 0 ? (
              <Empty title={text.activity.empty} />
            ) : (
              <ol class="events">
                {grouped(items).map(({ event, clusters }) => (
                  <li key={event.id}>
                    <span class="faint">
                      {new Date(event.atMs).toDateString() === new Date(nowMs.value).toDateString() ? (
                        <TimeOfDay ms={event.atMs} />
                      ) : (
                        <Moment ms={event.atMs} />
                      )}
                    </span>
                    <span class="mark clip" title={event.type}>
                      <MarkShape mark={event.type === 'Warning' ? 'drift' : 'ok'} />
                      <span class="clip">{event.reason}</span>
                    </span>
                    <span class="what">
                      <EventWords event={event} clusters={clusters} />
                    </span>
                  </li>
                ))}
              </ol>
            )
          }
        </Shown>
      </div>
    </>
  )
}
