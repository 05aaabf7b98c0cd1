// When a service may be changed: cron lines on the wall clock of a zone, over the days on which that clock is set.
import { describe, expect, test } from 'bun:test'
import { servicePart, serviceText } from '../../agent/messages/service-messages.ts'
import { type ChangeWindow, judgeWindows } from '../../agent/reconcile/plan/gates/windows.ts'
import { parseCron } from '../../shared/kube/cron-times.ts'
import { createZone } from '../../shared/kube/zone.ts'
import { SOME, said } from '../support/said.ts'

const at = (text: string): number => Date.parse(text)
const allow = (schedule: string, duration: string, timeZone = 'Europe/Oslo'): ChangeWindow => ({
  kind: 'allow',
  schedule,
  duration,
  timeZone,
})
const deny = (schedule: string, duration: string, timeZone = 'Europe/Oslo'): ChangeWindow => ({
  kind: 'deny',
  schedule,
  duration,
  timeZone,
})
const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString().slice(0, 16))

describe('WI1 windows', () => {
  const night = allow('0 22 * * mon-fri', '6h')
  const cases: Array<[string, ChangeWindow[], string, 'open' | 'closed', string | null]> = [
    ['none: always open', [], '2026-06-01T10:00Z', 'open', null],
    ['before an allow window', [night], '2026-06-01T10:00Z', 'closed', '2026-06-01T20:00'],
    ['at its first moment', [night], '2026-06-01T20:00Z', 'open', '2026-06-02T02:00'],
    ['past midnight', [night], '2026-06-02T01:59Z', 'open', '2026-06-02T02:00'],
    ['at its end', [night], '2026-06-02T02:00Z', 'closed', '2026-06-02T20:00'],
    ['over a weekend', [night], '2026-06-06T02:00Z', 'closed', '2026-06-08T20:00'],
    ['in winter the same wall clock is another hour', [night], '2026-12-01T20:30Z', 'closed', '2026-12-01T21:00'],
    ['in a deny window', [deny('0 0 24 12 *', '3d')], '2026-12-25T12:00Z', 'closed', '2026-12-26T23:00'],
    ['outside of a deny window', [deny('0 0 24 12 *', '3d')], '2026-12-23T22:00Z', 'open', '2026-12-23T23:00'],
    [
      'deny wins over allow',
      [allow('0 * * * *', '1h'), deny('0 12 * * *', '2h', 'UTC')],
      '2026-06-01T13:00Z',
      'closed',
      '2026-06-01T14:00',
    ],
    [
      'two that touch are one',
      [allow('0 8 * * *', '4h', 'UTC'), allow('0 12 * * *', '4h', 'UTC')],
      '2026-06-01T09:00Z',
      'open',
      '2026-06-01T16:00',
    ],
    ['openings that overlap stay open', [allow('*/10 8 * * *', '30m', 'UTC')], '2026-06-01T08:15Z', 'open', '2026-06-01T09:20'],
    ['half an hour off UTC', [allow('30 9 * * *', '1h', 'Asia/Kolkata')], '2026-06-01T04:00Z', 'open', '2026-06-01T05:00'],
    [
      'on the other side of the date line',
      [allow('0 6 * * mon', '2h', 'Pacific/Auckland')],
      '2026-05-31T18:30Z',
      'open',
      '2026-05-31T20:00',
    ],
    // Oslo: 2026-03-29 02:00 → 03:00, 2026-10-25 03:00 → 02:00.
    [
      'spring: an opening in the skipped hour comes at the jump',
      [allow('30 2 * * *', '1h')],
      '2026-03-28T23:30Z',
      'closed',
      '2026-03-29T01:00',
    ],
    ['spring: it is open for its whole duration', [allow('30 2 * * *', '1h')], '2026-03-29T01:30Z', 'open', '2026-03-29T02:00'],
    [
      'autumn: an opening in the hour that comes twice comes once',
      [allow('30 2 * * *', '15m')],
      '2026-10-25T00:31Z',
      'open',
      '2026-10-25T00:45',
    ],
    ['autumn: not the second time', [allow('30 2 * * *', '15m')], '2026-10-25T01:31Z', 'closed', '2026-10-26T01:30'],
    [
      'autumn: a window over the change lasts as long as it says',
      [allow('0 1 * * *', '3h')],
      '2026-10-25T01:59Z',
      'open',
      '2026-10-25T02:00',
    ],
    ['spring in New York', [allow('15 2 * * *', '1h', 'America/New_York')], '2026-03-08T06:00Z', 'closed', '2026-03-08T07:00'],
    [
      'Lord Howe moves by half an hour',
      [allow('15 2 4 10 *', '1h', 'Australia/Lord_Howe')],
      '2026-10-03T14:00Z',
      'closed',
      '2026-10-03T15:30',
    ],
    ['never: 30 February', [allow('0 0 30 2 *', '1h')], '2026-06-01T10:00Z', 'closed', null],
    ['every minute is always', [allow('* * * * *', '1m')], '2026-06-01T10:00Z', 'open', null],
  ]
  test.each(cases)('WI1 %s', (_, windows, nowText, word, changes) => {
    const verdict = judgeWindows(windows, at(nowText))
    expect({ word: verdict.closed === null ? 'open' : 'closed', changes: iso(verdict.changesAtMs) }).toEqual({ word, changes })
  })

  test('WI1 the message names the window and when it opens', () =>
    expect(judgeWindows([night], at('2026-06-01T10:00Z')).closed).toBe(
      serviceText('OutsideWindow.opens', {
        closed: serviceText('OutsideWindow.one', {
          windows: servicePart('window', { schedule: '0 22 * * mon-fri', duration: '6h', zone: 'Europe/Oslo' }),
        }),
        at: '2026-06-01T20:00Z',
      }),
    ))

  test.each([
    ['a schedule', allow('0 25 * * *', '1h')],
    ['a schedule of six fields', allow('0 0 0 * * *', '1h')],
    ['a duration', allow('0 0 * * *', '1 hour')],
    ['a duration beyond all', allow('0 0 * * *', '400d')],
    ['a zone', allow('0 0 * * *', '1h', 'Europe/Nowhere')],
  ])('WI1 %s that cannot be read closes', (_, window) => {
    const verdict = judgeWindows([window], at('2026-06-01T10:00Z'))
    expect(verdict.closed).toMatch(said(serviceText('OutsideWindow.invalid', { what: SOME })))
    expect(verdict.changesAtMs).toBeNull()
  })

  test('WI1 windows that follow each other by the minute hide their end for a while, not for ever', () => {
    const morning = deny('* 0-11 * * *', '1m', 'UTC')
    let nowMs = at('2026-06-01T00:00Z')
    for (let looks = 0; ; looks += 1) {
      const { closed, changesAtMs, checkedAgainAtMs } = judgeWindows([morning], nowMs)
      expect(closed).not.toMatch(said(serviceText('OutsideWindow.never', { closed: SOME })))
      nowMs = changesAtMs ?? checkedAgainAtMs ?? Number.NaN
      if (changesAtMs !== null) break
      expect(looks).toBeLessThan(5)
    }
    expect(nowMs).toBe(at('2026-06-01T12:00Z'))
  })

  test('WI1 the next change is one: a moment before it the verdict is the old one, at it the other', () => {
    const windows = [allow('0 1 * * *', '3h'), allow('30 2 * * sun', '2h'), deny('15 3 * * *', '20m')]
    for (let nowMs = at('2026-03-27T00:00Z'); nowMs < at('2026-03-31T00:00Z'); nowMs += 187 * 60_000) {
      const { closed, changesAtMs } = judgeWindows(windows, nowMs)
      if (changesAtMs === null) throw new Error('there is always a next')
      for (let t = nowMs; t < changesAtMs; t += 17 * 60_000) expect(judgeWindows(windows, t).closed === null).toBe(closed === null)
      expect(judgeWindows(windows, changesAtMs).closed === null).toBe(closed !== null)
    }
  })
})

describe('WI1 cron lines', () => {
  const day = (text: string) => Date.parse(text) / 86_400_000
  test.each([
    ['* * * * *', '2026-06-03', true, 1_440],
    ['*/15 9-17 * * 1-5', '2026-06-03', true, 36],
    ['*/15 9-17 * * 1-5', '2026-06-06', false, 36],
    ['0 0 13 * fri', '2026-06-13', true, 1],
    ['0 0 13 * fri', '2026-06-05', true, 1],
    ['0 0 13 * fri', '2026-06-06', false, 1],
    ['0 0 * jan,JUL 7', '2026-07-05', true, 1],
    ['5/20 3 * * *', '2026-06-03', true, 3],
  ] as const)('WI1 %s on %s', (line, date, isDay, minutes) => {
    const times = parseCron(line)
    expect([times?.isDay(day(date)), times?.minutes.length]).toEqual([isDay, minutes])
  })
  test.each([
    '',
    '* * * *',
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '* * * 13 *',
    '* * * * 8',
    '5-1 * * * *',
    '*/0 * * * *',
    'a * * * *',
    '1,,2 * * * *',
    '@daily',
  ])('WI1 %p is none', (line) => expect(parseCron(line)).toBeNull())
})

test('WI1 without a name the zone is the machine’s own', () =>
  expect(createZone(undefined)?.name).toBe(new Intl.DateTimeFormat().resolvedOptions().timeZone))
