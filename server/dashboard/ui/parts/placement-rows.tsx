// Services in clusters as a list of any length, read from the server page by page.
import { useCallback } from 'preact/hooks'
import { shortCommit } from '../format.ts'
import { call } from '../state/api.ts'
import { byUrgency, type Seen, seenOf } from '../state/mark-of.ts'
import { usePaged } from '../state/paged-list.ts'
import { pages } from '../state/place.ts'
import { concernsPlacements, type PlacementView } from '../state/reads.ts'
import { text } from '../words/first.ts'
import { awayWord } from './cluster-state.ts'
import { MarkShape } from './mark.tsx'
import { Empty, PagedShown } from './states.tsx'
import { Age } from './time.tsx'
import { type Column, VirtualRows } from './virtual-rows.tsx'

const PAGE_ROWS = 200
const { columns: heads } = text.services

/** The state of a service in a cluster, in words: for an offline cluster, that it is offline comes first. */
export function placementWord(one: PlacementView, seen: Seen = seenOf(one)): string {
  const away = awayWord(one, seen)
  return away ?? (one.message || text.marks[seen.mark])
}

const state: Column<PlacementView> = {
  key: 'state',
  head: heads.state,
  width: 'minmax(0, 2.4fr)',
  cell: (one) => <span title={[placementWord(one), one.message].filter(Boolean).join('\n')}>{placementWord(one)}</span>,
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
      <MarkShape {...seenOf(one)} />
      <span class="mono clip" title={nameOf(one)}>
        {nameOf(one)}
      </span>
    </>
  ),
})

/** The server sorts by words; with all rows at hand, marks decide: a failed render is a word of the server itself. */
function worstFirst(items: readonly PlacementView[]): readonly PlacementView[] {
  const last = (one: PlacementView) => seenOf(one).was ?? seenOf(one).mark
  return items
    .map((one) => ({ one, mark: last(one) }))
    .sort((a, b) => byUrgency(a.mark, b.mark))
    .map(({ one }) => one)
}

interface RowsProps {
  /** Rows are the clusters of one service, or the services of one cluster. */
  of: { project: string; service: string } | { cluster: string }
  health?: string
  sync?: string
  search?: string
}

const keyOf = ({ project, service, cluster }: PlacementView): string => `${cluster}/${project}/${service}`

export function PlacementRows({ of, health = '', sync = '', search = '' }: RowsProps) {
  const query = {
    ...of,
    health,
    sync,
    search,
    sort: search === '' && health === '' && sync === '' ? 'health' : 'cluster',
    limit: PAGE_ROWS,
  }
  const rows = usePaged<PlacementView>(
    JSON.stringify(query),
    (start, signal) => call('GET /placements', { query: { ...query, continue: start }, signal }),
    { keyOf, concerns: concernsPlacements('service' in of ? of : null), shown: PAGE_ROWS / 2 },
  )
  const { want } = rows
  const onRange = useCallback(({ from, to }: { from: number; to: number }) => want(from, to), [want])
  const isOfCluster = 'cluster' in of
  const first = isOfCluster
    ? named(heads.name, ({ project, service }) => `${project}/${service}`)
    : named(heads.cluster, ({ cluster }) => cluster)
  const columns = [first, state, commit, since]
  return (
    <PagedShown of={rows} rows={8} empty={<Empty title={isOfCluster ? text.clusters.noServices : text.services.nowhere} />}>
      {(items) => (
        <VirtualRows
          label={text.services.inClusters}
          items={rows.hasMore || query.sort !== 'health' ? items : worstFirst(items)}
          columns={columns}
          keyOf={keyOf}
          hrefOf={({ project, service, cluster }) => pages.placement(cluster, project, service)}
          rowClass={({ liveness }) => (liveness.word === 'Online' ? '' : 'is-away')}
          onRange={onRange}
        />
      )}
    </PagedShown>
  )
}
