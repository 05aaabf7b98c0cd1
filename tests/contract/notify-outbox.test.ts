// Notifications from the event to the receiver, on both stores: planned once, delivered at least once, tried again, and
// dead letters that people see.
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { fleetEvent } from '../../server/fleet/fleet-event.ts'
import type { NewNotification } from '../../server/fleet/notification-records.ts'
import { NOTIFICATIONS_KEPT_MAX } from '../../server/store/notify/notification-outbox.ts'
import type { Store } from '../../server/store/store.ts'
import { naming } from '../support/naming.ts'
import { notifierOn, putRoute, putSink, type Receiver, runUntil, sinkOf, startReceiver } from '../support/notify-kit.ts'
import { loopbackGuard } from '../support/source-guard.ts'
import { STORES } from '../support/stores.ts'

setDefaultTimeout(60_000)

const SOON = { group: { wait: '100ms', interval: '10s' } }
const degraded = (cluster: string, service = 'web') =>
  fleetEvent(
    Date.now(),
    { type: 'Warning', reason: 'Degraded', message: 'no replica is ready' },
    { cluster, service: { project: 'shop', service } },
  )
const healthy = (cluster: string) =>
  fleetEvent(
    Date.now(),
    { type: 'Normal', reason: 'Healthy', message: 'all is well' },
    { cluster, service: { project: 'shop', service: 'web' } },
  )
const data = (receiver: Receiver) => receiver.requests.map(({ body }) => body['data'] as Record<string, unknown>)

describe.each(STORES)('$name', (kind) => {
  const closing: Array<() => unknown> = []
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })
  async function site(answer?: Parameters<typeof startReceiver>[0]) {
    const place = await kind.place()
    const store = await place.open()
    const receiver = startReceiver(answer)
    closing.push(
      () => store.close(),
      () => receiver.stop(),
    )
    await putSink(store, 'hook', { webhook: { url: receiver.url } })
    await putRoute(store, 'all', { sinks: ['hook'], ...SOON })
    // The cursor is at the newest event, as of a server that runs.
    await store.notifications.cursor()
    return { place, store, receiver }
  }
  const all = (store: Store) => store.notifications.list({ limit: 100 })
  /** Not only received: a stop between the two sends it again. */
  const isSettled = async (store: Store) => (await all(store))[0]?.sentVersion === 1

  test('NO1 an event becomes a message; nothing is planned or sent twice after a restart', async () => {
    const { store, receiver } = await site()
    await store.appendEvents([degraded('oslo'), degraded('bergen')])
    await runUntil(notifierOn(store), () => isSettled(store))
    const notifier = notifierOn(store)
    await runUntil(notifier, async () => {
      await Bun.sleep(400)
      return true
    })
    expect(data(receiver)).toMatchObject([{ title: 'shop/web: 2 clusters Degraded', members: ['oslo', 'bergen'], version: 1 }])
    expect(await all(store)).toMatchObject([{ version: 1, sentVersion: 1, nextMs: null, error: null }])
  })

  test('NO1 an event that was written while no server ran is told by the next one', async () => {
    const { store, receiver } = await site()
    await store.appendEvents([degraded('oslo')])
    await runUntil(notifierOn(store), () => isSettled(store))
    await store.appendEvents([healthy('oslo')])
    await runUntil(notifierOn(store), async () => (await all(store))[0]?.state === 'closed')
    expect(data(receiver).map(({ resolved }) => resolved)).toEqual([false, true])
  })

  test('NO2 what came before the first route is no news', async () => {
    const { store, receiver } = await site()
    await store.deleteResource({ kind: 'NotificationRoute', project: '', name: 'all' })
    await store.appendEvents([degraded('oslo')])
    const notifier = notifierOn(store)
    await runUntil(notifier, async () => {
      await Bun.sleep(200)
      await putRoute(store, 'all', { sinks: ['hook'], ...SOON })
      notifier.changed()
      await Bun.sleep(200)
      await store.appendEvents([degraded('bergen')])
      return true
    })
    await runUntil(notifierOn(store), () => receiver.requests.length > 0)
    expect(data(receiver)[0]?.['members']).toEqual(['bergen'])
  })

  test('NO3 a receiver that fails gets it again with the same key, not before Retry-After', async () => {
    const times: number[] = []
    const { store, receiver } = await site((_, count) => {
      times.push(performance.now())
      return count === 1 ? new Response('busy', { status: 503, headers: { 'retry-after': '1' } }) : undefined
    })
    await store.appendEvents([degraded('oslo')])
    await runUntil(notifierOn(store, { random: () => 0 }), () => receiver.requests.length === 2)
    expect(receiver.requests[1]?.headers['idempotency-key']).toBe(receiver.requests[0]?.headers['idempotency-key'])
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(1_000)
  })

  test('NO4 what a receiver refuses is a dead letter, counted for its sink, and sent again on request', async () => {
    let refuses = true
    const { store, receiver } = await site(() => (refuses ? new Response('no such hook', { status: 404 }) : undefined))
    await store.appendEvents([degraded('oslo')])
    await runUntil(notifierOn(store), async () => (await all(store))[0]?.state === 'dead')
    const [dead] = await all(store)
    expect(dead?.error).toContain('404: no such hook')
    expect(await store.notifications.countsOf('', 'hook')).toMatchObject({
      dead: 1,
      waiting: 0,
      lastSentMs: null,
      error: dead?.error ?? '',
    })
    refuses = false
    const notifier = notifierOn(store)
    expect(await notifier.retry(dead?.id ?? 0)).toBe(true)
    await runUntil(notifier, () => isSettled(store))
    expect(receiver.requests).toHaveLength(2)
    expect(await notifier.retry(dead?.id ?? 0)).toBe(false)
    expect((await store.notifications.countsOf('', 'hook')).error).toBeNull()
  })

  test('NO4 a sink that does not exist makes a dead letter, and other sinks get theirs', async () => {
    const { store, receiver } = await site()
    await putRoute(store, 'all', { sinks: ['gone', 'hook'], ...SOON })
    await store.appendEvents([degraded('oslo')])
    await runUntil(
      notifierOn(store),
      async () => receiver.requests.length === 1 && (await all(store)).some(({ state }) => state === 'dead'),
    )
    expect((await all(store)).find(({ sink }) => sink === 'gone')?.error).toEqual(naming('sink gone'))
  })

  test('NO5 a paused sink keeps its messages until it goes on', async () => {
    const { store, receiver } = await site()
    await putSink(store, 'hook', { webhook: { url: receiver.url }, paused: true })
    await store.appendEvents([degraded('oslo')])
    await runUntil(notifierOn(store), async () => {
      await Bun.sleep(500)
      return true
    })
    expect(receiver.requests).toEqual([])
    await putSink(store, 'hook', { webhook: { url: receiver.url } })
    await runUntil(notifierOn(store), () => receiver.requests.length === 1)
  })

  test('NO9 a change of sinks ends no open delivery', async () => {
    const { store, receiver } = await site()
    await store.appendEvents([degraded('oslo')])
    const guard = loopbackGuard()
    const release = Promise.withResolvers<void>()
    let aborted = false
    const fetcher: typeof guard.fetcher = async (url, init) => {
      const answer = await guard.fetcher(url, init)
      await release.promise // the receiver has it, and its answer takes long
      aborted ||= init?.signal?.aborted === true
      return answer
    }
    const notifier = notifierOn(store, { addresses: { ...guard, fetcher } })
    await runUntil(notifier, async () => {
      if (receiver.requests.length === 0) return false
      await putSink(store, 'other', { webhook: { url: receiver.url } })
      notifier.changed()
      await Bun.sleep(50)
      release.resolve()
      return isSettled(store)
    })
    expect([receiver.requests.length, aborted]).toEqual([1, false])
  })

  test('NO6 a plan of another process writes nothing', async () => {
    const { store } = await site()
    const from = await store.notifications.cursor()
    expect(await store.notifications.plan({ cursor: { from, to: from + 5 }, created: [], changed: [] })).toEqual([])
    expect(await store.notifications.plan({ cursor: { from, to: from + 9 }, created: [], changed: [] })).toBeNull()
    expect(await store.notifications.cursor()).toBe(from + 5)
  })

  test('NO7 a test message goes past the outbox', async () => {
    const { store, receiver } = await site()
    expect(await notifierOn(store).test(await sinkOf(store, 'hook'))).toMatchObject({ delivered: true, detail: 'answered 200' })
    expect(data(receiver)).toMatchObject([{ title: 'Test message from Skerry' }])
    expect(await all(store)).toEqual([])
    receiver.stop()
    expect(await notifierOn(store).test(await sinkOf(store, 'hook'))).toMatchObject({ delivered: false })
  })

  test('NO1 kill -9 between the event and the delivery loses no message', async () => {
    const { place, store, receiver } = await site(() => {
      Bun.sleepSync(2)
      return undefined
    })
    await putRoute(store, 'all', { sinks: ['hook'], group: { by: ['cluster', 'service'], wait: '50ms', max: 100 } })
    const script = join(import.meta.dir, '../support/notify-until-killed.ts')
    const appended = new Set<string>()
    for (let life = 0; life < 4; life++) {
      const child = Bun.spawn([process.execPath, script, place.at, `life${life}`], { stdout: 'pipe', stderr: 'inherit' })
      const reader = child.stdout.getReader()
      let told = ''
      const begun = Promise.withResolvers<void>()
      const reading = (async () => {
        for (;;) {
          const { done, value } = await reader.read()
          if (done) return
          told += new TextDecoder().decode(value)
          begun.resolve()
        }
      })()
      // A busy machine takes seconds to start a process.
      await Promise.race([begun.promise, Bun.sleep(20_000)])
      await Bun.sleep(200 + life * 350)
      child.kill('SIGKILL')
      await child.exited
      await reading
      for (const name of told.split('\n').slice(0, -1)) appended.add(name)
    }
    const newest = (await store.listEvents({ limit: 1 })).at(-1)?.id ?? 0
    await runUntil(notifierOn(store), async () => {
      const isPlanned = (await store.notifications.cursor()) >= newest
      return isPlanned && (await store.notifications.pending()).every(({ nextMs }) => nextMs === null)
    })
    const all = await store.notifications.list({ limit: 500 })
    const planned = new Set(all.flatMap(({ doc }) => (doc.type === 'events' ? [...doc.members] : [])))
    const digested = all.flatMap(({ doc }) => (doc.type === 'events' && doc.digest !== undefined ? [doc.total] : []))
    const single = [...appended].filter((name) => planned.has(name))
    expect(appended.size).toBeGreaterThan(10)
    // Each event is in a message of its own, or counted in a digest; and each message that was planned was received.
    expect(single.length + digested.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(appended.size)
    const received = new Set(data(receiver).flatMap(({ members }) => members as string[]))
    expect(single.filter((name) => !received.has(name))).toEqual([])
    const groups = all.map(({ groupKey, sink }) => `${sink} ${groupKey}`)
    expect(groups.length).toBe(new Set(groups).size)
  })

  test('NO8 the newest closed messages are kept', async () => {
    const { store } = await site()
    const { notifications } = store
    const told: NewNotification = {
      ...{ project: '', route: 'all', sink: 'hook', groupKey: 'g', state: 'closed', version: 1, sentVersion: 1, attempts: 0, nextMs: null },
      ...{ createdMs: 1, updatedMs: 1, sentMs: 1, triedMs: 0, error: null, ref: null },
      doc: { type: 'commit', project: 'shop', service: 'web', sha: 'c', state: 'success', description: '' },
    }
    await notifications.plan({
      created: [{ ...told, state: 'open' }, ...Array<NewNotification>(NOTIFICATIONS_KEPT_MAX + 3).fill(told)],
      changed: [],
    })
    expect(await notifications.prune()).toBe(3)
    expect(await notifications.prune()).toBe(0)
    expect((await notifications.pending()).map(({ id }) => id)).toEqual([1])
    expect([await notifications.get(4), (await notifications.get(5))?.state]).toEqual([null, 'closed'])
  })
})
