// Labels of a cluster: edited as lines, then shown with what moves because of them, and only then written.
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { ApplyAnswer, MoveView } from '../../../../shared/model/apply-views.ts'
import { call, type Refusal } from '../state/api.ts'
import type { ClusterView } from '../state/reads.ts'
import { refreshAll, refusalOf } from '../state/resource.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { RefusalNote } from './states.tsx'

const words = more.labels

export const labelText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join('\n')

/** Null if the line holds no label. */
export function labelsOf(lines: string): Record<string, string> | null {
  const labels: Record<string, string> = {}
  for (const line of lines.split(/[\n,]/)) {
    if (line.trim() === '') continue
    const [key = '', value, ...more] = line.split('=').map((piece) => piece.trim())
    if (key === '' || value === undefined || more.length > 0) return null
    labels[key] = value
  }
  return labels
}

export function LabelEdit({ view, onClose }: { view: ClusterView; onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [lines, setLines] = useState(labelText(view.metadata.labels))
  const [plan, setPlan] = useState<{ of: string; answer: ApplyAnswer } | null>(null)
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  const [isWorking, setWorking] = useState(false)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  const { name } = view.metadata
  const isPlanned = plan?.of === lines
  const isChanged = isPlanned && plan.answer.results.some(({ action }) => action !== 'unchanged')
  const apply = (labels: Record<string, string>, dryRun: boolean, reason = '') => {
    const resource = { apiVersion: view.apiVersion, kind: 'Cluster', metadata: { name, labels }, spec: view.spec }
    return call('POST /apply', { body: { resources: [resource], dryRun }, reason })
  }
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const labels = labelsOf(lines)
    if (labels === null) return setRefusal({ status: 0, code: 'labels', detail: words.malformed, remedy: '', problems: [] })
    const reason = new FormData(event.currentTarget as HTMLFormElement).get('reason')
    setWorking(true)
    setRefusal(null)
    try {
      if (isChanged) {
        await apply(labels, false, typeof reason === 'string' ? reason.trim() : '')
        refreshAll()
        onClose()
        return
      }
      setPlan({ of: lines, answer: await apply(labels, true) })
    } catch (error) {
      setRefusal(refusalOf(error))
    }
    setWorking(false)
  }
  return (
    <dialog ref={dialog} onClose={onClose} aria-label={words.edit(name)}>
      <form onSubmit={submit}>
        <h2>{words.edit(name)}</h2>
        <label>
          {words.lines}
          <textarea
            class="mono"
            rows={Math.max(4, lines.split('\n').length + 1)}
            value={lines}
            spellcheck={false}
            onInput={(event) => setLines(event.currentTarget.value)}
          />
          <span>{words.hint}</span>
        </label>
        <div role="status" class="stack">
          {isPlanned && <Effects answer={plan.answer} isChanged={isChanged} />}
        </div>
        {refusal !== null && <RefusalNote refusal={refusal} />}
        {isChanged && (
          <label>
            {text.actions.reason}
            <input name="reason" required maxLength={500} autocomplete="off" />
            <span>{text.actions.reasonHint}</span>
          </label>
        )}
        <div class="ends">
          <button type="button" onClick={() => dialog.current?.close()}>
            {text.actions.cancel}
          </button>
          <button type="submit" class="primary" disabled={isWorking}>
            {isWorking ? text.actions.working : isChanged ? words.write : words.preview}
          </button>
        </div>
      </form>
    </dialog>
  )
}

function Effects({ answer: { moves = [], changes = [], effects = [] }, isChanged }: { answer: ApplyAnswer; isChanged: boolean }) {
  if (!isChanged) return <p>{text.actions.nothing}</p>
  return (
    <>
      <h3>{text.actions.blast}</h3>
      {moves.length === 0 && changes.length === 0 && <p>{words.nothingMoves}</p>}
      {moves.map((move) => (
        <Moves key={move.name} move={move} />
      ))}
      {changes.map(({ service, project, what, detail }) => (
        <p key={`${project}/${service}${detail}`}>
          <code>
            {project}/{service}
          </code>
          : {words.changes[what]} <code>{detail}</code>
        </p>
      ))}
      {effects
        .filter(({ error }) => error !== undefined)
        .map(({ project, service, error }) => (
          <p key={`${project}/${service}`} class="small muted">
            {words.unknown(`${project}/${service}`, error ?? '')}
          </p>
        ))}
    </>
  )
}

function Moves({ move: { leaves, comes, waits, removals = [] } }: { move: MoveView }) {
  return (
    <>
      {comes.count > 0 && (
        <>
          <p>{words.comes(comes.count)}</p>
          <ul class="name-list">
            {comes.first.map(({ project, service }) => (
              <li key={`${project}/${service}`}>
                + {project}/{service}
              </li>
            ))}
          </ul>
        </>
      )}
      {leaves.count > 0 && (
        <>
          <p class="badly">{words.leaves(leaves.count, leaves.prunes)}</p>
          <ul class="name-list">
            {leaves.first.map(({ project, service }) => (
              <li key={`${project}/${service}`}>
                − {project}/{service}
              </li>
            ))}
          </ul>
        </>
      )}
      {removals.length > 0 && <p class="small muted">{words.removals}</p>}
      {waits.map(({ project, service, why }) => (
        <p key={`${project}/${service}`} class="small">
          <code>
            {project}/{service}
          </code>
          : {words.waits} {why}
        </p>
      ))}
    </>
  )
}
