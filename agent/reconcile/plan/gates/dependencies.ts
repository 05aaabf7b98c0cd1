// `dependsOn` between services of this cluster: the services that one waits for before it begins a revision, and those
// that wait for it before it may be removed. Pure: facts of the others come by lookups.
import { cycleThrough } from '../../../../shared/model/dependencies.ts'
import { serviceText } from '../../../../shared/runtime/ids.ts'
import type { Said } from '../../../../shared/runtime/messages.ts'
import { serviceStatus } from '../../../messages/service-messages.ts'
import { type Closed, closedBy } from '../../snapshot/situation.ts'

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
  const open = dependenciesOf(key).flatMap((dependency) => {
    const state = stateOf(dependency)
    return state.kind === 'ready' ? [] : [{ dependency, state }]
  })
  const on = open.map(({ dependency }) => dependency)
  const [first] = open
  if (first === undefined) return null
  const cycle = cycleThrough(key, dependenciesOf)
  if (cycle !== null) return { gate: closedBy(serviceStatus('BlockedBy.cycle', { cycle: cycle.map(serviceText).join(' → ') })), on }
  return { gate: closedBy(waitsFor(serviceText(first.dependency), first.state, on.length - 1)), on }
}

function waitsFor(service: string, state: Exclude<DependencyState, { kind: 'ready' }>, more: number): Said<typeof BLOCKED_BY> {
  switch (state.kind) {
    case 'absent':
      return serviceStatus('BlockedBy.absent', { service, more })
    case 'removing':
      return serviceStatus('BlockedBy.removing', { service, more })
    case 'unready':
      return serviceStatus('BlockedBy.unready', { service, more, now: state.words })
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
