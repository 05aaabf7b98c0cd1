// People and rights: the person at the screen, roles and bindings, sessions and API tokens. A part that the person may
// not see says which right is missing.
import { Bindings, Roles, whereText } from '../parts/access-roles.tsx'
import { SessionList } from '../parts/access-sessions.tsx'
import { Tokens } from '../parts/access-tokens.tsx'
import { CanIForm } from '../parts/can-i.tsx'
import { Head } from '../parts/head.tsx'
import { Section } from '../parts/states.tsx'
import { session } from '../state/session.ts'
import { text } from '../words/first.ts'

export function AccessPage() {
  return (
    <>
      <Head title={text.access.title} />
      <div class="stack far narrow">
        <You />
        <CanIForm />
        <Bindings />
        <Roles />
        <SessionList />
        <Tokens />
      </div>
    </>
  )
}

function You() {
  const now = session.value
  if (now.state !== 'in') return null
  const { name, email, provider, groups = [], roles = [] } = now.person
  const { you } = text.access
  return (
    <Section title={you.title}>
      <dl class="facts panel padded">
        <dt>{you.name}</dt>
        <dd>
          {name}
          {typeof email === 'string' && email !== name && <span class="muted"> {email}</span>}
        </dd>
        <dt>{you.through}</dt>
        <dd>{provider ?? you.token}</dd>
        {groups.length > 0 && (
          <>
            <dt>{you.groups}</dt>
            <dd>{groups.join(', ')}</dd>
          </>
        )}
        <dt>{you.roles}</dt>
        <dd>
          {roles.length === 0
            ? you.noRoles
            : roles.map((one) => {
                const by = one.binding === null ? you.ofToken : you.byBinding(one.binding.project, one.binding.name)
                return (
                  <div key={`${one.role} ${by}`}>
                    {one.role} <span class="muted">{`${whereText(one)}, ${by}`}</span>
                  </div>
                )
              })}
        </dd>
      </dl>
    </Section>
  )
}
