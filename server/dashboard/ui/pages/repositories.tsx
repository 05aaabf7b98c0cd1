// All repositories: what was read last, when, and what is wrong.
import { shortCommit } from '../format.ts'
import { Head } from '../parts/head.tsx'
import { MarkShape } from '../parts/mark.tsx'
import { Empty, Shown } from '../parts/states.tsx'
import { Age } from '../parts/time.tsx'
import { type Column, VirtualRows } from '../parts/virtual-rows.tsx'
import type { Mark } from '../state/mark-of.ts'
import { pages } from '../state/place.ts'
import { type RepositoryView, useRepositories } from '../state/reads.ts'
import { text } from '../words.ts'

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
        <span class="mono clip">{keyOf(one)}</span>
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
    cell: ({ status }) => <span class="mono muted">{status.tag ?? (status.commit === null ? '–' : shortCommit(status.commit))}</span>,
  },
  {
    key: 'source',
    head: heads.source,
    width: 'minmax(0, 1.6fr)',
    weight: 3,
    cell: (one) => <span class="mono muted">{sourceText(one)}</span>,
  },
  {
    key: 'looked',
    head: heads.looked,
    width: '110px',
    weight: 3,
    cell: ({ status }) => <span class="muted">{status.lastReadMs === null ? '–' : <Age ms={status.lastReadMs} />}</span>,
  },
]

export function RepositoriesPage() {
  const repositories = useRepositories()
  return (
    <>
      <Head title={text.repositories.title} />
      <div class="panel">
        <Shown of={repositories} rows={5}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title={text.repositories.empty} next={text.repositories.emptyNext} />
            ) : (
              <VirtualRows
                label={text.repositories.title}
                items={items}
                columns={COLUMNS}
                keyOf={keyOf}
                hrefOf={({ metadata: { project = '', name } }) => pages.repository(project, name)}
              />
            )
          }
        </Shown>
      </div>
    </>
  )
}
