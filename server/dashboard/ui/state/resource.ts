// Data of pages, read from the API and kept current by the event stream. Each resource is read once however many show
// it, at most once a second however much changes, and keeps its last good value while it is read again or cannot be
// read.
import { type Signal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { ApiError, type Refusal } from './api.ts'
import { type Change, onChanges, onReturn } from './live.ts'

export interface Loaded<T> {
  value: T | null
  /** When the value was read. Null means never. */
  atMs: number | null
  refusal: Refusal | null
  loading: boolean
}

/** Reads under way, of all resources. */
let readings = 0
/** False between a sign-out and the next sign-in. */
let isOpen = true
const LATER_MS = 60
const LATER_TRIES = 25

type Concerns = (change: Change) => boolean

/** Between two readings; long ones are spaced by what they take. */
const PAUSE_MS = 1_000
const PAUSE_FACTOR = 4
/** After a failed read, doubled each time. */
const RETRY_MIN_MS = 2_000
const RETRY_MAX_MS = 60_000
/** Values of pages that were left, so that going back shows them at once. */
const KEPT_MAX = 40

/** The delay before another try. Null if it is refused alike until something changes. */
export function retryAfterMs({ status }: Refusal, failures: number): number | null {
  const mayPass = status === 0 || status === 429 || status >= 500
  return mayPass ? Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** failures) : null
}

export interface Timer {
  nowMs(): number
  after(ms: number, run: () => void): () => void
}
export const browserTimer: Timer = {
  nowMs: () => Date.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

export class LiveResource<T> {
  readonly state: Signal<Loaded<T>> = signal({ value: null, atMs: null, refusal: null, loading: false })
  readonly #load: (signal: AbortSignal) => Promise<T>
  readonly #timer: Timer
  #users = 0
  #reading: AbortController | null = null
  #isDirty = true
  #notBeforeMs = 0
  /** Failed reads in a row. */
  #failures = 0
  #cancelWait: (() => void) | null = null

  constructor(load: (signal: AbortSignal) => Promise<T>, timer: Timer = browserTimer) {
    this.#load = load
    this.#timer = timer
  }

  /** Until the returned function is called, changes are followed. `later`: the first read waits for those of the page
   *  itself. */
  use(later = false): () => void {
    this.#users += 1
    if (this.#isDirty && later) this.#later()
    else if (this.#isDirty) this.#soon()
    return () => {
      this.#users -= 1
      if (this.#users > 0) return
      this.#isDirty = true // changes are not followed now
      this.#cancelWait?.()
      this.#cancelWait = null
      this.#reading?.abort()
    }
  }

  changed(): void {
    this.#isDirty = true
    if (this.#users > 0) this.#soon()
  }

  /** Refreshes at once after an action of the person. */
  refresh(): void {
    this.#notBeforeMs = 0
    this.changed()
  }

  #later(tries = 0): void {
    if (this.#reading !== null || this.#cancelWait !== null) return
    this.#cancelWait = this.#timer.after(LATER_MS, () => {
      this.#cancelWait = null
      if (this.#users === 0 || !this.#isDirty) return
      if (readings > 0 && tries < LATER_TRIES) this.#later(tries + 1)
      else this.#soon()
    })
  }

  #soon(): void {
    if (this.#reading !== null || this.#cancelWait !== null) return
    const waitMs = this.#notBeforeMs - this.#timer.nowMs()
    if (waitMs <= 0) {
      void this.#read()
      return
    }
    this.#cancelWait = this.#timer.after(waitMs, () => {
      this.#cancelWait = null
      if (this.#users > 0 && this.#isDirty) void this.#read()
    })
  }

  /** The value belongs to a person who is gone. */
  forget(): void {
    this.abort()
    this.#isDirty = true
    this.#failures = 0
    this.#notBeforeMs = 0
    this.state.value = { value: null, atMs: null, refusal: null, loading: false }
  }

  abort(): void {
    this.#cancelWait?.()
    this.#cancelWait = null
    this.#reading?.abort()
  }

  /** The connection is back: what could not be read is read again now. */
  returned(): void {
    if (this.state.peek().refusal === null) return
    this.#cancelWait?.()
    this.#cancelWait = null
    this.#failures = 0
    this.refresh()
  }

  /** Keeps the last good value, but not for a person whose right to it was taken. */
  #failed(refusal: Refusal): void {
    const { value, atMs } = this.state.peek()
    const isTaken = refusal.status === 401 || refusal.status === 403
    this.state.value = { value: isTaken ? null : value, atMs: isTaken ? null : atMs, refusal, loading: false }
    if (retryAfterMs(refusal, this.#failures) === null) this.#failures = 0
    else {
      this.#failures += 1
      this.#isDirty = true // nothing else may change
    }
  }

  async #read(): Promise<void> {
    if (!isOpen) return
    const reading = new AbortController()
    this.#reading = reading
    this.#isDirty = false
    readings += 1
    const startMs = this.#timer.nowMs()
    this.state.value = { ...this.state.peek(), loading: true }
    try {
      const value = await this.#load(reading.signal)
      this.state.value = { value, atMs: this.#timer.nowMs(), refusal: null, loading: false }
      this.#failures = 0
    } catch (error) {
      if (reading.signal.aborted) this.state.value = { ...this.state.peek(), loading: false }
      else this.#failed(refusalOf(error))
    }
    readings -= 1
    this.#reading = null
    const tookMs = this.#timer.nowMs() - startMs
    const retryMs = this.#failures === 0 ? 0 : (retryAfterMs(this.state.peek().refusal ?? NO_REFUSAL, this.#failures - 1) ?? 0)
    this.#notBeforeMs = this.#timer.nowMs() + Math.max(PAUSE_MS, PAUSE_FACTOR * tookMs, retryMs)
    if (this.#isDirty && this.#users > 0) this.#soon()
  }
}

const NO_REFUSAL: Refusal = { status: 404, code: '', detail: '', remedy: '', problems: [] }

export function refusalOf(error: unknown): Refusal {
  if (error instanceof ApiError) return error.refusal
  return { status: 0, code: 'unknown', detail: error instanceof Error ? error.message : String(error), remedy: '', problems: [] }
}

interface Entry {
  resource: LiveResource<unknown>
  concerns: Concerns
}
const entries = new Map<string, Entry>()

onChanges((changes) => {
  for (const { resource, concerns } of entries.values()) if (changes === 'all' || changes.some(concerns)) resource.changed()
})
onReturn(() => {
  for (const { resource } of entries.values()) resource.returned()
})

/** `key`: what it is; the same key is the same resource. */
export function resourceOf<T>(key: string, load: (signal: AbortSignal) => Promise<T>, concerns: Concerns): LiveResource<T> {
  const held = entries.get(key)
  if (held !== undefined) {
    entries.delete(key) // the latest used is the last
    entries.set(key, held)
    return held.resource as LiveResource<T>
  }
  const resource = new LiveResource(load)
  entries.set(key, { resource: resource as LiveResource<unknown>, concerns })
  for (const [oldest] of entries) {
    if (entries.size <= KEPT_MAX) break
    entries.delete(oldest)
  }
  return resource
}

/** All read data belongs to the signed-in person. Nothing is read while the session ends: it would be refused. */
export function forgetResources(): void {
  isOpen = false
  for (const { resource } of entries.values()) resource.abort()
  entries.clear()
}
export function openResources(): void {
  isOpen = true
}
export const refreshAll = (): void => {
  for (const { resource } of entries.values()) resource.refresh()
}

export function useResource<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  concerns: Concerns,
  later = false,
): Loaded<T> & { refresh(): void } {
  // The key says all that the loader depends on.
  const resource = useMemo(() => resourceOf(key, load, concerns), [key])
  useEffect(() => resource.use(later), [resource])
  return { ...resource.state.value, refresh: () => resource.refresh() }
}
