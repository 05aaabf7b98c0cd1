// Events as sentences: when, to what, where. Names that lead somewhere are links.
import { pages } from '../state/place.ts'
import type { EventView } from '../state/reads.ts'
import { TimeOfDay } from './time.tsx'

interface FeedProps {
  items: readonly EventView[]
  /** The page is about this cluster, or this service: it is not said again on each line. */
  in?: string
  of?: string
}

export function EventFeed({ items, in: cluster, of }: FeedProps) {
  return (
    <ol class="feed">
      {items.map((event) => (
        <li key={event.id}>
          <TimeOfDay ms={event.atMs} />
          <span class="what">
            <EventWords event={event} {...(cluster === undefined ? {} : { inside: cluster })} {...(of === undefined ? {} : { of })} />
          </span>
        </li>
      ))}
    </ol>
  )
}

export function EventWords({ event, inside, of }: { event: EventView; inside?: string; of?: string }) {
  const { project, message } = event
  const full = event.service === null ? null : event.service.replace(`${project}/`, '')
  const subject = full === of ? null : full
  const cluster = event.cluster === inside ? null : event.cluster
  const href =
    subject === null
      ? null
      : event.cluster === null
        ? pages.service(project ?? '', subject)
        : pages.placement(event.cluster, project ?? '', subject)
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
