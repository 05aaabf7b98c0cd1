// FA5: which services are passed again when clusters say that they serve something else. Reports of many clusters are
// gathered: after an upgrade of the fleet all of them come.

import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'

/** From the first report to the reconciliations, so that reports of the same time are handled together. */
const GATHER_MS = 5_000
/** A multiple of the duration of the last reconciliations: they never take more than a fifth of the time. */
const GATHER_TIMES = 4

export interface FactsChangesDeps {
  clock: Clock
  log: Logger
  stopping: AbortSignal
  /**
   * Services that are, or should be, in these clusters and may read facts. Resolves when all were reconciled; rejects
   * if they cannot be determined.
   */
  pass(clusters: ReadonlySet<ClusterId>): Promise<void>
}

export class FactsChanges {
  readonly #deps: FactsChangesDeps
  #waiting = new Set<ClusterId>()
  #running = false
  #gatherMs = GATHER_MS

  constructor(deps: FactsChangesDeps) {
    this.#deps = deps
  }

  changed(clusterId: ClusterId): void {
    this.#waiting.add(clusterId)
    if (this.#running) return
    this.#running = true
    void this.#run()
  }

  async #run(): Promise<void> {
    const { clock, log, stopping, pass } = this.#deps
    while (this.#waiting.size > 0 && !stopping.aborted) {
      await clock.sleep(this.#gatherMs, stopping)
      if (stopping.aborted) return
      const clusters = this.#waiting
      this.#waiting = new Set()
      const beganMs = clock.nowMs()
      try {
        await pass(clusters)
      } catch (error) {
        log.warn('cannot read services after clusters changed', { clusters: clusters.size, error: describeError(error) })
        for (const clusterId of clusters) this.#waiting.add(clusterId)
      }
      this.#gatherMs = Math.max(GATHER_MS, (clock.nowMs() - beganMs) * GATHER_TIMES)
    }
    this.#running = false // with the look that found nothing: what comes later begins anew
  }
}
