// Publications of reconciliations that end together are published together: a commit that changes a thousand services
// is few transactions of the fleet store, few of each shard file, and few pages for an agent. A reconciliation that
// ends alone waits for no other.
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Publication } from '../desired/publisher.ts'

/** How long a publication waits for others that are on their way. */
export const GATHER_MS = 100
/** Publications that wait for no more; large ones count as several. */
export const GATHER_MAX = 128
const ROWS_OF_ONE = 40
/** Reconciliations that wait without a worker, times clusters: each of them holds the facts of all clusters. */
const LISTED_CLUSTERS_MAX = 20_000

export interface PublishGroupOptions {
  /** As `publishRevisions`. */
  publish(publications: readonly Publication[]): Promise<boolean[]>
  clock: Clock
  /** Reconciliations that have a worker, including those that wait here with one; the others may arrive soon. */
  underWay(): number
  /** The server stops: nothing waits any longer. */
  stopping: AbortSignal
}

/** The publication of one reconciliation. */
export interface Publisher {
  /** In its lists. */
  clusters: number
  /** Gives its worker to another reconciliation. */
  release(): void
}

interface Waiting {
  publications: readonly Publication[]
  resolve(changed: boolean[]): void
  reject(error: unknown): void
}

export class PublishGroup {
  readonly #options: PublishGroupOptions
  readonly #waiting: Waiting[] = []
  #listed = 0
  /** Reconciliations that wait here and still have a worker. */
  #handed = 0
  #isRunning = false
  #gathered: () => void = () => {}

  constructor(options: PublishGroupOptions) {
    this.#options = options
  }

  /** Which of them changed anything. */
  async publish(publications: readonly Publication[], { clusters, release }: Publisher): Promise<boolean[]> {
    const isLight = this.#listed + clusters <= LISTED_CLUSTERS_MAX
    this.#listed += clusters
    if (!isLight) this.#handed += 1
    try {
      const changed = new Promise<boolean[]>((resolve, reject) => this.#waiting.push({ publications, resolve, reject }))
      if (isLight) release()
      if (!this.#isRunning) void this.#run()
      this.#gathered()
      return await changed
    } finally {
      this.#listed -= clusters
      if (!isLight) this.#handed -= 1
    }
  }

  /** A reconciliation ended, perhaps without arriving here. */
  passEnded(): void {
    this.#gathered()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#waiting.length > 0) {
      await this.#gather()
      await this.#commit(this.#take())
    }
    this.#isRunning = false
  }

  async #gather(): Promise<void> {
    await undefined // who was woken by the same cause is under way by then
    if (this.#isGathered()) return
    const gathered = new AbortController()
    this.#gathered = () => this.#isGathered() && gathered.abort()
    await this.#options.clock.sleep(GATHER_MS, AbortSignal.any([gathered.signal, this.#options.stopping]))
    this.#gathered = () => {}
  }

  #isGathered(): boolean {
    const weight = this.#waiting.reduce((sum, { publications }) => sum + weightOf(publications), 0)
    return weight >= GATHER_MAX || this.#options.underWay() <= this.#handed
  }

  #take(): Waiting[] {
    let [taken, weight] = [0, 0]
    for (const { publications } of this.#waiting) {
      weight += weightOf(publications)
      if (taken > 0 && weight > GATHER_MAX) break
      taken += 1
    }
    return this.#waiting.splice(0, taken)
  }

  async #commit(group: readonly Waiting[]): Promise<void> {
    try {
      const changed = await this.#options.publish(group.flatMap(({ publications }) => publications))
      let at = 0
      for (const { publications, resolve } of group) {
        resolve(changed.slice(at, at + publications.length))
        at += publications.length
      }
    } catch (error) {
      if (group.length === 1) for (const { reject } of group) reject(error)
      // One that cannot be published fails alone. Revisions that reached their cluster before the failure are not
      // published again, and their reconciliation finds them there.
      else for (const one of group) await this.#commit([one])
    }
  }
}

/** Rows of clusters that get the same are held once. */
const weightOf = (publications: readonly Publication[]): number =>
  publications.length + [...new Set(publications.map(({ objects }) => objects))].reduce((rows, { size }) => rows + size, 0) / ROWS_OF_ONE
