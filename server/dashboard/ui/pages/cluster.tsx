// One cluster: its state with what to do, its facts, and the services there, worst first.
import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { Labels } from '../parts/cluster-side.tsx'
import { clusterSeen, clusterWord } from '../parts/cluster-state.ts'
import { EventFeed } from '../parts/feed.tsx'
import { Head } from '../parts/head.tsx'
import { LabelEdit } from '../parts/label-edit.tsx'
import { PlacementRows } from '../parts/placement-rows.tsx'
import { RevokeCluster } from '../parts/revoke-cluster.tsx'
import { ScopeActions } from '../parts/service-actions.tsx'
import { StateNote } from '../parts/state-note.tsx'
import { Shown } from '../parts/states.tsx'
import { Age, Moment } from '../parts/time.tsx'
import { pages } from '../state/place.ts'
import { type ClusterView, useCluster, useEventsOf } from '../state/reads.ts'
import { useMayOnCluster } from '../state/rights.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'

export function ClusterPage() {
  const { params } = useRoute()
  const { cluster: name = '' } = params
  const cluster = useCluster(name)
  const events = useEventsOf({ cluster: name }, 20)
  return (
    <>
      <Head title={name} named crumb={<a href={pages.clusters()}>{text.nav.clusters}</a>} />
      <div class="detail">
        <div class="stack wide">
          <div class="panel">
            <Shown of={cluster}>
              {(view) => (
                <StateNote {...clusterSeen(view)} word={clusterWord(view)} state={view.status}>
                  <ScopeActions
                    cluster={name}
                    isSuspended={view.status.suspensions.some(({ service, cluster: one }) => service === null && one === name)}
                  />
                </StateNote>
              )}
            </Shown>
          </div>
          <section>
            <div class="section-head">
              <h2>{text.clusters.services}</h2>
            </div>
            <div class="panel">
              <PlacementRows of={{ cluster: name }} />
            </div>
          </section>
        </div>
        <div class="stack wide">
          <Shown of={cluster}>{(view) => <Facts view={view} />}</Shown>
          <section>
            <div class="section-head">
              <h2>{text.fleet.newest}</h2>
              <a href={pages.history(name)}>{more.history.all}</a>
            </div>
            <Shown of={events}>
              {({ items }) =>
                items.length === 0 ? (
                  <p class="muted">{text.fleet.nothingYet}</p>
                ) : (
                  <EventFeed items={items.slice(-10).toReversed()} in={name} />
                )
              }
            </Shown>
          </section>
        </div>
      </div>
    </>
  )
}

function Facts({ view }: { view: ClusterView }) {
  const { liveness, joinedMs, agentVersion, kubernetesVersion, nodeCount, services, problems } = view.status
  const mayLabel = useMayOnCluster('cluster:label', view.metadata.name)
  const mayRevoke = useMayOnCluster('write', view.metadata.name)
  const [isEditing, setEditing] = useState(false)
  return (
    <div class="panel padded stack wide">
      <dl class="facts">
        <dt>{text.clusters.columns.seen}</dt>
        <dd>{liveness.lastSeenMs === null ? text.absent : <Age ms={liveness.lastSeenMs} />}</dd>
        <dt>{text.clusters.columns.services}</dt>
        <dd>{text.services.healthyOf(services.healthy, services.total)}</dd>
        <dt>{text.clusters.columns.version}</dt>
        <dd>
          {kubernetesVersion ?? text.absent}
          {nodeCount !== null && <span class="muted"> · {text.clusters.nodes(nodeCount)}</span>}
        </dd>
        <dt>{text.clusters.columns.agent}</dt>
        <dd>{agentVersion ?? text.absent}</dd>
        <dt>{text.clusters.joined}</dt>
        <dd>
          <Moment ms={joinedMs} />
        </dd>
      </dl>
      <Labels of={view} />
      {(mayLabel || mayRevoke) && (
        <div class="row">
          {mayLabel && (
            <button type="button" onClick={() => setEditing(true)}>
              {more.labels.button}
            </button>
          )}
          {mayRevoke && <RevokeCluster view={view} />}
        </div>
      )}
      {isEditing && <LabelEdit view={view} onClose={() => setEditing(false)} />}
      {problems.length > 0 && (
        <div class="stack">
          <h3>{text.clusters.problems}</h3>
          {problems.map(({ code, message, sinceMs }) => (
            <p key={code} class="small">
              <code>{code}</code> {message} (<Age ms={sinceMs} />)
            </p>
          ))}
        </div>
      )}
    </div>
  )
}
