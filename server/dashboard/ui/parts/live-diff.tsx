// Fields that Git owns and in which the live object differs: desired and live side by side, with the managers that
// wrote them last.
import { type AskedRef, type At, linesOf, useAnswer, within } from '../state/ask.ts'
import { more } from '../words/later.ts'
import { yamlOf } from '../yaml.ts'
import { AskAgain, Live } from './live-answer.tsx'
import { Moment } from './time.tsx'

export function LiveDiff({ at, of }: { at: At; of: AskedRef }) {
  const service = within(at)
  const answer = useAnswer(at.cluster, { question: { kind: 'diff', service, ref: of }, within: service })
  const [line] = linesOf(answer, 'diff')
  return (
    <Live answer={answer} hasLines={line !== undefined} empty={more.ask.notManaged}>
      {line !== undefined && (
        <>
          <div class="row spread">
            <p>{line.message || more.ask.diffStates[line.state]}</p>
            <AskAgain answer={answer} />
          </div>
          {line.fields.length > 0 && <FieldDiff fields={line.fields} />}
        </>
      )}
    </Live>
  )
}

interface Field {
  path: string
  desired?: unknown
  live?: unknown
  managers?: readonly string[] | undefined
  writtenMs?: number | undefined
}

export function FieldDiff({ fields }: { fields: readonly Field[] }) {
  const { desired, live } = more.ask.sides
  return (
    <ul class="field-diff">
      {fields.map(({ path, managers = [], writtenMs, ...sides }) => (
        <li key={path}>
          <div class="row spread">
            <code>{path}</code>
            {managers.length > 0 && (
              <span class="small muted">
                {more.ask.writtenBy(managers)}
                {writtenMs !== undefined && (
                  <>
                    {' '}
                    · <Moment ms={writtenMs} />
                  </>
                )}
              </span>
            )}
          </div>
          <div class="sides">
            <Side word={desired} class="is-desired" isThere={'desired' in sides} value={sides.desired} />
            <Side word={live} class="is-live" isThere={'live' in sides} value={sides.live} />
          </div>
        </li>
      ))}
    </ul>
  )
}

function Side({ word, class: kind, isThere, value }: { word: string; class: string; isThere: boolean; value: unknown }) {
  return (
    <div class={`side-value ${kind}`}>
      <span class="small muted">{word}</span>
      <pre tabIndex={0}>{isThere ? yamlOf(value).trimEnd() : more.ask.absent}</pre>
    </div>
  )
}
