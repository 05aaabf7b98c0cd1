// The delivery of notifications without a store: backoff, dead letters, one request at a time, and templates that fail.
import { describe, expect, test } from 'bun:test'
import type { GroupRecord } from '../../server/notify/groups.ts'
import { messageOf } from '../../server/notify/message.ts'
import { ATTEMPTS_MAX, type Channel, Outbox } from '../../server/notify/outbox.ts'
import { SinkError } from '../../server/notify/sinks/sink.ts'
import { renderMessage } from '../../server/render/liquid/message.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { naming } from '../support/naming.ts'

const recordOf = (id: number, change: Partial<GroupRecord> = {}): GroupRecord => ({
  ...{ id, project: 'shop', route: 'all', sink: 'hook', groupKey: `g${id}`, state: 'open', version: 1, sentVersion: 0, attempts: 0 },
  ...{ nextMs: 0, createdMs: 0, updatedMs: 0, sentMs: null, triedMs: 0, error: null, ref: null, inFlight: false },
  doc: {
    ...{ type: 'events', reason: 'Degraded', severity: 'critical', project: 'shop', service: 'web', after: null, message: 'no replica' },
    ...{ members: ['oslo'], ofClusters: true, unnamed: 0, total: 1, firstMs: 0, lastMs: 0, resolved: false },
  },
  ...change,
})

/** Runs until nothing is due any more; a sleep moves the clock. */
async function deliver(records: readonly GroupRecord[], send: Channel['send'], random = () => 1) {
  const stop = new AbortController()
  let nowMs = 1
  const clock: Clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    async sleep(ms, signal) {
      await new Promise((resolve) => setImmediate(resolve))
      if (signal?.aborted === true) return
      nowMs += ms
      if (records.every(({ nextMs, inFlight }) => nextMs === null && !inFlight)) stop.abort()
    },
  }
  const times: number[] = []
  const outbox = new Outbox({
    ...{
      store: { settle: async () => {} },
      records: () => records,
      dueOf: () => nowMs,
      onSettled: () => {},
      clock,
      random,
      log: silentLogger,
    },
    channel: () => ({
      ...{ paused: false, pauseMs: 0 },
      send: (record, version, signal) => {
        times.push(nowMs)
        return send(record, version, signal)
      },
    }),
  })
  await outbox.run(stop.signal, new AbortController().signal)
  return times
}
const failing = (options: ConstructorParameters<typeof SinkError>[1]) => () => Promise.reject(new SinkError('no', options))

describe('delivery', () => {
  test('NO3 waits double up to a quarter of an hour, and NO4 the twelfth failure is the last', async () => {
    const record = recordOf(1)
    const times = await deliver([record], failing({ retryable: true }))
    expect(times).toHaveLength(ATTEMPTS_MAX)
    const waits = times.slice(1).map((atMs, index) => (atMs - (times[index] ?? 0)) / 1_000)
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 900, 900, 900])
    expect(record).toMatchObject({ state: 'dead', attempts: ATTEMPTS_MAX, nextMs: null, error: 'no' })
  })

  test('NO3 a receiver that asks for more time gets it', async () => {
    const times = await deliver([recordOf(1)], failing({ retryable: true, retryAfterMs: 3_600_000 }), () => 0)
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBe(3_600_000)
  })

  test('NO4 a message that is a day old is not tried again', async () => {
    const record = recordOf(1)
    const times = await deliver([record], failing({ retryable: true, retryAfterMs: 10 * 3_600_000 }), () => 0)
    expect(times.map((atMs) => (atMs - (times[0] ?? 0)) / 3_600_000)).toEqual([0, 10, 20, 30])
    expect(record.state).toBe('dead')
  })

  test('NO4 the day begins with the first failed attempt, not with the delivery before', async () => {
    const day = 24 * 3_600_000
    const record = recordOf(1, { version: 2, sentVersion: 1, sentMs: -2 * day, createdMs: -2 * day })
    let failures = 2
    const times = await deliver([record], async () => {
      if (failures-- > 0) throw new SinkError('503', { retryable: true })
      return { ref: null, detail: '' }
    })
    expect(times).toHaveLength(3)
    expect(record).toMatchObject({ sentVersion: 2, attempts: 0, triedMs: 0, error: null })
  })

  test('NO4 a refusal for good is tried once', async () => {
    const record = recordOf(1)
    expect(await deliver([record], failing({ retryable: false }))).toHaveLength(1)
    expect(record.state).toBe('dead')
  })

  test('NO3 one sink has one request at a time; another sink does not wait for it', async () => {
    const records = [...Array.from({ length: 5 }, (_, index) => recordOf(index)), recordOf(9, { sink: 'other' })]
    const open = new Map<string, number>()
    let most = 0
    let together = 0
    await deliver(records, async ({ sink }) => {
      open.set(sink, (open.get(sink) ?? 0) + 1)
      most = Math.max(most, open.get(sink) ?? 0)
      together = Math.max(
        together,
        [...open.values()].reduce((sum, count) => sum + count, 0),
      )
      await new Promise((resolve) => setImmediate(resolve))
      open.set(sink, (open.get(sink) ?? 0) - 1)
      return { ref: null, detail: '' }
    })
    expect({ most, together }).toEqual({ most: 1, together: 2 })
    expect(records.every(({ sentVersion }) => sentVersion === 1)).toBe(true)
  })
})

describe('templates', () => {
  const render = (renderTexts: Parameters<typeof messageOf>[3]['renderTexts']) =>
    messageOf(recordOf(1), 1, { title: 'T', text: 'X' }, { instance: 'i', url: () => 'https://skerry.example', renderTexts })

  test('NT8 the texts of a template, bounded, the title on one line', async () => {
    const message = await render(async () => ({ texts: { title: `a\n b${'c'.repeat(500)}`, text: 'x'.repeat(20_000) } }))
    expect([message.title.slice(0, 4), message.title.length, message.text.length]).toEqual(['a bc', 300, 8_000])
  })

  test.each([
    ['{{ message.severity }}: {{ message.title | upcase }}', 'critical: T', null],
    ['{% for one in message.members limit: 1 %}{{ one }}{% endfor %}', 'oslo', null],
    ['{{ message.severty }}', null, ['message.severty', 'message.severity?']],
    ['{{ message.secret }}', null, ['message.secret', 'members, severity, title']],
    ['{{ config.password }}', null, ['config.password', 'have message']],
    ['{{ message', null, ['not closed']],
    ['{% for a in (1..100000) %}{% for b in (1..100000) %}x{% endfor %}{% endfor %}', null, []],
  ])('NT8 %s', (text, expected, problem) => {
    const { texts, problems } = renderMessage({ text }, { severity: 'critical', title: 't', members: ['oslo', 'bergen'] })
    if (problem === null) expect({ texts, problems }).toEqual({ texts: { text: expected ?? '' }, problems: [] })
    else expect(problems[0]?.message).toEqual(naming(...problem))
  })

  test.each([
    ['a template that does not render', async () => ({ problem: 'title: unknown name', problems: [] })],
    ['a worker that ends', () => Promise.reject(new Error('killed'))],
  ])('NT8 %s: the standard text, and the error', async (_, renderTexts) => {
    const { title, text } = await render(renderTexts)
    expect(title).toBe('shop/web: Degraded in oslo')
    expect(text).toContain('no replica')
    expect(text).toContain('(template failed: ')
  })
})
