// One repository: its state, its commits with what each changed or broke where, its services, and what each of them
// reads.

import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import type { CommitView } from '../../../../shared/model/commits.ts'
import { shortCommit, writtenBy } from '../format.ts'
import { Head } from '../parts/head.tsx'
import { MarkShape } from '../parts/mark.tsx'
import { ProblemList } from '../parts/problems.tsx'
import { RefreshButton } from '../parts/service-actions.tsx'
import { StateNote } from '../parts/state-note.tsx'
import { Empty, ListFoot, PagedShown, Section, Shown, Table } from '../parts/states.tsx'
import { Age } from '../parts/time.tsx'
import { call } from '../state/api.ts'
import { serviceSeen } from '../state/mark-of.ts'
import { usePaged } from '../state/paged-list.ts'
import { pages } from '../state/place.ts'
import { type ServiceView, useRepository, useServices } from '../state/reads.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { repositoryMark, sourceText } from './repositories.tsx'

const SERVICES_SHOWN = 50
const COMMITS_SHOWN = 20

interface Of {
  project: string
  name: string
}

export function RepositoryPage() {
  const { params } = useRoute()
  const { project = '', repository: name = '' } = params
  const repository = useRepository(project, name)
  return (
    <>
      <Head title={name} named crumb={<a href={pages.repositories()}>{`${text.nav.repositories} / ${project}`}</a>} />
      <div class="detail">
        <div class="stack wide">
          <div class="panel">
            <Shown of={repository}>
              {(view) => (
                <>
                  <StateNote
                    mark={repositoryMark(view)}
                    word={view.status.ready ? text.repositories.read : text.repositories.unread}
                    state={{ sync: '', health: '', ...view.status }}
                  >
                    <RefreshButton project={project} name={name} />
                  </StateNote>
                  <ProblemList title={text.repositories.errors} problems={view.status.problems} />
                </>
              )}
            </Shown>
          </div>
          <section>
            <div class="section-head">
              <h2>{text.repositories.commits}</h2>
            </div>
            <div class="panel">
              <Commits project={project} name={name} />
            </div>
          </section>
        </div>
        <div class="stack wide">
          <Shown of={repository}>
            {(view) => (
              <dl class="facts panel padded">
                <dt>{text.repositories.columns.source}</dt>
                <dd class="mono">{sourceText(view)}</dd>
                <dt>{text.repositories.columns.commit}</dt>
                <dd class="mono">{view.status.commit === null ? text.absent : shortCommit(view.status.commit)}</dd>
                <dt>{text.repositories.columns.looked}</dt>
                <dd>{view.status.lastReadMs === null ? text.repositories.never : <Age ms={view.status.lastReadMs} />}</dd>
              </dl>
            )}
          </Shown>
          <Readers project={project} name={name} />
        </div>
      </div>
    </>
  )
}

function Commits({ project, name }: Of) {
  const [shown, setShown] = useState(COMMITS_SHOWN)
  const commits = usePaged<CommitView>(
    `commits ${project}/${name}`,
    (start, signal) =>
      call('GET /projects/:project/repositories/:name/commits', {
        params: { project, name },
        query: { limit: COMMITS_SHOWN, continue: start },
        signal,
      }),
    {
      keyOf: ({ commit }) => commit,
      concerns: ({ topic }) => topic === 'render' || topic === 'desired' || topic === 'repository',
      shown,
    },
  )
  return (
    <PagedShown of={commits} rows={4} empty={<Empty title={more.commits.empty} />}>
      {(items) => (
        <>
          <ol class="commits">
            {items.map((one) => (
              <Commit key={one.commit} of={one} project={project} />
            ))}
          </ol>
          <ListFoot of={commits} shown={items.length} more={() => setShown(items.length + COMMITS_SHOWN)} />
        </>
      )}
    </PagedShown>
  )
}

function Commit({ of, project }: { of: CommitView; project: string }) {
  const { commit, seenMs, current, changed, failed } = of
  const words = more.commits
  return (
    <li class={failed.length > 0 ? 'is-bad' : changed.length === 0 ? 'is-quiet' : ''}>
      <div class="row spread">
        <span class="row">
          <b class="mono" title={commit}>
            {shortCommit(commit)}
          </b>
          {current && <span class="tag">{words.current}</span>}
        </span>
        <span class="small faint">
          <Age ms={seenMs} />
        </span>
      </div>
      {writtenBy(of) !== '' && <p>{writtenBy(of)}</p>}
      {changed.length > 0 && (
        <p class="small">
          {words.changed(changed.length)}{' '}
          {changed.map(({ service, clusters }, index) => (
            <span key={service}>
              {index > 0 && ', '}
              <a href={pages.service(project, service)}>{words.inClusters(service, clusters)}</a>
            </span>
          ))}
        </p>
      )}
      {changed.length + failed.length === 0 && <p class="small muted">{current ? words.noneYet : words.none}</p>}
      {failed.map(({ service, message, problems }) => (
        <div key={service} class="stack">
          <p class="small">
            <a href={pages.service(project, service)}>{words.failed(service)}</a>: {message}
          </p>
          <ProblemList title="" problems={problems} />
        </div>
      ))}
    </li>
  )
}

/** Which service reads what: of this repository, and besides. */
function Readers({ project, name }: Of) {
  const [shown, setShown] = useState(SERVICES_SHOWN)
  const services = useServices({ project, repository: name, sort: 'health' }, shown)
  const { inputs } = more
  return (
    <Section title={inputs.title}>
      <div class="panel table-wrap">
        <PagedShown of={services} rows={3} empty={<Empty title={inputs.none} />}>
          {(items) => (
            <>
              <Table label={inputs.title} heads={[inputs.columns.service, inputs.columns.reads]}>
                {items.map((one) => (
                  <tr key={one.metadata.name}>
                    <td class="wraps">
                      <a class="mark" href={pages.service(project, one.metadata.name)}>
                        <MarkShape {...serviceSeen(one)} />
                        <span class="mono">{one.metadata.name}</span>
                      </a>
                    </td>
                    <td class="wraps" data-head={inputs.columns.reads}>
                      <span class="mono">{readsOf(one, name).here.join(', ') || inputs.whole}</span>
                      {readsOf(one, name).also.map((also) => (
                        <span key={also} class="block small muted">
                          {also}
                        </span>
                      ))}
                    </td>
                  </tr>
                ))}
              </Table>
              {services.hasMore && <ListFoot of={services} shown={items.length} more={() => setShown(items.length + SERVICES_SHOWN)} />}
            </>
          )}
        </PagedShown>
      </div>
    </Section>
  )
}

/** As the spec of the service says it: folders of the repository, other repositories, and Configs. */
export function readsOf({ spec }: Pick<ServiceView, 'spec'>, repository: string): { here: string[]; also: string[] } {
  const sources = spec.sources ?? (spec.source === undefined ? [] : [spec.source])
  const here = sources.filter((one) => one.repository === repository).flatMap((one) => one.path ?? [])
  const others = sources.filter((one) => one.repository !== repository).map((one) => more.inputs.other(one.repository, one.path ?? ''))
  const configs = (spec.configFrom ?? []).map((one) => more.inputs.config(one.name))
  return { here, also: [...others, ...configs] }
}
