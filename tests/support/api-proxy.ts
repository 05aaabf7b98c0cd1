// Between an agent and its API server: passes everything on, or answers in its stead.
import type { KubeCluster } from './kube-cluster.ts'

export interface ApiProxy {
  url: string
  /** Null means passed on. */
  answer(rule: (method: string, url: URL) => Response | null): void
  /** Requests that it answered itself, by method. */
  answered(): number
  stop(): Promise<void>
}

export function startApiProxy(server: KubeCluster): ApiProxy {
  let rule: (method: string, url: URL) => Response | null = () => null
  let answered = 0
  const listener = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const url = new URL(request.url)
      const own = rule(request.method, url)
      if (own !== null) {
        answered += 1
        return own
      }
      const headers = new Headers(request.headers)
      headers.set('authorization', `Bearer ${server.token}`)
      headers.delete('host')
      const body = request.method === 'GET' ? {} : { body: await request.arrayBuffer() }
      return fetch(server.server + url.pathname + url.search, {
        method: request.method,
        headers,
        ...body,
        tls: { ca: server.caPem },
        timeout: false,
        decompress: false,
        signal: request.signal,
      } as BunFetchRequestInit)
    },
  })
  return {
    url: `http://127.0.0.1:${listener.port}`,
    answer: (next) => {
      rule = next
    },
    answered: () => answered,
    stop: () => listener.stop(true),
  }
}

/** As the API server words it. */
export function refusal(code: number, reason: string, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message }, { status: code, headers })
}
