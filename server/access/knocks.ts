// Agents that ask for a session and are not known: of a cluster that was removed, or that joined after the backup that
// this server was restored from. Anybody can send an id, so the list is short and forgets the longest silent.
import type { Clock } from '../../shared/runtime/clock.ts'

export const KNOCKS_MAX = 200

export interface Knock {
  agentId: string
  tries: number
  lastMs: number
}

export interface Knocks {
  note(agentId: string): void
  /** The last one first. */
  list(): Knock[]
}

export function createKnocks(clock: Clock): Knocks {
  const held = new Map<string, Knock>()
  return {
    note(agentId) {
      const tries = (held.get(agentId)?.tries ?? 0) + 1
      held.delete(agentId) // to the end: the map's order is by last try
      held.set(agentId, { agentId, tries, lastMs: clock.nowMs() })
      const oldest = held.size > KNOCKS_MAX ? held.keys().next().value : undefined
      if (oldest !== undefined) held.delete(oldest)
    },
    list: () => [...held.values()].toReversed(),
  }
}
