// Ten thousand events of a bad hour and its end, at a store and a notifier as a server has them: how many messages
// people get, and how long the event loop is blocked by them. Two receivers: a webhook, which gets each version as a
// request of its own, and a chat that changes its messages.
import { join } from 'node:path'
import { fleetEvent } from '../../server/fleet/fleet-event.ts'
import type { UnnumberedEvent } from '../../server/fleet/records.ts'
import { createNotifier } from '../../server/notify/notifier.ts'
import { createAddressGuard } from '../../server/sources/address/guard.ts'
import { parseRanges } from '../../server/sources/address/range.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import type { Store } from '../../server/store/store.ts'
import { notificationRouteSpecSchema, notificationSinkSpecSchema } from '../../shared/model/notifications.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { rounded } from './figures.ts'
import type { Say } from './parts.ts'

/** Changes of one transaction, such as a push of an agent or a render. */
const TOGETHER = 20
const PAUSE_MS = 20
const WAIT_MS = 5_000
const LAG_STEP_MS = 2

export async function measureNotify(say: Say): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-notify')
  const receivers = startReceivers()
  const store = await openSqliteStore(join(folder.path, 'fleet.sqlite'), { random: systemRandom, clock: systemClock })
  const stop = new AbortController()
  try {
    await writeResources(store, receivers.url)
    await store.notifications.cursor()
    const notifier = createNotifier({
      ...{ store, clock: systemClock, random: systemRandom, log: silentLogger, instance: 'bench', url: () => 'https://skerry.example' },
      configs: { read: async () => ({ data: {}, secrets: SECRETS }), credentials: async () => SECRETS },
      addresses: createAddressGuard({
        ...{ allowed: parseRanges('127.0.0.0/8').ranges, resolve: async () => ['127.0.0.1'] },
        ...{ fetcher: (to, init) => fetch(to, init), proxyFor: () => null },
      }),
      renderTexts: async () => ({ texts: {} }),
    })
    const running = notifier.run(stop.signal)
    const lag = measureLag()
    const events = badHour()
    const startMs = performance.now()
    for (let at = 0; at < events.length; at += TOGETHER) {
      await store.appendEvents(events.slice(at, at + TOGETHER))
      await Bun.sleep(PAUSE_MS)
    }
    say(`${events.length} events in ${rounded((performance.now() - startMs) / 1_000)} s`)
    await settled(store)
    const blockedMs = lag()
    stop.abort()
    await running
    const { webhook, posts, updates } = receivers.counts
    say(`webhook: ${webhook} requests; chat: ${posts} messages, ${updates} changes of them`)
    return { notify_10000_events_messages: Math.max(webhook, posts), notify_block_max_ms: rounded(blockedMs) }
  } finally {
    stop.abort()
    receivers.stop()
    await store.close()
    await folder.remove()
  }
}

const SECRETS = { token: 'xoxb-bench' }

async function writeResources(store: Store, url: string): Promise<void> {
  const write = (kind: 'NotificationSink' | 'NotificationRoute', name: string, spec: object) =>
    store.applyResource({ kind, project: '', name }, { labels: {}, spec: JSON.stringify(spec), nowMs: systemClock.nowMs() })
  const auth = { secretRef: 'keys' }
  await write('NotificationSink', 'hook', notificationSinkSpecSchema.parse({ webhook: { url: `${url}/hook` } }))
  await write('NotificationSink', 'chat', notificationSinkSpecSchema.parse({ slack: { channel: '#ops', url: `${url}/slack` }, auth }))
  const route = { sinks: ['hook', 'chat'], group: { wait: `${WAIT_MS}ms` } }
  await write('NotificationRoute', 'all', notificationRouteSpecSchema.parse(route))
}

/** A commit breaks three services, a network fails, hooks and renders fail; then one service and the network recover.
 */
function badHour(): UnnumberedEvent[] {
  const nowMs = systemClock.nowMs()
  const events: UnnumberedEvent[] = []
  const add = (
    count: number,
    reason: string,
    about: (n: number) => { service?: string; cluster?: string },
    type: 'Warning' | 'Normal' = 'Warning',
  ) => {
    for (let n = 0; n < count; n++) {
      const { service, cluster } = about(n)
      const id = service === undefined ? {} : { service: { project: 'shop', service } }
      events.push(
        fleetEvent(
          nowMs,
          { type, reason, message: `${reason} of ${service ?? cluster}` },
          { ...id, ...(cluster === undefined ? {} : { cluster }) },
        ),
      )
    }
  }
  add(3_600, 'Degraded', (n) => ({ service: ['web', 'api', 'cart'][n % 3] ?? 'web', cluster: `store-${Math.floor(n / 3)}` }))
  add(1_500, 'ClusterOffline', (n) => ({ cluster: `store-${1_500 + n}` }))
  add(1_200, 'HookFailed', (n) => ({ service: `job-${n % 60}`, cluster: `store-${n}` }))
  add(1_000, 'RenderFailed', (n) => ({ service: `team-${n}` }))
  add(1_200, 'Healthy', (n) => ({ service: 'web', cluster: `store-${n}` }), 'Normal')
  add(1_500, 'ClusterOnline', (n) => ({ cluster: `store-${1_500 + n}` }), 'Normal')
  return events
}

/** All is planned, and nothing is left to send but what waits for the end of an interval. */
async function settled(store: Store): Promise<void> {
  for (;;) {
    const soonMs = systemClock.nowMs() + 60_000
    const newest = (await store.listEvents({ limit: 1 })).at(-1)?.id ?? 0
    const isPlanned = (await store.notifications.cursor()) >= newest
    if (isPlanned && (await store.notifications.pending()).every(({ nextMs }) => nextMs === null || nextMs > soonMs)) return
    await Bun.sleep(100)
  }
}

function startReceivers() {
  const counts = { webhook: 0, posts: 0, updates: 0 }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      await request.arrayBuffer()
      const { pathname } = new URL(request.url)
      if (pathname === '/hook') counts.webhook += 1
      else if (pathname.endsWith('/chat.update')) counts.updates += 1
      else counts.posts += 1
      return Response.json({ ok: true, channel: 'C1', ts: '1.1' })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, counts, stop: () => void server.stop(true) }
}

/** Ends with the longest time, ms, that a timer was late. */
function measureLag(): () => number {
  let longestMs = 0
  let lastMs = performance.now()
  const timer = setInterval(() => {
    const nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - lastMs - LAG_STEP_MS)
    lastMs = nowMs
  }, LAG_STEP_MS)
  return () => {
    clearInterval(timer)
    return longestMs
  }
}
