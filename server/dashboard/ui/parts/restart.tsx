// Restart of a workload: the names of its Pods first, then a reason. The agent replaces them as the strategy of the workload says.
import { useState } from 'preact/hooks'
import { count } from '../format.ts'
import { type AnswerLineOf, type AskedRef, type At, askOnce, linesOf, within } from '../state/ask.ts'
import { refreshAll } from '../state/resource.ts'
import { more } from '../words-more.ts'
import { ActionDialog } from './action.tsx'

const RESTARTS = new Set(['Deployment', 'StatefulSet', 'DaemonSet'])
export const canRestart = ({ group, kind }: AskedRef): boolean => group === 'apps' && RESTARTS.has(kind)

export function Restart({ at, of }: { at: At; of: AskedRef }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        {more.ask.restart}
      </button>
      {isOpen && <RestartDialog at={at} of={of} onClose={() => setOpen(false)} />}
    </>
  )
}

function RestartDialog({ at, of, onClose }: { at: At; of: AskedRef; onClose(): void }) {
  const name = `${of.kind} ${of.namespace}/${of.name}`
  const readPods = async (): Promise<Array<AnswerLineOf<'child'>>> => {
    const lines = await askOnce(at.cluster, { question: { kind: 'tree', ref: of }, within: within(at) })
    return linesOf({ lines }, 'child').filter(({ ref }) => ref.kind === 'Pod')
  }
  return (
    <ActionDialog
      title={`${more.ask.restart} ${of.name}`}
      label={more.ask.restart}
      plan={readPods}
      describe={(pods) => (
        <>
          <p>{more.ask.restartEffect(name, at.cluster, count(pods.length, 'Pod'))}</p>
          {pods.length > 0 && (
            <ul class="name-list">
              {pods.map(({ uid, ref }) => (
                <li key={uid}>{ref.name}</li>
              ))}
            </ul>
          )}
        </>
      )}
      needsReason
      act={(_, reason) => askOnce(at.cluster, { question: { kind: 'restart', ref: of }, within: within(at) }, reason)}
      onDone={refreshAll}
      onClose={onClose}
    />
  )
}
