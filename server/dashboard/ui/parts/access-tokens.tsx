// API tokens: owner, role, and last use; creating and revoking one.
import { useState } from 'preact/hooks'
import type { createdApiTokenSchema } from '../../../../shared/model/views.ts'
import { call } from '../state/api.ts'
import { useApiTokens } from '../state/reads.ts'
import { useMay } from '../state/rights.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { ActionDialog } from './action.tsx'
import { CopyBox } from './copy-box.tsx'
import { Denied, Empty, Section, Shown, Table } from './states.tsx'
import { Age, Moment } from './time.tsx'

type Created = (typeof createdApiTokenSchema)['_output']
const ROLES = ['viewer', 'operator', 'deployer', 'project-admin', 'fleet-admin', 'none']
const LIFETIMES = ['24h', '30d', '90d', '365d', 'never']

export function Tokens() {
  const may = useMay('token:read', 'ApiToken')
  return (
    <Section title={text.access.tokens}>
      {may?.allowed === false ? <Denied detail={may.detail} /> : may !== null && <TokenList />}
      <CreateToken />
    </Section>
  )
}

function TokenList() {
  const tokens = useApiTokens()
  const mayRevoke = useMay('token:revoke', 'ApiToken')?.allowed === true
  const [revoking, setRevoking] = useState<{ id: string; name: string } | null>(null)
  const { columns } = text.access
  return (
    <div class="panel table-wrap">
      <Shown of={tokens}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={text.access.noTokens} />
          ) : (
            <Table
              label={text.access.tokens}
              heads={[columns.name, columns.role, columns.state, columns.used, columns.expires]}
              last={mayRevoke ? text.access.revoke : null}
            >
              {items.map(({ id, name, role, state, lastUsedMs, lastUsedFrom, expiresMs }) => (
                <tr key={id}>
                  <td>
                    <span class="long">{name}</span> <span class="faint mono small">{id}</span>
                  </td>
                  <td data-head={columns.role}>{role}</td>
                  <td data-head={columns.state}>{state}</td>
                  <td class="muted" data-head={columns.used}>
                    {lastUsedMs === null ? text.access.never : <Age ms={lastUsedMs} />} {lastUsedFrom}
                  </td>
                  <td class="muted" data-head={columns.expires}>
                    {expiresMs === null ? text.access.never : <Moment ms={expiresMs} />}
                  </td>
                  {mayRevoke && (
                    <td class="act">
                      <button
                        type="button"
                        class="quiet"
                        onClick={() => setRevoking({ id, name })}
                        aria-label={text.access.revokeTitle(name)}
                      >
                        {text.access.revoke}
                      </button>
                    </td>
                  )}
                </tr>
              ))}
            </Table>
          )
        }
      </Shown>
      {revoking !== null && (
        <ActionDialog<undefined>
          title={text.access.revokeTitle(revoking.name)}
          label={text.access.revoke}
          right={{ verb: 'token:revoke', kind: 'ApiToken' }}
          describe={() => <p>{text.access.revokeEffect(revoking.name)}</p>}
          act={(_, reason) => call('DELETE /tokens/:id', { params: { id: revoking.id }, reason })}
          onDone={tokens.refresh}
          onClose={() => setRevoking(null)}
        />
      )}
    </div>
  )
}

interface Asked {
  form: HTMLFormElement
  name: string
  role: string
  expires: string
}

function CreateToken() {
  const may = useMay('token:create', 'ApiToken')
  const [made, setMade] = useState<Created | null>(null)
  const [asked, setAsked] = useState<Asked | null>(null)
  if (may?.allowed !== true) return null
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const { name, role, expires } = Object.fromEntries(new FormData(form)) as Record<string, string>
    setAsked({ form, name: name ?? '', role: role ?? '', expires: expires ?? '' })
  }
  return (
    <div class="panel padded stack wide">
      <form class="form-line" onSubmit={submit}>
        <label>
          {text.access.name}
          <input name="name" required maxLength={63} pattern="[a-z0-9]([\-a-z0-9]*[a-z0-9])?" autocomplete="off" />
        </label>
        <label>
          {text.access.role}
          <select name="role">
            {ROLES.map((role) => (
              <option key={role}>{role}</option>
            ))}
          </select>
        </label>
        <label>
          {text.access.expires}
          <select name="expires">
            {LIFETIMES.map((lifetime) => (
              <option key={lifetime} selected={lifetime === '90d'}>
                {lifetime}
              </option>
            ))}
          </select>
        </label>
        <button type="submit">{text.access.create}</button>
      </form>
      {asked !== null && (
        <ActionDialog<undefined>
          title={more.reasons.tokenTitle(asked.name)}
          label={text.access.create}
          right={{ verb: 'token:create', kind: 'ApiToken' }}
          describe={() => <p>{more.reasons.tokenEffect(asked.role, asked.expires)}</p>}
          act={async (_, reason) => {
            const { name, role, expires } = asked
            setMade(await call('POST /tokens', { body: { name, role, expires }, reason }))
          }}
          onDone={() => asked.form.reset()}
          onClose={() => setAsked(null)}
        />
      )}
      {made !== null && (
        <div class="stack">
          <p>{text.access.shownOnce}</p>
          <CopyBox content={made.token} />
        </div>
      )}
    </div>
  )
}
