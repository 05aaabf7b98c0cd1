// The whole history of a service in a cluster, or of a cluster.
import { useRoute } from 'preact-iso'
import { Head } from '../parts/head.tsx'
import { HistoryList } from '../parts/history-list.tsx'
import { pages } from '../state/place.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'

export function HistoryPage() {
  const { params } = useRoute()
  const { cluster = '', project, service } = params
  const isWhole = project === undefined || service === undefined
  return (
    <>
      <Head
        title={more.history.title}
        crumb={
          <>
            <a href={pages.cluster(cluster)} class="mono">
              {cluster}
            </a>
            {!isWhole && (
              <>
                {' / '}
                <a href={pages.placement(cluster, project, service)} class="mono">
                  {project}/{service}
                </a>
              </>
            )}
          </>
        }
      />
      <p class="small muted lead">{isWhole ? more.history.ofCluster : more.history.ofService}</p>
      <section class="panel padded" aria-label={text.placement.history}>
        <HistoryList of={isWhole ? { cluster } : { cluster, service: { project, name: service } }} />
      </section>
    </>
  )
}
