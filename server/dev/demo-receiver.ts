// Receivers of the notifications of the demo fleet, on loopback: one that takes every message, and one that refuses
// some, so that the Notifications page shows delivered, waiting and failed messages.
export interface DemoReceiver {
  readonly url: string
  stop(): Promise<void>
}

/** The pager refuses this share of its messages. */
const REFUSED_EVERY = 3

export function startDemoReceiver(): DemoReceiver {
  let paged = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      await request.arrayBuffer()
      if (new URL(request.url).pathname !== '/pager') return new Response(null, { status: 204 })
      paged += 1
      return paged % REFUSED_EVERY === 0 ? new Response('the pager is busy', { status: 422 }) : new Response(null, { status: 202 })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}

/** A chat for all warnings, and a pager for what is critical. */
export const notifications = (url: string) => {
  const head = (kind: string, name: string) => ({ apiVersion: 'skerry.dev/v1', kind, metadata: { name } })
  return [
    { ...head('NotificationSink', 'ops-chat'), spec: { webhook: { url: `${url}/chat` } } },
    { ...head('NotificationSink', 'pager'), spec: { webhook: { url: `${url}/pager` } } },
    { ...head('NotificationRoute', 'warnings'), spec: { sinks: ['ops-chat'], severity: 'warning', group: { wait: '5s' } } },
    { ...head('NotificationRoute', 'on-call'), spec: { sinks: ['pager'], severity: 'critical', group: { wait: '5s' } } },
  ]
}
