// `dependsOn` between services of this cluster: the services that one waits for before it begins a revision, and those
// that wait for it before it may be removed. Pure: facts of the others come by lookups.
import { cycleThrough } from '../../../../shared/model/dependencies.ts'
import { serviceText } from '../../../../shared/model/ids.ts'
import { type Closed, closed } from '../../snapshot/situation.ts'

/** The state of a service with dependents. `words`: as last reported, for people. */
export type DependencyState =
  | { kind: 'ready' }
  /** No row of it here. */
  | { kind: 'absent' }
  | { kind: 'removing' }
  /** Not (yet) Healthy at the revision that its row names, or Degraded since. */
  | { kind: 'unready'; words: string }

export interface DependencyView {
  stateOf(key: string): DependencyState
  /** Keys of the services that a service depends on; none for an unknown one. */
  dependenciesOf(key: string): readonly string[]
}

export const BLOCKED_BY = 'BlockedBy'

export interface Blocked {
  gate: Closed
  /** All that it waits for, sorted. */
  on: string[]
}

/** DE1, DE2: null if everything that `key` depends on is ready. */
export function blockedBy(key: string, { stateOf, dependenciesOf }: DependencyView): Blocked | null {
  const states = dependenciesOf(key).map((dependency) => ({ dependency, state: stateOf(dependency) }))
  const on = states.filter(({ state }) => state.kind !== 'ready').map(({ dependency }) => dependency)
  const [first] = states.filter(({ state }) => state.kind !== 'ready')
  if (first === undefined) return null
  const cycle = cycleThrough(key, dependenciesOf)
  if (cycle !== null) {
    const message = `dependency cycle: ${cycle.map(serviceText).join(' → ')}; remove one of these from spec.dependsOn`
    return { gate: closed(BLOCKED_BY, message), on }
  }
  const more = on.length === 1 ? '' : ` (and for ${on.length - 1} more)`
  return { gate: closed(BLOCKED_BY, `${waitText(first.dependency, first.state)}${more}`), on }
}

function waitText(key: string, state: DependencyState): string {
  const name = serviceText(key)
  switch (state.kind) {
    case 'absent':
      return `waiting for ${name}, which is not in this cluster; add this cluster to its targets, or remove it from spec.dependsOn`
    case 'removing':
      return `waiting for ${name}, which is being removed from this cluster; keep that service, or remove it from spec.dependsOn`
    case 'unready':
      return `waiting for ${name} to be Healthy at its newest revision (now ${state.words})`
    case 'ready':
      return ''
  }
}

/** DE4. The dependents of `key` that have to be removed before it. None of a cycle waits for another. */
export function goneFirst(
  key: string,
  dependents: readonly string[],
  isLeaving: (key: string) => boolean,
  dependenciesOf: (key: string) => readonly string[],
): string[] {
  const leaving = dependents.filter((dependent) => dependent !== key && isLeaving(dependent))
  if (leaving.length === 0) return leaving
  return leaving.filter((dependent) => !reaches(key, dependent, dependenciesOf)).sort()
}

function reaches(from: string, to: string, dependenciesOf: (key: string) => readonly string[]): boolean {
  const seen = new Set([from])
  const open = [from]
  for (let key = open.pop(); key !== undefined; key = open.pop()) {
    for (const next of dependenciesOf(key)) {
      if (next === to) return true
      if (seen.has(next)) continue
      seen.add(next)
      open.push(next)
    }
  }
  return false
}
