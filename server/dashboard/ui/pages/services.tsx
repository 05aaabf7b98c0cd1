// All services: each with its state over all its clusters, worst first.
import { useMemo } from 'preact/hooks'
import { number, shortCommit } from '../format.ts'
import { Head } from '../parts/head.tsx'
import { MarkShape } from '../parts/mark.tsx'
import { Empty, Shown } from '../parts/states.tsx'
import { type Column, VirtualRows } from '../parts/virtual-rows.tsx'
import { useFilters } from '../state/address.ts'
import { byUrgency, serviceMark } from '../state/mark-of.ts'
import { pages } from '../state/place.ts'
import { type ServiceView, useServices } from '../state/reads.ts'
import { text } from '../words.ts'

const { columns: heads } = text.services

/** `project/name`. */
const keyOf = ({ metadata: { project = '', name } }: ServiceView): string => `${project}/${name}`

const COLUMNS: ReadonlyArray<Column<ServiceView>> = [
  {
    key: 'name',
    head: heads.name,
    width: 'minmax(0, 1.6fr)',
    cell: (service) => (
      <>
        <MarkShape mark={serviceMark(service)} />
        <span class="mono clip" title={keyOf(service)}>
          {keyOf(service)}
        </span>
      </>
    ),
  },
  {
    key: 'state',
    head: heads.state,
    width: 'minmax(0, 3fr)',
    cell: (service) => <span title={service.status.message}>{service.status.message || text.marks[serviceMark(service)]}</span>,
  },
  {
    key: 'clusters',
    head: heads.clusters,
    width: 'minmax(0, 1.2fr)',
    weight: 2,
    cell: ({ status }) => <ClusterCounts {...status.clusters} />,
  },
  {
    key: 'commit',
    head: heads.commit,
    width: '84px',
    weight: 3,
    cell: ({ status }) => <span class="mono muted">{status.commit === null ? '–' : shortCommit(status.commit)}</span>,
  },
  {
    key: 'objects',
    head: heads.objects,
    width: '64px',
    weight: 3,
    cell: ({ status }) => <span class="muted">{number(status.objectCount)}</span>,
  },
]

function ClusterCounts({ total, healthy, offline }: ServiceView['status']['clusters']) {
  return (
    <span class="muted">
      {text.services.healthyOf(healthy, total)}
      {offline > 0 && ` · ${text.services.offline(offline)}`}
    </span>
  )
}

export function ServicesPage() {
  const { filters, set } = useFilters()
  const { q = '' } = filters
  const services = useServices()
  const items = useMemo(() => {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean)
    return (services.value?.items ?? [])
      .filter((one) => words.every((word) => keyOf(one).includes(word)))
      .sort((a, b) => byUrgency(serviceMark(a), serviceMark(b)) || (keyOf(a) < keyOf(b) ? -1 : 1))
  }, [services.value, q])
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
        <span class="told">{number(items.length)}</span>
      </div>
      <div class="panel">
        <Shown of={services} rows={10}>
          {(page) =>
            items.length > 0 ? (
              <VirtualRows
                label={text.services.title}
                items={items}
                columns={COLUMNS}
                keyOf={keyOf}
                hrefOf={({ metadata: { project = '', name } }) => pages.service(project, name)}
              />
            ) : page.items.length === 0 ? (
              <Empty title={text.services.empty} next={text.services.emptyNext} />
            ) : (
              <Empty title={text.services.none} />
            )
          }
        </Shown>
      </div>
    </>
  )
}
