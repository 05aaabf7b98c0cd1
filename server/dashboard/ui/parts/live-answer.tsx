// The common parts of every answer of an agent: waiting, refused, cut short, its notes, and asking again.
import type { ComponentChildren } from 'preact'
import { type Answer, linesOf } from '../state/ask.ts'
import { more } from '../words/later.ts'
import { RefusalNote, Waiting } from './states.tsx'

interface LiveProps {
  answer: Answer & { again(): void }
  /** Shown in place of the lines when the answer has ended without any. */
  empty?: string
  hasLines: boolean
  children: ComponentChildren
}

export function Live({ answer, empty, hasLines, children }: LiveProps) {
  const { isDone, refusal, isCut, again } = answer
  const notes = linesOf(answer, 'note')
  return (
    <div class="stack live-answer">
      {refusal !== null && <RefusalNote refusal={refusal} retry={again} />}
      {!isDone && !hasLines && <Waiting rows={4} />}
      {isDone && !hasLines && refusal === null && empty !== undefined && <p class="muted">{empty}</p>}
      {children}
      {notes.map(({ message }) => (
        <p key={message} class="small muted">
          {message}
        </p>
      ))}
      {isCut && <p class="small muted">{more.ask.cut}</p>}
    </div>
  )
}

export function AskAgain({ answer }: { answer: Answer & { again(): void } }) {
  return (
    <button type="button" class="quiet" disabled={!answer.isDone} onClick={answer.again}>
      {more.ask.again}
    </button>
  )
}
