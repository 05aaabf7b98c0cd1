// Collects the reports of reconciliations, which reach the agent's state at the end of each, in one transaction.
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { withTrace } from '../../../shared/runtime/trace-id.ts'
import type { PodLogs } from '../../cluster/pod-logs.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { Reports } from '../ports.ts'
import { Explainer } from './explainer.ts'

export interface ReportsDeps {
  clock: Clock
  log: Logger
  state: Pick<AgentState, 'report'>
  /** Undefined if logs are never read. */
  podLogs: (PodLogs & { lines: number }) | undefined
  /** CO1: of the revision of a service; undefined: unknown. */
  traceOf(service: string): string | undefined
}

export function createReports({ clock, log, state, podLogs, traceOf }: ReportsDeps, emitOnObject: Reports['emitOnObject']): Reports {
  const rows: Parameters<AgentState['report']>[0][number][] = []
  let eventCount = 0
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
    flushReports: (turn) => state.report(rows.splice(0), turn),
  }
}
