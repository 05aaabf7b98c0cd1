// A bad network between two real processes: a TCP proxy that counts every byte at the socket (headers included) and
// cuts, delays, throttles, swallows or refuses. What it does may be changed while connections are open.
import type { Socket, TCPSocketListener } from 'bun'

type Way = 'up' | 'down'

/** All of them for one connection; absent is no trouble. `up` is from the client to the server. */
export interface LinkRules {
  /** Both sides see a reset as soon as so many bytes went that way, counted from the connection's start; not a byte
   *  more passes. */
  cutAfterBytes?: Partial<Record<Way, number>>
  /** From the connection's start. */
  cutAfterMs?: number
  /** Of every byte, each way. */
  delayMs?: number
  /** Each way. */
  bytesPerSecond?: number
  /** These bytes vanish, and so does the news that the other side is gone: a dead NAT entry. */
  swallow?: readonly Way[]
  /** A new connection is reset at once. */
  refuse?: boolean
}

interface LinkCounts {
  /** Payload of TCP that was let through. */
  upBytes: number
  downBytes: number
  connections: number
  /** Connections ended by a rule or by `cutAll`. */
  cuts: number
}

export interface TcpProxy {
  readonly port: number
  /** http://127.0.0.1:PORT */
  readonly url: string
  /** Since the start or the last `resetCounts`. */
  counts(): LinkCounts
  resetCounts(): void
  /** Connections that are open now. */
  open(): number
  /** For open connections and new ones. */
  setRules(rules: LinkRules): void
  /** For new connections only: `n` counts them from 0 since the start of the proxy. */
  setRulesFor(rulesFor: (n: number) => LinkRules): void
  /** Where new connections go. */
  setTarget(port: number): void
  cutAll(): void
  stop(): void
}

/** Above it the faster side is no longer read, so that a slow reader is felt by the sender. */
const BUFFERED_BYTES_MAX = 256 * 1024
const THROTTLE_TICK_MS = 20

export function startTcpProxy(targetPort: number, rules: LinkRules = {}): TcpProxy {
  let target = targetPort
  let rulesFor: (n: number) => LinkRules = () => rules
  let accepted = 0
  let counts: LinkCounts = { upBytes: 0, downBytes: 0, connections: 0, cuts: 0 }
  const links = new Set<Link>()
  const listener: TCPSocketListener<Link | null> = Bun.listen<Link | null>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open: (client) => {
        const chosen = rulesFor(accepted++)
        counts.connections++
        if (chosen.refuse === true) {
          client.terminate()
          counts.cuts++
          return
        }
        const link = new Link(client, chosen, {
          passed: (way, bytes) => {
            counts[way === 'up' ? 'upBytes' : 'downBytes'] += bytes
          },
          ended: (cut) => {
            links.delete(link)
            if (cut) counts.cuts++
          },
        })
        client.data = link
        links.add(link)
        link.connect(target)
      },
      data: (client, chunk) => client.data?.take('up', chunk),
      drain: (client) => client.data?.drained('down'),
      close: (client) => client.data?.closed('up'),
      error: (client) => client.data?.closed('up'),
    },
  })
  const cutAll = () => {
    for (const link of [...links]) link.cut()
  }
  return {
    port: listener.port,
    url: `http://127.0.0.1:${listener.port}`,
    counts: () => ({ ...counts }),
    resetCounts: () => {
      counts = { upBytes: 0, downBytes: 0, connections: 0, cuts: 0 }
    },
    open: () => links.size,
    setRules: (next) => {
      rulesFor = () => next
      for (const link of links) link.setRules(next)
    },
    setRulesFor: (next) => {
      rulesFor = next
    },
    setTarget: (port) => {
      target = port
    },
    cutAll,
    stop: () => {
      cutAll()
      listener.stop(true)
    },
  }
}

interface LinkEvents {
  passed(way: Way, bytes: number): void
  ended(cut: boolean): void
}

/** One direction: what came in and did not go out yet. */
interface Stream {
  chunks: Array<{ bytes: Uint8Array; dueMs: number }>
  buffered: number
  passedBytes: number
  /** The sender has closed; the receiver is told after the last byte. */
  ending: boolean
}

const newStream = (): Stream => ({ chunks: [], buffered: 0, passedBytes: 0, ending: false })

class Link {
  readonly #client: Socket<Link | null>
  #server: Socket<undefined> | null = null
  #rules: LinkRules
  readonly #events: LinkEvents
  readonly #streams: Record<Way, Stream> = { up: newStream(), down: newStream() }
  readonly #startMs = performance.now()
  /** A throttled direction that has spent what it may until its next tick. */
  readonly #ticks: Record<Way, boolean> = { up: false, down: false }
  readonly #timers = new Set<ReturnType<typeof setTimeout>>()
  #over = false

  constructor(client: Socket<Link | null>, rules: LinkRules, events: LinkEvents) {
    this.#client = client
    this.#rules = rules
    this.#events = events
  }

  connect(port: number): void {
    this.#planCut()
    const refused = () => this.#end(false, () => this.#client.terminate())
    const connecting = Bun.connect<undefined>({
      hostname: '127.0.0.1',
      port,
      socket: {
        open: (server) => {
          this.#server = server
          if (this.#over) server.terminate()
          else this.#pump('up')
        },
        data: (_, chunk) => this.take('down', chunk),
        drain: () => this.drained('up'),
        close: () => this.closed('down'),
        error: () => this.closed('down'),
        connectError: refused,
      },
    })
    connecting.catch(refused)
  }

  setRules(rules: LinkRules): void {
    this.#rules = rules
    this.#planCut()
    this.#pump('up')
    this.#pump('down')
  }

  cut(): void {
    this.#end(true, () => {
      this.#client.terminate()
      this.#server?.terminate()
    })
  }

  take(way: Way, chunk: Uint8Array): void {
    if (this.#over || this.#rules.swallow?.includes(way)) return
    const stream = this.#streams[way]
    // Bun reuses the buffer of a chunk.
    stream.chunks.push({ bytes: new Uint8Array(chunk), dueMs: performance.now() + (this.#rules.delayMs ?? 0) })
    stream.buffered += chunk.length
    if (stream.buffered > BUFFERED_BYTES_MAX) this.#sender(way)?.pause()
    this.#pump(way)
  }

  drained(way: Way): void {
    this.#pump(way)
  }

  /** `way`: the direction whose sender is gone. */
  closed(way: Way): void {
    if (this.#over || this.#rules.swallow?.includes(way)) return
    this.#streams[way].ending = true
    this.#pump(way)
  }

  #sender(way: Way): Socket<Link | null> | Socket<undefined> | null {
    return way === 'up' ? this.#client : this.#server
  }

  #receiver(way: Way): Socket<Link | null> | Socket<undefined> | null {
    return way === 'up' ? this.#server : this.#client
  }

  #pump(way: Way): void {
    const stream = this.#streams[way]
    const receiver = this.#receiver(way)
    if (this.#over || receiver === null) return
    const { cutAfterBytes, bytesPerSecond } = this.#rules
    let budget = bytesPerSecond === undefined ? Number.POSITIVE_INFINITY : Math.ceil((bytesPerSecond * THROTTLE_TICK_MS) / 1000)
    if (bytesPerSecond !== undefined && this.#ticks[way]) return
    const spent = stream.chunks.length > 0
    for (let chunk = stream.chunks[0]; chunk !== undefined && budget > 0; chunk = stream.chunks[0]) {
      const earlyMs = chunk.dueMs - performance.now()
      if (earlyMs > 0) {
        this.#later(earlyMs, () => this.#pump(way))
        return
      }
      const left = (cutAfterBytes?.[way] ?? Number.POSITIVE_INFINITY) - stream.passedBytes
      const size = Math.min(chunk.bytes.length, budget, Math.max(0, left))
      const written = size === 0 ? 0 : receiver.write(chunk.bytes.subarray(0, size))
      if (written < 0) return
      stream.passedBytes += written
      stream.buffered -= written
      budget -= written
      this.#events.passed(way, written)
      if (written === chunk.bytes.length) stream.chunks.shift()
      else chunk.bytes = chunk.bytes.subarray(written)
      if (written >= left) {
        this.#cutBehind(receiver)
        return
      }
      if (written < size) return // it goes on when the receiver has drained
    }
    if (stream.buffered <= BUFFERED_BYTES_MAX / 2) this.#sender(way)?.resume()
    if (bytesPerSecond !== undefined && spent) this.#tick(way)
    if (stream.chunks.length === 0 && stream.ending) this.#end(false, () => (way === 'up' ? this.#server : this.#client)?.end())
  }

  /** What was let through shall arrive: a reset could overtake it. */
  #cutBehind(receiver: Socket<Link | null> | Socket<undefined>): void {
    this.#end(true, () => {
      receiver.end()
      if (receiver !== this.#client) this.#client.terminate()
      else this.#server?.terminate()
    })
  }

  #tick(way: Way): void {
    this.#ticks[way] = true
    this.#later(THROTTLE_TICK_MS, () => {
      this.#ticks[way] = false
      this.#pump(way)
    })
  }

  #planCut(): void {
    const { cutAfterMs } = this.#rules
    if (cutAfterMs !== undefined) this.#later(Math.max(0, cutAfterMs - (performance.now() - this.#startMs)), () => this.#cutIfDue())
  }
  #cutIfDue(): void {
    const { cutAfterMs } = this.#rules
    if (cutAfterMs !== undefined && performance.now() - this.#startMs >= cutAfterMs - 1) this.cut()
  }

  #later(ms: number, then: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      if (!this.#over) then()
    }, ms)
    this.#timers.add(timer)
  }

  #end(cut: boolean, close: () => void): void {
    if (this.#over) return
    this.#over = true
    for (const timer of this.#timers) clearTimeout(timer)
    close()
    this.#events.ended(cut)
  }
}
