// Events, newest first: events of the fleet, and for those who may read it the audit log. New entries appear by
// themselves.

import { useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { AuditLog } from '../parts/audit-list.tsx'
import { EventWords, grouped } from '../parts/feed.tsx'
import { Head } from '../parts/head.tsx'
import { MarkShape } from '../parts/mark.tsx'
import { Series } from '../parts/series.tsx'
import { Denied, Empty, ListFoot, PagedShown } from '../parts/states.tsx'
import { Moment, TimeOfDay } from '../parts/time.tsx'
import { useFilters } from '../state/address.ts'
import { markOfEvent } from '../state/mark-of.ts'
import { nowMs } from '../state/now.ts'
import { queryText } from '../state/place.ts'
import { useOlderEvents } from '../state/reads.ts'
import { useMay } from '../state/rights.ts'
import { text } from '../words/first.ts'

const EVENTS_SHOWN = 200

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
  const filter = { search: q.trim(), type, cluster }
  const [shown, setShown] = useState(EVENTS_SHOWN)
  const events = useOlderEvents(filter, shown)
  return (
    <>
      {cluster === '' && <Series />}
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
        <span class="told">{text.activity.hint}</span>
      </div>
      <div class="panel">
        <PagedShown of={events} rows={12} empty={<Empty title={text.activity.empty} />}>
          {(items) => (
            <>
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
                      <MarkShape mark={markOfEvent(event)} />
                      <span class="clip">{event.reason}</span>
                    </span>
                    <span class="what">
                      <EventWords event={event} clusters={clusters} />
                    </span>
                  </li>
                ))}
              </ol>
              <ListFoot of={events} shown={items.length} more={() => setShown(items.length + EVENTS_SHOWN)} />
            </>
          )}
        </PagedShown>
      </div>
    </>
  )
}
