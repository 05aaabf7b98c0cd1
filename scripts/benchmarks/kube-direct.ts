// The API server without anything of ours in between: the bare loop that an agent is compared with, and a watch with
// exact times.
import type { KubeCluster } from '../local-cluster/local-cluster.ts'

export interface DirectKube {
  request(method: string, path: string, body?: unknown, contentType?: string): Promise<Response>
  /** Server-side applies of all documents, `concurrency` at a time; ms. */
  applyAll(documents: ReadonlyArray<{ path: string; body: string }>, concurrency: number): Promise<number>
  /** Times (performance.now()) at which objects of a collection became visible. */
  watch(path: string, onEvent: (event: WatchLine, atMs: number) => void): Promise<() => void>
}

export interface WatchLine {
  type: string
  object: { metadata: { name: string; uid: string; resourceVersion: string }; data?: Record<string, string> }
}

export function directKube(cluster: KubeCluster): DirectKube {
  const headers = { authorization: `Bearer ${cluster.token}`, 'user-agent': 'bench' }
  const tls = { ca: cluster.caPem }
  const request: DirectKube['request'] = (method, path, body, contentType = 'application/json') =>
    fetch(cluster.server + path, {
      method,
      headers: { ...headers, 'content-type': contentType },
      tls,
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  return {
    request,
    applyAll: async (documents, concurrency) => {
      const started = performance.now()
      let next = 0
      const worker = async () => {
        for (let index = next++; index < documents.length; index = next++) {
          const document = documents[index]
          if (document === undefined) return
          const response = await request(
            'PATCH',
            `${document.path}?fieldManager=bench&force=true`,
            document.body,
            'application/apply-patch+yaml',
          )
          if (!response.ok) throw new Error(`apply ${document.path}: HTTP ${response.status} ${await response.text()}`)
          await response.json() // what any client that records the result has to do
        }
      }
      await Promise.all(Array.from({ length: concurrency }, worker))
      return performance.now() - started
    },
    watch: async (path, onEvent) => {
      const listed = (await (await request('GET', path)).json()) as { metadata: { resourceVersion: string } }
      const abort = new AbortController()
      const url = `${cluster.server}${path}?watch=true&resourceVersion=${listed.metadata.resourceVersion}&timeoutSeconds=3600`
      const response = await fetch(url, { headers, tls, signal: abort.signal, timeout: false })
      const read = async () => {
        const decoder = new TextDecoder()
        let rest = ''
        for await (const chunk of response.body ?? []) {
          const atMs = performance.now()
          const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) onEvent(JSON.parse(line) as WatchLine, atMs)
        }
      }
      read().catch(() => {}) // ends by our abort
      return () => abort.abort()
    },
  }
}
