// Who may do what: the person at the screen, and the API tokens with their roles. What the server refuses is said with the role that is missing.
import { useState } from 'preact/hooks'
import type { createdApiTokenSchema } from '../../../../shared/model/views.ts'
import { ActionDialog, refusalOf } from '../parts/action.tsx'
import { CopyBox } from '../parts/copy-box.tsx'
import { Head } from '../parts/head.tsx'
import { Empty, RefusalNote, Shown } from '../parts/states.tsx'
import { Age, Moment } from '../parts/time.tsx'
import { call, type Refusal } from '../state/api.ts'
import { part } from '../state/place.ts'
import { useApiTokens } from '../state/reads.ts'
import { session } from '../state/session.ts'
import { text } from '../words.ts'

type Created = (typeof createdApiTokenSchema)['_output']
const ROLES = ['viewer', 'operator', 'deployer', 'project-admin', 'fleet-admin', 'none']
const LIFETIMES = ['24h', '30d', '90d', '365d', 'never']

export function AccessPage() {
  const tokens = useApiTokens()
  const [revoking, setRevoking] = useState<{ id: string; name: string } | null>(null)
  const now = session.value
  const { columns } = text.access
  return (
    <>
      <Head title={text.access.title} />
      <div class="stack wide narrow">
        {now.state === 'in' && (
          <section>
            <div class="section-head">
              <h2>{text.access.you}</h2>
            </div>
            <dl class="facts panel padded">
              <dt>{columns.name}</dt>
              <dd>{now.person.name}</dd>
              <dt>{columns.role}</dt>
              <dd>{now.person.role ?? text.access.byBindings}</dd>
              {(now.person.groups ?? []).length > 0 && (
                <>
                  <dt>{text.access.groups}</dt>
                  <dd>{now.person.groups?.join(', ')}</dd>
                </>
              )}
            </dl>
          </section>
        )}
        <section>
          <div class="section-head">
            <h2>{text.access.tokens}</h2>
          </div>
          <div class="panel table-wrap">
            <Shown of={tokens}>
              {({ items }) =>
                items.length === 0 ? (
                  <Empty title={text.access.noTokens} />
                ) : (
                  <table>
                    <thead>
                      <tr>
                        {[columns.name, columns.role, columns.state, columns.used, columns.expires].map((head) => (
                          <th key={head} scope="col">
                            {head}
                          </th>
                        ))}
                        <th scope="col">
                          <span class="hidden">{text.access.revoke}</span>
                        </th>
                      </tr>
                    </thead>
                    <tbody>
                      {items.map(({ id, name, role, state, lastUsedMs, lastUsedFrom, expiresMs }) => (
                        <tr key={id}>
                          <td>
                            {name} <span class="faint mono small">{id}</span>
                          </td>
                          <td>{role}</td>
                          <td>{state}</td>
                          <td class="muted">
                            {lastUsedMs === null ? text.access.never : <Age ms={lastUsedMs} />} {lastUsedFrom}
                          </td>
                          <td class="muted">{expiresMs === null ? text.access.never : <Moment ms={expiresMs} />}</td>
                          <td>
                            <button
                              type="button"
                              class="quiet"
                              onClick={() => setRevoking({ id, name })}
                              aria-label={text.access.revokeTitle(name)}
                            >
                              {text.access.revoke}
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
        <CreateToken onDone={tokens.refresh} />
      </div>
      {revoking !== null && (
        <ActionDialog<undefined>
          title={text.access.revokeTitle(revoking.name)}
          label={text.access.revoke}
          describe={() => <p>{text.access.revokeEffect(revoking.name)}</p>}
          act={() => call('DELETE', `/tokens/${part(revoking.id)}`)}
          onDone={tokens.refresh}
          onClose={() => setRevoking(null)}
        />
      )}
    </>
  )
}

function CreateToken({ onDone }: { onDone(): void }) {
  const [made, setMade] = useState<Created | null>(null)
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const { name, role, expires } = Object.fromEntries(new FormData(form))
    try {
      setMade(await call<Created>('POST', '/tokens', { body: { name, role, expires } }))
      setRefusal(null)
      form.reset()
      onDone()
    } catch (error) {
      setRefusal(refusalOf(error))
    }
  }
  return (
    <section>
      <div class="section-head">
        <h2>{text.access.create}</h2>
      </div>
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
        {refusal !== null && <RefusalNote refusal={refusal} />}
        {made !== null && (
          <div class="stack">
            <p>{text.access.shownOnce}</p>
            <CopyBox content={made.token} />
          </div>
        )}
      </div>
    </section>
  )
}
