// The audit log: actor, action, object, reason, origin and result. Filters are in the address.
import { useState } from 'preact/hooks'
import { number } from '../format.ts'
import { useFilters } from '../state/address.ts'
import type { Query } from '../state/api.ts'
import { AUDIT_FILTERS, AUDIT_PAGE, type AuditRecord, useAudit } from '../state/audit.ts'
import type { Mark } from '../state/mark-of.ts'
import { pages } from '../state/place.ts'
import { text } from '../words/first.ts'
import { MarkWord } from './mark.tsx'
import { Empty, ListFoot, PagedShown } from './states.tsx'
import { Moment } from './time.tsx'

const RESULTS = ['done', 'denied', 'started', 'failed'] as const
const MARK_OF: Readonly<Record<(typeof RESULTS)[number], Mark>> = { done: 'ok', denied: 'drift', started: 'changing', failed: 'bad' }
/** Fields that are named; how many more there are is said. */
const FIELDS_SHOWN = 3

export function AuditLog() {
  const { filters, set } = useFilters()
  const query = Object.fromEntries(AUDIT_FILTERS.map((name) => [name, filters[name]]))
  const words = text.activity.audit
  return (
    <>
      <div class="filters">
        {(['actor', 'verb', 'kind', 'project', 'name', 'cluster'] as const).map((name) => (
          <input
            key={name}
            class="brief"
            type="search"
            aria-label={words.filters[name]}
            placeholder={words.filters[name]}
            value={filters[name] ?? ''}
            maxLength={256}
            onChange={(event) => set({ [name]: event.currentTarget.value.trim() })}
          />
        ))}
        <select aria-label={words.result} value={filters['result'] ?? ''} onChange={(event) => set({ result: event.currentTarget.value })}>
          <option value="">{words.anyResult}</option>
          {RESULTS.map((result) => (
            <option key={result} value={result}>
              {words.results[result]}
            </option>
          ))}
        </select>
      </div>
      <Entries key={JSON.stringify(query)} query={query} />
    </>
  )
}

function Entries({ query }: { query: Query }) {
  const [shown, setShown] = useState(AUDIT_PAGE)
  const entries = useAudit(query, shown)
  return (
    <div class="panel">
      <PagedShown of={entries} rows={12} empty={<Empty title={text.activity.audit.empty} />}>
        {(items) => (
          <>
            <ol class="events audit">
              {items.map((entry) => (
                <Entry key={entry.seq} entry={entry} />
              ))}
            </ol>
            <ListFoot of={entries} shown={items.length} more={() => setShown(items.length + AUDIT_PAGE)} />
          </>
        )}
      </PagedShown>
    </div>
  )
}

function Entry({ entry }: { entry: AuditRecord }) {
  const { at, actor, verb, kind, project, name, cluster, result, reason, detail, cause, fields = [], moreFields = 0, from, count } = entry
  const words = text.activity.audit
  const object = name === undefined ? '' : project === undefined || project === '' ? name : `${project}/${name}`
  const href =
    name === undefined
      ? null
      : kind === 'Service' && project !== undefined
        ? pages.service(project, name)
        : kind === 'Repository' && project !== undefined
          ? pages.repository(project, name)
          : kind === 'Cluster'
            ? pages.cluster(name)
            : null
  const more = fields.length - FIELDS_SHOWN + moreFields
  const facts = [
    ...(detail === undefined ? [] : [detail]),
    ...(fields.length === 0 ? [] : [words.fields(fields.slice(0, FIELDS_SHOWN).join(', '), more > 0 ? number(more) : '')]),
    ...(cause === undefined ? [] : [words.cause(cause)]),
    ...(from === undefined ? [] : [words.from(from)]),
    ...(count === undefined ? [] : [words.count(number(count))]),
  ]
  return (
    <li>
      <span class="faint">
        <Moment ms={Date.parse(at)} />
      </span>
      <MarkWord mark={MARK_OF[result]} word={words.results[result]} />
      <span class="what">
        <b title={words.actor(actor.kind, actor.id, actor.provider ?? '')}>{actor.name === '' ? words.nobody : actor.name}</b>
        {!actor.verified && <span class="muted"> {words.unverified}</span>} {verb} {kind}{' '}
        {href === null ? (
          <span class="mono">{object}</span>
        ) : (
          <a class="mono linked" href={href}>
            {object}
          </a>
        )}
        {cluster !== undefined && cluster !== name && (
          <>
            {words.in}
            <a class="mono linked" href={pages.cluster(cluster)}>
              {cluster}
            </a>
          </>
        )}
        {reason !== undefined && <q class="why">{reason}</q>}
        {facts.length > 0 && <span class="small muted facts-line">{facts.join(' · ')}</span>}
      </span>
    </li>
  )
}
