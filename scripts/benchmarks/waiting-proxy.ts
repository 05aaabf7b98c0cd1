// Hours in seconds: a TCP proxy that lets a poll wait on the agent's clock instead of the server's. Of the request only
// the digits of `wait` are overwritten by as many zeros, so that the server answers at once; the answer is held back
// until the agent's clock has come to the end of the wait. Every byte is counted.
import type { Socket, TCPSocketListener } from 'bun'

export interface WaitingProxy {
  url: string
  bytes(): number
  polls(): number
  /** Nothing is under way but polls that wait. */
  isQuiet(): boolean
  /** When the first poll that waits ends, on the agent's clock; null without one. */
  nextEndMs(): number | null
  /** Answers every poll whose time has come. */
  release(): void
  stop(): void
}

const POLL = /^GET [^ ]*[?&]wait=(\d+)/

interface Line {
  client: Socket<Line>
  server: Socket<undefined> | null
  early: Uint8Array[]
  /** A request was passed on and not answered yet. */
  asking: boolean
  endMs: number | null
  held: Uint8Array[]
}

export function startWaitingProxy(targetPort: number, nowMs: () => number): WaitingProxy {
  let bytes = 0
  let polls = 0
  const lines = new Set<Line>()
  const up = (line: Line, chunk: Uint8Array) => {
    bytes += chunk.length
    line.asking = true
    const text = Buffer.from(chunk).toString('latin1')
    const seconds = POLL.exec(text)?.[1]
    const wait = seconds === undefined ? 0 : Number(seconds)
    if (seconds !== undefined) polls++
    line.endMs = wait > 0 ? nowMs() + wait * 1_000 : null
    const sent = wait > 0 && seconds !== undefined ? text.replace(`wait=${seconds}`, `wait=${'0'.repeat(seconds.length)}`) : text
    const passed = Buffer.from(sent, 'latin1')
    if (line.server === null) line.early.push(passed)
    else line.server.write(passed)
  }
  const down = (line: Line, chunk: Uint8Array) => {
    bytes += chunk.length
    line.asking = false
    // An answer with news does not wait.
    if (line.endMs !== null && Buffer.from(chunk.subarray(0, 12)).toString('latin1') === 'HTTP/1.1 204')
      line.held.push(new Uint8Array(chunk))
    else line.client.write(chunk)
  }
  const listener: TCPSocketListener<Line> = Bun.listen<Line>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(client) {
        const line: Line = { client, server: null, early: [], asking: false, endMs: null, held: [] }
        client.data = line
        lines.add(line)
        void Bun.connect<undefined>({
          hostname: '127.0.0.1',
          port: targetPort,
          socket: {
            open(server) {
              line.server = server
              for (const chunk of line.early.splice(0)) server.write(chunk)
            },
            data: (_, chunk) => down(line, chunk),
            close: () => void client.end(),
          },
        })
      },
      data: (client, chunk) => up(client.data, chunk),
      close: (client) => {
        lines.delete(client.data)
        client.data.server?.end()
      },
    },
  })
  const waiting = () => [...lines].filter(({ held }) => held.length > 0)
  return {
    url: `http://127.0.0.1:${listener.port}`,
    bytes: () => bytes,
    polls: () => polls,
    isQuiet: () => [...lines].every(({ asking }) => !asking),
    nextEndMs: () => waiting().reduce<number | null>((first, { endMs }) => Math.min(first ?? Number.POSITIVE_INFINITY, endMs ?? 0), null),
    release() {
      for (const line of waiting()) {
        if ((line.endMs ?? 0) > nowMs()) continue
        line.endMs = null
        for (const chunk of line.held.splice(0)) line.client.write(chunk)
      }
    },
    stop: () => listener.stop(true),
  }
}
