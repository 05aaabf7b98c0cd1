// Sessions of people and pipelines: the caller's own, or all for callers who may read tokens; each can be ended with a
// reason.
import { useState } from 'preact/hooks'
import { call } from '../state/api.ts'
import { useSessions } from '../state/reads.ts'
import { useMay } from '../state/rights.ts'
import { session } from '../state/session.ts'
import { text } from '../words/first.ts'
import { ActionDialog } from './action.tsx'
import { Empty, Section, Shown, Table } from './states.tsx'
import { Age, Moment } from './time.tsx'

export function SessionList() {
  const sessions = useSessions()
  const maySeeAll = useMay('token:read', 'ApiToken')?.allowed === true
  const mayRevokeAll = useMay('token:revoke', 'ApiToken')?.allowed === true
  const [ending, setEnding] = useState<{ id: string; name: string } | null>(null)
  const { columns, sessionKinds } = text.access
  const now = session.value
  const person = now.state === 'in' ? now.person : null
  return (
    <Section title={maySeeAll ? text.access.sessions : text.access.ownSessions}>
      <div class="panel table-wrap">
        <Shown of={sessions}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title={text.access.noSessions} next={text.access.noSessionsNext} />
            ) : (
              <Table
                label={text.access.sessions}
                heads={[columns.name, columns.provider, columns.through, columns.used, columns.expires]}
                last={text.access.revoke}
              >
                {items.map(({ id, kind, name, email, provider, lastUsedMs, lastUsedFrom, expiresMs }) => (
                  <tr key={id}>
                    <td>
                      <span class="long" title={email ?? name}>
                        {name}
                      </span>
                      {id === person?.id && <span class="muted small"> {text.access.thisOne}</span>}
                    </td>
                    <td data-head={columns.provider}>{provider}</td>
                    <td data-head={columns.through}>{sessionKinds[kind]}</td>
                    <td class="muted" data-head={columns.used}>
                      <Age ms={lastUsedMs} /> {lastUsedFrom}
                    </td>
                    <td class="muted" data-head={columns.expires}>
                      <Moment ms={expiresMs} />
                    </td>
                    <td class="act">
                      {(mayRevokeAll || !maySeeAll || (person?.provider === provider && person.name === name)) && (
                        <button type="button" class="quiet" onClick={() => setEnding({ id, name })} aria-label={text.access.endTitle(name)}>
                          {text.access.revoke}
                        </button>
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Shown>
      </div>
      {ending !== null && (
        <ActionDialog<undefined>
          title={text.access.endTitle(ending.name)}
          label={text.access.revoke}
          right={ending.id === person?.id || !maySeeAll ? null : { verb: 'token:revoke', kind: 'ApiToken' }}
          describe={() => <p>{ending.id === person?.id ? text.access.endOwn : text.access.endEffect(ending.name)}</p>}
          act={(_, reason) => call('DELETE /sessions/:id', { params: { id: ending.id }, reason })}
          onDone={sessions.refresh}
          onClose={() => setEnding(null)}
        />
      )}
    </Section>
  )
}
