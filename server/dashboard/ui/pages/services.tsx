// All services: each with its state over all its clusters, worst first. The server filters and sorts, so that every one
// of them is found however many there are.
import { useCallback, useMemo } from 'preact/hooks'
import { number, shortCommit } from '../format.ts'
import { Head } from '../parts/head.tsx'
import { MarkShape, seenWord } from '../parts/mark.tsx'
import { Empty, PagedShown } from '../parts/states.tsx'
import { ViewMenu } from '../parts/view-menu.tsx'
import { type Column, VirtualRows } from '../parts/virtual-rows.tsx'
import { useFilters } from '../state/address.ts'
import { chosenColumns, useListView } from '../state/list-view.ts'
import { serviceSeen } from '../state/mark-of.ts'
import { pages } from '../state/place.ts'
import { type ServiceQuery, type ServiceView, useServices } from '../state/reads.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'

const { columns: heads } = text.services
const FIRST_ROWS = 100

/** `project/name`. */
const keyOf = ({ metadata: { project = '', name } }: ServiceView): string => `${project}/${name}`
const projectOf = ({ metadata: { project = '' } }: ServiceView): string => project

const COLUMNS: ReadonlyArray<Column<ServiceView>> = [
  {
    key: 'name',
    head: heads.name,
    sort: 'name',
    width: 'minmax(0, 1.6fr)',
    cell: (service) => (
      <>
        <MarkShape {...serviceSeen(service)} />
        <span class="mono clip" title={keyOf(service)}>
          {keyOf(service)}
        </span>
      </>
    ),
  },
  {
    key: 'state',
    head: heads.state,
    sort: 'health',
    width: 'minmax(0, 3fr)',
    cell: (service) => <span title={service.status.message}>{stateWords(service)}</span>,
  },
  {
    key: 'clusters',
    head: heads.clusters,
    sort: 'clusters',
    width: 'minmax(0, 1.2fr)',
    weight: 2,
    cell: ({ status }) => <ClusterCounts {...status.clusters} />,
  },
  {
    key: 'commit',
    head: heads.commit,
    width: '84px',
    weight: 3,
    cell: ({ status }) => <span class="mono muted">{status.commit === null ? text.absent : shortCommit(status.commit)}</span>,
  },
  {
    key: 'objects',
    head: heads.objects,
    width: '64px',
    weight: 3,
    cell: ({ status }) => <span class="muted">{number(status.objectCount)}</span>,
  },
  {
    key: 'repository',
    head: text.repositories.one,
    width: 'minmax(0, 1fr)',
    weight: 3,
    isExtra: true,
    cell: ({ spec }) => <span class="mono muted">{(spec.source ?? spec.sources?.[0])?.repository ?? text.absent}</span>,
  },
]

function stateWords(service: ServiceView): string {
  const seen = serviceSeen(service)
  return seen.was !== null ? seenWord(seen) : service.status.message || text.marks[seen.mark]
}

function ClusterCounts({ total, healthy, offline }: ServiceView['status']['clusters']) {
  return (
    <span class="muted">
      {text.services.clustersOf(healthy, total)}
      {offline > 0 && ` · ${text.services.offline(offline)}`}
    </span>
  )
}

/** The words of the filter are those of the API. */
const FILTERS = Object.entries(more.services.filters)
function filterQuery(state: string): Partial<ServiceQuery> {
  if (state === '') return {}
  if (state === 'failing') return { failing: 'true' }
  return state === 'OutOfSync' ? { sync: state } : { health: state }
}

export function ServicesPage() {
  const { filters, set } = useFilters()
  const view = useListView('health')
  const { q = '', state = '' } = filters
  const isGrouped = view.group === 'project'
  const query = { search: q.trim(), ...filterQuery(state), sort: isGrouped ? 'name' : view.sort.key }
  const services = useServices(query, FIRST_ROWS)
  const { want } = services
  const onRange = useCallback(({ from, to }: { from: number; to: number }) => want(from, to), [want])
  const columns = useMemo(() => chosenColumns(COLUMNS, view.columns), [view.columns])
  const isFiltered = q !== '' || state !== ''
  return (
    <>
      <Head title={text.services.title} />
      <div class="filters">
        <input
          type="search"
          aria-label={text.services.filter}
          placeholder={text.services.filter}
          value={q}
          onInput={(event) => set({ q: event.currentTarget.value })}
        />
        <select aria-label={text.services.anyState} value={state} onChange={(event) => set({ state: event.currentTarget.value })}>
          {FILTERS.map(([key, label]) => (
            <option key={key} value={key}>
              {label}
            </option>
          ))}
        </select>
        <ViewMenu list="services" view={view} columns={COLUMNS} groups={[{ key: 'project', label: text.services.project }]} />
        <span class="told" role="status">
          {text.views.shown(services.items.length, services.total, services.hasMore)}
        </span>
      </div>
      <div class="panel">
        <PagedShown
          of={services}
          rows={10}
          empty={isFiltered ? <Empty title={text.services.none} /> : <Empty title={text.services.empty} next={text.services.emptyNext} />}
        >
          {(items) => (
            <VirtualRows
              label={text.services.title}
              items={items}
              columns={columns}
              keyOf={keyOf}
              hrefOf={({ metadata: { project = '', name } }) => pages.service(project, name)}
              rowClass={(one) => (serviceSeen(one).mark === 'offline' ? 'is-away' : '')}
              onRange={onRange}
              sort={view.sort}
              onSort={({ key }) => view.set({ sort: { key, isDown: false }, group: '' })}
              {...(isGrouped ? { groupOf: projectOf } : {})}
            />
          )}
        </PagedShown>
      </div>
    </>
  )
}
