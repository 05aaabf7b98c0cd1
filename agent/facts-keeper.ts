// Decides when the agent asks what its cluster serves, for facts: with each discovery for other work, again after an
// API went missing, and about every hour for APIs without a watch.
import { factsStatusSchema } from '../shared/model/status.ts'
import type { Clock } from '../shared/runtime/clock.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import { describeError } from '../shared/runtime/loop.ts'
import type { Random } from '../shared/runtime/random.ts'
import type { ClusterInfo, Discovery } from './cluster/cluster.ts'
import { FactsBook, GONE_AFTER_MS } from './cluster/facts-book.ts'
import type { AgentState } from './state/agent-state.ts'

export interface FactsKeeperDeps {
  state: Pick<AgentState, 'report' | 'lastReported'>
  clock: Clock
  random: Random
  log: Logger
  /** The stored version; '': not known yet. */
  version: string
  /** Asks discovery, whose answer goes to `noteDiscovery`. */
  look(): Promise<void>
  info(): Promise<Pick<ClusterInfo, 'version'>>
}

/** Mean time between two requests to a cluster without changes. */
const LOOK_MS = 60 * 60_000
/** After an answer that could not be read, or not stored. */
const SOON_MS = 60_000

export class FactsKeeper {
  readonly #deps: FactsKeeperDeps
  #book: FactsBook
  #version: string
  /** The served APIs while the version was not known yet. */
  #kept: Discovery | null = null
  #againAtMs: number | null = null
  #bell = new AbortController()

  constructor(deps: FactsKeeperDeps) {
    this.#deps = deps
    this.#version = deps.version
    this.#book = this.#lastSaid()
  }

  noteDiscovery(discovery: Discovery): void {
    const { state, clock, log } = this.#deps
    if (this.#version === '') {
      // Not postponed: discovery may run more often than that.
      this.#wakeAt(Math.min(this.#againAtMs ?? Number.POSITIVE_INFINITY, clock.monotonicMs() + (this.#kept === null ? 0 : SOON_MS)))
      this.#kept = discovery
      return
    }
    this.#kept = null
    const { changed, againAtMs } = this.#book.look(discovery, this.#version, clock.monotonicMs())
    this.#wakeAt(againAtMs)
    if (changed === null) return
    try {
      state.report([{ kind: 'facts', key: 'cluster', doc: changed }])
      log.info('facts of the cluster', { version: changed.kubernetesVersion, versions: Object.keys(changed.apis).length })
    } catch (error) {
      // The next check reports it again. The caller that asked for the served kinds already has the answer.
      log.warn('cannot save the facts of the cluster', { error: describeError(error) })
      this.#book = this.#lastSaid()
      this.#wakeAt(clock.monotonicMs() + SOON_MS)
    }
  }

  #lastSaid(): FactsBook {
    return new FactsBook(factsStatusSchema.safeParse(this.#deps.state.lastReported('facts', 'cluster')).data ?? null)
  }

  #wakeAt(atMs: number | null): void {
    if (atMs === this.#againAtMs) return
    this.#againAtMs = atMs
    this.#bell.abort()
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#deps
    let lookAtMs = clock.monotonicMs() + LOOK_MS * (0.5 + random())
    while (!signal.aborted) {
      this.#bell = new AbortController()
      const dueMs = Math.min(lookAtMs, this.#againAtMs ?? Number.POSITIVE_INFINITY)
      await clock.sleep(Math.max(0, dueMs - clock.monotonicMs()), AbortSignal.any([signal, this.#bell.signal]))
      if (signal.aborted || clock.monotonicMs() < dueMs) continue
      if (clock.monotonicMs() >= lookAtMs) lookAtMs = clock.monotonicMs() + LOOK_MS * (0.5 + random())
      this.#againAtMs = null
      await this.#look().catch((error: unknown) => {
        log.debug('facts cannot be read', { error: describeError(error) })
        this.#againAtMs = clock.monotonicMs() + (this.#kept === null ? GONE_AFTER_MS : SOON_MS)
      })
    }
  }

  async #look(): Promise<void> {
    const { look, info } = this.#deps
    this.#version = (await info()).version
    if (this.#kept === null) return look()
    this.noteDiscovery(this.#kept) // it was only the version that lacked
  }
}
