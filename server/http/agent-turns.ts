// AR1: an agent has one pull and one push at a time. An agent that sends more of them is broken or hostile and must not
// cost memory or time of others, so a newer one ends the older one, which may belong to a connection that the agent has
// given up long ago. Costs an idle poll almost nothing.
import { setImmediate } from 'node:timers/promises'
import { AppError } from '../../shared/runtime/error.ts'
import type { FairPace } from './fair-pace.ts'

export interface AgentTurns {
  /** `onReplaced`: a newer one of the same agent began. */
  begin(agentId: string, onReplaced: () => void): AgentTurn
}

export interface AgentTurn {
  /** False once a newer one of the same agent began. */
  current(): boolean
  /**
   * Throws when it is no longer current. It first waits for requests of the same moment: of a burst only the last one
   * costs anything, and between two pushes of one agent other work runs.
   */
  go(): Promise<void>
  end(): void
}

export function createAgentTurns(doing: string, pace: FairPace = () => undefined): AgentTurns {
  const latest = new Map<string, { onReplaced: () => void }>()
  return {
    begin(agentId, onReplaced) {
      const own = { onReplaced }
      const older = latest.get(agentId)
      latest.set(agentId, own) // first: whoever is woken looks who is current
      older?.onReplaced()
      const current = () => latest.get(agentId) === own
      return {
        current,
        async go() {
          await setImmediate()
          await pace()
          if (!current()) throw new AppError('too_many_requests', { doing, detail: 'replaced by a newer request of this agent' })
        },
        end() {
          if (current()) latest.delete(agentId)
        },
      }
    },
  }
}
