// Metrics of the agent as a status row, for clusters that Prometheus cannot reach. Off by default, because each row
// costs bytes on the link.
import type { AgentMetricsStatus } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { AgentReport } from './report.ts'

export interface MetricsReportDeps {
  state: Pick<AgentState, 'report'>
  read(): AgentReport
  /** 0 means off. */
  everyMs: number
  clock: Clock
  random: Random
  log: Logger
}

export async function reportMetrics({ state, read, everyMs, clock, random, log }: MetricsReportDeps, signal: AbortSignal): Promise<void> {
  if (everyMs === 0) return
  const startedMs = Math.round(performance.timeOrigin)
  // The first wait is random, so that agents that start together do not report together.
  for (let waitMs = everyMs * random(); !signal.aborted; waitMs = everyMs * (0.9 + 0.2 * random())) {
    await clock.sleep(waitMs, signal)
    if (signal.aborted) return
    try {
      state.report([{ kind: 'agent', key: 'metrics', doc: metricsStatus(read(), { atMs: clock.nowMs(), everyMs, startedMs }) }])
    } catch (error) {
      log.debug('metrics cannot be reported', { error: describeError(error) })
    }
  }
}

type Times = Pick<AgentMetricsStatus, 'atMs' | 'everyMs' | 'startedMs'>

export function metricsStatus(
  { enforcement, link, replica, resync, disk, outboxDepth, todayBytes }: AgentReport,
  times: Times,
): AgentMetricsStatus {
  const { user, system } = process.cpuUsage()
  return {
    ...times,
    cpuSeconds: Math.round((user + system) / 10_000) / 100,
    residentBytes: process.memoryUsage.rss(),
    enforcing: enforcement.state === 'enforcing',
    diskWritable: disk === null,
    replicaRows: replica?.rows ?? 0,
    outboxRows: outboxDepth,
    requests: link?.requests ?? 0,
    sentBytes: link?.bytesSent ?? 0,
    receivedBytes: link?.bytesReceived ?? 0,
    todayBytes,
    resyncCompared: resync?.compared ?? 0,
    resyncDifferences: resync?.differences ?? 0,
  }
}
