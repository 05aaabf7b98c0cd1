// All clusters: the rows of the chart as a list, worst first. Filters, order, groups and columns are in the address; a
// row opens beside the list, Enter opens the page.

import { useEffect, useMemo } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { ChartCluster, ChartView } from '../../../../shared/model/chart.ts'
import { number } from '../format.ts'
import { stateWords } from '../parts/chart.tsx'
import { ClusterSide } from '../parts/cluster-side.tsx'
import { Head } from '../parts/head.tsx'
import { MarkShape } from '../parts/mark.tsx'
import { Empty, RefusalNote, Shown } from '../parts/states.tsx'
import { Age } from '../parts/time.tsx'
import { ViewMenu } from '../parts/view-menu.tsx'
import { type Column, VirtualRows } from '../parts/virtual-rows.tsx'
import { useFilters } from '../state/address.ts'
import { call } from '../state/api.ts'
import { filterClusters, groupClusters, sortClusters } from '../state/cluster-list.ts'
import { fleet, numbers, showGroup, worstFirst } from '../state/fleet.ts'
import { chosenColumns, useListView } from '../state/list-view.ts'
import { lastKnownMark, MARKS, markOfCluster } from '../state/mark-of.ts'
import { pages } from '../state/place.ts'
import { useResource } from '../state/resource.ts'
import { text } from '../words/first.ts'

const { columns: heads } = text.clusters

const columnsBy = (group: string | null): ReadonlyArray<Column<ChartCluster>> => [
  { key: 'name', head: heads.name, sort: 'name', width: 'minmax(0, 2fr)', cell: (cluster) => <NameCell cluster={cluster} /> },
  { key: 'state', head: heads.state, sort: 'state', width: 'minmax(0, 2fr)', cell: (cluster) => <StateCell cluster={cluster} /> },
  {
    key: 'services',
    head: heads.services,
    sort: 'services',
    width: 'minmax(0, 1.4fr)',
    weight: 2,
    cell: ({ bad, services }) => text.fleet.syncOf(bad, services),
  },
  {
    key: 'group',
    head: group ?? heads.labels,
    width: 'minmax(0, 1fr)',
    weight: 3,
    cell: ({ group: value }) => (
      <span class="muted" title={value ?? undefined}>
        {value ?? text.absent}
      </span>
    ),
  },
  {
    key: 'drifts',
    head: heads.drifts,
    width: '64px',
    weight: 3,
    isExtra: true,
    cell: ({ drifts }) => <span class="muted">{number(drifts)}</span>,
  },
  {
    key: 'seen',
    head: heads.seen,
    sort: 'seen',
    width: '96px',
    weight: 3,
    cell: ({ liveness }) => <span class="muted">{liveness.lastSeenMs === null ? text.absent : <Age ms={liveness.lastSeenMs} />}</span>,
  },
]

function NameCell({ cluster }: { cluster: ChartCluster }) {
  const mark = markOfCluster(cluster)
  return (
    <>
      <MarkShape mark={mark} was={mark === 'offline' ? lastKnownMark(cluster) : null} />
      <span class="mono clip" title={cluster.name}>
        {cluster.name}
      </span>
    </>
  )
}

function StateCell({ cluster }: { cluster: ChartCluster }) {
  const mark = markOfCluster(cluster)
  const words = stateWords(cluster, mark, mark === 'offline' ? lastKnownMark(cluster) : null)
  return <span title={words}>{words}</span>
}

const groupOf = ({ group }: ChartCluster): string => group ?? text.fleet.noValue

export function ClustersPage() {
  const { route } = useLocation()
  const { filters, set } = useFilters()
  const view = useListView('state')
  const shown = { ...fleet.state.value, refresh: () => fleet.refresh() }
  const { q = '', state = '', labels = '', cluster: chosen = '' } = filters
  const selected = useSelected(labels)
  const by = shown.value?.by ?? null
  // An address names the label of its groups; the chart has to know the values of that one.
  useEffect(() => {
    if (view.group !== '' && by !== null && view.group !== by) showGroup(view.group)
  }, [view.group, by])
  const all = useMemo(() => columnsBy(by), [by])
  const columns = useMemo(() => chosenColumns(all, view.columns), [all, view.columns])
  const worst = worstFirst.value
  const isGrouped = view.group !== '' && view.group === by
  const { key, isDown } = view.sort
  const items = useMemo(() => {
    const sorted = sortClusters(filterClusters(worst, { q, state, ids: labels === '' ? null : selected.value }), { key, isDown })
    return isGrouped ? groupClusters(sorted) : sorted
  }, [worst, q, state, labels, selected.value, key, isDown, isGrouped])
  const groups = (shown.value?.labels ?? []).map((one) => ({ key: one.key, label: one.key }))
  return (
    <>
      <Head title={text.clusters.title} />
      <div class="filters">
        <input
          type="search"
          aria-label={text.clusters.filter}
          placeholder={text.clusters.filter}
          value={q}
          onInput={(event) => set({ q: event.currentTarget.value })}
        />
        <input
          class="mono"
          aria-label={text.clusters.label}
          placeholder={text.clusters.labelPlaceholder}
          value={labels}
          onChange={(event) => set({ labels: event.currentTarget.value })}
        />
        <StateChips state={state} onChoose={(mark) => set({ state: mark })} />
        <ViewMenu list="clusters" view={view} columns={all} groups={groups} />
        <span class="told" role="status">
          {text.n.clusters(items.length)}
        </span>
      </div>
      {selected.refusal !== null && labels !== '' && <RefusalNote refusal={selected.refusal} />}
      <div class={chosen === '' ? 'with-side' : 'with-side is-open'}>
        <div class="panel">
          <Shown of={shown} rows={12}>
            {({ clusters }) =>
              items.length === 0 ? (
                <Empty
                  title={clusters.size === 0 ? text.fleet.empty : text.clusters.none}
                  {...(clusters.size === 0 ? { next: text.fleet.emptyNext } : {})}
                />
              ) : (
                <VirtualRows
                  label={text.clusters.title}
                  items={items}
                  columns={columns}
                  keyOf={({ name }) => name}
                  hrefOf={({ name }) => pages.cluster(name)}
                  rowClass={({ liveness }) => (liveness.word === 'Online' ? '' : 'is-away')}
                  chosen={chosen}
                  onChoose={({ name }) => (window.innerWidth < 700 ? route(pages.cluster(name)) : set({ cluster: name }))}
                  sort={view.sort}
                  onSort={(sort) => view.set({ sort })}
                  {...(isGrouped ? { groupOf } : {})}
                />
              )
            }
          </Shown>
        </div>
        {chosen !== '' && <ClusterSide name={chosen} onClose={() => set({ cluster: undefined })} />}
      </div>
    </>
  )
}

function StateChips({ state, onChoose }: { state: string; onChoose(mark: string | undefined): void }) {
  const known = numbers.value
  return (
    <fieldset class="chips">
      <legend class="hidden">{heads.state}</legend>
      {MARKS.map((mark) => (
        <button key={mark} type="button" aria-pressed={state === mark} onClick={() => onChoose(state === mark ? undefined : mark)}>
          <MarkShape mark={mark} />
          {text.marks[mark]}
          <span class="faint">{known === null ? '' : number(known.marks[mark])}</span>
        </button>
      ))}
    </fieldset>
  )
}

/** Ids of the clusters that a label selector chooses; the server reads selectors. A cluster that joins may be one of
 *  them. */
function useSelected(labels: string) {
  return useResource(
    `selected ${labels}`,
    async (signal) => {
      const ids = new Set<string>()
      for (let next: string | null = labels === '' ? null : ''; next !== null; ) {
        const page: ChartView = await call('GET /chart', { query: { labelSelector: labels, continue: next }, signal })
        for (const { id } of page.items) ids.add(id)
        next = page.continue
      }
      return ids
    },
    ({ topic }) => labels !== '' && (topic === 'resource' || topic === 'cluster'),
  )
}
