// Reason, age and next step of a state that is not in sync, wherever a state is shown in full.
import type { ComponentChildren } from 'preact'
import type { Mark } from '../state/mark-of.ts'
import { sentence } from '../state/needs.ts'
import { text } from '../words/first.ts'
import { MarkWord } from './mark.tsx'
import { Age } from './time.tsx'

interface StateNoteProps {
  mark: Mark
  was?: Mark | null
  word?: string
  state: { sync: string; health: string; reason: string; message: string; next: string; sinceMs: number | null }
  children?: ComponentChildren
}

export function StateNote({ mark, was = null, word, state, children }: StateNoteProps) {
  const { sync, health, reason, message, next, sinceMs } = state
  return (
    <div class="stack state-note">
      <div class="row">
        <h2 class="sub">
          <MarkWord mark={mark} was={was} {...(word === undefined ? {} : { word })} />
        </h2>
        <span class="small muted">
          {[sync, health, reason].filter((one, index, all) => one !== '' && all.indexOf(one) === index).join(' · ')}
          {sinceMs !== null && (
            <>
              {' · '}
              <Age ms={sinceMs} />
            </>
          )}
        </span>
      </div>
      {message !== '' && <p>{sentence(message)}</p>}
      {next !== '' && (
        <p class="muted">
          <b>{text.states.whatNext}: </b>
          <Command words={next} />
        </p>
      )}
      {children !== undefined && <div class="row">{children}</div>}
    </div>
  )
}

/** Text between back quotes is a command. */
export function Command({ words }: { words: string }) {
  return <>{words.split('`').map((piece, index) => (index % 2 === 1 ? <code key={index}>{piece}</code> : piece))}</>
}
