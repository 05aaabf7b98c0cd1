// Events that Kubernetes keeps about an object, newest first.
import { type AskedRef, type At, linesOf, useAnswer, within } from '../state/ask.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { AskAgain, Live } from './live-answer.tsx'
import { MarkShape } from './mark.tsx'
import { Age } from './time.tsx'

export function LiveEvents({ at, of }: { at: At; of: AskedRef }) {
  const answer = useAnswer(at.cluster, { question: { kind: 'events', ref: of }, within: within(at) })
  const events = linesOf(answer, 'event').toReversed()
  return (
    <Live answer={answer} hasLines={events.length > 0} empty={more.ask.noEvents}>
      {events.length > 0 && (
        <div class="row spread">
          <span class="small muted">{text.n.events(events.length)}</span>
          <AskAgain answer={answer} />
        </div>
      )}
      <ol class="kube-events">
        {events.map(({ type, reason, message, count: times, at: when, source }, index) => (
          <li key={`${when}${reason}${index}`}>
            <MarkShape mark={type === 'Warning' ? 'drift' : 'ok'} />
            <div>
              <p class="row spread">
                <b>{reason}</b>
                <span class="small faint">{Number.isNaN(Date.parse(when)) ? when : <Age ms={Date.parse(when)} />}</span>
              </p>
              <p>{message}</p>
              <p class="small muted">
                {[type === 'Warning' ? more.ask.warning : '', source, times > 1 ? more.ask.times(times) : ''].filter(Boolean).join(' · ')}
              </p>
            </div>
          </li>
        ))}
      </ol>
    </Live>
  )
}
