// Commands of the palette: a verb, and the name of what it is done to. Pure.
import type { ActionAsked } from './actions.ts'

export type Verb = ActionAsked['kind']

export interface Spoken {
  /** Verbs that the first word may begin; empty: it is no command. */
  verbs: Verb[]
  /** The name that is searched. */
  name: string
}

/** `susp web` means that web is suspended; a single word may still be a name. */
export function spokenOf(typed: string, words: Readonly<Record<string, readonly string[]>>): Spoken {
  const [first = '', ...rest] = typed.trim().toLowerCase().split(/\s+/)
  const verbs = Object.entries(words).flatMap(([verb, spoken]) =>
    first.length > 1 && spoken.some((word) => word.startsWith(first)) ? [verb as Verb] : [],
  )
  return { verbs, name: verbs.length === 0 ? typed.trim() : rest.join(' ') }
}
