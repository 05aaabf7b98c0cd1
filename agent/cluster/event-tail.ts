// The events of a watch while the initial objects are still listed page by page. They are read as they arrive, because
// an API server ends a watch with a slow reader, and delivered after the list, the last one of each object.
import { type K8sObject, refKey, refOf } from '../../shared/kube/object.ts'
import type { WatchEvent } from './cluster.ts'

type Told = Extract<WatchEvent, { object: K8sObject }>

export class EventTail<End> {
  readonly #source: AsyncGenerator<WatchEvent, End>
  readonly #events = new Map<string, Told>()
  #end: { value: End } | { error: unknown } | null = null
  #isListing = true
  #step: Promise<void> | null = null

  /** Begins to read at once. */
  constructor(source: AsyncGenerator<WatchEvent, End>) {
    this.#source = source
    this.#read()
  }

  #read(): Promise<void> {
    this.#step = this.#source.next().then(
      ({ done, value }) => {
        this.#step = null
        if (done === true) this.#end = { value }
        else if ('object' in value) this.#events.set(refKey(refOf(value.object)), value)
        if (this.#isListing && this.#end === null) void this.#read()
      },
      (error: unknown) => {
        this.#step = null
        this.#end = { error }
      },
    )
    return this.#step
  }

  /** The list is delivered. */
  async *events(): AsyncGenerator<WatchEvent, End> {
    this.#isListing = false
    while (true) {
      for (const [key, event] of [...this.#events]) {
        this.#events.delete(key)
        yield event
      }
      if (this.#end !== null && 'error' in this.#end) throw this.#end.error
      if (this.#end !== null) return this.#end.value
      await (this.#step ?? this.#read())
    }
  }

  /** After its stream was aborted. */
  async stop(): Promise<void> {
    this.#isListing = false
    await this.#step
    await this.#source.return(undefined as End)
  }
}
