// A notifier on a real store, and a receiver that keeps what it is sent.

import type { StoredResource } from '../../server/fleet/records.ts'
import { createNotifier, type Notifier, type NotifierDeps } from '../../server/notify/notifier.ts'
import type { Store } from '../../server/store/store.ts'
import { notificationRouteSpecSchema, notificationSinkSpecSchema } from '../../shared/model/notifications.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { loopbackGuard } from './source-guard.ts'

export interface Received {
  method: string
  path: string
  headers: Record<string, string>
  body: Record<string, unknown>
  text: string
}

export interface Receiver {
  url: string
  requests: Received[]
  stop(): void
}

/** Answers 200 with `{}` unless `answer` says otherwise. */
export function startReceiver(answer: (request: Received, count: number) => Response | undefined = () => undefined): Receiver {
  const requests: Received[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const text = await request.text()
      const { pathname, search } = new URL(request.url)
      const received = {
        ...{ method: request.method, path: pathname + search, headers: Object.fromEntries(request.headers), text },
        body: text.startsWith('{') ? JSON.parse(text) : {},
      }
      requests.push(received)
      return answer(received, requests.length) ?? Response.json({})
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, requests, stop: () => void server.stop(true) }
}

/** Secrets by Config; a credential is bound to no host here. */
export const configsWith = (secrets: Record<string, Record<string, string>>): NotifierDeps['configs'] => ({
  read: async (_, name) => (secrets[name] === undefined ? null : { data: {}, secrets: secrets[name] }),
  credentials: async (_, name) => secrets[name] ?? {},
})

export async function putSink(store: Store, name: string, spec: object, project = ''): Promise<void> {
  const written = JSON.stringify(notificationSinkSpecSchema.parse(spec))
  await store.applyResource({ kind: 'NotificationSink', project, name }, { labels: {}, spec: written, nowMs: 1 })
}
export async function putRoute(store: Store, name: string, spec: object, project = ''): Promise<void> {
  const written = JSON.stringify(notificationRouteSpecSchema.parse(spec))
  await store.applyResource({ kind: 'NotificationRoute', project, name }, { labels: {}, spec: written, nowMs: 1 })
}
export async function sinkOf(store: Store, name: string): Promise<StoredResource> {
  const found = await store.getResource({ kind: 'NotificationSink', project: '', name })
  if (found === null) throw new Error(`there is no sink ${name}`)
  return found
}

export const notifierOn = (store: Store, change: Partial<NotifierDeps> = {}, clock: Clock = systemClock): Notifier =>
  createNotifier({
    ...{ store, clock, random: seededRandom(1), log: silentLogger, instance: 'abcd1234', url: () => 'https://skerry.example' },
    configs: configsWith({}),
    addresses: loopbackGuard(),
    renderTexts: async () => ({ texts: {} }),
    ...change,
  })

/** Runs it until `until` holds, or throws after 15 seconds. */
export async function runUntil(notifier: Notifier, until: () => boolean | Promise<boolean>): Promise<void> {
  const stop = new AbortController()
  const running = notifier.run(stop.signal)
  let failed: unknown
  running.catch((error: unknown) => {
    failed = error
  })
  const deadline = performance.now() + 15_000
  while (!(await until())) {
    if (failed !== undefined) throw failed
    if (performance.now() > deadline) throw new Error('it did not happen within 15 seconds')
    await Bun.sleep(20)
  }
  stop.abort()
  await running
}
