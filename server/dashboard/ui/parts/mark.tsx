// A mark and its word. The word is always there, visible or for a screen reader: nothing is said by colour alone.
import { MARKS, type Mark } from '../state/mark-of.ts'
import { text } from '../words.ts'

export function MarkShape({ mark }: { mark: Mark }) {
  return <span class={`m m-${mark}`} aria-hidden="true" />
}

/** `word`: instead of the usual one of the mark. */
export function MarkWord({ mark, word, title }: { mark: Mark; word?: string; title?: string }) {
  return (
    <span class="mark" title={title}>
      <MarkShape mark={mark} />
      <span class="clip">{word ?? text.marks[mark]}</span>
    </span>
  )
}

export function Legend() {
  return (
    <ul class="legend" aria-label={text.fleet.legend}>
      {MARKS.map((mark) => (
        <li key={mark}>
          <MarkWord mark={mark} />
        </li>
      ))}
    </ul>
  )
}
