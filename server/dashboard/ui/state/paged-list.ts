// A long list of the server, read page by page as one scrolls. What changes is read again for the pages in view only; each page knows the position where it begins.
import { type Signal, signal } from '@preact/signals'
import { ApiError, type Page, type Refusal } from './api.ts'

interface Held<T> {
  /** Where the page begins; null: at the first row. */
  start: string | null
  items: T[]
  next: string | null
  isOld: boolean
}

export interface PagedState<T> {
  items: T[]
  hasMore: boolean
  /** Nothing was read yet. */
  isFirst: boolean
  loading: boolean
  refusal: Refusal | null
}

type LoadPage<T> = (start: string | null, signal: AbortSignal) => Promise<Page<T>>

export class PagedList<T> {
  readonly state: Signal<PagedState<T>> = signal({ items: [], hasMore: true, isFirst: true, loading: false, refusal: null })
  readonly #load: LoadPage<T>
  readonly #keyOf: (item: T) => string
  #pages: Held<T>[] = []
  #wanted = { from: 0, to: 0 }
  #working: AbortController | null = null

  constructor(load: LoadPage<T>, keyOf: (item: T) => string) {
    this.#load = load
    this.#keyOf = keyOf
  }

  /** Visible rows. */
  want(from: number, to: number): void {
    this.#wanted = { from, to }
    void this.#work()
  }

  changed(): void {
    for (const page of this.#pages) page.isOld = true
    void this.#work()
  }

  stop(): void {
    this.#working?.abort()
    this.#working = null
  }

  async #work(): Promise<void> {
    if (this.#working !== null) return
    const working = new AbortController()
    this.#working = working
    this.#tell({ loading: true })
    try {
      for (let task = this.#next(); task !== null && !working.signal.aborted; task = this.#next()) {
        const { at, start } = task
        const { items, continue: next } = await this.#load(start, working.signal)
        this.#place(at, { start, items, next, isOld: false })
        this.#tell({ isFirst: false, refusal: null })
      }
    } catch (error) {
      if (!working.signal.aborted)
        this.#tell({
          refusal:
            error instanceof ApiError ? error.refusal : { status: 0, code: 'unknown', detail: String(error), remedy: '', problems: [] },
        })
    }
    if (this.#working === working) this.#working = null
    this.#tell({ loading: false })
  }

  /** The page to read next: the first one in view that is old, or the one after the last. */
  #next(): { at: number; start: string | null } | null {
    let row = 0
    for (const [at, page] of this.#pages.entries()) {
      const end = row + page.items.length
      if (page.isOld && end >= this.#wanted.from && row <= this.#wanted.to) return { at, start: page.start }
      row = end
    }
    const last = this.#pages.at(-1)
    if (last === undefined) return { at: 0, start: null }
    return last.next !== null && this.#wanted.to >= row ? { at: this.#pages.length, start: last.next } : null
  }

  /** Pages after one with a new end have a new start; they are read again when they become visible. */
  #place(at: number, page: Held<T>): void {
    const before = this.#pages[at]
    this.#pages[at] = page
    if (page.next === null) this.#pages.length = at + 1
    const after = this.#pages[at + 1]
    if (after !== undefined && before?.next !== page.next) {
      after.start = page.next
      after.isOld = true
    }
  }

  #tell(change: Partial<PagedState<T>>): void {
    const items: T[] = []
    const seen = new Set<string>()
    for (const item of this.#pages.flatMap((page) => page.items)) {
      const key = this.#keyOf(item)
      if (!seen.has(key)) items.push(item)
      seen.add(key)
    }
    this.state.value = {
      ...this.state.peek(),
      items,
      hasMore: (this.#pages.at(-1)?.next ?? null) !== null || this.#pages.length === 0,
      ...change,
    }
  }
}
