// The variables that the templates of a service read for one cluster: each value with the level that it comes from and
// the levels that it replaces. Values of secrets never leave the server.
import { useState } from 'preact/hooks'
import type { ExplainedValue } from '../../../../shared/model/render-views.ts'
import { more } from '../words/later.ts'
import { Empty, Section, Table } from './states.tsx'

const words = more.render.values
/** Above it, a filter is worth its place. */
const FILTER_FROM = 12

export function EffectiveValues({ values, cluster }: { values: readonly ExplainedValue[]; cluster: string | null }) {
  const [asked, setAsked] = useState('')
  const shown = values.filter(({ path, from }) => `${path} ${from}`.toLowerCase().includes(asked.trim().toLowerCase()))
  return (
    <Section title={words.title(cluster)}>
      {values.length >= FILTER_FROM && (
        <div class="filters">
          <input
            type="search"
            aria-label={words.filter}
            placeholder={words.filter}
            value={asked}
            onInput={(event) => setAsked(event.currentTarget.value)}
          />
          <span class="told">{more.n.values(shown.length)}</span>
        </div>
      )}
      <div class="panel table-wrap">
        {values.length === 0 ? (
          <Empty title={words.none} />
        ) : (
          <Table label={words.title(cluster)} heads={[words.columns.path, words.columns.value, words.columns.from, words.columns.over]}>
            {shown.map(({ path, value, secret, from, over }) => (
              <tr key={path}>
                <td class="mono long">{path}</td>
                <td class="mono long" data-head={words.columns.value}>
                  {value === null && !secret ? <span class="faint">{words.hidden(from)}</span> : textOf(value)}
                </td>
                <td data-head={words.columns.from}>{from}</td>
                <td data-head={words.columns.over} class="muted">
                  {over.length === 0 ? '–' : over.join(', ')}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </div>
    </Section>
  )
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
