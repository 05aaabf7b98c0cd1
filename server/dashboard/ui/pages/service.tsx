// One service over the whole fleet: its state, render errors with file and line, the clusters it is in, its revisions.

import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { number, shortCommit, writtenBy } from '../format.ts'
import { Head } from '../parts/head.tsx'
import { PlacementRows } from '../parts/placement-rows.tsx'
import { ProblemList } from '../parts/problems.tsx'
import { RefreshButton, ScopeActions } from '../parts/service-actions.tsx'
import { StateNote } from '../parts/state-note.tsx'
import { Shown } from '../parts/states.tsx'
import { Age } from '../parts/time.tsx'
import { Why } from '../parts/why.tsx'
import { useFilters } from '../state/address.ts'
import { serviceSeen } from '../state/mark-of.ts'
import { pages } from '../state/place.ts'
import { type ServiceView, useDependencies, useRevisions, useService } from '../state/reads.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'

const SYNCS = ['OutOfSync', 'Synced']
const HEALTHS = ['Degraded', 'Missing', 'Progressing', 'Unknown', 'Suspended', 'Healthy']

/** A read of its repository ends these states. */
const OF_REPOSITORY: ReadonlySet<string> = new Set(['RenderFailed', 'RepositoryUnreadable', 'RepositoryNotRead'])
const repositoryOf = ({ spec }: ServiceView): string => (spec.source ?? spec.sources?.[0])?.repository ?? ''

export function ServicePage() {
  const { params } = useRoute()
  const { project = '', service: name = '' } = params
  const service = useService(project, name)
  const { filters, set } = useFilters()
  const [typed, setTyped] = useState(filters['q'] ?? '')
  return (
    <>
      <Head title={name} named crumb={<a href={pages.services()}>{`${text.nav.services} / ${project}`}</a>} />
      <div class="detail">
        <div class="stack wide">
          <div class="panel">
            <Shown of={service}>
              {(view) => (
                <>
                  <StateNote {...serviceSeen(view)} state={{ ...view.status, next: isFine(view) ? view.status.next : '' }}>
                    <ScopeActions
                      service={{ project, name }}
                      isSuspended={view.status.suspensions.some(({ cluster, service: one }) => cluster === null && one !== null)}
                      isManual={view.spec.sync?.mode === 'manual'}
                    />
                    {OF_REPOSITORY.has(view.status.reason) && <RefreshButton project={project} name={repositoryOf(view)} />}
                    <a class="button" href={pages.render(project, name)}>
                      {more.render.open}
                    </a>
                    {view.status.confirmationId !== null && (
                      <a class="button primary" href={pages.confirmation(view.status.confirmationId)}>
                        {text.needs.review}
                      </a>
                    )}
                  </StateNote>
                  <ProblemList title={text.services.problems} problems={view.status.problems} />
                  {!isFine(view) && <Why project={project} service={name} otherwise={view.status.next} />}
                </>
              )}
            </Shown>
          </div>
          <section>
            <div class="filters">
              <h2>{text.services.inClusters}</h2>
              <input
                type="search"
                aria-label={text.clusters.filter}
                placeholder={text.clusters.filter}
                value={typed}
                onInput={(event) => {
                  setTyped(event.currentTarget.value)
                  set({ q: event.currentTarget.value })
                }}
              />
              <select
                aria-label={text.services.state}
                value={
                  filters['sync'] !== undefined
                    ? `sync ${filters['sync']}`
                    : filters['health'] !== undefined
                      ? `health ${filters['health']}`
                      : ''
                }
                onChange={({ currentTarget: { value } }) => {
                  const [axis = '', word = ''] = value.split(' ')
                  set({ sync: axis === 'sync' ? word : undefined, health: axis === 'health' ? word : undefined })
                }}
              >
                <option value="">{text.services.anyState}</option>
                {SYNCS.map((word) => (
                  <option key={word} value={`sync ${word}`}>
                    {word}
                  </option>
                ))}
                {HEALTHS.map((word) => (
                  <option key={word} value={`health ${word}`}>
                    {word}
                  </option>
                ))}
              </select>
            </div>
            <div class="panel">
              <PlacementRows
                of={{ project, service: name }}
                health={filters['health'] ?? ''}
                sync={filters['sync'] ?? ''}
                search={filters['q'] ?? ''}
              />
            </div>
          </section>
        </div>
        <div class="stack wide">
          <Shown of={service}>{(view) => <Facts view={view} />}</Shown>
          <Dependencies project={project} name={name} />
          <Revisions project={project} name={name} />
        </div>
      </div>
    </>
  )
}

const isFine = (view: ServiceView): boolean => {
  const { mark, was } = serviceSeen(view)
  return (was ?? mark) === 'ok'
}

function Facts({ view }: { view: ServiceView }) {
  const { status, spec, metadata } = view
  const { clusters } = status
  const source = spec.source ?? spec.sources?.[0]
  return (
    <dl class="facts panel padded">
      {source !== undefined && (
        <>
          <dt>{text.services.source}</dt>
          <dd>
            <a class="linked mono" href={pages.repository(metadata.project ?? '', source.repository)}>
              {source.repository}
            </a>
            {source.path !== undefined && <span class="mono muted"> {source.path}</span>}
          </dd>
        </>
      )}
      <dt>{text.services.columns.commit}</dt>
      <dd class="mono">{status.commit === null ? text.absent : shortCommit(status.commit)}</dd>
      <dt>{text.services.columns.objects}</dt>
      <dd>
        {number(status.objectCount)}
        {status.variants > 1 && <span class="muted"> {text.services.variants(status.variants)}</span>}
      </dd>
      <dt>{text.services.columns.clusters}</dt>
      <dd>
        {text.services.healthyOf(clusters.healthy, clusters.total)}
        {clusters.offline > 0 && <span class="muted"> · {text.services.offline(clusters.offline)}</span>}
      </dd>
      {status.renderedMs !== null && (
        <>
          <dt>{text.services.rendered}</dt>
          <dd>
            <Age ms={status.renderedMs} />
          </dd>
        </>
      )}
    </dl>
  )
}

/** Services that have to be Healthy first, and those that wait for this one. */
function Dependencies({ project, name }: { project: string; name: string }) {
  const { value } = useDependencies(project, name)
  if (value === null || value.dependsOn.length + value.neededBy.length === 0) return null
  const { inputs } = more
  return (
    <dl class="facts panel padded">
      {value.dependsOn.length > 0 && (
        <>
          <dt>{inputs.dependsOn}</dt>
          <dd>
            {value.dependsOn.map((one) => (
              <div key={`${one.project}/${one.service}`}>
                <a class="linked mono" href={pages.service(one.project, one.service)}>
                  {one.project}/{one.service}
                </a>{' '}
                <span class="muted">
                  {one.exists ? inputs.ready(one.ready, one.ready + one.unready.count + one.absent.count) : inputs.missing}
                </span>
              </div>
            ))}
          </dd>
        </>
      )}
      {value.neededBy.length > 0 && (
        <>
          <dt>{inputs.neededBy}</dt>
          <dd>
            {value.neededBy.map((one) => (
              <div key={`${one.project}/${one.service}`}>
                <a class="linked mono" href={pages.service(one.project, one.service)}>
                  {one.project}/{one.service}
                </a>
              </div>
            ))}
          </dd>
        </>
      )}
    </dl>
  )
}

function Revisions({ project, name }: { project: string; name: string }) {
  const revisions = useRevisions(project, name)
  return (
    <section>
      <div class="section-head">
        <h2>{text.services.revisions}</h2>
      </div>
      <div class="panel">
        <Shown of={revisions}>
          {({ items }) => (
            <ol class="revisions">
              {items.map((revision) => (
                <li key={revision.number} class={revision.clusters > 0 ? 'is-used' : ''}>
                  <i />
                  <span class="mono">{revision.commit === null ? revision.digest.slice(0, 8) : shortCommit(revision.commit)}</span>
                  <span class="muted">{revision.clusters > 0 ? text.n.clusters(revision.clusters) : text.services.notUsed}</span>
                  <span class="faint small">
                    <Age ms={revision.renderedMs} />
                  </span>
                  {writtenBy(revision) !== '' && (
                    <span class="small muted clip note-line" title={writtenBy(revision)}>
                      {writtenBy(revision)}
                    </span>
                  )}
                </li>
              ))}
            </ol>
          )}
        </Shown>
      </div>
    </section>
  )
}
