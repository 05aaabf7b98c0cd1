// Which request begins when: the scheduler alone, on a clock that the test moves.
import { describe, expect, test } from 'bun:test'
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { type Common, commonCause, inCommon, type Target, verdictOf } from '../../agent/reconcile/requests/blame.ts'
import { FairQueue, type Ticket } from '../../agent/reconcile/requests/fair-queue.ts'
import { PAUSE_MAX_MS, REQUESTS_MAX, RequestScheduler, SLOW_MAX } from '../../agent/reconcile/requests/request-scheduler.ts'
import { SLOW_MS } from '../../agent/reconcile/requests/slowness.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const failure = (kind: ApiFailure['kind'], more: Partial<ApiFailure> = {}): ApiFailure => ({
  kind,
  status: 500,
  reason: '',
  message: kind,
  ...more,
})
const busy = failure('throttled', { status: 429 })
const target = (kind: string, namespace: string, access: Target['access'] = 'write'): Target => ({ access, kind, namespace })

interface Sent extends Partial<Ticket> {
  takesMs?: number
  answer?: ApiFailure | null
}

function setup(max = REQUESTS_MAX) {
  const clock = createVirtualClock()
  const own = clock.process(0)
  const stop = new AbortController()
  const requests = new RequestScheduler({ clock: own, signal: stop.signal, max })
  const startMs = clock.nowMs()
  const sent: Array<{ service: string; atMs: number }> = []
  let running = 0
  const most = { running: 0 }
  const jobOf = ({
    service = 'a',
    purpose = 'other',
    access = 'write',
    kind = '/ConfigMap',
    namespace = 'x',
    takesMs = 0,
    answer = null,
  }: Sent) => {
    const ticket: Ticket = { service, purpose, access, kind, namespace }
    const ask = async () => {
      sent.push({ service, atMs: clock.nowMs() - startMs })
      running += 1
      most.running = Math.max(most.running, running)
      if (takesMs > 0) await clock.sleep(takesMs)
      else await Promise.resolve()
      running -= 1
      return answer
    }
    return { ticket, ask }
  }
  const send = (options: Sent = {}) => {
    const { ticket, ask } = jobOf(options)
    return requests.run(ticket, (place) => place.send(ticket, ask, (answer) => answer))
  }
  const sendAll = (service: string, count: number, options: Sent = {}, isOver = () => false) => {
    const { ticket, ask } = jobOf({ service, ...options })
    const job = {
      ticket,
      work: async (place: Parameters<Parameters<typeof requests.run>[1]>[0]) => void (await place.send(ticket, ask, (answer) => answer)),
    }
    return requests.all(
      service,
      Array.from({ length: count }, () => job),
      isOver,
    )
  }
  const sentBy = (service: string) => sent.filter((request) => request.service === service)
  return { clock, own, stop, requests, sent, sentBy, send, sendAll, most, running: () => running }
}

describe('RC9 the API server', () => {
  test('gets never more than its limit at once, which an overload halves and good answers grow again', async () => {
    const { requests, send, sendAll, most } = setup(10)
    await sendAll('a', 100)
    // The rest is for healing (RC28).
    expect(most.running).toBe(8)
    await send({ answer: busy })
    expect(requests.limit()).toBe(5)
    for (let count = 0; count < 4; count += 1) await send({ answer: busy })
    expect(requests.limit()).toBe(1)
    most.running = 0
    await sendAll('a', 4)
    expect(most.running).toBeLessThanOrEqual(2)
    await sendAll('a', 200)
    expect(requests.limit()).toBe(10)
  })

  test('twenty refusals of one burst halve the limit once', async () => {
    const { requests, send, sendAll } = setup(8)
    await send()
    await sendAll('a', 7, { answer: busy })
    expect(requests.limit()).toBe(4)
    await send({ answer: busy })
    expect(requests.limit()).toBe(2)
  })

  test('is asked for nothing before the time of a Retry-After', async () => {
    const { clock, sent, send, sendAll } = setup()
    await send({ answer: { ...busy, retryAfterMs: 5_000 } })
    const later = sendAll('a', 20, { purpose: 'heal' })
    await clock.advance(4_999)
    expect(sent).toHaveLength(1)
    await clock.advance(1)
    await later
    expect(sent.slice(1).map(({ atMs }) => atMs)).toEqual(Array.from({ length: 20 }, () => 5_000))
  })

  test('a longer time replaces a shorter one, and no time is longer than a minute', async () => {
    const { clock, sent, send } = setup()
    await Promise.all(
      [1_000, 86_400_000, 2_000].map((retryAfterMs) => send({ service: `s${retryAfterMs}`, answer: { ...busy, retryAfterMs } })),
    )
    const later = send()
    await clock.advance(PAUSE_MAX_MS - 1)
    expect(sent).toHaveLength(3)
    await clock.advance(1)
    await later
    expect(sent.at(-1)?.atMs).toBe(PAUSE_MAX_MS)
  })

  test('RC17 a clock that is set back makes no pause longer', async () => {
    const { clock, own, requests, sent, send } = setup()
    await send({ answer: { ...busy, retryAfterMs: 5_000 } })
    own.setBy(-3_600_000)
    expect(requests.pausedForMs()).toBe(5_000)
    const later = send()
    await clock.advance(5_000)
    await later
    expect(sent.at(-1)?.atMs).toBe(5_000)
    expect(requests.pausedForMs()).toBeNull()
  })

  test('a stop ends the wait, and what a turn had not begun is not begun', async () => {
    const { stop, sent, send, sendAll } = setup()
    await send({ answer: { ...busy, retryAfterMs: 5_000 } })
    const [later, batch] = [send(), sendAll('b', 5, {}, () => stop.signal.aborted)]
    stop.abort()
    await Promise.all([later, batch])
    expect(sent.map(({ service }) => service)).toEqual(['a', 'a'])
  })

  test('more and more begin within one batch as it recovers', async () => {
    const { clock, send, sendAll, running } = setup()
    for (let count = 0; count < 5; count += 1) await send({ answer: busy })
    const batch = sendAll('a', 400, { takesMs: 100 })
    await clock.advance(50)
    expect(running()).toBe(1)
    await clock.advance(3_000)
    expect(running()).toBeGreaterThan(6)
    await clock.advance(60_000)
    await batch
  })
})

describe('RC28 services', () => {
  test('get their places by turns, each in its own order', async () => {
    const { clock, sent, sendAll } = setup(1)
    const all = [sendAll('a', 4, { takesMs: 1 }), sendAll('b', 2, { takesMs: 1 }), sendAll('c', 1, { takesMs: 1 })]
    await clock.advance(100)
    await Promise.all(all)
    expect(sent.map(({ service }) => service).join('')).toBe('aabcaba')
  })

  test('what heals begins before what waits, in places that nothing else takes', async () => {
    const { clock, running, send, sendAll, sentBy } = setup()
    await Promise.all([send(), send({ service: 'h' })])
    void sendAll('a', 100, { takesMs: 900 })
    await clock.advance(1)
    expect(running()).toBe(16)
    void sendAll('h', 4, { purpose: 'heal', takesMs: 900 })
    await clock.advance(1)
    expect(sentBy('h')).toHaveLength(5)
    await clock.advance(60_000)
  })

  test('a flood of healing leaves places to the rest', async () => {
    const { clock, sendAll, sentBy } = setup()
    void sendAll('a', 30, { takesMs: 900 })
    void sendAll('h', 1_000, { purpose: 'heal', takesMs: 900 })
    await clock.advance(5_000)
    expect(sentBy('a')).toHaveLength(30)
    await clock.advance(90_000)
  })

  test.each([2, 3, 4])('a flood of healing leaves one of %d places to the rest', async (max) => {
    const { clock, sendAll, sentBy } = setup(max)
    void sendAll('h', 1_000, { purpose: 'heal', takesMs: 900 })
    await clock.advance(1)
    void sendAll('a', 4, { takesMs: 900 })
    await clock.advance(5_000)
    expect(sentBy('a')).toHaveLength(4)
    expect(sentBy('h').length).toBeGreaterThan(4)
  })

  test('a single place is taken by turns, of those that may begin', async () => {
    const { clock, sent, sendAll } = setup(1)
    void sendAll('a', 3, { takesMs: 10 })
    void sendAll('h', 6, { purpose: 'heal', takesMs: 10 })
    await clock.advance(200)
    expect(sent.map(({ service }) => service).join('')).toBe('ahahahhhh')
  })

  test('a batch ends with what had begun when it is over, without waiting for a place', async () => {
    const { clock, requests, sendAll, sentBy } = setup(1)
    const first = sendAll('a', 1, { takesMs: 500 })
    let over = false
    let ended = false
    const second = sendAll('b', 50, {}, () => over).then(() => {
      ended = true
    })
    over = true
    requests.reconsider('b')
    await clock.advance(1)
    expect([ended, sentBy('b').length]).toEqual([true, 0])
    await clock.advance(1_000)
    await Promise.all([first, second])
  })

  test('the error of one job ends its batch after what had begun, and no other', async () => {
    const { requests, sendAll } = setup(1)
    const ticket: Ticket = { service: 'b', purpose: 'other', ...target('/ConfigMap', 'x') }
    const broken = requests.all('b', [{ ticket, work: () => Promise.reject(new Error('a bug')) }], () => false)
    await expect(broken).rejects.toThrow('a bug')
    await sendAll('a', 3)
  })
})

describe('RC27 slow requests', () => {
  const hang = { takesMs: 10_000 }

  test('give up their places to others after a second, and what is like them waits for few places', async () => {
    const { clock, running, sendAll, sentBy } = setup()
    for (let index = 0; index < 20; index += 1) void sendAll(`slow-${index}`, 60, { ...hang, namespace: `n${index}` })
    await clock.advance(SLOW_MS + 1)
    expect(running()).toBe(16)
    void sendAll('b', 8, { kind: 'apps/Deployment', namespace: 'b', takesMs: 5 })
    await clock.advance(20)
    expect(sentBy('b')).toHaveLength(8)
    await clock.advance(15_000)
    expect(running()).toBe(SLOW_MAX)
  })

  test.each([
    ['all', REQUESTS_MAX],
    ['a single one', 1],
  ])('RC28 healing that is slow leaves places to what is slow besides: %s', async (_, max) => {
    const { clock, sendAll, sentBy } = setup(max)
    const known = [sendAll('h', 1, { ...hang, purpose: 'heal' }), sendAll('a', 1, { ...hang, namespace: 'y' })]
    await clock.advance(20_001)
    await Promise.all(known)
    void sendAll('h', 1_000, { ...hang, purpose: 'heal' })
    void sendAll('a', 3, { ...hang, namespace: 'y' })
    await clock.advance(60_000)
    expect(sentBy('a')).toHaveLength(4)
    expect(sentBy('h').length).toBeGreaterThan(3)
  })

  test('RC17 are slow no later than a second after the clock was set back', async () => {
    const { clock, own, sendAll, sentBy } = setup()
    for (let index = 0; index < 20; index += 1) void sendAll(`slow-${index}`, 60, { ...hang, namespace: `n${index}` })
    await clock.advance(SLOW_MS / 2)
    own.setBy(-3_600_000)
    void sendAll('b', 8, { kind: 'apps/Deployment', namespace: 'b', takesMs: 5 })
    await clock.advance(2 * SLOW_MS)
    expect(sentBy('b')).toHaveLength(8)
  })

  test.each([
    ['quick, when the date is set ahead meanwhile', 10, 3_600_000, 16],
    ['slow, when it is set back', 5_000, -3_600_000, SLOW_MAX],
  ])('RC17 are told by the time that passes: %s', async (_, takesMs, setByMs, atOnce) => {
    const { clock, own, sendAll, most } = setup()
    const first = sendAll('a', 1, { takesMs })
    await clock.advance(takesMs / 2)
    own.setBy(setByMs)
    await clock.advance(takesMs)
    await first
    most.running = 0
    const all = sendAll('a', 100, { takesMs: 100 })
    await clock.advance(50)
    expect(most.running).toBe(atOnce)
    await clock.advance(10_000)
    await all
  })

  test('a service of which nothing is known begins with two to each target', async () => {
    const { clock, running, sendAll } = setup()
    void sendAll('a', 60, { takesMs: 100 })
    void sendAll('a', 60, { takesMs: 100, kind: '/Secret' })
    await clock.advance(1)
    expect(running()).toBe(4)
    await clock.advance(100)
    expect(running()).toBe(16)
    await clock.advance(10_000)
  })

  test('services behind them go on by turns', async () => {
    const { clock, sendAll, sentBy } = setup()
    const services = Array.from({ length: 12 }, (_, index) => `slow-${index}`)
    for (const service of services) void sendAll(service, 100, hang)
    await clock.advance(200_000)
    const counts = services.map((service) => sentBy(service).length)
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(3)
    expect(Math.min(...counts)).toBeGreaterThan(5)
  })

  test('a service of the same kind and namespace whose requests are quick keeps its places, and healing is not suspected', async () => {
    const { clock, send, sendAll, sentBy } = setup()
    await send({ service: 'b' })
    for (let index = 0; index < 20; index += 1) void sendAll(`slow-${index}`, 60, hang)
    await clock.advance(SLOW_MS + 1)
    void sendAll('b', 10, { takesMs: 1 })
    void sendAll('h', 10, { purpose: 'heal', takesMs: 1 })
    await clock.advance(20)
    expect([sentBy('b').length, sentBy('h').length]).toEqual([11, 10])
    await clock.advance(1)
  })

  test('what was slow is quick again after one quick answer', async () => {
    const { clock, sendAll, most } = setup()
    const slow = sendAll('a', 1, hang)
    await clock.advance(10_001)
    await slow
    most.running = 0
    const all = sendAll('a', 100, { takesMs: 10 })
    await clock.advance(1_000)
    await all
    expect(most.running).toBeGreaterThan(SLOW_MAX)
  })

  test('a namespace in which all hangs says nothing of the same kinds in others', async () => {
    const { clock, sendAll, sentBy } = setup()
    for (const kind of ['/ConfigMap', '/Secret', 'apps/Deployment']) void sendAll(`slow${kind}`, 60, { ...hang, kind, namespace: 'broken' })
    await clock.advance(SLOW_MS + 1)
    void sendAll('b', 10, { kind: '/ConfigMap', namespace: 'b', takesMs: 1 })
    await clock.advance(20)
    expect(sentBy('b')).toHaveLength(10)
    // A kind that was never sent there is suspected.
    void sendAll('c', 40, { kind: '/Service', namespace: 'broken', ...hang })
    await clock.advance(20)
    expect(sentBy('c').length).toBeLessThanOrEqual(SLOW_MAX)
    await clock.advance(1)
  })
})

describe('RC29 causes', () => {
  const down = failure('webhook', { message: 'failed calling webhook "check.example.com": timeout' })

  test('a webhook that fails has a limit of its own, and the API server keeps its', async () => {
    const { clock, requests, sendAll, most, sentBy } = setup()
    for (let round = 0; round < 6; round += 1) await sendAll('a', 20, { answer: down })
    expect(requests.limit()).toBe(REQUESTS_MAX)
    most.running = 0
    const failing = sendAll('a', 20, { answer: down, takesMs: 100 })
    await clock.advance(150)
    expect(most.running).toBe(1)
    void sendAll('b', 10, { takesMs: 1 })
    await clock.advance(10)
    expect(sentBy('b')).toHaveLength(10)
    await clock.advance(10_000)
    await failing
  })

  test('a cause that was forgotten and came back counts none of what had begun before', async () => {
    const { clock, requests, sendAll, most } = setup()
    const run = (service: string, answers: ReadonlyArray<ApiFailure | null>) => {
      const ticket: Ticket = { service, purpose: 'other', ...target('/ConfigMap', 'x') }
      return requests.run(ticket, async (place) => {
        for (const answer of answers)
          await place.send(
            ticket,
            async () => answer,
            () => answer,
          )
      })
    }
    await run('a', [down])
    await run('b', [down])
    await run('a', Array<null>(400).fill(null))
    await run('b', Array<ApiFailure>(6).fill(down))
    const failing = sendAll('b', 20, { answer: down, takesMs: 100 })
    await clock.advance(150)
    expect(most.running).toBe(1)
    await clock.advance(10_000)
    await failing
  })

  test('a cause is forgotten once its lanes answer well again, so that a later outage begins with the whole limit', async () => {
    const { requests, send } = setup()
    const error = failure('server_error')
    for (let round = 0; round < 8; round += 1) await send({ kind: 'example.com/Thing', answer: error })
    expect([...requests.causes().values()]).toEqual([1])
    for (let round = 0; round < 3; round += 1) await send({ kind: 'example.com/Thing' })
    expect(requests.causes().size).toBe(0)
  })

  test('of a thousand preview namespaces that failed and went, a bounded number of causes is kept', async () => {
    const { requests, send } = setup()
    for (let index = 0; index < 1_100; index += 1) await send({ namespace: `n${index}`, answer: failure('webhook') })
    expect(requests.causes().size).toBe(1_024)
  })

  test('errors of one kind lower that kind; errors of everything lower the API server', async () => {
    const error = failure('server_error')
    const { requests, send } = setup()
    for (const namespace of ['x', 'y', 'z']) await send({ kind: 'example.com/Thing', namespace, answer: error })
    expect(requests.limit()).toBe(REQUESTS_MAX)
    await send({ kind: 'apps/Deployment', namespace: 'w', answer: error })
    expect(requests.limit()).toBe(REQUESTS_MAX / 2)
  })

  const a = target('/ConfigMap', 'x')
  const all = (targets: readonly Target[]) => targets.reduce<Common | null>((common, next) => inCommon(common, next), null)
  test.each([
    ['one target', [a, a], 'target write /ConfigMap x'],
    ['one kind in two namespaces', [a, target('/ConfigMap', 'y')], 'kind write /ConfigMap'],
    ['two kinds in one namespace', [a, target('/Secret', 'x')], 'namespace x'],
    ['two kinds without a namespace', [target('/Node', ''), target('/Namespace', '')], null],
    ['neither in common', [a, target('/Secret', 'y')], null],
    ['neither, and the first one again', [a, target('/Secret', 'y'), a], null],
    ['reads and writes of one kind', [a, target('/ConfigMap', 'y', 'read')], null],
  ] as const)('what failed has in common: %s', (_, targets, cause) => expect(commonCause(all(targets) as Common)).toBe(cause))

  test('of ten thousand targets that failed no more is kept than of two', () => {
    const many = Array.from({ length: 10_000 }, (_, index) => target('/ConfigMap', `n${index}`))
    expect(all(many)).toEqual({ kind: { access: 'write', kind: '/ConfigMap' }, namespace: null })
  })

  test.each([
    ['no failure', null, 5, { kind: 'good' }],
    ['a refusal', failure('forbidden'), 5, { kind: 'good' }],
    ['a conflict after a long time', failure('conflict'), 40_000, { kind: 'good' }],
    ['429', failure('throttled', { retryAfterMs: 3_000 }), 5, { kind: 'overload', pauseMs: 3_000 }],
    ['429 of storage that starts', failure('throttled', { message: 'storage is (re)initializing' }), 5, { kind: 'error' }],
    ['no connection', failure('unreachable', { status: 0 }), 5, { kind: 'overload', pauseMs: 0 }],
    ['no answer within the time of a request', failure('unreachable', { status: 0 }), 65_000, { kind: 'error' }],
    ['a list that the agent stopped', failure('unreachable', { status: 0, reason: 'Stopped' }), 5, { kind: 'good' }],
    ['5xx', failure('server_error'), 5, { kind: 'error' }],
    ['a webhook', down, 5, { kind: 'webhook', name: 'check.example.com' }],
    ['a webhook without a name', failure('webhook'), 5, { kind: 'webhook', name: null }],
  ] as const)('verdict on %s', (_, answer, tookMs, verdict) => expect(verdictOf(answer, tookMs)).toEqual(verdict))
})

describe('RC28 the queue', () => {
  const queued = (service: string, kind: string) => ({ ticket: { service, purpose: 'other', ...target(kind, 'x') } as Ticket })
  const any = () => true

  test('a lane that may not begin holds up nothing but itself', () => {
    const queue = new FairQueue()
    for (const entry of [queued('a', '/Secret'), queued('a', '/ConfigMap'), queued('b', '/Secret')]) queue.push(entry)
    const isFree = ({ kind }: Ticket) => kind !== '/Secret'
    expect(queue.take(isFree)?.ticket).toMatchObject({ service: 'a', kind: '/ConfigMap' })
    expect(queue.take(isFree)).toBeNull()
    expect(queue.take(any)?.ticket.service).toBe('b')
    expect(queue.take(any)?.ticket.service).toBe('a')
    expect(queue.isEmpty()).toBe(true)
  })

  test('takes out whole lanes in their order, and single requests of one service', () => {
    const queue = new FairQueue<ReturnType<typeof queued> & { n: number }>()
    for (let n = 0; n < 6; n += 1) queue.push({ ...queued(n % 2 === 0 ? 'a' : 'b', n < 4 ? '/Secret' : '/ConfigMap'), n })
    expect(queue.takeLanes(({ kind }) => kind === '/Secret').map(({ n }) => n)).toEqual([0, 2, 1, 3])
    expect(queue.remove('a', ({ n }) => n === 4)).toBe(1)
    expect(queue.remove('a', any)).toBe(0)
    expect(queue.take(any)?.n).toBe(5)
    expect(queue.isEmpty()).toBe(true)
  })
})
