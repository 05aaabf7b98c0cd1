// HTTP proxies as sites have them, in this process: they tunnel (CONNECT), forward (absolute form), buffer whole
// answers, cut what is silent, ask for credentials.
import { createServer, connect as dial, type Socket } from 'node:net'

export interface HttpProxyOptions {
  /** `user:password`; without it nobody is asked. */
  credentials?: string
  /** An answer goes on only when it is whole. */
  buffers?: boolean
  /** Both ends are cut after so long without a byte. */
  idleMs?: number
}

export interface HttpProxy {
  /** Without credentials. */
  url: string
  port: number
  /** Heads of all requests to the proxy itself, as they came. */
  readonly heads: string[]
  stop(): void
}

export async function startHttpProxy(options: HttpProxyOptions = {}): Promise<HttpProxy> {
  const heads: string[] = []
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
    if (options.idleMs !== undefined) socket.setTimeout(options.idleMs, () => socket.destroy())
    return socket
  }
  const server = createServer((client) => serve(keep(client), options, heads, keep))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    heads,
    stop: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function serve(client: Socket, options: HttpProxyOptions, heads: string[], keep: (socket: Socket) => Socket): void {
  let upstream: { socket: Socket; origin: string } | null = null
  let tunnel = false
  client.on('data', (bytes: Buffer) => {
    if (tunnel) return void upstream?.socket.write(bytes)
    const end = bytes.indexOf('\r\n\r\n')
    const head = bytes.subarray(0, end).toString()
    const [method = '', target = ''] = head.split(' ')
    heads.push(head)
    if (options.credentials !== undefined && !head.includes(`Proxy-Authorization: Basic ${btoa(options.credentials)}`))
      return void client.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n')
    if (method === 'CONNECT') {
      tunnel = true
      const [host = '', port] = target.split(':')
      const socket = keep(dial(Number(port), host, () => client.write('HTTP/1.1 200 OK\r\n\r\n')))
      upstream = { socket, origin: target }
      return joinEnds(client, socket, false)
    }
    const url = new URL(target)
    if (upstream?.origin !== url.origin || upstream.socket.destroyed) {
      const socket = keep(dial(Number(url.port || 80), url.hostname))
      upstream = { socket, origin: url.origin }
      joinEnds(client, socket, options.buffers ?? false)
    }
    const own = head
      .split('\r\n')
      .slice(1)
      .filter((line) => !/^proxy-/i.test(line))
    upstream.socket.write([`${method} ${url.pathname}${url.search} HTTP/1.1`, ...own, '', ''].join('\r\n'))
    upstream.socket.write(bytes.subarray(end + 4))
  })
}

function joinEnds(client: Socket, upstream: Socket, buffers: boolean): void {
  let held = Buffer.alloc(0)
  upstream.on('data', (bytes: Buffer) => {
    if (!buffers) return void client.write(bytes)
    held = Buffer.concat([held, bytes])
    if (!isWhole(held)) return
    client.write(held)
    held = Buffer.alloc(0)
  })
  upstream.on('close', () => client.destroy())
  client.on('close', () => upstream.destroy())
}

function isWhole(answer: Buffer): boolean {
  const end = answer.indexOf('\r\n\r\n')
  if (end < 0) return false
  const head = answer.subarray(0, end).toString().toLowerCase()
  const length = /content-length: (\d+)/.exec(head)?.[1]
  if (length !== undefined) return answer.length >= end + 4 + Number(length)
  return head.includes('chunked') ? answer.subarray(-5).toString() === '0\r\n\r\n' : true
}
