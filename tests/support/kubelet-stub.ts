// Plays the kubelet of one Node: an API server that is asked for a log of a Pod of that Node asks here.
import type { KubeCluster } from './kube-cluster.ts'
import { SERVER_CERT, SERVER_PRIVATE_KEY } from './test-certs.ts'

export interface KubeletStub {
  /** Paths with queries, as they were asked for. */
  readonly asked: string[]
  /** Of the run before the present one, then of the present one. */
  previous: string
  log: string
  /** After the log, for those who follow: pieces, until it ends or they leave. */
  follow: () => AsyncGenerator<string>
  /** Those who follow now. */
  followers(): number
  /** Makes the Node, Ready, with room for Pods. */
  register(cluster: KubeCluster, name: string): Promise<void>
  stop(): Promise<void>
}

export function startKubeletStub(): KubeletStub {
  const asked: string[] = []
  let followers = 0
  const serve = (request: Request): Response => {
    const { pathname, search, searchParams } = new URL(request.url)
    if (!pathname.startsWith('/containerLogs/')) return new Response('not found', { status: 404 })
    asked.push(pathname + search)
    const isPrevious = searchParams.get('previous') === 'true'
    const whole = isPrevious ? stub.previous : stub.log
    const tail = searchParams.get('tailLines')
    const lines = whole.split('\n').slice(0, -1)
    const text = (tail === null ? lines : lines.slice(lines.length - Number(tail))).map((line) => `${line}\n`).join('')
    if (searchParams.get('follow') !== 'true') return new Response(text)
    const pieces = stub.follow()
    followers += 1
    const encoder = new TextEncoder()
    let isFirst = true
    const end = () => {
      followers -= 1
    }
    return new Response(
      new ReadableStream({
        async pull(controller) {
          if (isFirst && text !== '') {
            isFirst = false
            return controller.enqueue(encoder.encode(text))
          }
          const next = await pieces.next()
          if (next.done) {
            end()
            return controller.close()
          }
          controller.enqueue(encoder.encode(next.value))
        },
        cancel: end,
      }),
    )
  }
  const http = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    tls: { cert: SERVER_CERT, key: SERVER_PRIVATE_KEY },
    fetch: serve,
  })
  const stub: KubeletStub = {
    asked,
    previous: '',
    log: '',
    async *follow() {},
    followers: () => followers,
    async register(cluster, name) {
      const amounts = { cpu: '8', memory: '16Gi', pods: '110' }
      const now = new Date().toISOString()
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { 'kubernetes.io/hostname': name } } }
      const status = {
        addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
        daemonEndpoints: { kubeletEndpoint: { Port: http.port } },
        capacity: amounts,
        allocatable: amounts,
        conditions: [
          { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ready', lastHeartbeatTime: now, lastTransitionTime: now },
        ],
        nodeInfo: { kubeletVersion: 'v1.36.3' },
      }
      await cluster.kubectl(['create', '-f', '-'], { stdin: JSON.stringify(node) })
      await cluster.kubectl(['patch', 'node', name, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })])
    },
    stop: () => http.stop(true),
  }
  return stub
}
