// What may not be done yet although the revision asks for it: a hold, a window, a person who was not asked, a dependency, a phase or wave whose turn has not
// come. Each gate is pure and says why in words for people; the first closed one speaks. A closed gate changes nothing of what is applied: drift is healed
// to that (DR6), within what the gate allows.
import type { Problem } from '../situation.ts'
import type { Wanted } from '../wanted.ts'

/** `change`: a document that is not applied yet. `restore`: an object of ours that is gone. `correct`: one that somebody changed. */
export type Deed = 'change' | 'restore' | 'correct'
export type Closed = Extract<Problem, { kind: 'gated' }>
export type Gate = (wanted: Wanted, deed: Deed) => Closed | null

export const OPEN: Gate = () => null

export const closed = (reason: string, message: string): Closed => ({ kind: 'gated', reason, message })

/** In the order in which a person would want to hear of them. */
export function allOf(gates: readonly Gate[]): Gate {
  const [first, ...others] = gates
  if (first === undefined) return OPEN
  if (others.length === 0) return first
  return (wanted, deed) => {
    for (const gate of gates) {
      const verdict = gate(wanted, deed)
      if (verdict !== null) return verdict
    }
    return null
  }
}
