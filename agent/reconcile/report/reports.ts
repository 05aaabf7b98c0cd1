// Collects the reports of reconciliations, which reach the agent's state at the end of each, in one transaction. Those
// that end in the same moment share it: a commit costs more than the records of a small service.
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { withTrace } from '../../../shared/runtime/trace-id.ts'
import type { PodLogs } from '../../cluster/pod-logs.ts'
import type { AgentState, TurnRecord } from '../../state/agent-state.ts'
import type { Reports } from '../ports.ts'
import { Explainer } from './explainer.ts'

export interface ReportsDeps {
  clock: Clock
  log: Logger
  state: Pick<AgentState, 'report'>
  /** Undefined if logs are never read. */
  podLogs: (PodLogs & { lines: number }) | undefined
  /** CO1: of the revision of a service. Undefined means unknown. */
  traceOf(service: string): string | undefined
  /** Aborts with the run: nothing waits for other turns when it ends. */
  signal: AbortSignal
}

export function createReports(
  { clock, log, state, podLogs, traceOf, signal }: ReportsDeps,
  emitOnObject: Reports['emitOnObject'],
): Reports {
  let rows: Rows = []
  let eventCount = 0
  let ended: EndedTurn[] = []
  /** A failure is that of one turn: each of them gets its own transaction then. */
  const store = (turns: readonly EndedTurn[]): void => {
    try {
      state.report(
        turns.flatMap((turn) => turn.rows),
        turns.map(({ turn }) => turn),
      )
    } catch (error) {
      if (turns.length > 1) for (const turn of turns) store([turn])
      else for (const { done } of turns) done.reject(error)
      return
    }
    for (const { done } of turns) done.resolve()
  }
  const storeEnded = (): void => {
    const turns = ended
    ended = []
    if (turns.length > 0) store(turns)
  }
  return {
    explainer: new Explainer({ logs: podLogs ?? null }),
    emitOnObject,
    emit: (said) => {
      const event = { ...said, ...withTrace(said.service === undefined ? undefined : traceOf(said.service)) }
      emitOnObject(event)
      const atMs = clock.nowMs()
      eventCount += 1
      rows.push({ kind: 'event', key: `${String(atMs).padStart(13, '0')}-${eventCount}`, doc: { atMs, ...event } })
      log.info('event', { ...event })
    },
    report: (more) => void rows.push(...more),
    flushReports: () => {
      storeEnded() // earlier states of a key come first
      state.report(rows)
      rows = []
    },
    recordTurn: (turn) => {
      if (ended.length === 0) void clock.sleep(0, signal).then(storeEnded)
      const done = Promise.withResolvers<void>()
      ended.push({ turn, rows, done })
      rows = []
      return done.promise
    },
  }
}

type Rows = Array<Parameters<AgentState['report']>[0][number]>
interface EndedTurn {
  turn: TurnRecord
  rows: Rows
  done: PromiseWithResolvers<void>
}
