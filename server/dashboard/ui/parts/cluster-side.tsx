// A cluster beside a list: its state in full, its labels, and its services that are not in sync.
import { useEffect } from 'preact/hooks'
import { seenOf } from '../state/mark-of.ts'
import { pages } from '../state/place.ts'
import { type ClusterView, useCluster, useClusterServices } from '../state/reads.ts'
import { text } from '../words/first.ts'
import { clusterSeen, clusterWord } from './cluster-state.ts'
import { MarkShape } from './mark.tsx'
import { StateNote } from './state-note.tsx'
import { Shown } from './states.tsx'

const SERVICES_SHOWN = 12

export function ClusterSide({ name, onClose }: { name: string; onClose(): void }) {
  const cluster = useCluster(name)
  const services = useClusterServices(name)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => event.key === 'Escape' && document.querySelector('dialog[open]') === null && onClose()
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [onClose])
  return (
    <aside class="panel side stack wide" aria-label={name}>
      <div class="row spread">
        <h2 class="mono">{name}</h2>
        <span class="row tight">
          <a class="button" href={pages.cluster(name)}>
            {text.clusters.open}
          </a>
          <button type="button" class="quiet" onClick={onClose} aria-label={text.actions.close}>
            ×
          </button>
        </span>
      </div>
      <Shown of={cluster}>
        {(view) => (
          <div class="stack wide">
            <StateNote {...clusterSeen(view)} word={clusterWord(view)} state={view.status} />
            <Labels of={view} />
          </div>
        )}
      </Shown>
      <Shown of={services}>
        {({ items }) => {
          const worst = items.map((one) => ({ one, seen: seenOf(one) })).filter(({ seen }) => (seen.was ?? seen.mark) !== 'ok')
          return (
            <ul class="stack">
              {worst.slice(0, SERVICES_SHOWN).map(({ one, seen }) => (
                <li key={`${one.project}/${one.service}`}>
                  <a class="mark" href={pages.placement(name, one.project, one.service)}>
                    <MarkShape {...seen} />
                    <span class="mono">{one.service}</span>
                    <span class="small muted clip">{one.reason}</span>
                  </a>
                </li>
              ))}
              {worst.length > SERVICES_SHOWN && (
                <li>
                  <a class="small muted" href={pages.cluster(name)}>
                    {text.actions.more(worst.length - SERVICES_SHOWN)}
                  </a>
                </li>
              )}
            </ul>
          )
        }}
      </Shown>
    </aside>
  )
}

export function Labels({ of }: { of: Pick<ClusterView, 'metadata'> }) {
  const labels = Object.entries(of.metadata.labels)
  if (labels.length === 0) return null
  return (
    <div class="tags">
      {labels.map(([key, value]) => (
        <a key={key} class="tag" href={pages.clusters(`?labels=${encodeURIComponent(`${key}=${value}`)}`)} title={`${key}=${value}`}>
          {key}={value}
        </a>
      ))}
    </div>
  )
}
