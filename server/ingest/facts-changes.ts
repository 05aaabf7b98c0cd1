// FA5: which services are passed again when clusters say that they serve something else. Reports of many clusters are gathered: after an upgrade of the fleet all of them come.
import type { ClusterId } from '../../shared/model/ids.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'

/** From the first report to the passes, so that what comes together is looked at once. */
const GATHER_MS = 5_000
/** So many times as long as the last passes took: never more than a fifth of the time goes into them. */
const GATHER_TIMES = 4

export interface FactsChangesDeps {
  clock: Clock
  log: Logger
  stopping: AbortSignal
  /** Services that are, or shall be, in these clusters and may look at facts. Resolves when all were passed; rejects when it cannot be told which. */
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
        log.warn('services cannot be looked at after clusters changed', { clusters: clusters.size, error: describeError(error) })
        for (const clusterId of clusters) this.#waiting.add(clusterId)
      }
      this.#gatherMs = Math.max(GATHER_MS, (clock.nowMs() - beganMs) * GATHER_TIMES)
    }
    this.#running = false // with the look that found nothing: what comes later begins anew
  }
}
