// History: status changes with their causes, newest first, of a service in a cluster or of a whole cluster.
import { useState } from 'preact/hooks'
import type { HistoryView, TimelineView } from '../../../../shared/model/history.ts'
import { shortCommit, writtenBy } from '../format.ts'
import { call, type Page } from '../state/api.ts'
import { type Mark, markOfWords } from '../state/mark-of.ts'
import { usePaged } from '../state/paged-list.ts'
import { pages } from '../state/place.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { MarkShape } from './mark.tsx'
import { Empty, ListFoot, PagedShown } from './states.tsx'
import { Moment } from './time.tsx'

export interface HistoryOf {
  cluster: string
  /** Absent means all services of the cluster. */
  service?: { project: string; name: string }
}
type Entry = HistoryView | TimelineView

/** In the timeline of a cluster, the service that an entry is about. */
const placeOf = (of: Entry): { project: string | null; service: string | null } => ('project' in of ? of : { project: null, service: null })
function keyOf(of: Entry): string {
  const { project, service } = placeOf(of)
  return `${of.atMs} ${project ?? ''}/${service ?? ''} ${of.reason}`
}

const PAGE = 50
const words = more.history

function useEntries({ cluster, service }: HistoryOf, shown: number) {
  const read = (start: string | null, signal: AbortSignal): Promise<Page<Entry>> => {
    const query = { limit: PAGE, continue: start }
    if (service === undefined) return call('GET /clusters/:name/history', { params: { name: cluster }, query, signal })
    const { project, name } = service
    return call('GET /projects/:project/services/:name/history', { params: { project, name }, query: { ...query, cluster }, signal })
  }
  return usePaged<Entry>(`history ${service === undefined ? '' : `${service.project}/${service.name}`} ${cluster}`, read, {
    keyOf,
    concerns: ({ topic }) => topic === 'status' || topic === 'event',
    shown,
  })
}

/** `most`: a part of another page. Absent means as many as people ask for. */
export function HistoryList({ of, most }: { of: HistoryOf; most?: number }) {
  const [shown, setShown] = useState(most ?? PAGE)
  const entries = useEntries(of, shown)
  return (
    <PagedShown of={entries} rows={most === undefined ? 10 : 3} empty={<Empty title={text.placement.noHistory} />}>
      {(items) => (
        <>
          <ol class="history">
            {items.slice(0, shown).map((one) => (
              <Change key={keyOf(one)} of={one} cluster={of.cluster} />
            ))}
          </ol>
          {most === undefined && <ListFoot of={entries} shown={Math.min(shown, items.length)} more={() => setShown(shown + PAGE)} />}
        </>
      )}
    </PagedShown>
  )
}

function Change({ of, cluster }: { of: Entry; cluster: string }) {
  const { sync, health, reason, commit, cause, atMs } = of
  const { project, service } = placeOf(of)
  const mark: Mark = sync === null || health === null ? 'unknown' : markOfWords({ sync, health }, reason)
  const state = [sync, health].filter((word) => word !== null).join(' · ')
  return (
    <li>
      <MarkShape mark={mark} />
      <div class="said">
        <p>
          {project && service && (
            <>
              <a class="mono" href={pages.placement(cluster, project, service)}>
                {project}/{service}
              </a>{' '}
            </>
          )}
          <b>{state}</b>
          {reason !== '' && reason !== sync && reason !== health && <span class="muted"> {reason}</span>}
          {commit !== null && <span class="mono faint"> {shortCommit(commit)}</span>}
        </p>
        {cause === null ? (
          writtenBy(of) !== '' && <p class="small muted">{writtenBy(of)}</p>
        ) : (
          <p class="small muted">
            {!cause.text.startsWith(words.causes[cause.kind]) && (
              <>
                <span class="tag">{words.causes[cause.kind]}</span>{' '}
              </>
            )}
            {cause.text === reason ? '' : cause.text}
            {cause.by !== null && !cause.text.includes(cause.by) && ` ${words.by(cause.by)}`}
          </p>
        )}
      </div>
      <span class="small faint">
        <Moment ms={atMs} />
      </span>
    </li>
  )
}
