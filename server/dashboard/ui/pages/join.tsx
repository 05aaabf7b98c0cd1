// Joining a cluster in three steps: labels, one command, and a mark that waits until the cluster is there.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { createdJoinTokenSchema } from '../../../../shared/model/views.ts'
import { count } from '../format.ts'
import { ActionDialog } from '../parts/action.tsx'
import { CopyBox } from '../parts/copy-box.tsx'
import { Head } from '../parts/head.tsx'
import { MarkShape } from '../parts/mark.tsx'
import { Shown } from '../parts/states.tsx'
import { Moment } from '../parts/time.tsx'
import { call } from '../state/api.ts'
import { fleet } from '../state/fleet.ts'
import { pages, part, SERVER_URL } from '../state/place.ts'
import { useJoinTokens } from '../state/reads.ts'
import { text } from '../words.ts'
import { more } from '../words-more.ts'

type Created = (typeof createdJoinTokenSchema)['_output']
interface Asked {
  labels: Record<string, string>
  uses: number
  expires: string
}
interface JoinToken {
  id: string
  left: string
}
const LIFETIMES = ['1h', '12h', '7d']

export function readLabels(typed: string): Record<string, string> {
  const pairs = typed
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((pair) => pair.split('='))
  return Object.fromEntries(pairs.map(([key = '', value = '']) => [key, value]))
}

export function JoinPage() {
  const [made, setMade] = useState<Created | null>(null)
  const [asked, setAsked] = useState<Asked | null>(null)
  const [removing, setRemoving] = useState<JoinToken | null>(null)
  const tokens = useJoinTokens()
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const { labels, uses, expires } = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement))
    setAsked({ labels: readLabels(String(labels)), uses: Number(uses), expires: String(expires) })
  }
  const [first, second, third] = text.join.steps
  return (
    <>
      <Head title={text.join.title} />
      <div class="narrow stack wide">
        <ol class="panel steps">
          <li>
            <h2>1. {first}</h2>
            <form class="stack" onSubmit={submit}>
              <label>
                {text.join.labels}
                <textarea name="labels" rows={2} class="mono" placeholder="region=eu-north, env=prod" spellcheck={false} />
                <span>{text.join.labelsHint}</span>
              </label>
              <div class="form-line">
                <label>
                  {text.join.uses}
                  <input name="uses" type="number" min={1} max={10_000} value={1} />
                </label>
                <label>
                  {text.join.expires}
                  <select name="expires">
                    {LIFETIMES.map((lifetime) => (
                      <option key={lifetime}>{lifetime}</option>
                    ))}
                  </select>
                </label>
                <button type="submit" class={made === null ? 'primary' : ''}>
                  {text.join.create}
                </button>
              </div>
            </form>
          </li>
          <li>
            <h2>2. {second}</h2>
            {made === null ? (
              <p class="muted">{text.join.first}</p>
            ) : (
              <>
                <p class="muted">{text.join.command}</p>
                <CopyBox
                  content={`skerry-agent run --data /var/lib/skerry-agent --server ${SERVER_URL} --cluster NAME --join-token ${made.token}`}
                />
                <p class="small muted">
                  {text.join.name} {text.join.once}
                </p>
              </>
            )}
          </li>
          <li>
            <h2>3. {third}</h2>
            {made === null ? <p class="muted">{text.join.itself}</p> : <Arrivals />}
          </li>
        </ol>
        <section>
          <div class="section-head">
            <h2>{text.join.tokens}</h2>
          </div>
          <div class="panel table-wrap">
            <Shown of={tokens}>
              {({ items }) =>
                items.length === 0 ? (
                  <p class="padded muted">{text.join.noTokens}</p>
                ) : (
                  <table class="folds" aria-label={text.join.tokens}>
                    <thead>
                      <tr>
                        {Object.values(text.join.columns).map((head) => (
                          <th key={head} scope="col">
                            {head}
                          </th>
                        ))}
                        <th scope="col">
                          <span class="hidden">{text.join.remove}</span>
                        </th>
                      </tr>
                    </thead>
                    <tbody>
                      {items.map(({ id, state, usesLeft, uses, expiresMs, createdBy }) => (
                        <tr key={id}>
                          <td class="mono">{id}</td>
                          <td data-head={text.join.columns.state}>{state}</td>
                          <td data-head={text.join.columns.left}>{text.join.left(usesLeft, uses)}</td>
                          <td data-head={text.join.columns.expires}>
                            <Moment ms={expiresMs} />
                          </td>
                          <td data-head={text.join.columns.by}>{createdBy}</td>
                          <td class="act">
                            <button
                              type="button"
                              class="quiet"
                              aria-label={`${text.join.remove} ${id}`}
                              onClick={() => setRemoving({ id, left: text.join.left(usesLeft, uses) })}
                            >
                              {text.join.remove}
                            </button>
                          </td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                )
              }
            </Shown>
          </div>
        </section>
      </div>
      {asked !== null && (
        <ActionDialog<undefined>
          title={more.reasons.joinTitle}
          label={text.join.create}
          needsReason
          describe={() => (
            <>
              <p>{more.reasons.joinEffect(count(asked.uses, 'cluster'), asked.expires)}</p>
              <p class="mono">
                {Object.entries(asked.labels)
                  .map(([key, value]) => `${key}=${value}`)
                  .join(', ')}
              </p>
            </>
          )}
          act={async (_, reason) => setMade(await call<Created>('POST', '/join-tokens', { body: asked, reason }))}
          onDone={tokens.refresh}
          onClose={() => setAsked(null)}
        />
      )}
      {removing !== null && (
        <ActionDialog<undefined>
          title={more.reasons.removeTitle(removing.id)}
          label={text.join.remove}
          needsReason
          describe={() => <p>{more.reasons.removeEffect(removing.left)}</p>}
          act={(_, reason) => call('DELETE', `/join-tokens/${part(removing.id)}`, { reason })}
          onDone={tokens.refresh}
          onClose={() => setRemoving(null)}
        />
      )}
    </>
  )
}

/** Clusters that are here now and were not when the token was made. */
function Arrivals() {
  useEffect(() => fleet.use(), [])
  const known = useRef<Set<string> | null>(null)
  const clusters = fleet.state.value.value?.clusters
  if (clusters === undefined) return null
  known.current ??= new Set(clusters.keys())
  const arrived = [...clusters.values()].filter(({ id }) => known.current?.has(id) === false)
  if (arrived.length === 0)
    return (
      <p class="mark" role="status">
        <MarkShape mark="changing" /> {text.join.waiting}
      </p>
    )
  return (
    <ul class="stack" role="status">
      {arrived.map(({ id, name }) => (
        <li key={id} class="row">
          <MarkShape mark="ok" />
          <span>{text.join.arrived(name)}</span>
          <a class="button" href={pages.cluster(name)}>
            {text.join.open}
          </a>
        </li>
      ))}
    </ul>
  )
}
