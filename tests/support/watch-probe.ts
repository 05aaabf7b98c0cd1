// Reads a watch in the background, so that a test can say what it expects of it as a story.
import type { ApiResource, Cluster, WatchEvent } from '../../agent/cluster/cluster.ts'
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

const WAIT_MS = 20_000

/** Asks again every 10 ms until the answer is neither undefined nor false. */
export async function until<T>(
  what: string,
  read: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = WAIT_MS,
): Promise<T> {
  const deadlineMs = systemClock.nowMs() + timeoutMs
  while (systemClock.nowMs() < deadlineMs) {
    const value = await read()
    if (value !== undefined && value !== false) return value
    await systemClock.sleep(10)
  }
  throw new Error(`${what}: not within ${timeoutMs} ms`)
}

/** Reads a watch in the background and keeps what came. */
export class WatchProbe {
  readonly events: WatchEvent[] = []
  readonly #abort = new AbortController()
  readonly #done: Promise<void>
  constructor(
    cluster: Cluster,
    resource: ApiResource,
    options: { namespace?: string; labelSelector?: string; fieldSelector?: string; metadataOnly?: boolean } = {},
  ) {
    this.#done = this.#read(cluster.watch(resource, { labelSelector: SERVICE_LABEL, ...options, signal: this.#abort.signal }))
  }
  async #read(watch: AsyncIterable<WatchEvent>): Promise<void> {
    for await (const event of watch) this.events.push(event)
  }
  /** "reset present:a synced changed:b", from the given event on. */
  story = (from = 0): string => this.events.slice(from).map(eventText).join(' ')
  seen = (text: string, from = 0): Promise<boolean> =>
    until(`watch event ${text} in "${this.story()}"`, () => this.events.slice(from).some((event) => eventText(event) === text))
  async stop(): Promise<void> {
    this.#abort.abort()
    await this.#done
  }
}

const eventText = (event: WatchEvent): string =>
  'object' in event ? `${event.kind}:${event.object.metadata.name}` : 'failure' in event ? `failed:${event.failure.kind}` : event.kind
