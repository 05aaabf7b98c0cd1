// What happened, newest first; new events appear by themselves.

import { number } from '../format.ts'
import { EventWords, grouped } from '../parts/feed.tsx'
import { Head } from '../parts/head.tsx'
import { MarkShape } from '../parts/mark.tsx'
import { Empty, Shown } from '../parts/states.tsx'
import { Moment, TimeOfDay } from '../parts/time.tsx'
import { useFilters } from '../state/address.ts'
import { nowMs } from '../state/now.ts'
import { type EventView, useEvents, useEventsOf } from '../state/reads.ts'
import { text } from '../words.ts'

const EVENTS_READ = 500

export function ActivityPage() {
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
      <Head title={text.activity.title} />
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
            {cluster} ✕
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
