// A mark and its word. The word is always there, visible or for a screen reader: nothing is said by colour alone.
import { MARKS, type Mark, type Seen } from '../state/mark-of.ts'
import { text } from '../words/first.ts'

interface ShapeProps {
  mark: Mark
  /** Last known mark of what is offline, small and without colour inside the outline. */
  was?: Mark | null
}

export function MarkShape({ mark, was = null }: ShapeProps) {
  return (
    <span class={`m m-${mark}`} aria-hidden="true">
      {was !== null && <i class={`m m-${was}`} />}
    </span>
  )
}

/** The word of a mark, with what was known last of what is offline. */
export const seenWord = ({ mark, was }: Seen): string => (was === null ? text.marks[mark] : text.marks.was(text.marks[was]))

/** `word`: instead of the usual one of the mark. */
export function MarkWord({ mark, was = null, word, title }: ShapeProps & { word?: string; title?: string }) {
  return (
    <span class="mark" title={title}>
      <MarkShape mark={mark} was={was} />
      <span class="clip">{word ?? seenWord({ mark, was })}</span>
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
