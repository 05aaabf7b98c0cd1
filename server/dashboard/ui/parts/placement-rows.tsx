// Services in clusters as a list of any length, read from the server page by page.
import { useCallback, useEffect, useMemo } from 'preact/hooks'
import { shortCommit } from '../format.ts'
import { call, type Page } from '../state/api.ts'
import { onChanges } from '../state/live.ts'
import { markOfWords } from '../state/mark-of.ts'
import { PagedList } from '../state/paged-list.ts'
import { createPauser } from '../state/pause.ts'
import { pages } from '../state/place.ts'
import type { PlacementView } from '../state/reads.ts'
import { text } from '../words.ts'
import { MarkShape } from './mark.tsx'
import { Empty, RefusalNote, Waiting } from './states.tsx'
import { Age } from './time.tsx'
import { type Column, VirtualRows } from './virtual-rows.tsx'

const PAGE_ROWS = 200
const { columns: heads } = text.services

const state: Column<PlacementView> = {
  key: 'state',
  head: heads.state,
  width: 'minmax(0, 2.4fr)',
  cell: (one) => <span title={one.message}>{one.message || text.marks[markOfWords(one, one.reason)]}</span>,
}
const commit: Column<PlacementView> = {
  key: 'commit',
  head: text.services.columns.applied,
  width: '84px',
  weight: 3,
  cell: ({ applied }) => <span class="mono muted">{applied === null ? '–' : shortCommit(applied.commit)}</span>,
}
const since: Column<PlacementView> = {
  key: 'since',
  head: text.states.since,
  width: '72px',
  weight: 2,
  cell: ({ sinceMs }) => <span class="muted">{sinceMs === null ? '–' : <Age ms={sinceMs} />}</span>,
}
const named = (head: string, nameOf: (one: PlacementView) => string): Column<PlacementView> => ({
  key: 'name',
  head,
  width: 'minmax(0, 1.8fr)',
  cell: (one) => (
    <>
      <MarkShape mark={one.liveness.word === 'Offline' ? 'offline' : markOfWords(one, one.reason)} />
      <span class="mono clip" title={nameOf(one)}>
        {nameOf(one)}
      </span>
    </>
  ),
})

interface RowsProps {
  /** Rows are the clusters of one service, or the services of one cluster. */
  of: { project: string; service: string } | { cluster: string }
  health?: string
  sync?: string
  search?: string
}

export function PlacementRows({ of, health = '', sync = '', search = '' }: RowsProps) {
  const key = JSON.stringify([of, health, sync, search])
  // The key says all that the list depends on.
  const list = useMemo(() => {
    const query = {
      ...of,
      health,
      sync,
      search,
      sort: search === '' && health === '' && sync === '' ? 'health' : 'cluster',
      limit: PAGE_ROWS,
    }
    return new PagedList<PlacementView>(
      (start, signal) => call<Page<PlacementView>>('GET', '/placements', { query: { ...query, continue: start }, signal }),
      ({ project, service, cluster }) => `${cluster}/${project}/${service}`,
    )
  }, [key])
  useEffect(() => {
    const pause = createPauser(() => list.changed())
    const name = 'service' in of ? `${of.project}/${of.service}` : null
    const stop = onChanges((changes) => {
      const isHere =
        changes === 'all' ||
        changes.some(({ topic, keys }) =>
          topic === 'status'
            ? name === null || keys === null || keys.some((one) => one.includes(name))
            : topic === 'desired' || topic === 'confirmation',
        )
      if (isHere) pause.soon()
    })
    list.want(0, PAGE_ROWS / 2)
    return () => {
      stop()
      pause.stop()
      list.stop()
    }
  }, [list])
  const onRange = useCallback(({ from, to }: { from: number; to: number }) => list.want(from, to), [list])
  const { items, isFirst, refusal } = list.state.value
  const columns =
    'cluster' in of
      ? [named(heads.name, ({ project, service }) => `${project}/${service}`), state, commit, since]
      : [named(heads.cluster, ({ cluster }) => cluster), state, commit, since]
  if (isFirst && refusal === null) return <Waiting rows={8} />
  return (
    <>
      {refusal !== null && <RefusalNote refusal={refusal} retry={() => list.changed()} />}
      {items.length === 0 ? (
        refusal === null && <Empty title={'cluster' in of ? text.clusters.noServices : text.services.nowhere} />
      ) : (
        <VirtualRows
          label={text.services.inClusters}
          items={items}
          columns={columns}
          keyOf={({ project, service, cluster }) => `${cluster}/${project}/${service}`}
          hrefOf={({ project, service, cluster }) => pages.placement(cluster, project, service)}
          rowClass={({ liveness }) => (liveness.word === 'Online' ? '' : 'is-away')}
          onRange={onRange}
        />
      )}
    </>
  )
}
