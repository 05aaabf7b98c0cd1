// Events as sentences: when, to what, where. Names that lead somewhere are links.
import { pages } from '../state/place.ts'
import type { EventView } from '../state/reads.ts'
import { TimeOfDay } from './time.tsx'

export function EventFeed({ items }: { items: readonly EventView[] }) {
  return (
    <ol class="feed">
      {items.map((event) => (
        <li key={event.id}>
          <TimeOfDay ms={event.atMs} />
          <span class="what">
            <EventWords event={event} />
          </span>
        </li>
      ))}
    </ol>
  )
}

export function EventWords({ event }: { event: EventView }) {
  const { cluster, project, service, message } = event
  const subject = service !== null ? service.replace(`${project}/`, '') : null
  const href =
    subject === null ? null : cluster === null ? pages.service(project ?? '', subject) : pages.placement(cluster, project ?? '', subject)
  return (
    <>
      {subject !== null && href !== null && (
        <a class="mono" href={href}>
          {subject}
        </a>
      )}
      {cluster !== null && (
        <>
          {subject === null ? '' : ' in '}
          <a class="mono" href={pages.cluster(cluster)}>
            {cluster}
          </a>
        </>
      )}
      {subject !== null || cluster !== null ? ': ' : ''}
      <span title={message}>{message}</span>
    </>
  )
}
