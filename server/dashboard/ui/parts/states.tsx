// The states of anything that is read: loading, empty, refused, and old. An error never takes the last good data off
// the screen.
import type { ComponentChildren } from 'preact'
import { age } from '../format.ts'
import type { Refusal } from '../state/api.ts'
import { lostSinceMs } from '../state/live.ts'
import { nowMs } from '../state/now.ts'
import type { Paged } from '../state/paged-list.ts'
import type { Loaded } from '../state/resource.ts'
import { text } from '../words/first.ts'
import { Command } from './state-note.tsx'

/** Lines in the place of what is coming, so that nothing moves when it is there. */
export function Waiting({ rows = 3 }: { rows?: number }) {
  return (
    <div class="waiting" role="status" aria-label={text.states.loading}>
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  )
}

export function Empty({ title, next, children }: { title: string; next?: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p>{title}</p>
      {next !== undefined && <p class="muted">{next}</p>}
      {children}
    </div>
  )
}

/** A part of a page that the person may not see: the missing right, and who can grant it. */
export function Denied({ detail }: { detail: string }) {
  return (
    <div class="note calm">
      <h3>{text.states.denied}</h3>
      <p>{detail}</p>
      <p class="muted">{text.states.deniedNext}</p>
    </div>
  )
}

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="stack">
      <h2>{title}</h2>
      {children}
    </section>
  )
}

/** `last`: name of the column of buttons, which is heard and not seen. */
export function Table({
  label,
  heads,
  last = null,
  children,
}: {
  label: string
  heads: readonly string[]
  last?: string | null
  children: ComponentChildren
}) {
  return (
    <table class="folds" aria-label={label}>
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
          {last !== null && (
            <th scope="col">
              <span class="hidden">{last}</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  )
}

export function RefusalNote({ refusal, retry }: { refusal: Refusal; retry?: () => void }) {
  const denied = refusal.status === 403
  const title = denied ? text.states.denied : refusal.status === 404 ? text.states.notFound : text.states.failed
  const next = denied ? text.states.deniedNext : refusal.status === 404 ? text.states.notFoundNext : ''
  return (
    <div class="note" role="alert">
      <h2 class="sub">{title}</h2>
      <p>{refusal.detail}</p>
      {refusal.problems.length > 0 && (
        <ul>
          {refusal.problems.map(({ path, message }) => (
            <li key={path}>
              <code>{path}</code>: {message}
            </li>
          ))}
        </ul>
      )}
      <p class="muted">
        <Command words={refusal.remedy === '' ? next : refusal.remedy} />
      </p>
      {retry !== undefined && !denied && (
        <div>
          <button type="button" onClick={retry}>
            {text.states.retry}
          </button>
        </div>
      )}
    </div>
  )
}

interface ShownProps<T> {
  of: Loaded<T> & { refresh(): void }
  rows?: number
  children(value: T): ComponentChildren
}

/** The value once it is there. What is old, because it could not be read again, is dimmed in its place, with its age.
 */
export function Shown<T>({ of, rows, children }: ShownProps<T>) {
  const { value, refusal, atMs, refresh } = of
  if (value === null)
    return refusal === null ? <Waiting {...(rows === undefined ? {} : { rows })} /> : <RefusalNote refusal={refusal} retry={refresh} />
  return (
    <Aged refusal={refusal} atMs={atMs} retry={refresh}>
      {children(value)}
    </Aged>
  )
}

interface PagedShownProps<T> {
  of: Paged<T>
  rows?: number
  /** In place of a list without rows. */
  empty: ComponentChildren
  children(items: T[]): ComponentChildren
}

export function PagedShown<T>({ of, rows = 8, empty, children }: PagedShownProps<T>): ComponentChildren {
  const { items, isFirst, loading, refusal, atMs, refresh } = of
  if (items.length === 0) {
    if (refusal !== null) return <RefusalNote refusal={refusal} retry={refresh} />
    return isFirst || loading ? <Waiting rows={rows} /> : empty
  }
  return (
    <Aged refusal={refusal} atMs={atMs} retry={refresh}>
      {children(items)}
    </Aged>
  )
}

/** Below a list that is read further back on request: how much is shown, and the button for more. */
export function ListFoot<T>({ of: { hasMore, loading, items }, shown, more }: { of: Paged<T>; shown: number; more(): void }) {
  const isMore = hasMore || shown < items.length
  return (
    <div class="row spread list-foot">
      <span class="small muted">{text.states.rows(shown, isMore)}</span>
      {isMore && (
        <button type="button" disabled={loading} onClick={more}>
          {text.states.older}
        </button>
      )}
    </div>
  )
}

interface AgedProps {
  refusal: Refusal | null
  atMs: number | null
  retry(): void
  children: ComponentChildren
}

/** The note lies over the corner of what is old: nothing moves when it comes or goes. */
function Aged({ refusal, atMs, retry, children }: AgedProps) {
  const isOld = lostSinceMs.value !== null || refusal !== null
  return (
    <div class={isOld ? 'aged is-old' : 'aged'}>
      {children}
      {refusal !== null && (
        <div class="as-of" role="status">
          <span title={refusal.remedy}>
            {refusal.detail}
            {atMs !== null && ` · ${text.states.stale(age(atMs, nowMs.value))}`}
          </span>
          <button type="button" onClick={retry}>
            {text.states.retry}
          </button>
        </div>
      )}
    </div>
  )
}

/** Numbers and lists that have no place for a note of their own. */
export const agedClass = (): string => (lostSinceMs.value === null ? '' : 'is-old')
