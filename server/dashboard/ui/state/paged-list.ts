// A long list of the server, read page by page as one scrolls. Pages in view are read again when something changed, and
// each page knows the position where it begins.
import { type Signal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { Page, Refusal } from './api.ts'
import { type Change, onChanges, onReturn } from './live.ts'
import { createPauser } from './pause.ts'
import { browserTimer, refusalOf, retryAfterMs, type Timer } from './resource.ts'

interface Held<T> {
  /** Where the page begins. Null means at the first row. */
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
  /** When the last page was read. Null means never. */
  atMs: number | null
}

type LoadPage<T> = (start: string | null, signal: AbortSignal) => Promise<Page<T>>

export class PagedList<T> {
  readonly state: Signal<PagedState<T>> = signal({ items: [], hasMore: true, isFirst: true, loading: false, refusal: null, atMs: null })
  readonly #load: LoadPage<T>
  readonly #keyOf: (item: T) => string
  readonly #timer: Timer
  #pages: Held<T>[] = []
  #wanted = { from: 0, to: 0 }
  #working: AbortController | null = null
  /** Failed reads in a row. */
  #failures = 0
  #cancelRetry: (() => void) | null = null

  constructor(load: LoadPage<T>, keyOf: (item: T) => string, timer: Timer = browserTimer) {
    this.#load = load
    this.#keyOf = keyOf
    this.#timer = timer
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

  /** The connection is back: what could not be read is read again now. */
  returned(): void {
    if (this.state.peek().refusal !== null) this.changed()
  }

  stop(): void {
    this.#working?.abort()
    this.#working = null
    this.#cancelRetry?.()
    this.#cancelRetry = null
  }

  async #work(): Promise<void> {
    if (this.#working !== null) return
    this.#cancelRetry?.()
    this.#cancelRetry = null
    const working = new AbortController()
    this.#working = working
    this.#tell({ loading: true })
    try {
      for (let task = this.#next(); task !== null && !working.signal.aborted; task = this.#next()) {
        const { at, start } = task
        const { items, continue: next } = await this.#load(start, working.signal)
        this.#place(at, { start, items, next, isOld: false })
        this.#failures = 0
        this.#tell({ isFirst: false, refusal: null, atMs: this.#timer.nowMs() })
      }
    } catch (error) {
      if (!working.signal.aborted) this.#failed(refusalOf(error))
    }
    if (this.#working === working) this.#working = null
    this.#tell({ loading: false })
  }

  /** Keeps what was read, but not for a person whose right to it was taken. */
  #failed(refusal: Refusal): void {
    if (refusal.status === 401 || refusal.status === 403) this.#pages = []
    this.#tell({ refusal })
    const retryMs = retryAfterMs(refusal, this.#failures)
    if (retryMs === null) return
    this.#failures += 1
    this.#cancelRetry = this.#timer.after(retryMs, () => this.changed())
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

export interface Paged<T> extends PagedState<T> {
  /** Visible rows, or as many as the person asked for. */
  want(from: number, to: number): void
  refresh(): void
}

/** `key`: all that the list depends on; another key is another list. `shown`: rows that are read at first. */
export function usePaged<T>(
  key: string,
  load: LoadPage<T>,
  { keyOf, concerns, shown }: { keyOf(item: T): string; concerns(change: Change): boolean; shown: number },
): Paged<T> {
  const list = useMemo(() => new PagedList<T>(load, keyOf), [key])
  useEffect(() => list.want(0, shown - 1), [list, shown])
  useEffect(() => {
    const pause = createPauser(() => list.changed())
    const stops = [
      onChanges((changes) => {
        if (changes === 'all' || changes.some(concerns)) pause.soon()
      }),
      onReturn(() => list.returned()),
    ]
    return () => {
      for (const stop of stops) stop()
      pause.stop()
      list.stop()
    }
  }, [list])
  const at = useMemo(() => ({ want: (from: number, to: number) => list.want(from, to), refresh: () => list.changed() }), [list])
  return { ...list.state.value, ...at }
}
