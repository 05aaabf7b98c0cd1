// Fleet SQL: a read-only console over documented views. The query is in the address, so that an answer can be shared.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { SqlAnswer } from '../../../../shared/model/fleet-sql.ts'
import { number } from '../format.ts'
import { ActionButton, ActionDialog } from '../parts/action.tsx'
import { Head } from '../parts/head.tsx'
import { SqlRows } from '../parts/sql-rows.tsx'
import { RefusalNote, Shown, Waiting } from '../parts/states.tsx'
import { useFilters } from '../state/address.ts'
import { call, type Refusal } from '../state/api.ts'
import { refusalOf, useResource } from '../state/resource.ts'
import { deleteQuery, EXAMPLES, saveQuery, useSavedQueries } from '../state/saved-queries.ts'
import { more } from '../words/later.ts'

const words = more.query
type Answered = { state: 'none' | 'asking' } | { state: 'done'; answer: SqlAnswer } | { state: 'refused'; refusal: Refusal }

export function QueryPage() {
  const { filters, set } = useFilters()
  const [sql, setSql] = useState(filters['sql'] ?? EXAMPLES[0]?.sql ?? '')
  const [answered, setAnswered] = useState<Answered>({ state: 'none' })
  const asking = useRef<AbortController | null>(null)
  const run = async (asked: string) => {
    asking.current?.abort()
    const mine = new AbortController()
    asking.current = mine
    setSql(asked)
    set({ sql: asked })
    setAnswered({ state: 'asking' })
    try {
      const answer = await call('POST /query', { body: { sql: asked }, signal: mine.signal })
      setAnswered({ state: 'done', answer })
    } catch (error) {
      if (!mine.signal.aborted) setAnswered({ state: 'refused', refusal: refusalOf(error) })
    }
  }
  // A shared address shows its answer at once.
  useEffect(() => {
    if (filters['sql'] !== undefined) void run(filters['sql'])
    return () => asking.current?.abort()
  }, [])
  return (
    <>
      <Head title={words.title} />
      <div class="detail console">
        <div class="stack wide">
          <form
            class="panel padded stack"
            onSubmit={(event) => {
              event.preventDefault()
              void run(sql)
            }}
          >
            <label>
              {words.label}
              <textarea
                class="mono"
                rows={Math.min(14, Math.max(5, sql.split('\n').length + 1))}
                value={sql}
                maxLength={10_000}
                spellcheck={false}
                onInput={(event) => setSql(event.currentTarget.value)}
                onKeyDown={(event) => {
                  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit()
                }}
              />
            </label>
            <div class="row spread">
              <span class="small muted">{words.hint}</span>
              <button type="submit" class="primary" disabled={sql.trim() === ''}>
                {words.run} <kbd>{words.runKey}</kbd>
              </button>
            </div>
          </form>
          <div class="panel" role="region" aria-label={words.result}>
            {answered.state === 'none' && <p class="muted padded">{words.nothingYet}</p>}
            {answered.state === 'asking' && <Waiting rows={6} />}
            {answered.state === 'refused' && (
              <div class="padded">
                <RefusalNote refusal={answered.refusal} />
              </div>
            )}
            {answered.state === 'done' && <SqlRows answer={answered.answer} />}
          </div>
        </div>
        <div class="stack wide">
          <Queries sql={sql} onRun={run} />
          <Views onInsert={(name) => setSql(`SELECT * FROM ${name} LIMIT 100`)} />
        </div>
      </div>
    </>
  )
}

const SAVE = { verb: 'write', kind: 'SavedQuery' } as const
const DELETE = { verb: 'delete', kind: 'SavedQuery' } as const
const NAME_PATTERN = '[a-z0-9]([\\-a-z0-9]*[a-z0-9])?'

function Queries({ sql, onRun }: { sql: string; onRun(sql: string): void }) {
  const saved = useSavedQueries()
  const [isSaving, setSaving] = useState(false)
  const [deleting, setDeleting] = useState<string | null>(null)
  return (
    <section>
      <div class="section-head">
        <h2>{words.saved}</h2>
        {sql.trim() !== '' && <ActionButton right={SAVE} label={words.save} onClick={() => setSaving(true)} />}
      </div>
      <div class="panel">
        <Shown of={saved} rows={2}>
          {({ items }) => (
            <ul class="picks">
              {items.map(({ name, about, savedBy, sql: one }) => (
                <li key={name} class="row">
                  <button type="button" class="quiet" onClick={() => onRun(one)} title={one}>
                    <span class="clip">
                      {name} <span class="small muted">{about || words.by(savedBy)}</span>
                    </span>
                  </button>
                  <button type="button" class="quiet" aria-label={words.forget(name)} onClick={() => setDeleting(name)}>
                    ×
                  </button>
                </li>
              ))}
              {EXAMPLES.map(({ name, sql: one }) => (
                <li key={name}>
                  <button type="button" class="quiet" onClick={() => onRun(one)} title={one}>
                    <span class="clip">{name}</span>
                  </button>
                </li>
              ))}
            </ul>
          )}
        </Shown>
      </div>
      {isSaving && <SaveDialog sql={sql} names={(saved.value?.items ?? []).map(({ name }) => name)} onClose={() => setSaving(false)} />}
      {deleting !== null && (
        <ActionDialog<undefined>
          right={DELETE}
          title={words.deleteTitle(deleting)}
          label={words.delete}
          describe={() => <p>{words.deleteEffect}</p>}
          act={(_, reason) => deleteQuery(deleting, reason)}
          onDone={saved.refresh}
          onClose={() => setDeleting(null)}
        />
      )}
    </section>
  )
}

function SaveDialog({ sql, names, onClose }: { sql: string; names: readonly string[]; onClose(): void }) {
  const [name, setName] = useState('')
  const [about, setAbout] = useState('')
  return (
    <ActionDialog<undefined>
      right={SAVE}
      title={words.saveTitle}
      label={words.save}
      describe={() => (
        <>
          <p>{names.includes(name) ? words.replaces(name) : words.saveEffect}</p>
          <pre class="code small">{sql}</pre>
          <label>
            {words.name}
            <input
              class="mono"
              required
              maxLength={63}
              autocomplete="off"
              value={name}
              pattern={NAME_PATTERN}
              title={words.nameHint}
              onInput={({ currentTarget: field }) => setName(field.value)}
            />
            <span>{words.nameHint}</span>
          </label>
          <label>
            {words.about}
            <input maxLength={200} autocomplete="off" value={about} onInput={({ currentTarget: field }) => setAbout(field.value)} />
          </label>
        </>
      )}
      act={(_, reason) => saveQuery({ name, sql, about }, reason)}
      onClose={onClose}
    />
  )
}

function Views({ onInsert }: { onInsert(name: string): void }) {
  const views = useResource(
    'sql views',
    (signal) => call('GET /query/views', { signal }),
    () => false,
  )
  return (
    <section>
      <div class="section-head">
        <h2>{words.views}</h2>
        <span class="small">{views.value === null ? '' : number(views.value.items.length)}</span>
      </div>
      <div class="panel">
        <Shown of={views} rows={6}>
          {({ items }) => (
            <ul class="views-list">
              {items.map(({ name, about, columns }) => (
                <li key={name}>
                  <details>
                    <summary>
                      <code>{name}</code>
                      <p class="small muted">{about}</p>
                    </summary>
                    <dl class="facts">
                      {columns.map((column) => (
                        <>
                          <dt class="mono">{column.name}</dt>
                          <dd class="small muted">{column.about}</dd>
                        </>
                      ))}
                    </dl>
                    <button type="button" class="quiet" onClick={() => onInsert(name)}>
                      {words.selectAll(name)}
                    </button>
                  </details>
                </li>
              ))}
            </ul>
          )}
        </Shown>
      </div>
    </section>
  )
}
