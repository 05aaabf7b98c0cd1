// All repositories: what was read last, when, and what is wrong.
import { useCallback } from 'preact/hooks'
import { shortCommit } from '../format.ts'
import { Head } from '../parts/head.tsx'
import { MarkShape } from '../parts/mark.tsx'
import { Empty, PagedShown } from '../parts/states.tsx'
import { Age } from '../parts/time.tsx'
import { type Column, VirtualRows } from '../parts/virtual-rows.tsx'
import { useFilters } from '../state/address.ts'
import type { Mark } from '../state/mark-of.ts'
import { pages } from '../state/place.ts'
import { type RepositoryView, useRepositories } from '../state/reads.ts'
import { text } from '../words/first.ts'

const { columns: heads } = text.repositories
const keyOf = ({ metadata: { project = '', name } }: RepositoryView): string => `${project}/${name}`
export const repositoryMark = ({ status }: RepositoryView): Mark =>
  status.ready ? 'ok' : status.reason === 'NotFetched' ? 'changing' : 'bad'

export function sourceText({ spec }: RepositoryView): string {
  const { git, helm, oci } = spec as { git?: { url: string }; helm?: { url: string }; oci?: { url: string } }
  return git?.url ?? helm?.url ?? oci?.url ?? ''
}

const COLUMNS: ReadonlyArray<Column<RepositoryView>> = [
  {
    key: 'name',
    head: heads.name,
    width: 'minmax(0, 1.4fr)',
    cell: (one) => (
      <>
        <MarkShape mark={repositoryMark(one)} />
        <span class="mono clip" title={keyOf(one)}>
          {keyOf(one)}
        </span>
      </>
    ),
  },
  {
    key: 'state',
    head: heads.state,
    width: 'minmax(0, 2fr)',
    cell: ({ status }) => <span title={status.message}>{status.ready ? text.repositories.read : status.message}</span>,
  },
  {
    key: 'commit',
    head: heads.commit,
    width: '96px',
    weight: 2,
    cell: ({ status }) => (
      <span class="mono muted">{status.tag ?? (status.commit === null ? text.absent : shortCommit(status.commit))}</span>
    ),
  },
  {
    key: 'source',
    head: heads.source,
    width: 'minmax(0, 1.6fr)',
    weight: 3,
    cell: (one) => (
      <span class="mono muted" title={sourceText(one)}>
        {sourceText(one)}
      </span>
    ),
  },
  {
    key: 'looked',
    head: heads.looked,
    width: '110px',
    weight: 3,
    cell: ({ status }) => <span class="muted">{status.lastReadMs === null ? text.absent : <Age ms={status.lastReadMs} />}</span>,
  },
]

const FIRST_ROWS = 100

export function RepositoriesPage() {
  const { filters, set } = useFilters()
  const { q = '' } = filters
  const repositories = useRepositories({ search: q.trim() }, FIRST_ROWS)
  const { want } = repositories
  const onRange = useCallback(({ from, to }: { from: number; to: number }) => want(from, to), [want])
  return (
    <>
      <Head title={text.repositories.title} />
      <div class="filters">
        <input
          type="search"
          aria-label={text.repositories.filter}
          placeholder={text.repositories.filter}
          value={q}
          onInput={(event) => set({ q: event.currentTarget.value })}
        />
        <span class="told" role="status">
          {text.views.shown(repositories.items.length, null, repositories.hasMore)}
        </span>
      </div>
      <div class="panel">
        <PagedShown
          of={repositories}
          rows={5}
          empty={
            q === '' ? (
              <Empty title={text.repositories.empty} next={text.repositories.emptyNext} />
            ) : (
              <Empty title={text.repositories.none} />
            )
          }
        >
          {(items) => (
            <VirtualRows
              label={text.repositories.title}
              items={items}
              columns={COLUMNS}
              keyOf={keyOf}
              hrefOf={({ metadata: { project = '', name } }) => pages.repository(project, name)}
              onRange={onRange}
            />
          )}
        </PagedShown>
      </div>
    </>
  )
}
