// Stands in front of a registry: notes what is asked, breaks layers off in the middle, is away, changes answers.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

export interface RegistryFront {
  host: string
  requests: Array<{ method: string; path: string; range: string | null; status: number }>
  /** Bytes of each blob's answer after which the connection is cut, one for each answer; then they are whole. */
  cuts: number[]
  /** Answers instead of the registry. Null means that ask it. */
  instead: ((request: Request) => Response | null) | null
  away(isAway: boolean): Promise<void>
  stop(): Promise<void>
}

export async function createRegistryFront(host: string): Promise<RegistryFront> {
  const answerTo = async (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url)
    const noted = { method: request.method, path: pathname + search, range: request.headers.get('range'), status: 0 }
    front.requests.push(noted)
    const headers = new Headers(request.headers)
    headers.delete('host')
    const changed = front.instead?.(request) ?? null
    const answer = changed ?? (await fetch(`http://${host}${noted.path}`, { method: request.method, headers, redirect: 'manual' }))
    noted.status = answer.status
    return answer
  }
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const headers = new Headers(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]))
    const answer = await answerTo(new Request(`http://front${incoming.url}`, { method: incoming.method ?? 'GET', headers }))
    const bytes = Buffer.from(await answer.arrayBuffer())
    const cut = incoming.url?.includes('/blobs/') ? front.cuts.shift() : undefined
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers))
    if (cut === undefined) outgoing.end(bytes)
    else {
      outgoing.write(bytes.subarray(0, cut))
      await Bun.sleep(50) // what was read and not yet taken is lost with the connection: as on a slow line it is taken before
      outgoing.destroy()
    }
  }
  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing))
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()))
  const close = async () => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  }
  await listen(0)
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  let isAway = false
  const front: RegistryFront = {
    host: `127.0.0.1:${port}`,
    requests: [],
    cuts: [],
    instead: null,
    async away(to) {
      if (to !== isAway) await (to ? close() : listen(port))
      isAway = to
    },
    stop: async () => (isAway ? undefined : close()),
  }
  return front
}
