// Events as sentences: when, to what, where. Names that lead somewhere are links.
import { pages } from '../state/place.ts'
import type { EventView } from '../state/reads.ts'
import { text } from '../words/first.ts'
import { Command } from './state-note.tsx'
import { TimeOfDay } from './time.tsx'

interface FeedProps {
  items: readonly EventView[]
  /** The page is about this cluster, or this service: it is not said again on each line. */
  in?: string
  of?: string
  most?: number
}

export function EventFeed({ items, in: cluster, of, most = 20 }: FeedProps) {
  return (
    <ol class="feed">
      {grouped(items)
        .slice(0, most)
        .map(({ event, clusters }) => (
          <li key={event.id}>
            <TimeOfDay ms={event.atMs} />
            <span class="what">
              <EventWords
                event={event}
                clusters={clusters}
                {...(cluster === undefined ? {} : { inside: cluster })}
                {...(of === undefined ? {} : { of })}
              />
            </span>
          </li>
        ))}
    </ol>
  )
}

export interface Said {
  event: EventView
  /** In how many it happened; 1: the one of the event. */
  clusters: number
}

/** The same in many clusters is one sentence, at the time of the first of `items`. Again in one cluster is said again.
 */
export function grouped(items: readonly EventView[]): Said[] {
  const said = new Map<string, { event: EventView; clusters: Set<string> }>()
  for (const event of items) {
    const { project, service, reason, message, cluster, id } = event
    const same = `${project}/${service} ${reason} ${message}`
    const held = cluster === null ? undefined : said.get(same)
    if (cluster !== null && held !== undefined && !held.clusters.has(cluster)) held.clusters.add(cluster)
    else said.set(cluster === null || held !== undefined ? `${id}` : same, { event, clusters: new Set(cluster === null ? [] : [cluster]) })
  }
  return [...said.values()].map(({ event, clusters }) => ({ event, clusters: Math.max(1, clusters.size) }))
}

interface WordsProps {
  event: EventView
  clusters?: number
  inside?: string
  of?: string
}

export function EventWords({ event, clusters = 1, inside, of }: WordsProps) {
  const { project, message } = event
  const full = event.service === null ? null : event.service.replace(`${project}/`, '')
  const subject = full === of ? null : full
  const cluster = event.cluster === inside || clusters > 1 ? null : event.cluster
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
          {subject !== null && ` ${text.in} `}
          <a class="mono" href={pages.cluster(cluster)}>
            {cluster}
          </a>
        </>
      )}
      {clusters > 1 && `${subject === null ? '' : ` ${text.in} `}${text.n.clusters(clusters)}`}
      {subject !== null || cluster !== null || clusters > 1 ? ': ' : ''}
      <span title={message}>
        <Command words={message} />
      </span>
    </>
  )
}
