// All clusters: the rows of the chart as a list, worst first. Filters are in the address; a row opens beside the list, Enter opens the page.

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
import { type Column, VirtualRows } from '../parts/virtual-rows.tsx'
import { useFilters } from '../state/address.ts'
import { call } from '../state/api.ts'
import { fleet, worstFirst } from '../state/fleet.ts'
import { MARKS, markOfCluster } from '../state/mark-of.ts'
import { pages } from '../state/place.ts'
import { useResource } from '../state/resource.ts'
import { text } from '../words.ts'

const { columns: heads } = text.clusters

const columnsBy = (group: string | null): ReadonlyArray<Column<ChartCluster>> => [
  { key: 'name', head: heads.name, width: 'minmax(0, 2fr)', cell: (cluster) => <NameCell cluster={cluster} /> },
  { key: 'state', head: heads.state, width: 'minmax(0, 2fr)', cell: (cluster) => stateWords(cluster, markOfCluster(cluster)) },
  {
    key: 'services',
    head: heads.services,
    width: 'minmax(0, 1.4fr)',
    weight: 2,
    cell: ({ bad, services }) => text.fleet.servicesOf(bad, services),
  },
  {
    key: 'group',
    head: group ?? heads.labels,
    width: 'minmax(0, 1fr)',
    weight: 3,
    cell: ({ group: value }) => <span class="muted">{value ?? '–'}</span>,
  },
  {
    key: 'seen',
    head: heads.seen,
    width: '90px',
    weight: 3,
    cell: ({ liveness }) => <span class="muted">{liveness.lastSeenMs === null ? '–' : <Age ms={liveness.lastSeenMs} />}</span>,
  },
]

function NameCell({ cluster }: { cluster: ChartCluster }) {
  return (
    <>
      <MarkShape mark={markOfCluster(cluster)} />
      <span class="mono clip" title={cluster.name}>
        {cluster.name}
      </span>
    </>
  )
}

export function ClustersPage() {
  const { route } = useLocation()
  const { filters, set } = useFilters()
  useEffect(() => fleet.use(), [])
  const shown = { ...fleet.state.value, refresh: () => fleet.refresh() }
  const { q = '', state = '', labels = '', cluster: chosen = '' } = filters
  const selected = useSelected(labels)
  const columns = useMemo(() => columnsBy(shown.value?.by ?? null), [shown.value?.by])
  const all = worstFirst.value
  const items = useMemo(() => {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean)
    const ids = labels === '' ? null : selected.value
    if (words.length === 0 && state === '' && ids === null) return all
    return all.filter(
      (one) =>
        words.every((word) => one.name.includes(word)) &&
        (state === '' || markOfCluster(one) === state) &&
        (ids === null || ids.has(one.id)),
    )
  }, [all, q, state, labels, selected.value])
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
        <span class="told">{number(items.length)}</span>
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
  return (
    <fieldset class="chips">
      <legend class="hidden">{heads.state}</legend>
      {MARKS.map((mark) => (
        <button key={mark} type="button" aria-pressed={state === mark} onClick={() => onChoose(state === mark ? undefined : mark)}>
          <MarkShape mark={mark} />
          {text.marks[mark]}
        </button>
      ))}
    </fieldset>
  )
}

/** Ids of the clusters that a label selector chooses; the server reads selectors. */
function useSelected(labels: string) {
  return useResource(
    `selected ${labels}`,
    async (signal) =>
      labels === ''
        ? new Set<string>()
        : new Set((await call<ChartView>('GET', '/chart', { query: { labelSelector: labels }, signal })).items.map(({ id }) => id)),
    ({ topic }) => labels !== '' && topic === 'resource',
  )
}
