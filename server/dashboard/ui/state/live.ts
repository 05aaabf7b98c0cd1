// The one event stream of the dashboard. It names what changed; the parts that show it read it again. An interrupted
// stream is resumed where it ended, so nothing is missed.
import { signal } from '@preact/signals'
import { EventReader } from '../../../../client/events.ts'
import { ApiError, apiPath, call, send } from './api.ts'
import { session } from './session.ts'

export interface Change {
  id: number
  atMs: number
  topic: string
  cluster: string | null
  project: string | null
  name: string | null
  keys: string[] | null
}

type Listener = (changes: readonly Change[] | 'all') => void
type Connection = { state: 'connecting' | 'live' | 'lost'; sinceMs: number; tries: number }

export const connection = signal<Connection>({ state: 'connecting', sinceMs: Date.now(), tries: 0 })

/** Since when the connection is lost, once that lasts. Null means that it is there, or was cut a moment ago. */
export const lostSinceMs = signal<number | null>(null)
/** A stream that is resumed at once is nothing to know about. */
const QUIET_MS = 4_000
let quiet: ReturnType<typeof setTimeout> | undefined

function tellConnection(next: Connection): void {
  const wasLost = connection.peek().state === 'lost'
  connection.value = next
  if (next.state === 'lost') {
    quiet ??= setTimeout(() => {
      lostSinceMs.value = next.sinceMs
    }, QUIET_MS)
    return
  }
  clearTimeout(quiet)
  quiet = undefined
  lostSinceMs.value = null
  if (wasLost && next.state === 'live') for (const listener of returned) listener()
}

const listeners = new Set<Listener>()
export function onChanges(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const returned = new Set<() => void>()
/** After a lost connection is back: reads that failed meanwhile are repeated. */
export function onReturn(listener: () => void): () => void {
  returned.add(listener)
  return () => returned.delete(listener)
}

const WAIT_MIN_MS = 500
const WAIT_MAX_MS = 20_000
/** Two heartbeats of the server (15 s) and some: after that nothing comes any more, whatever the socket says. */
const SILENCE_MS = 40_000

let running: AbortController | null = null
let position: number | null = null

export function startLive(): void {
  if (running !== null) return
  const mine = new AbortController()
  running = mine
  void follow(mine.signal).finally(() => {
    if (running === mine) stopLive() // it ended by itself: the next sign-in starts another one
  })
}

export function stopLive(): void {
  running?.abort()
  running = null
  position = null
  tellConnection({ state: 'connecting', sinceMs: Date.now(), tries: 0 })
}

/** The stream that is being read; a browser that goes offline leaves it open without a word. */
let reading: AbortController | null = null
window.addEventListener('offline', () => reading?.abort())
window.addEventListener('online', () => hurryLive())

/** Retries at once: the page is visible again, or the network is back. */
let hurry: (() => void) | null = null
export const hurryLive = (): void => hurry?.()

async function follow(stopped: AbortSignal): Promise<void> {
  for (let tries = 0; !stopped.aborted; tries += 1) {
    const ended = new AbortController()
    reading = ended
    const stop = () => ended.abort()
    stopped.addEventListener('abort', stop, { once: true })
    try {
      await readStream(ended, () => {
        tries = 0
        tellConnection({ state: 'live', sinceMs: Date.now(), tries: 0 })
      })
    } catch (error) {
      if (error instanceof ApiError && error.refusal.status === 410) {
        position = null
        tell('all')
      }
      if (session.peek().state !== 'in') return
    } finally {
      ended.abort()
      stopped.removeEventListener('abort', stop)
    }
    if (stopped.aborted) return
    const before = connection.peek()
    tellConnection({ state: 'lost', sinceMs: before.state === 'lost' ? before.sinceMs : Date.now(), tries: tries + 1 })
    const waitMs = Math.min(WAIT_MAX_MS, WAIT_MIN_MS * 2 ** tries) * (0.5 + Math.random() / 2)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs)
      hurry = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    hurry = null
  }
}

/** An answer under way that will name the position which it was read at. */
let awaited: Promise<number> | null = null

/** The stream starts where that answer ends. Null means that nothing is under way. */
export function awaitPosition(answer: Promise<number> | null): void {
  awaited = answer
}

/** From where the stream will tell of changes. */
async function knowPosition(signal: AbortSignal): Promise<number> {
  position ??= (await awaited?.catch(() => null)) ?? null
  awaited = null
  position ??= (await call('GET /changes', { signal })).newest
  return position
}

async function readStream(ended: AbortController, onReady: () => void): Promise<void> {
  const url = apiPath('/changes', { after: await knowPosition(ended.signal) })
  const response = await send('GET', url, undefined, ended.signal, 'text/event-stream')
  const body = response.body
  if (body === null) return
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  const events = new EventReader()
  let silence: ReturnType<typeof setTimeout> | undefined
  const heard = () => {
    clearTimeout(silence)
    silence = setTimeout(() => ended.abort(), SILENCE_MS)
  }
  try {
    for (;;) {
      heard()
      const { done, value } = await reader.read()
      if (done) return
      const changes: Change[] = []
      for (const { id, event, data } of events.take(value)) {
        if (id !== null && id !== '') position = Number(id)
        if (event === 'ready') onReady()
        else if (event === 'reset') tell('all')
        else if (data !== '') changes.push(JSON.parse(data) as Change)
      }
      if (changes.length > 0) tell(changes)
    }
  } finally {
    clearTimeout(silence)
  }
}

function tell(changes: readonly Change[] | 'all'): void {
  for (const listener of listeners) listener(changes)
}
