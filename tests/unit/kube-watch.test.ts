import { describe, expect, test } from 'bun:test'
import { failureOf } from '../../agent/cluster/api-failure.ts'
import type { ApiFailure, ApiResource, WatchEvent } from '../../agent/cluster/cluster.ts'
import type { KubeAnswer, KubeHttp, KubeStream } from '../../agent/cluster/kube-http.ts'
import { SILENCE_MAX_MS, watchResource } from '../../agent/cluster/kube-watch.ts'
import { Positions } from '../../agent/cluster/resource-version.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createVirtualClock, type SharedClock, turnOfTheLoop } from '../support/virtual-clock.ts'

const RESOURCE: ApiResource = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true, verbs: [] }
const START = 'start'

const object = (name: string, resourceVersion: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, resourceVersion } })
const added = (name: string, position: string) => ({ type: 'ADDED', object: object(name, position) })
const modified = (name: string, position: string) => ({ type: 'MODIFIED', object: object(name, position) })
const deleted = (name: string, position: string) => ({ type: 'DELETED', object: object(name, position) })
const bookmark = (position: string) => ({ type: 'BOOKMARK', object: { metadata: { resourceVersion: position } } })
const initialEnd = (position: string) => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: position, annotations: { 'k8s.io/initial-events-end': 'true' } } },
})
const gone = { type: 'ERROR', object: { kind: 'Status', code: 410, message: 'too old resource version' } }

type Reply = { lines: readonly unknown[]; end: 'eof' | 'hang' | 'reset' } | { failure: Partial<ApiFailure> } | { list: KubeAnswer }
const open = (...lines: readonly unknown[]): Reply => ({ lines, end: 'hang' })
const cut = (...lines: readonly unknown[]): Reply => ({ lines, end: 'eof' })
const reset = (...lines: readonly unknown[]): Reply => ({ lines, end: 'reset' })
const refuse = (failure: Partial<ApiFailure>): Reply => ({ failure })

/** A consistent read: what etcd has reached. */
const reached = (resourceVersion: string): Status => ({
  status: 200,
  body: { kind: 'ConfigMapList', metadata: { resourceVersion }, items: [] },
})
/** An API server whose watch cache has not reached a position, or is not ready: 1.33 and 1.36 say it alike. */
const lags: Status = {
  status: 504,
  body: { kind: 'Status', code: 504, reason: 'Timeout', details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } },
}
type Status = { status: number; body: unknown }

const failureWith = (failure: Partial<ApiFailure>): ApiFailure => ({
  kind: 'server_error',
  status: 500,
  reason: '',
  message: 'down',
  ...failure,
})

/** A server that answers with the given replies in turn, then never again. */
class Script {
  /** What each request asked for: "start", or the position it resumed from; "list" for a page; "check" for a consistent
   *  read of no object. */
  readonly asked: string[] = []
  held = 0
  /** Answers to the next checks of a position; without one the server has reached it. */
  readonly checks: Status[] = []
  readonly #replies: Reply[]
  constructor(replies: readonly Reply[]) {
    this.#replies = [...replies]
  }

  readonly http: KubeHttp = {
    stream: async ({ path, signal }) => {
      const query = new URLSearchParams(path.slice(path.indexOf('?')))
      this.asked.push(query.has('sendInitialEvents') ? START : (query.get('resourceVersion') ?? '?'))
      const reply = this.#replies.shift() ?? open()
      if ('failure' in reply) return { kind: 'failed', failure: failureWith(reply.failure) }
      if ('list' in reply) throw new Error('the script expected a list')
      this.held += 1
      return { kind: 'stream', body: streamOf(reply, signal), release: () => (this.held -= 1) } satisfies KubeStream
    },
    request: async ({ path }) => {
      const query = new URLSearchParams(path.slice(path.indexOf('?')))
      if (query.get('fieldSelector') === 'metadata.name=skerry-position') {
        this.asked.push(query.has('resourceVersion') ? 'check of the cache' : 'check')
        const answer = this.checks.shift() ?? reached('1000')
        if (answer.status === 200) return { kind: 'answer', ...answer }
        const text = JSON.stringify(answer.body)
        return { kind: 'failed', failure: failureOf({ ...answer, text, retryAfter: null, plural: RESOURCE.plural }), body: answer.body }
      }
      this.asked.push('list')
      const reply = this.#replies.shift()
      if (reply === undefined || !('list' in reply)) throw new Error('the script expected no list')
      return reply.list
    },
    close: () => {},
  }
}

function streamOf(reply: { lines: readonly unknown[]; end: 'eof' | 'hang' | 'reset' }, signal: AbortSignal): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const line of reply.lines) controller.enqueue(new TextEncoder().encode(`${JSON.stringify(line)}\n`))
      if (reply.end === 'eof') controller.close()
      signal.addEventListener('abort', () => {
        try {
          controller.error(new Error('aborted'))
        } catch {
          // Already closed: nothing is left to abort.
        }
      })
    },
    pull(controller) {
      if (reply.end === 'reset') controller.error(Object.assign(new Error('socket closed'), { code: 'ECONNRESET' }))
      return new Promise(() => {})
    },
  })
}

interface RunOptions {
  random?: () => number
  positions?: Positions
  clock?: SharedClock
  fieldSelector?: string
}

function run(
  replies: readonly Reply[],
  { random = () => 0.5, positions = new Positions(), clock = createVirtualClock(), fieldSelector }: RunOptions = {},
) {
  const script = new Script(replies)
  const abort = new AbortController()
  const events: WatchEvent[] = []
  const options = { signal: abort.signal, ...(fieldSelector === undefined ? {} : { fieldSelector }) }
  const done = (async () => {
    for await (const event of watchResource({ http: script.http, positions, clock, random, log: silentLogger }, RESOURCE, options))
      events.push(event)
  })()
  const story = () =>
    events
      .map((event) =>
        'object' in event
          ? `${event.kind}:${event.object.metadata.name}`
          : 'failure' in event
            ? `failed:${event.failure.kind}`
            : event.kind,
      )
      .join(' ')
  const stop = async () => {
    abort.abort()
    await done
    // KA27: whatever happened, no stream stays held.
    expect(script.held).toBe(0)
  }
  return { clock, script, events, story, stop, abort, done }
}

describe('one watch', () => {
  test('KA21 nothing but the objects stands between reset and synced', async () => {
    const watch = run([open(added('a', '3'), bookmark('4'), added('b', '1'), initialEnd('5'), modified('a', '6'), deleted('b', '7'))])
    await watch.clock.advance(0)
    expect(watch.story()).toBe('reset present:a present:b synced changed:a removed:b')
    await watch.stop()
  })

  test('KA22 after a cut it goes on at once from the last event or bookmark, told by nothing', async () => {
    const watch = run([cut(initialEnd('5'), modified('a', '6')), reset(modified('a', '7'), bookmark('9')), cut(bookmark('12')), open()])
    await watch.clock.advance(0)
    expect(watch.script.asked).toEqual([START, '6', '9', '12'])
    expect(watch.story()).toBe('reset synced changed:a changed:a')
    await watch.stop()
  })

  test('KA22 a cut during the initial events starts over, after a wait', async () => {
    const watch = run([cut(added('a', '3')), open(added('b', '4'), initialEnd('5'))])
    await watch.clock.advance(499)
    expect(watch.script.asked).toEqual([START])
    await watch.clock.advance(1)
    expect(watch.script.asked).toEqual([START, START])
    expect(watch.story()).toBe('reset present:a reset present:b synced')
    await watch.stop()
  })

  test('KA24 a forgotten position starts over at once; a start that is refused as too old waits', async () => {
    const watch = run([cut(initialEnd('5')), open(gone), open(gone), open(added('a', '8'), initialEnd('9'))])
    await watch.clock.advance(0)
    expect(watch.script.asked).toEqual([START, '5', START])
    await watch.clock.advance(500)
    expect(watch.script.asked).toEqual([START, '5', START, START])
    expect(watch.story()).toBe('reset synced reset reset present:a synced')
    await watch.stop()
  })

  test('KA24 410 as a status is the same as 410 in the stream', async () => {
    const watch = run([cut(initialEnd('5')), refuse({ status: 410 }), open(initialEnd('9'))])
    await watch.clock.advance(0)
    expect(watch.story()).toBe('reset synced reset synced')
    await watch.stop()
  })

  test('KA25 failures wait with full jitter from 1 s to 30 s, and after them it is synced without a reset', async () => {
    const failures = Array.from({ length: 7 }, () => refuse({ kind: 'unreachable' }))
    const watch = run([cut(initialEnd('5')), ...failures, open(modified('a', '6'))], { random: () => 0.999999 })
    await watch.clock.advance(200_000)
    // The first two sleeps are the watchdog of the first stream, for its lines and for its end.
    expect(watch.clock.asked.slice(2, 9)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
    expect(watch.story()).toBe(`reset synced ${'failed:unreachable '.repeat(7)}synced changed:a`)
    expect(watch.script.asked.slice(0, 9)).toEqual([START, '5', 'check', '5', 'check', '5', 'check', '5', 'check'])
    await watch.stop()
  })

  test('KA25 the server’s Retry-After is the least wait', async () => {
    const watch = run([refuse({ kind: 'throttled', retryAfterMs: 7000 }), open(initialEnd('1'))])
    await watch.clock.advance(10_499)
    expect(watch.script.asked).toEqual([START])
    await watch.clock.advance(1)
    expect(watch.story()).toBe('failed:throttled reset synced')
    await watch.stop()
  })

  test('KA25 streams that are cut as soon as they open count as a failure from the third on', async () => {
    const twice = run([cut(initialEnd('5')), cut(), cut(), open(bookmark('6'))])
    await twice.clock.advance(60_000)
    expect(twice.story()).toBe('reset synced')
    await twice.stop()
    const thrice = run([cut(initialEnd('5')), cut(), cut(), cut(), open(bookmark('6'))])
    await thrice.clock.advance(60_000)
    expect(thrice.story()).toBe('reset synced failed:unreachable synced')
    await thrice.stop()
  })

  test('KA20 a line that is no event fails the stream, and nothing before it is lost', async () => {
    const watch = run([open(initialEnd('5'), modified('a', '6'), { type: 'NEWS' }), open(modified('b', '7'))])
    await watch.clock.advance(500)
    expect(watch.script.asked).toEqual([START, 'check', '6'])
    expect(watch.story()).toBe('reset synced changed:a failed:server_error synced changed:b')
    await watch.stop()
  })

  test('KA26 after 150 s of silence it connects again from where it was', async () => {
    const watch = run([open(initialEnd('5'), bookmark('6')), open(modified('a', '7'))])
    await watch.clock.advance(SILENCE_MAX_MS - 1)
    expect(watch.script.asked).toEqual([START])
    await watch.clock.advance(1 + 500)
    expect(watch.script.asked).toEqual([START, '6'])
    expect(watch.story()).toBe('reset synced changed:a')
    await watch.stop()
  })

  test('KA28 a server that never ends its initial events is listed by pages instead', async () => {
    const page = (items: unknown[], token: string): Reply => ({
      list: { kind: 'answer', status: 200, body: { metadata: { resourceVersion: '20', continue: token }, items } },
    })
    const named = (name: string) => ({ metadata: { name, resourceVersion: '1' } })
    const watch = run([open(added('a', '1')), page([named('a')], 'more'), open(modified('b', '21')), page([named('b')], '')])
    await watch.clock.advance(30_000)
    expect(watch.script.asked).toEqual([START, 'list', '20', 'list'])
    expect(watch.story()).toBe('reset present:a reset present:a present:b synced changed:b')
    await watch.stop()
  })

  test('KA28 a page that fails leaves nothing half told as synced', async () => {
    const page: Reply = { list: { kind: 'answer', status: 200, body: { metadata: { resourceVersion: '20', continue: 'x' }, items: [] } } }
    const broken: Reply = { list: { kind: 'failed', failure: failureWith({ kind: 'webhook' }), body: undefined } }
    const watch = run([refuse({ kind: 'invalid', status: 422 }), page, open(), broken])
    await watch.clock.advance(0)
    expect(watch.story()).toBe('reset failed:webhook')
    await watch.stop()
  })

  const page = (names: readonly string[], resourceVersion: string, next?: string): Reply => ({
    list: {
      kind: 'answer',
      status: 200,
      body: { metadata: { resourceVersion, ...(next && { continue: next }) }, items: names.map((name) => object(name, resourceVersion)) },
    },
  })
  const expired = (next?: string): Reply => ({
    list: {
      kind: 'failed',
      failure: failureWith({ status: 410, kind: 'server_error', reason: 'Expired' }),
      body: { kind: 'Status', code: 410, reason: 'Expired', metadata: { ...(next && { continue: next }) } },
    },
  })

  test('KA42 a list that expires goes on from where it was, and events since its first page are told after it', async () => {
    const replies = [
      refuse({ kind: 'invalid' }),
      page(['a', 'b'], '10', 'next'),
      open(modified('a', '12'), deleted('b', '13'), modified('a', '14')),
      page(['c'], '10', 'next'),
      expired('later'),
      expired('later'),
      page(['d'], '90'),
    ]
    const { clock, script, story, stop } = run(replies)
    await clock.advance(1_000)
    expect(script.asked).toEqual([START, 'list', '10', 'list', 'list', 'list', 'list'])
    expect(story()).toBe('reset present:a present:b present:c present:d synced changed:a removed:b')
    await stop()
    expect(script.held).toBe(0)
  })

  test('KA42 a list that only expires fails, and begins again after a wait', async () => {
    const expirations = Array.from({ length: 4 }, () => expired('later'))
    const { clock, script, story, stop } = run([
      refuse({ kind: 'invalid' }),
      page(['a'], '10', 'next'),
      open(),
      ...expirations,
      page(['a'], '20'),
    ])
    await clock.advance(0)
    expect(story()).toBe('reset present:a failed:server_error')
    expect(script.held).toBe(0)
    await clock.advance(2_000)
    expect(story()).toBe('reset present:a failed:server_error reset present:a synced')
    expect(script.asked.at(-1)).toBe('20')
    await stop()
  })

  test('KA40 a server that has not reached the position after an outage is listed again at once, without a failure', async () => {
    const watch = run([cut(initialEnd('50'), modified('a', '60')), refuse({ kind: 'unreachable' }), open(added('a', '7'), initialEnd('9'))])
    watch.script.checks.push(reached('59'))
    await watch.clock.advance(1_000)
    expect(watch.script.asked).toEqual([START, '60', 'check', START])
    expect(watch.story()).toBe('reset synced changed:a failed:unreachable reset present:a synced')
    await watch.stop()
  })

  test.each([
    [403, 'forbidden'],
    [405, 'invalid'],
  ])('KA40 a position that cannot be checked (%i) is resumed', async (status) => {
    const watch = run([cut(initialEnd('5')), refuse({ kind: 'unreachable' }), open(modified('a', '6'))])
    watch.script.checks.push({ status, body: { kind: 'Status', code: status } })
    await watch.clock.advance(1_000)
    expect(watch.script.asked).toEqual([START, '5', 'check', '5'])
    expect(watch.story()).toBe('reset synced failed:unreachable synced changed:a')
    await watch.stop()
  })

  test.each([
    ['answers the position', reached('60')],
    ['answers what cannot be compared', reached('')],
  ])('KA40 an API server that %s is followed on, without a list', async (_, answer) => {
    const watch = run([cut(initialEnd('50'), modified('a', '60')), refuse({ kind: 'unreachable' }), open(modified('a', '61'))])
    watch.script.checks.push(answer)
    await watch.clock.advance(1_000)
    expect(watch.script.asked).toEqual([START, '60', 'check', '60'])
    expect(watch.story()).toBe('reset synced changed:a failed:unreachable synced changed:a')
    await watch.stop()
  })

  test('KA40 one whose watch cache lags for long is waited for, and is no restored etcd', async () => {
    const watch = run([cut(initialEnd('50'), modified('a', '60')), refuse({ kind: 'unreachable' }), open(modified('a', '61'))])
    watch.script.checks.push(lags, lags, reached('61'))
    await watch.clock.advance(10_000)
    expect(watch.script.asked).toEqual([START, '60', 'check', 'check', 'check', '60'])
    expect(watch.story()).not.toContain('changed:a failed:unreachable reset')
    expect(watch.story()).toEndWith('synced changed:a')
    await watch.stop()
  })

  test('KA40 a check that fails is a failure of the watch, and is tried again', async () => {
    const watch = run([cut(initialEnd('5')), refuse({ kind: 'unreachable' }), open(modified('a', '6'))])
    watch.script.checks.push({ status: 503, body: { kind: 'Status', code: 503 } })
    await watch.clock.advance(2_000)
    expect(watch.script.asked).toEqual([START, '5', 'check', 'check', '5'])
    expect(watch.story()).toBe('reset synced failed:unreachable failed:server_error synced changed:a')
    await watch.stop()
  })

  test('KA41 a watch of one object starts over whenever its stream ends', async () => {
    const one = run([cut(added('a', '3'), initialEnd('5')), open(added('a', '3'), initialEnd('9'))], { fieldSelector: 'metadata.name=a' })
    await one.clock.advance(0)
    expect(one.script.asked).toEqual([START, START])
    expect(one.story()).toBe('reset present:a synced reset present:a synced')
    await one.stop()
  })

  test.each([
    ['reached', [reached('60')], ['check', '60'], 'reset synced changed:b'],
    ['not reached', [reached('59')], ['check', START], 'reset synced reset present:a synced'],
  ])('KA40 a start at a lower resourceVersion has open watches check their position: %s', async (what, checks, asked, story) => {
    const clock = createVirtualClock()
    const positions = new Positions()
    const after = what === 'reached' ? open(modified('b', '61')) : open(added('a', '7'), initialEnd('9'))
    const open60 = run([open(initialEnd('60')), after], { clock, positions })
    const open8 = run([open(initialEnd('8'))], { clock, positions })
    open60.script.checks.push(...checks)
    await clock.advance(0)
    const one = run([open(initialEnd('9'))], { clock, positions, fieldSelector: 'metadata.name=a' })
    await clock.advance(0)
    expect(open60.script.asked).toEqual([START, ...asked])
    expect(open60.story()).toBe(story)
    expect(open8.script.asked).toEqual([START])
    for (const watch of [open60, open8, one]) await watch.stop()
  })

  test('KA40 a position that was reached after the start was sent proves nothing', async () => {
    const positions = new Positions()
    let doubts = 0
    let position: string | null = '10'
    const leave = positions.join({ position: () => position, doubt: () => (doubts += 1) })
    const learn = positions.beforeRead()
    position = '12'
    learn('11')
    positions.beforeRead()('not-a-number')
    expect(doubts).toBe(0)
    positions.beforeRead()('9')
    expect(doubts).toBe(1)
    position = null
    positions.beforeRead()('9')
    leave()
    expect(doubts).toBe(1)
  })

  test('KA25 an abort ends it in a wait, in a silence, and gives the stream back', async () => {
    for (const replies of [[refuse({})], [open(initialEnd('1'))], [open()]]) {
      const watch = run(replies)
      await turnOfTheLoop()
      await watch.stop()
    }
  })
})
