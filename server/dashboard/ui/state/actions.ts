// The action that a person asked for, wherever the button, the command or the row is. One dialog shows it over any
// page. Commands of the palette are such actions in words.
import { signal } from '@preact/signals'
import type { AskedRef } from '../../../../shared/protocol/ask.ts'

export interface ServiceRef {
  project: string
  name: string
}
/** Absent service: all services of the cluster; absent cluster: all clusters of the service. */
export interface Scope {
  service?: ServiceRef
  cluster?: string
}

export type ActionAsked =
  | ({ kind: 'suspend' | 'resume' } & Scope)
  | { kind: 'sync'; service: ServiceRef; cluster?: string }
  | { kind: 'refresh'; project: string; name: string }
  | { kind: 'restart'; cluster: string; project: string; service: string; ref: AskedRef }

export const actionAsked = signal<ActionAsked | null>(null)
export const askAction = (action: ActionAsked): void => {
  actionAsked.value = action
}

export type Verb = ActionAsked['kind']

export interface Spoken {
  /** Verbs that the first word may begin. None means that it is no command. */
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
