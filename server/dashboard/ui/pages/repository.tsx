// One repository: its state, its commits with what each changed where, and the render errors of its services with file, line and excerpt.

import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import type { RevisionView } from '../../../../shared/model/history.ts'
import { count, names, shortCommit, writtenBy } from '../format.ts'
import { ActionDialog } from '../parts/action.tsx'
import { Head } from '../parts/head.tsx'
import { MarkShape } from '../parts/mark.tsx'
import { ProblemList } from '../parts/problems.tsx'
import { StateNote } from '../parts/state-note.tsx'
import { Empty, Shown } from '../parts/states.tsx'
import { Age } from '../parts/time.tsx'
import { call, type Page } from '../state/api.ts'
import { serviceMark } from '../state/mark-of.ts'
import { pages, part } from '../state/place.ts'
import { type ServiceView, useRepository, useServices } from '../state/reads.ts'
import { useResource } from '../state/resource.ts'
import { text } from '../words.ts'
import { more } from '../words-more.ts'
import { repositoryMark, sourceText } from './repositories.tsx'

/** Services whose revisions are read for the list of commits. */
const SERVICES_READ = 30

export function RepositoryPage() {
  const { params } = useRoute()
  const { project = '', repository: name = '' } = params
  const repository = useRepository(project, name)
  const services = useServices()
  const mine = (services.value?.items ?? []).filter((one) => one.metadata.project === project && readsFrom(one, name))
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
                    <Refresh project={project} name={name} services={mine} />
                  </StateNote>
                  <ProblemList title={text.repositories.errors} problems={view.status.problems} />
                </>
              )}
            </Shown>
            {mine.map(({ metadata, status }) => (
              <ProblemList key={metadata.name} title={`${text.repositories.errors}: ${metadata.name}`} problems={status.problems} />
            ))}
          </div>
          <section>
            <div class="section-head">
              <h2>{text.repositories.commits}</h2>
            </div>
            <div class="panel">{services.value !== null && <Commits project={project} services={mine} />}</div>
          </section>
        </div>
        <div class="stack wide">
          <Shown of={repository}>
            {(view) => (
              <dl class="facts panel padded">
                <dt>{text.repositories.columns.source}</dt>
                <dd class="mono">{sourceText(view)}</dd>
                <dt>{text.repositories.columns.commit}</dt>
                <dd class="mono">{view.status.commit === null ? '–' : shortCommit(view.status.commit)}</dd>
                <dt>{text.repositories.columns.looked}</dt>
                <dd>{view.status.lastReadMs === null ? text.repositories.never : <Age ms={view.status.lastReadMs} />}</dd>
              </dl>
            )}
          </Shown>
          <section>
            <div class="section-head">
              <h2>{text.repositories.services}</h2>
            </div>
            <ul class="stack">
              {mine.map((one) => (
                <li key={one.metadata.name}>
                  <a class="mark" href={pages.service(project, one.metadata.name)}>
                    <MarkShape mark={serviceMark(one)} />
                    <span class="mono">{one.metadata.name}</span>
                    <span class="small muted">{text.services.healthyOf(one.status.clusters.healthy, one.status.clusters.total)}</span>
                  </a>
                </li>
              ))}
            </ul>
          </section>
        </div>
      </div>
    </>
  )
}

function readsFrom({ spec }: ServiceView, repository: string): boolean {
  const { source, sources = [] } = spec
  return source?.repository === repository || sources.some((one) => one.repository === repository)
}

function Refresh({ project, name, services }: { project: string; name: string; services: readonly ServiceView[] }) {
  const [said, setSaid] = useState('')
  const [isOpen, setOpen] = useState(false)
  const title = more.reasons.refreshTitle(name)
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        {text.actions.refresh}
      </button>
      <span class="small muted" role="status">
        {said}
      </span>
      {isOpen && (
        <ActionDialog<undefined>
          title={title}
          label={text.actions.refresh}
          needsReason
          describe={() => (
            <>
              <p>{more.reasons.refreshEffect(services.length)}</p>
              <ul class="name-list">
                {services.map(({ metadata, status }) => (
                  <li key={metadata.name}>
                    {metadata.name} · {count(status.clusters.total, 'cluster')}
                  </li>
                ))}
              </ul>
            </>
          )}
          act={(_, reason) => call('POST', `/projects/${part(project)}/repositories/${part(name)}/refresh`, { reason })}
          onDone={() => setSaid(text.actions.refreshed)}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  )
}

interface Commit {
  commit: string
  /** Subject and author. */
  said: string
  atMs: number
  services: string[]
  clusters: number
}

function Commits({ project, services }: { project: string; services: readonly ServiceView[] }) {
  const read = services.slice(0, SERVICES_READ).map(({ metadata }) => metadata.name)
  const commits = useResource(
    `commits ${project} ${read.join()}`,
    async (signal) => {
      const all = await Promise.all(
        read.map(async (service) => {
          const { items } = await call<Page<RevisionView>>('GET', `/projects/${part(project)}/services/${part(service)}/revisions`, {
            query: { limit: 10 },
            signal,
          })
          return items.map((revision) => ({ service, revision }))
        }),
      )
      return commitsOf(all.flat())
    },
    ({ topic }) => topic === 'render' || topic === 'desired',
  )
  return (
    <Shown of={commits}>
      {(items) =>
        items.length === 0 ? (
          <Empty title={text.repositories.noCommits} />
        ) : (
          <ol class="commits">
            {items.map(({ commit, said, atMs, services: changed, clusters }) => (
              <li key={commit}>
                <div class="row spread">
                  <b class="mono" title={commit}>
                    {shortCommit(commit)}
                  </b>
                  <span class="small faint">
                    <Age ms={atMs} />
                  </span>
                </div>
                {said !== '' && <p>{said}</p>}
                <p class="small">
                  {text.repositories.commitChanged(changed.length, clusters)}
                  <span class="muted mono"> {names(changed, changed.length, 5)}</span>
                </p>
              </li>
            ))}
          </ol>
        )
      }
    </Shown>
  )
}

/** Newest first. */
function commitsOf(revisions: ReadonlyArray<{ service: string; revision: RevisionView }>): Commit[] {
  const byCommit = new Map<string, Commit>()
  for (const { service, revision } of revisions) {
    if (revision.commit === null) continue
    const held = byCommit.get(revision.commit) ?? { commit: revision.commit, said: writtenBy(revision), atMs: 0, services: [], clusters: 0 }
    held.atMs = Math.max(held.atMs, revision.renderedMs)
    if (!held.services.includes(service)) held.services.push(service)
    held.clusters = Math.max(held.clusters, revision.clusters)
    byCommit.set(revision.commit, held)
  }
  return [...byCommit.values()].sort((a, b) => b.atMs - a.atMs)
}
