// Why a service is not as Git says: causes with evidence and the next step, the most likely one first, and what changed
// shortly before.
import type { WhyCause, WhyEvidence } from '../../../../shared/model/why.ts'
import { call } from '../state/api.ts'
import { sentence } from '../state/needs.ts'
import { pages } from '../state/place.ts'
import { concernsService } from '../state/reads.ts'
import { useResource } from '../state/resource.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { Command } from './state-note.tsx'
import { Shown } from './states.tsx'
import { Age } from './time.tsx'

const words = more.why
/** The others are in the list below. */
const PLACES_SHOWN = 3

interface WhyProps {
  project: string
  service: string
  /** Absent means over all clusters of the service. */
  cluster?: string
  /** Next step if no cause is found. */
  otherwise: string
  /** Address of an object by its text, such as `Deployment shop/web`. Null means that it is not on this page. */
  linkOf?(object: string): string | null
}

export function Why({ project, service, cluster = '', otherwise, linkOf = () => null }: WhyProps) {
  const why = useResource(
    `why ${project}/${service} ${cluster}`,
    (signal) => call('GET /projects/:project/services/:name/why', { params: { project, name: service }, query: { cluster }, signal }),
    concernsService(project, service),
    true,
  )
  return (
    <section class="why-panel stack" aria-label={words.title}>
      <h3>{words.title}</h3>
      <Shown of={why} rows={2}>
        {({ causes, changes, unknown }) => (
          <div class="stack wide">
            {causes.length === 0 && (
              <p class="muted">
                {words.none} <Command words={otherwise} />
              </p>
            )}
            <ol class="causes">
              {causes.map((one) => (
                <Cause
                  key={`${one.cause}${one.object}`}
                  of={one}
                  service={{ project, name: service }}
                  isAlone={cluster !== ''}
                  linkOf={linkOf}
                />
              ))}
            </ol>
            {changes.length > 0 && (
              <details>
                <summary>{words.changes(changes.length)}</summary>
                <Evidence of={changes} />
              </details>
            )}
            {unknown.map((one) => (
              <p key={one} class="small muted">
                {words.unknown} {one}
              </p>
            ))}
          </div>
        )}
      </Shown>
    </section>
  )
}

interface CauseProps {
  of: WhyCause
  service: { project: string; name: string }
  isAlone: boolean
  linkOf(object: string): string | null
}

function Cause({ of: { cause, summary, object, clusters, evidence, next }, service, isAlone, linkOf }: CauseProps) {
  const href = object === null ? null : linkOf(object)
  return (
    <li class="stack">
      <p>
        <b>{sentence(summary)}</b> <span class="small muted">{cause}</span>
      </p>
      {(object !== null || (!isAlone && clusters.count > 0)) && (
        <p class="small muted">
          {object !== null &&
            (href === null ? (
              <span class="mono">{object}</span>
            ) : (
              <>
                <a class="linked mono" href={href}>
                  {object}
                </a>
                {href.includes('tab=logs') && (
                  <a class="button to-logs" href={href}>
                    {more.logs}
                  </a>
                )}
              </>
            ))}
          {!isAlone && clusters.count > 0 && <Places service={service} clusters={clusters} />}
        </p>
      )}
      <Evidence of={evidence} />
      {next !== '' && (
        <p>
          <span class="muted">{text.states.whatNext}: </span>
          <Command words={next} />
        </p>
      )}
    </li>
  )
}

/** The cause is seen in each of them. */
function Places({ service: { project, name }, clusters: { count, first } }: Pick<CauseProps, 'service'> & Pick<WhyCause, 'clusters'>) {
  const shown = first.slice(0, PLACES_SHOWN)
  return (
    <>
      {' '}
      {words.inClusters(count)}
      {shown.map((cluster, index) => (
        <span key={cluster}>
          {index > 0 && ', '}
          <a class="linked mono" href={pages.placement(cluster, project, name)}>
            {cluster}
          </a>
        </span>
      ))}
      {count > shown.length && ` ${text.actions.more(count - shown.length)}`}
    </>
  )
}

function Evidence({ of }: { of: readonly WhyEvidence[] }) {
  if (of.length === 0) return null
  return (
    <ul class="evidence">
      {of.map(({ from, text: said, atMs }) => (
        <li key={`${from}${said}`}>
          <span class="small faint">{from}</span>
          <span>{said}</span>
          <span class="small faint">{atMs !== null && <Age ms={atMs} />}</span>
        </li>
      ))}
    </ul>
  )
}
