// The network of the simulation: what an agent asks reaches the server late, twice, cut, bent, or not at all; so do the answers.
import type { Fetcher } from '../../agent/sync/server-client.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { VirtualClock } from '../support/virtual-clock.ts'
import type { SimServer } from './world.ts'

export const FAULTS = [
  'drop_request',
  'drop_answer',
  'duplicate',
  'delay_request',
  'delay_answer',
  'truncate',
  'flip',
  'replay',
  'error_500',
  'expired_session',
  'html',
] as const
export type Fault = (typeof FAULTS)[number]
export type FaultCounts = Record<Fault, number>

export const noFaults = (): FaultCounts => Object.fromEntries(FAULTS.map((fault) => [fault, 0])) as FaultCounts

export interface FaultyNetwork {
  fetcher: Fetcher
  /** Part of calls that meet a fault, 0 to 1. */
  rate: number
  counts: FaultCounts
}

class LinkDown extends Error {}

export function createFaultyNetwork(server: SimServer, clock: VirtualClock, random: Random): FaultyNetwork {
  let lastAnswer: { path: string; status: number; headers: Headers; body: ArrayBuffer } | null = null
  const ask = async (url: string, init: BunFetchRequestInit): Promise<Response> => {
    const response = await server.handle(new Request(url, init as RequestInit))
    if (response === null) throw new LinkDown('connection refused')
    return response
  }
  const late = (signal: AbortSignal | null | undefined) => clock.sleep(random() ** 3 * 40_000, signal ?? undefined)

  const meet = async (fault: Fault, url: string, init: BunFetchRequestInit): Promise<Response> => {
    const path = new URL(url).pathname
    switch (fault) {
      case 'drop_request':
        await late(init.signal)
        throw new LinkDown('lost on the way there')
      case 'delay_request':
        await late(init.signal)
        return ask(url, init)
      case 'duplicate':
        await ask(url, init)
        return ask(url, init)
      case 'error_500':
        if (random() < 0.5) await ask(url, init)
        return new Response('oops', { status: random() < 0.5 ? 500 : 503, headers: random() < 0.5 ? { 'retry-after': '3' } : {} })
      case 'expired_session': {
        const headers = new Headers(init.headers as HeadersInit)
        if (headers.has('authorization')) headers.set('authorization', `Bearer ${'A'.repeat(43)}`)
        return ask(url, { ...init, headers })
      }
      case 'html':
        return new Response('<html>\n<p>Please log in</p>\n</html>\n', { headers: { 'content-type': 'text/html' } })
      case 'replay':
        if (lastAnswer === null || lastAnswer.path !== path) return ask(url, init)
        return new Response(lastAnswer.body, { status: lastAnswer.status, headers: lastAnswer.headers })
    }
    const response = await ask(url, init)
    if (response.status === 204) return response
    const body = Buffer.from(await response.arrayBuffer())
    const { status, headers } = response
    if (fault === 'drop_answer') throw new LinkDown('lost on the way back')
    if (fault === 'delay_answer') await late(init.signal)
    if (fault === 'truncate') return new Response(body.subarray(0, Math.floor(random() * body.length)), { status, headers })
    if (fault === 'flip' && body.length > 0) body[Math.floor(random() * body.length)] = Math.floor(random() * 256)
    return new Response(body, { status, headers })
  }

  const network: FaultyNetwork = {
    rate: 0,
    counts: noFaults(),
    fetcher: async (url, init) => {
      if (init.signal?.aborted) throw new LinkDown('aborted')
      if (random() < network.rate) {
        const fault = FAULTS[Math.floor(random() * FAULTS.length)] ?? 'drop_request'
        network.counts[fault]++
        return abortable(meet(fault, url, init), init.signal)
      }
      const response = await abortable(ask(url, init), init.signal)
      if (response.status !== 200 || new URL(url).pathname.endsWith('/session')) return response
      const body = await response.arrayBuffer()
      lastAnswer = { path: new URL(url).pathname, status: 200, headers: response.headers, body }
      return new Response(body, { status: 200, headers: response.headers })
    },
  }
  return network
}

/** As fetch does: whoever asked is told at once, whatever the other side still does. */
function abortable(answer: Promise<Response>, signal: AbortSignal | null | undefined): Promise<Response> {
  if (!signal) return answer
  return new Promise((resolve, reject) => {
    const abort = () => reject(new LinkDown('aborted'))
    signal.addEventListener('abort', abort, { once: true })
    answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
