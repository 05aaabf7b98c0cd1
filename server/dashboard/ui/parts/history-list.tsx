// History: status changes with their causes, newest first, of a service in a cluster or of a whole cluster.
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { HistoryView, TimelineView } from '../../../../shared/model/history.ts'
import { number, shortCommit, writtenBy } from '../format.ts'
import { call, type Page } from '../state/api.ts'
import { onChanges } from '../state/live.ts'
import { type Mark, markOfWords } from '../state/mark-of.ts'
import { PagedList } from '../state/paged-list.ts'
import { createPauser } from '../state/pause.ts'
import { pages, part } from '../state/place.ts'
import { text } from '../words.ts'
import { more } from '../words-more.ts'
import { MarkShape } from './mark.tsx'
import { Empty, RefusalNote, Waiting } from './states.tsx'
import { Moment } from './time.tsx'

export interface HistoryOf {
  cluster: string
  /** Absent: all services of the cluster. */
  service?: { project: string; name: string }
}
type Entry = HistoryView & Partial<Pick<TimelineView, 'project' | 'service'>>

const PAGE = 50
const words = more.history

function useEntries({ cluster, service }: HistoryOf, shown: number) {
  const path =
    service === undefined
      ? `/clusters/${part(cluster)}/history`
      : `/projects/${part(service.project)}/services/${part(service.name)}/history`
  const list = useMemo(
    () =>
      new PagedList<Entry>(
        (start, signal) =>
          call<Page<Entry>>('GET', path, {
            query: { limit: PAGE, continue: start, ...(service === undefined ? {} : { cluster }) },
            signal,
          }),
        ({ atMs, project = '', service: name = '', reason }) => `${atMs} ${project}/${name} ${reason}`,
      ),
    [path, cluster],
  )
  useEffect(() => list.want(0, shown - 1), [list, shown])
  useEffect(() => {
    const pause = createPauser(() => list.changed())
    const stop = onChanges((changes) => {
      if (changes === 'all' || changes.some(({ topic }) => topic === 'status' || topic === 'event')) pause.soon()
    })
    return () => {
      stop()
      pause.stop()
      list.stop()
    }
  }, [list])
  return list.state.value
}

/** `most`: a part of another page; absent: as many as people ask for. */
export function HistoryList({ of, most }: { of: HistoryOf; most?: number }) {
  const [shown, setShown] = useState(most ?? PAGE)
  const { items, hasMore, isFirst, refusal } = useEntries(of, shown)
  if (isFirst && refusal === null) return <Waiting rows={most === undefined ? 10 : 3} />
  return (
    <>
      {refusal !== null && <RefusalNote refusal={refusal} />}
      {items.length === 0 && refusal === null && <Empty title={text.placement.noHistory} />}
      <ol class="history">
        {items.slice(0, shown).map((one) => (
          <Change key={`${one.atMs}${one.project}${one.service}${one.reason}`} of={one} cluster={of.cluster} />
        ))}
      </ol>
      {most === undefined && (hasMore || shown < items.length) && (
        <div class="row spread list-foot">
          <span class="small muted">{words.shown(number(Math.min(shown, items.length)))}</span>
          <button type="button" onClick={() => setShown(shown + PAGE)}>
            {words.older}
          </button>
        </div>
      )}
    </>
  )
}

function Change({ of, cluster }: { of: Entry; cluster: string }) {
  const { sync, health, reason, commit, cause, project, service, atMs } = of
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
