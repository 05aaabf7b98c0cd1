// The last revisions of a service as they passed through one cluster: a strip, the newest at the right, with those that
// were Healthy here marked.
import type { HistoryView, RevisionView } from '../../../../shared/model/history.ts'
import { shortCommit, writtenBy } from '../format.ts'
import { call } from '../state/api.ts'
import type { Change } from '../state/live.ts'
import { type PlacementView, useRevisions } from '../state/reads.ts'
import { useResource } from '../state/resource.ts'
import { more } from '../words/later.ts'
import { Shown } from './states.tsx'
import { Age } from './time.tsx'

const words = more.strip
const SHOWN = 12
const HISTORY_READ = 200

type Here = Pick<PlacementView, 'desired' | 'applied' | 'healthy'>
export type Passed = 'healthy' | 'unknown'

/** Commits of which a cluster reported Healthy, now or earlier. Pure. */
export function healthyCommits({ healthy }: Here, history: readonly Pick<HistoryView, 'commit' | 'health'>[]): ReadonlySet<string> {
  const commits = history.flatMap(({ commit, health }) => (commit !== null && health === 'Healthy' ? [commit] : []))
  return new Set([...commits, ...(healthy === null ? [] : [healthy.commit])])
}

interface StripProps {
  at: { cluster: string; project: string; service: string }
  view: Here
}

export function RevisionStrip({ at: { cluster, project, service }, view }: StripProps) {
  const revisions = useRevisions(project, service)
  const history = useResource(
    `healthy ${cluster}/${project}/${service}`,
    (signal) =>
      call('GET /projects/:project/services/:name/history', {
        params: { project, name: service },
        query: { cluster, limit: HISTORY_READ },
        signal,
      }),
    ({ topic, keys }: Change) => topic === 'status' && (keys === null || keys.includes(`service/${project}/${service}`)),
    true,
  )
  const healthy = healthyCommits(view, history.value?.items ?? [])
  return (
    <section aria-label={words.title}>
      <div class="section-head">
        <h2>{words.title}</h2>
      </div>
      <Shown of={revisions} rows={2}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="muted small">{words.none}</p>
          ) : (
            <ol class="strip panel">
              {items
                .slice(0, SHOWN)
                .toReversed()
                .map((revision) => (
                  <Step key={revision.number} of={revision} view={view} isHealthy={healthy.has(revision.commit ?? '')} />
                ))}
            </ol>
          )
        }
      </Shown>
    </section>
  )
}

function Step({ of, view, isHealthy }: { of: RevisionView; view: Here; isHealthy: boolean }) {
  const commit = of.commit === null ? of.digest.slice(0, 8) : shortCommit(of.commit)
  const isWanted = view.desired !== null && view.desired.commit === of.commit
  const isApplied = view.applied !== null && view.applied.commit === of.commit
  const facts = [isWanted ? words.wanted : '', isApplied ? words.applied : '', isHealthy ? words.healthy : words.unknown].filter(Boolean)
  return (
    <li
      class={[isHealthy ? 'is-healthy' : '', isApplied ? 'is-here' : ''].filter(Boolean).join(' ')}
      title={[writtenBy(of), ...facts].filter(Boolean).join('\n')}
    >
      <i aria-hidden="true" />
      <span class="mono">{commit}</span>
      <span class="faint small">
        <Age ms={of.renderedMs} />
      </span>
      <span class="hidden">{facts.join(', ')}</span>
    </li>
  )
}
