// A question about a right, for the caller or another subject, and its answer with the role and binding that give it,
// or with the right that is missing.
import { useState } from 'preact/hooks'
import type { Refusal } from '../state/api.ts'
import { refusalOf } from '../state/resource.ts'
import { type AccessKind, type CanI, canI, useMay, VERBS_OF } from '../state/rights.ts'
import { text } from '../words/first.ts'
import { whereText } from './access-roles.tsx'
import { RefusalNote, Section } from './states.tsx'

const KINDS = Object.keys(VERBS_OF) as AccessKind[]
const OF_FLEET: readonly AccessKind[] = ['Cluster', 'Role', 'JoinToken', 'ApiToken', 'Agent', 'Server', 'SavedQuery']

export function CanIForm() {
  const mayAskForOthers = useMay('read', 'RoleBinding', 'some')?.allowed === true
  const [kind, setKind] = useState<AccessKind>('Service')
  const [as, setAs] = useState('')
  const [answer, setAnswer] = useState<CanI | null>(null)
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  const words = text.access.canI
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const given = Object.fromEntries(
      [...new FormData(event.currentTarget as HTMLFormElement)].flatMap(([key, value]) =>
        typeof value === 'string' && value.trim() !== '' ? [[key, value.trim()]] : [],
      ),
    ) as Record<string, string>
    setRefusal(null)
    try {
      setAnswer(await canI(given))
    } catch (error) {
      setAnswer(null)
      setRefusal(refusalOf(error))
    }
  }
  return (
    <Section title={words.title}>
      <div class="panel padded">
        <form class="form-line" onSubmit={submit} onInput={() => setAnswer(null)}>
          <label>
            {words.kind}
            <select name="kind" value={kind} onChange={(event) => setKind(event.currentTarget.value as AccessKind)}>
              {KINDS.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
          <label>
            {words.verb}
            <select name="verb">
              {VERBS_OF[kind].map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
          {!OF_FLEET.includes(kind) && (
            <label>
              {words.project}
              <input name="project" maxLength={63} autocomplete="off" placeholder={words.anyProject} />
            </label>
          )}
          {kind !== 'Server' && kind !== 'Audit' && (
            <label>
              {words.name}
              <input name="name" maxLength={63} autocomplete="off" placeholder={words.anyName} />
            </label>
          )}
          {kind === 'Service' && (
            <label>
              {words.cluster}
              <input name="cluster" maxLength={63} autocomplete="off" placeholder={words.anyCluster} />
            </label>
          )}
          {mayAskForOthers && (
            <label>
              {words.as}
              <select value={as} onChange={(event) => setAs(event.currentTarget.value)}>
                <option value="">{words.me}</option>
                <option value="asUser">{words.user}</option>
                <option value="asGroup">{words.group}</option>
                <option value="asToken">{words.token}</option>
              </select>
            </label>
          )}
          {mayAskForOthers && as !== '' && (
            <label>
              {words.whom}
              <input name={as} required maxLength={320} autocomplete="off" placeholder={words.examples[as] ?? ''} />
            </label>
          )}
          <button type="submit">{words.ask}</button>
        </form>
        <div role="status" class="answer">
          {refusal !== null && <RefusalNote refusal={refusal} />}
          {answer !== null && (
            <div class={`note ${answer.allowed ? 'calm' : ''}`}>
              <h3>{answer.allowed ? words.yes : words.no}</h3>
              <p>{answer.detail}</p>
              {answer.by !== null && <p class="muted">{whereText(answer.by)}</p>}
              {!answer.allowed && <p class="muted">{words.noNext}</p>}
            </div>
          )}
        </div>
      </div>
    </Section>
  )
}
