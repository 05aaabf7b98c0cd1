// The network of the simulation: what an agent asks reaches its server late, twice, out of order, cut, bent, or not at
// all; so do the answers, and some of them come from somebody else.
import type { Position } from '../../shared/crdt/position.ts'
import { parseCursor } from '../../shared/crdt/position.ts'
import { addHash, EMPTY_HASH, hashText, parseHash, rowHash } from '../../shared/crdt/row-hash.ts'
import { rowLine } from '../../shared/protocol/frames.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { AppError, type ErrorCode, problemBody } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { forgePage } from '../support/hostile-pages.ts'
import { digestOf } from '../support/trace.ts'
import { NETWORK_FAULTS, type NetworkFault } from './fault-kinds.ts'
import { keyOf, type World } from './history.ts'
import type { Life } from './life.ts'
import type { SimServer } from './sim-server.ts'

interface Answer {
  path: string
  status: number
  headers: Array<[string, string]>
  body: ArrayBuffer
}

class LinkDown extends Error {}

/** A page of a hundred parts, and whatever else there is to say. */
const BURST_MAX = 200
const ORIGIN_LENGTH = 'http://sim'.length
const COUNTER_MAX = 2 ** 53 - 2
const KEEPS: ReadonlySet<string> = new Set([ROUTES.desired, ROUTES.buckets, ROUTES.status])

export class FaultyNetwork {
  readonly #world: World
  readonly #name: string
  target: SimServer
  /** Part of calls that meet a fault, 0 to 1. */
  rate = 0
  /** Which faults they meet. */
  kinds: readonly NetworkFault[] = NETWORK_FAULTS
  /** Until then whatever is asked is answered 426. */
  skewedUntilMs = 0
  /** Of the last request that had one. */
  authorization: string | null = null
  /** Pages that any agent of this world was sent. */
  readonly #pages: Map<string, Answer>
  #last: Answer | null = null
  #burst = { atMs: 0, count: 0 }
  readonly #open = { pull: 0, push: 0 }
  #life: Life | null = null

  constructor(world: World, name: string, target: SimServer, pages: Map<string, Answer>) {
    this.#world = world
    this.#name = name
    this.target = target
    this.#pages = pages
  }

  async fetch(life: Life, url: string, init: BunFetchRequestInit): Promise<Response> {
    if (this.#spins()) life.end()
    const path = new URL(url).pathname
    const kind = path === ROUTES.status ? 'push' : path === ROUTES.desired || path === ROUTES.buckets ? 'pull' : null
    if (this.#life !== life) {
      this.#life = life
      this.#open.pull = 0
      this.#open.push = 0
    }
    if (kind === null) return this.#fetch(url, path, init)
    this.#open[kind] += 1
    if (this.#open[kind] > 1) this.#world.break('in_flight', `${this.#name} has ${this.#open[kind]} open calls of ${kind}`)
    try {
      return await this.#fetch(url, path, init)
    } finally {
      if (this.#life === life) this.#open[kind] -= 1
    }
  }

  /** Requests that follow each other while no time passes. */
  #spins(): boolean {
    const nowMs = this.#world.clock.nowMs()
    if (nowMs !== this.#burst.atMs) this.#burst = { atMs: nowMs, count: 0 }
    this.#burst.count += 1
    if (this.#burst.count === BURST_MAX) this.#world.break('stuck', `${this.#name} asked ${BURST_MAX} times in no time`)
    return this.#burst.count >= BURST_MAX
  }

  async #fetch(url: string, path: string, init: BunFetchRequestInit): Promise<Response> {
    const world = this.#world
    if (init.signal?.aborted) throw new LinkDown('aborted')
    const authorization = new Headers(init.headers as HeadersInit).get('authorization')
    if (authorization !== null) this.authorization = authorization
    if (world.clock.nowMs() < this.skewedUntilMs) {
      world.count('protocol_426')
      return problem('protocol_unsupported')
    }
    const fault = world.chance(this.rate) ? world.pick(this.kinds) : null
    if (fault !== null && url.includes('part=')) world.count('fault_in_parts')
    const answer = await abortable(fault === null ? this.#ask(url, init) : this.#meet(fault, url, path, init), init.signal)
    world.note(`${this.#name} ${path.slice(10)} ${fault ?? ''} ${answer.status}`)
    return answer
  }

  async #ask(url: string, init: BunFetchRequestInit): Promise<Response> {
    const path = new URL(url).pathname
    const { trace } = this.#world
    trace.detail(`${this.#name} asks ${url.slice(ORIGIN_LENGTH)} ${init.body instanceof Uint8Array ? digestOf(init.body) : ''}`)
    const response = await this.target.handle(new Request(url, init as RequestInit))
    if (response === null) throw new LinkDown('connection refused')
    if (response.status !== 200 || !KEEPS.has(path)) return response
    const body = await response.arrayBuffer()
    trace.detail(`${this.#name} is answered ${body.byteLength} bytes ${digestOf(new Uint8Array(body))}`)
    this.#last = { path, status: 200, headers: [...response.headers], body }
    if (path !== ROUTES.status) this.#pages.set(this.#name, this.#last)
    return responseOf(this.#last)
  }

  #late(signal: AbortSignal | null | undefined): Promise<void> {
    return this.#world.clock.sleep(this.#world.random() ** 3 * 40_000, signal ?? undefined)
  }

  async #meet(fault: NetworkFault, url: string, path: string, init: BunFetchRequestInit): Promise<Response> {
    const world = this.#world
    const count = () => world.count(fault)
    switch (fault) {
      case 'drop_request':
        count()
        await this.#late(init.signal)
        throw new LinkDown('lost on the way there')
      case 'delay_request':
        count()
        await this.#late(init.signal)
        return this.#ask(url, init)
      case 'duplicate':
        count()
        await this.#ask(url, init)
        return this.#ask(url, init)
      case 'reorder':
        count()
        void this.#arriveLater(url, init)
        throw new LinkDown('cut while it was on the way')
      case 'error_500':
        count()
        if (world.chance(0.5)) await this.#ask(url, init)
        return new Response('oops', { status: world.pick([500, 502, 503]) })
      case 'retry_after': {
        count()
        const headers = { 'retry-after': String(1 + world.below(90)) }
        return new Response('{}', { status: world.pick([429, 503]), headers })
      }
      case 'expired_session': {
        count()
        const headers = new Headers(init.headers as HeadersInit)
        if (headers.has('authorization')) headers.set('authorization', `Bearer ${'A'.repeat(43)}`)
        return this.#ask(url, { ...init, headers })
      }
      case 'html':
        count()
        return new Response('<html>\n<p>Please log in</p>\n</html>\n', { headers: { 'content-type': 'text/html' } })
      case 'protocol_426':
        count()
        return problem('protocol_unsupported')
      case 'replay':
        if (this.#last === null || this.#last.path !== path) return this.#ask(url, init)
        count()
        return responseOf(this.#last)
      case 'crossed_answer': {
        const [other] = [...this.#pages].filter(([name]) => name !== this.#name).map(([, answer]) => answer)
        if (other === undefined || path !== ROUTES.desired) return this.#ask(url, init)
        count()
        return responseOf(other)
      }
      case 'forged_page': {
        const page = path === ROUTES.desired || path === ROUTES.buckets ? await this.#forge(url) : null
        if (page === null) return this.#ask(url, init)
        count()
        return new Response(page as Uint8Array<ArrayBuffer>)
      }
      default:
        return this.#bend(fault, url, init)
    }
  }

  async #bend(fault: BendingFault, url: string, init: BunFetchRequestInit): Promise<Response> {
    const world = this.#world
    const response = await this.#ask(url, init)
    if (response.status === 204) return response
    world.count(fault)
    const body = Buffer.from(await response.arrayBuffer())
    const { status, headers } = response
    if (fault === 'drop_answer') throw new LinkDown('lost on the way back')
    if (fault === 'delay_answer') await this.#late(init.signal)
    const at = Math.floor(world.random() * body.length)
    if (fault === 'cut_answer') return new Response(brokenOff(body.subarray(0, at)), { status, headers })
    if (fault === 'truncate') return new Response(body.subarray(0, at), { status, headers })
    const bit = 1 << world.below(8)
    if (fault === 'flip' && body.length > 0) body[at] = (body[at] ?? 0) ^ bit
    return new Response(body, { status, headers })
  }

  /** After others that were sent later. */
  async #arriveLater(url: string, init: BunFetchRequestInit): Promise<void> {
    await this.#world.clock.sleep(this.#world.random() * 120_000)
    const { signal: _, ...rest } = init
    const patience = new AbortController()
    const answer = this.#ask(url, { ...rest, signal: patience.signal }).catch(() => {})
    await Promise.race([answer, this.#world.clock.sleep(1_000)])
    patience.abort()
  }

  /** Somebody with another key, or a server that signs nonsense with the right one. */
  async #forge(url: string): Promise<Uint8Array | null> {
    const cluster = this.target.up ? await this.target.store.clusterByName(this.#name) : null
    const agent = cluster === null || !this.target.up ? null : await this.target.store.agent(cluster.agentId)
    if (cluster === null || agent === null) return null
    const cursor = parseCursor(new URL(url).searchParams.get('cursor') ?? '')
    const { clusterId } = cluster
    const { epoch } = agent
    const own = keyOf('ed25519', 'server').privateKey
    const to = (from: Position | null, hash: string): Position => ({
      dbId: from?.dbId ?? this.#world.randomHex(16),
      term: from?.term ?? 1,
      dv: (from?.dv ?? 0) + 1,
      hash,
    })
    const poison = rowLine({ id: 'object/shop/web//ConfigMap/default/web.x', doc: '{"forged":true}', colVersion: 9, cl: 1 }).trimEnd()
    const wrong = { clusterId, signed: { epoch }, lines: [poison], from: cursor, to: to(cursor, 'ab'.repeat(16)), count: 1 }
    switch (this.#world.below(cursor === null ? 4 : 3)) {
      case 0:
        return forgePage({ ...wrong, privateKey: keyOf('ed25519', 'stranger').privateKey })
      case 1:
        return forgePage({ ...wrong, privateKey: own })
      case 2:
        return forgePage({ ...wrong, clusterId: 'c-ffffffffffffffff', privateKey: own })
      default:
        return this.#giantVersions(clusterId, epoch, own)
    }
  }

  /** Everything in it is true but the versions, which nothing that comes later could outrank. */
  async #giantVersions(clusterId: ClusterId, epoch: number, privateKey: string): Promise<Uint8Array> {
    const rows = await this.target.expectedRows(clusterId)
    let sum = parseHash(EMPTY_HASH)
    for (const [id, doc] of rows) sum = addHash(sum, rowHash(id, doc))
    const lines = rows.map(([id, doc]) => rowLine({ id, doc, colVersion: COUNTER_MAX, cl: COUNTER_MAX - 1 }).trimEnd())
    const to = { dbId: this.#world.randomHex(16), term: 1, dv: 7, hash: hashText(sum) }
    return forgePage({ clusterId, signed: { epoch }, lines, from: null, to, count: rows.length, privateKey })
  }
}

export type SentPages = Map<string, Answer>

type BendingFault = Extract<NetworkFault, 'drop_answer' | 'delay_answer' | 'truncate' | 'cut_answer' | 'flip'>

/** As a connection that ends in the midst of an answer. */
const brokenOff = (bytes: Uint8Array): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      if (bytes.length > 0) controller.enqueue(bytes)
    },
    pull(controller) {
      controller.error(new LinkDown('cut'))
    },
  })

const responseOf = ({ body, status, headers }: Answer): Response => new Response(body, { status, headers })

const problem = (code: ErrorCode): Response => {
  const body = problemBody(new AppError(code))
  return Response.json(body, { status: body.status })
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
