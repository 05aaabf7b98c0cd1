// Joining a cluster in three steps: its name and labels, one command, and a mark that waits until the cluster is there.
// The command is made by the code of `skerry cluster join-command`.
import { useState } from 'preact/hooks'
import type { AgentSite } from '../../../../shared/install/agent-manifest.ts'
import {
  agentUrlProblem,
  isClusterName,
  JOIN_CHART,
  JOIN_FORMS,
  JOIN_IMAGE,
  JOIN_NAMESPACE,
  type JoinForm,
  joinCommand,
  withTag,
} from '../../../../shared/install/join-command.ts'
import type { JoinTokenView } from '../../../../shared/model/views.ts'
import { ActionButton, ActionDialog } from '../parts/action.tsx'
import { CopyBox } from '../parts/copy-box.tsx'
import { Head } from '../parts/head.tsx'
import { MarkShape } from '../parts/mark.tsx'
import { Denied, Section, Shown, Table } from '../parts/states.tsx'
import { Moment } from '../parts/time.tsx'
import { call } from '../state/api.ts'
import { fleet } from '../state/fleet.ts'
import { pages, SERVER_URL } from '../state/place.ts'
import { useJoinTokens, useVersion } from '../state/reads.ts'
import { type Right, useRight } from '../state/rights.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { yamlOf } from '../yaml.ts'

const words = more.join

interface Asked {
  name: string
  labels: Record<string, string>
  expires: string
  form: JoinForm
  chart: string
  site: Omit<AgentSite, 'token'>
}
interface Made {
  asked: Asked
  token: string
}

const LIFETIMES = ['1h', '12h', '7d']
const MAY_CREATE: Right = { verb: 'join-token:create', kind: 'JoinToken' }
const MAY_DELETE: Right = { verb: 'delete', kind: 'JoinToken' }
const MAY_READ: Right = { verb: 'read', kind: 'JoinToken' }

export function readLabels(typed: string): Record<string, string> {
  const pairs = typed
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((pair) => pair.split('='))
  return Object.fromEntries(pairs.map(([key = '', value = '']) => [key, value]))
}

export function JoinPage() {
  const [made, setMade] = useState<Made | null>(null)
  const [asked, setAsked] = useState<Asked | null>(null)
  const may = useRight(MAY_CREATE)
  const [first, second, third] = words.steps
  return (
    <>
      <Head title={words.title} />
      <div class="narrow stack wide">
        {may?.allowed === false && <Denied detail={may.detail} />}
        <ol class="panel steps">
          <li>
            <h2>1. {first}</h2>
            <Choose onAsked={setAsked} isMade={made !== null} />
          </li>
          <li>
            <h2>2. {second}</h2>
            {made === null ? (
              <p class="muted">{words.first}</p>
            ) : (
              <>
                <p class="muted">{words.places[made.asked.form]}</p>
                <CopyBox content={commandOf(made)} />
                <p class="small muted">{words.once(made.asked.expires)}</p>
              </>
            )}
          </li>
          <li>
            <h2>3. {third}</h2>
            {made === null ? <p class="muted">{words.itself}</p> : <Arrival name={made.asked.name} />}
            <p class="small muted">{words.approve}</p>
          </li>
        </ol>
        <Tokens />
      </div>
      {asked !== null && (
        <ActionDialog<undefined>
          right={MAY_CREATE}
          title={more.reasons.joinTitle}
          label={words.create}
          describe={() => (
            <>
              <p>{more.reasons.joinEffect(1, asked.expires)}</p>
              <p class="mono">{[asked.name, ...Object.entries(asked.labels).map(([key, value]) => `${key}=${value}`)].join(', ')}</p>
            </>
          )}
          act={async (_, reason) => {
            const { labels, expires } = asked
            const { token } = await call('POST /join-tokens', { body: { labels, uses: 1, expires }, reason })
            setMade({ asked, token })
          }}
          onClose={() => setAsked(null)}
        />
      )}
    </>
  )
}

const commandOf = ({ asked: { form, site, chart }, token }: Made): string =>
  joinCommand(form, { ...site, token }, { chart, document: (manifest) => yamlOf(manifest) })

function Choose({ onAsked, isMade }: { onAsked(asked: Asked): void; isMade: boolean }) {
  const version = useVersion()
  const [url, setUrl] = useState(SERVER_URL)
  const isUnusable = agentUrlProblem(url, true) !== null
  const isInsecure = !isUnusable && agentUrlProblem(url, false) !== null
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const given = Object.fromEntries(
      [...new FormData(event.currentTarget as HTMLFormElement)].map(([key, value]) => [key, String(value).trim()]),
    )
    const { name = '', labels = '', expires = '', form, image = '', chart = '', ca = '', insecure } = given
    const chosen = JOIN_FORMS.find((one) => one === form) ?? 'helm'
    const site = {
      ...{ server: url.trim().replace(/\/$/, ''), cluster: name, namespace: JOIN_NAMESPACE, insecureHttp: insecure !== undefined },
      image: withTag(image || JOIN_IMAGE, version.value?.['version'] ?? ''),
      ca: ca === '' ? undefined : `${ca}\n`,
    }
    onAsked({ name, labels: readLabels(labels), expires, form: chosen, chart: chart || JOIN_CHART, site })
  }
  return (
    <form class="stack wide" onSubmit={submit}>
      <div class="form-line">
        <label>
          {words.name}
          <input
            name="name"
            class="mono"
            required
            maxLength={63}
            autocomplete="off"
            title={words.nameHint}
            onInput={({ currentTarget: field }) => field.setCustomValidity(isClusterName(field.value.trim()) ? '' : words.nameHint)}
          />
        </label>
        <label>
          {words.form}
          <select name="form">
            {JOIN_FORMS.map((form) => (
              <option key={form} value={form}>
                {words.forms[form]}
              </option>
            ))}
          </select>
        </label>
        <label>
          {words.expires}
          <select name="expires">
            {LIFETIMES.map((lifetime) => (
              <option key={lifetime}>{lifetime}</option>
            ))}
          </select>
        </label>
      </div>
      <label>
        {words.labels}
        <textarea name="labels" rows={2} class="mono" placeholder={text.clusters.labelPlaceholder} spellcheck={false} />
        <span>{words.labelsHint}</span>
      </label>
      <label>
        {words.url}
        <input name="url" class="mono" required value={url} spellcheck={false} onInput={(event) => setUrl(event.currentTarget.value)} />
        <span class={isUnusable ? 'badly' : undefined}>{isUnusable ? words.urlBad : words.urlHint}</span>
      </label>
      {isInsecure && (
        <label class="check">
          <input type="checkbox" name="insecure" required />
          <span>
            {words.insecure}
            <span class="small muted block">{words.insecureHint}</span>
          </span>
        </label>
      )}
      <details>
        <summary>{words.parts}</summary>
        <div class="stack wide padded-top">
          <label>
            {words.image}
            <input name="image" class="mono" placeholder={JOIN_IMAGE} spellcheck={false} />
          </label>
          <label>
            {words.chart}
            <input name="chart" class="mono" placeholder={JOIN_CHART} spellcheck={false} />
          </label>
          <label>
            {words.ca}
            <textarea name="ca" rows={3} class="mono" spellcheck={false} />
            <span>{words.caHint}</span>
          </label>
        </div>
      </details>
      <div>
        <button type="submit" class={isMade ? '' : 'primary'} disabled={isUnusable}>
          {words.create}
        </button>
      </div>
    </form>
  )
}

function Tokens() {
  const may = useRight(MAY_READ)
  return <Section title={words.tokens}>{may?.allowed === false ? <Denied detail={may.detail} /> : may !== null && <TokenList />}</Section>
}

interface JoinToken {
  id: string
  left: string
}

function TokenList() {
  const tokens = useJoinTokens()
  const [removing, setRemoving] = useState<JoinToken | null>(null)
  return (
    <>
      <div class="panel table-wrap">
        <Shown of={tokens}>
          {({ items }) =>
            items.length === 0 ? (
              <p class="padded muted">{words.noTokens}</p>
            ) : (
              <>
                <TokenTable items={items.filter(({ state }) => state === 'usable')} onRemove={setRemoving} />
                <Spent items={items.filter(({ state }) => state !== 'usable')} onRemove={setRemoving} />
              </>
            )
          }
        </Shown>
      </div>
      <TokenForMany onDone={tokens.refresh} />
      {removing !== null && (
        <ActionDialog<undefined>
          right={MAY_DELETE}
          title={more.reasons.removeTitle(removing.id)}
          label={words.remove}
          describe={() => <p>{more.reasons.removeEffect(removing.left)}</p>}
          act={(_, reason) => call('DELETE /join-tokens/:id', { params: { id: removing.id }, reason })}
          onDone={tokens.refresh}
          onClose={() => setRemoving(null)}
        />
      )}
    </>
  )
}

interface TableProps {
  items: readonly JoinTokenView[]
  onRemove(token: JoinToken): void
}

function TokenTable({ items, onRemove }: TableProps) {
  const { columns } = words
  if (items.length === 0) return null
  return (
    <Table label={words.tokens} heads={Object.values(columns)} last={words.remove}>
      {items.map(({ id, state, usesLeft, uses, expiresMs, createdBy }) => (
        <tr key={id}>
          <td class="mono">{id}</td>
          <td data-head={columns.state}>{state}</td>
          <td data-head={columns.left}>{words.left(usesLeft, uses)}</td>
          <td data-head={columns.expires}>
            <Moment ms={expiresMs} />
          </td>
          <td data-head={columns.by}>{createdBy}</td>
          <td class="act">
            <ActionButton
              right={MAY_DELETE}
              look="quiet"
              label={words.remove}
              about={words.removeOne(id)}
              onClick={() => onRemove({ id, left: words.left(usesLeft, uses) })}
            />
          </td>
        </tr>
      ))}
    </Table>
  )
}

/** Used up or expired. */
function Spent({ items, onRemove }: TableProps) {
  if (items.length === 0) return null
  return (
    <details class="spent">
      <summary class="small muted">{words.spent(items.length)}</summary>
      <TokenTable items={items} onRemove={onRemove} />
    </details>
  )
}

/** For images and scripts that join many clusters by themselves. */
function TokenForMany({ onDone }: { onDone(): void }) {
  const [asked, setAsked] = useState<{ labels: Record<string, string>; uses: number; expires: string } | null>(null)
  const [token, setToken] = useState<string | null>(null)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const { labels, uses, expires } = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement))
    setAsked({ labels: readLabels(String(labels)), uses: Number(uses), expires: String(expires) })
  }
  return (
    <details class="panel padded">
      <summary>{words.many}</summary>
      <form class="stack wide padded-top" onSubmit={submit}>
        <p class="small muted">{words.manyHint}</p>
        <label>
          {words.labels}
          <textarea name="labels" rows={2} class="mono" placeholder={text.clusters.labelPlaceholder} spellcheck={false} />
        </label>
        <div class="form-line">
          <label>
            {words.uses}
            <input name="uses" type="number" min={1} max={10_000} value={10} />
          </label>
          <label>
            {words.expires}
            <select name="expires">
              {LIFETIMES.map((lifetime) => (
                <option key={lifetime}>{lifetime}</option>
              ))}
            </select>
          </label>
          <button type="submit">{words.createToken}</button>
        </div>
      </form>
      {token !== null && (
        <div class="stack">
          <p class="small muted">{words.onceToken}</p>
          <CopyBox content={token} />
        </div>
      )}
      {asked !== null && (
        <ActionDialog<undefined>
          right={MAY_CREATE}
          title={more.reasons.joinTitle}
          label={words.createToken}
          describe={() => (
            <>
              <p>{more.reasons.joinEffect(asked.uses, asked.expires)}</p>
              <p class="mono">
                {Object.entries(asked.labels)
                  .map(([key, value]) => `${key}=${value}`)
                  .join(', ')}
              </p>
            </>
          )}
          act={async (_, reason) => setToken((await call('POST /join-tokens', { body: asked, reason })).token)}
          onDone={onDone}
          onClose={() => setAsked(null)}
        />
      )}
    </details>
  )
}

/** The mark turns into the cluster when it is there. */
function Arrival({ name }: { name: string }) {
  const clusters = fleet.state.value.value?.clusters
  const here = [...(clusters?.values() ?? [])].find((one) => one.name === name)
  if (here === undefined)
    return (
      <p class="mark" role="status">
        <MarkShape mark="changing" /> {words.waiting(name)}
      </p>
    )
  return (
    <p class="row" role="status">
      <MarkShape mark="ok" />
      <span>{words.arrived(name)}</span>
      <span class="muted">{words.selected(here.services)}</span>
      <a class="button" href={pages.cluster(name)}>
        {words.open}
      </a>
    </p>
  )
}
